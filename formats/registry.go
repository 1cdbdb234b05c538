// Package formats is the registry of trace formats: it binds their names, file name endings and signatures to the
// packages that read and write them. Adding a format is one line in All.
package formats

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/blkparse"
	"github.com/tracedag/tracedag/formats/blktracer"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/chakra/feeder"
	"github.com/tracedag/tracedag/formats/chakra/pytorch"
	"github.com/tracedag/tracedag/formats/chakra/stg"
	"github.com/tracedag/tracedag/formats/chakra/text"
	"github.com/tracedag/tracedag/formats/disksim"
	"github.com/tracedag/tracedag/formats/fio"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/goal"
	"github.com/tracedag/tracedag/formats/hpcc"
	"github.com/tracedag/tracedag/formats/htsim"
	"github.com/tracedag/tracedag/formats/mpi"
	"github.com/tracedag/tracedag/formats/msr"
	"github.com/tracedag/tracedag/formats/nsys"
	"github.com/tracedag/tracedag/formats/spc"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/formats/trafpy"
	"github.com/tracedag/tracedag/formats/vef"
)

// Default is the format that programs write unless told otherwise: the store, the only format that keeps everything,
// provenance included.
const Default = "store"

// All is every format, in probe order.
var All = List{
	store.Format,
	goal.Binary,
	goal.Text,
	vef.Format,
	nsys.Format, // before mpi, which takes every name with a number for a file of its own
	mpi.Format,
	chakra.Format,
	chakra.JSON,
	text.Format,
	pytorch.Format,
	stg.Format,
	feeder.Format,
	spc.Format,
	msr.Format,
	blkparse.Format,
	fio.Format,
	disksim.DiskSim,
	disksim.MQSim,
	blktracer.Format,
	trafpy.JSON,
	trafpy.CSV,
	htsim.Format,
	hpcc.Format,
}

// List is a set of formats, in probe order.
type List []format.Format

// Named returns the format called name, nil where there is none.
func (l List) Named(name string) *format.Format {
	for i := range l {
		if l[i].Name == name {
			return &l[i]
		}
	}
	return nil
}

// ForPath returns the first format that the ending of path suggests, nil where none does. Case is ignored.
func (l List) ForPath(path string) *format.Format {
	ending := strings.ToLower(filepath.Ext(path))
	for i := range l {
		if slices.Contains(l[i].Extensions, ending) {
			return &l[i]
		}
	}
	return nil
}

// Detect returns the readable formats that a file beginning with head may be in, head being the whole file or its first
// format.DetectBytes bytes: more than one where the content is ambiguous.
func (l List) Detect(head []byte) List {
	var found List
	for _, f := range l {
		if f.Read != nil && f.Detect != nil && f.Detect(head) {
			found = append(found, f)
		}
	}
	return found
}

// Readable returns the formats that can be read.
func (l List) Readable() List {
	return slices.DeleteFunc(slices.Clone(l), func(f format.Format) bool { return f.Read == nil })
}

// Writable returns the formats that can be written.
func (l List) Writable() List {
	return slices.DeleteFunc(slices.Clone(l), func(f format.Format) bool {
		return f.Write == nil && f.WriteFiles == nil
	})
}

// Names returns the names of the formats.
func (l List) Names() []string {
	names := make([]string, len(l))
	for i := range l {
		names[i] = l[i].Name
	}
	return names
}

// Tensors returns the function of the format whose traces know tensors; nil if there is none.
func (l List) Tensors() func(t *dag.Trace) func(rank, op int) (reads, writes []attr.Tensor, err error) {
	for i := range l {
		if l[i].Tensors != nil {
			return l[i].Tensors
		}
	}
	return nil
}
