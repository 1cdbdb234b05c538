package formats

import (
	"testing"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/param/paramtest"
)

// FuzzOptions sets the options of all formats.
func FuzzOptions(f *testing.F) {
	var tables []func() param.Set
	for i := range All {
		for _, table := range []*format.OptionTable{All[i].Options, All[i].WriteOptions} {
			if table != nil {
				tables = append(tables, func() param.Set { return table.New().Params() })
			}
		}
	}
	paramtest.Fuzz(f, tables...)
}
