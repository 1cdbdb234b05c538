package vef

import (
	"fmt"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// WriteOptions are the options of writing VEF.
type WriteOptions struct {
	Version int // 3, or 1 for readers without a clock field
}

// newest is the default version.
const newest = 3

var writeTable = &format.OptionTable{
	Name: "vef", Title: "VEF traces",
	New: func() format.Options { return newWriteOptions() },
	Misplaced: func(option, value, _ string, f *format.Format) (string, error) {
		if value != "1" {
			return "", nil
		}
		return "", fmt.Errorf("--%s: expected an output in VEF, found %s", option, f.Name)
	},
}

func newWriteOptions() *WriteOptions { return &WriteOptions{Version: newest} }

// Params returns the parameters of the options.
func (o *WriteOptions) Params() param.Set {
	version := param.Int(&o.Version, "vef-version", "VEF version to write: 3, or 1 for readers without a clock field")
	return param.Set{version.Check(func() error {
		if o.Version != 1 && o.Version != newest {
			return param.Errorf(version.Name, "expected 1 or 3, found %d", o.Version)
		}
		return nil
	})}
}
