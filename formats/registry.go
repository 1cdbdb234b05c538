// Package formats is the registry of trace formats: it binds their names, file name endings and signatures to the
// packages that read and write them. Adding a format is one line in All.
package formats

import (
	"github.com/tracedag/tracedag/formats/blkparse"
	"github.com/tracedag/tracedag/formats/blktracer"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/chakra/astratext"
	"github.com/tracedag/tracedag/formats/chakra/pytorch"
	"github.com/tracedag/tracedag/formats/chakra/stg"
	"github.com/tracedag/tracedag/formats/chakra/workloadgraph"
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

// Default is the name of the format that is written unless another is asked for.
const Default = format.Default

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
	astratext.Format,
	pytorch.Format,
	stg.Format,
	workloadgraph.Format,
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
type List = format.List
