// This file has the flags for traces of storage accesses.

package cli

import (
	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/formats/format"
)

// StorageFlags are the flags for traces of storage accesses.
type StorageFlags struct {
	blockSize  int64
	maxRecords int64
	lbaUnit    string
	anyOrder   bool
}

// Register adds the flags to the command.
func (f *StorageFlags) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	SizeVar(flags, &f.blockSize, "block-size", 0, "block of a storage trace, where its format leaves that open "+
		"(default: 512)")
	flags.Int64Var(&f.maxRecords, "max-records", 0, "read so many records of a storage trace at most; 0: all")
	flags.StringVar(&f.lbaUnit, "lba-unit", "block", "what addresses of a storage trace count: block or byte")
	flags.BoolVar(&f.anyOrder, "any-order", false, "accept times of a storage trace that decrease, with a warning")
	CompleteWith(cmd, "lba-unit", []string{"block", "byte"})
}

func (f *StorageFlags) options() (format.StorageOptions, error) {
	o := format.StorageOptions{BlockSize: f.blockSize, MaxRecords: f.maxRecords, AnyOrder: f.anyOrder}
	switch f.lbaUnit {
	case "byte":
		o.ByteAddress = true
	case "block", "": // "" where the flags were not registered
	default:
		return o, Usagef("--lba-unit: expected block or byte, found %q", f.lbaUnit)
	}
	if f.blockSize < 0 || f.maxRecords < 0 {
		return o, Usagef("--block-size and --max-records: expected 0 or more")
	}
	return o, nil
}
