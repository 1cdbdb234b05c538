// Package formats is the registry of trace formats: it maps names, file name endings and signatures to the
// packages that read and write them. To add a format, add one line to package base.
package formats

import (
	"slices"

	"github.com/tracedag/tracedag/formats/base"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/nsys"
)

// Default is the name of the default output format.
const Default = format.Default

// All lists every format in probe order: the formats of package base, and nsys, which links an SQLite engine. Nsys
// precedes mpi because mpi claims every file whose name contains a number.
var All = before("mpi", nsys.Format)

// before returns the formats of package base with f inserted before the format called name.
func before(name string, f format.Format) List {
	at := slices.IndexFunc(base.Formats, func(f format.Format) bool { return f.Name == name })
	return slices.Insert(slices.Clone(base.Formats), at, f)
}

// List is a set of formats in probe order.
type List = format.List
