// Package formats is the registry of trace formats: it binds their names, file name endings and signatures to the
// packages that read and write them. Adding a format is one line in package base.
package formats

import (
	"slices"

	"github.com/tracedag/tracedag/formats/base"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/nsys"
)

// Default is the name of the format that is written unless another is asked for.
const Default = format.Default

// All is every format, in probe order: those of package base, and nsys, which links an SQLite engine. Nsys precedes
// mpi, which claims every file whose name has a number.
var All = before("mpi", nsys.Format)

// before returns the formats of package base with another one inserted before the one of a name.
func before(name string, f format.Format) List {
	at := slices.IndexFunc(base.Formats, func(f format.Format) bool { return f.Name == name })
	return slices.Insert(slices.Clone(base.Formats), at, f)
}

// List is a set of formats, in probe order.
type List = format.List
