package backends_test

import (
	"testing"

	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/param/paramtest"
	"github.com/tracedag/tracedag/sim/backends"
)

// FuzzParams sets the parameters of all backends.
func FuzzParams(f *testing.F) {
	var tables []func() param.Set
	for _, kind := range backends.All {
		tables = append(tables, func() param.Set { return kind.New().Params() })
	}
	paramtest.Fuzz(f, tables...)
}
