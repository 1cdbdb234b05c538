package blockio

import (
	"errors"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// Options are the options of all block-storage formats. The zero value selects the rules of each format.
type Options struct {
	BlockSize   int64 // block size in bytes, if the format does not define it; 0: 512
	MaxRecords  int64 // maximum number of records to read; 0: all
	ByteAddress bool  // addresses are in bytes, if the format counts blocks
	AnyOrder    bool  // accept decreasing times, with a warning
}

// Table is the option table of all block-storage formats.
var Table = &format.OptionTable{
	Name: "storage", Title: "block-storage traces",
	New: func() format.Options { return new(Options) },
}

// Params returns the parameters of the options.
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
	records := param.Int(&o.MaxRecords, "max-records", "maximum number of records to read from a storage trace; 0: all")
	return param.Set{
		param.Size(&o.BlockSize, "block-size", "size of a block in storage traces whose format does not define it").
			Default("512").Check(negative),
		records.Check(negative),
		param.Choice(&unit, "lba-unit", "unit of addresses in a storage trace", "block", "byte").Check(func() error {
			o.ByteAddress = unit == "byte"
			return nil
		}),
		param.Bool(&o.AnyOrder, "any-order", "accept decreasing times in a storage trace, with a warning"),
	}
}

// optionsOf returns the options of reading as block-storage options.
func optionsOf(o *format.ReadOptions) *Options {
	return format.Own(o.Own, func() *Options { return new(Options) })
}
