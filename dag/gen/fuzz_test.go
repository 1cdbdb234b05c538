package gen_test

import (
	"testing"

	"github.com/tracedag/tracedag/dag/gen"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/param/paramtest"
)

// FuzzParams sets the parameters of all generators.
func FuzzParams(f *testing.F) {
	var tables []func() param.Set
	for _, g := range gen.All {
		tables = append(tables, func() param.Set { return g.New().Params() })
	}
	paramtest.Fuzz(f, tables...)
}
