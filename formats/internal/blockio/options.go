package blockio

import (
	"errors"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// Options are the options of all traces of block storage. The zero value is each format's own rules.
type Options struct {
	BlockSize   int64 // bytes of a block, if the format leaves that open; 0: 512
	MaxRecords  int64 // number of records to read at most; 0: all
	ByteAddress bool  // addresses are in bytes, if the format has them in blocks
	AnyOrder    bool  // accept times that decrease, with a warning
}

// Table is the table of the options of all formats of block storage.
var Table = &format.OptionTable{
	Name: "storage", Title: "traces of block storage",
	New: func() format.Options { return new(Options) },
}

// Params returns the table of the options.
func (o *Options) Params() param.Set {
	unit := "block"
	if o.ByteAddress {
		unit = "byte"
	}
	negative := func() error {
		if o.BlockSize < 0 || o.MaxRecords < 0 {
			return &param.Error{Err: errors.New("--block-size and --max-records: expected 0 or more")}
		}
		return nil
	}
	records := param.Int(&o.MaxRecords, "max-records", "number of records of a storage trace to read at most; 0: all")
	return param.Set{
		param.Size(&o.BlockSize, "block-size", "block of a storage trace, if its format leaves that open").Default(
			"512").
			Check(negative),
		records.Check(negative),
		param.Choice(&unit, "lba-unit", "unit of addresses in a storage trace", "block", "byte").Check(func() error {
			o.ByteAddress = unit == "byte"
			return nil
		}),
		param.Bool(&o.AnyOrder, "any-order", "accept times of a storage trace that decrease, with a warning"),
	}
}

// optionsOf returns the options of reading as those of block storage.
func optionsOf(o *format.ReadOptions) *Options {
	return format.Own(o.Own, func() *Options { return new(Options) })
}
