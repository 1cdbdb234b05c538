// Package base is the registry of the trace formats that need no large third-party library. Package formats adds
// the others.
package base

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
	"github.com/tracedag/tracedag/formats/kineto"
	"github.com/tracedag/tracedag/formats/mpi"
	"github.com/tracedag/tracedag/formats/msr"
	"github.com/tracedag/tracedag/formats/simai"
	"github.com/tracedag/tracedag/formats/simgrid"
	"github.com/tracedag/tracedag/formats/spc"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/formats/trafpy"
	"github.com/tracedag/tracedag/formats/vef"
)

// Formats lists the formats in probe order. To add a format, add one line here.
var Formats = format.List{
	store.Format,
	goal.Binary,
	goal.Text,
	vef.Format,
	mpi.Format,
	chakra.Format,
	chakra.JSON,
	astratext.Format,
	simai.Format,
	simgrid.Format,
	pytorch.Format,
	stg.Format,
	workloadgraph.Format,
	kineto.Format,
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
