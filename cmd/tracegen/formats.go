package main

import (
	"github.com/tracedag/tracedag/formats/blkparse"
	"github.com/tracedag/tracedag/formats/blktracer"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/disksim"
	"github.com/tracedag/tracedag/formats/fio"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/goal"
	"github.com/tracedag/tracedag/formats/htsim"
	"github.com/tracedag/tracedag/formats/mpi"
	"github.com/tracedag/tracedag/formats/msr"
	"github.com/tracedag/tracedag/formats/spc"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/formats/trafpy"
	"github.com/tracedag/tracedag/formats/vef"
)

// formatList is the formats that traces are written in, and those of traces that generators imitate, in probe order. It
// leaves out nsys, which would link an SQLite engine.
var formatList = format.List{
	store.Format,
	goal.Binary,
	goal.Text,
	vef.Format,
	mpi.Format,
	chakra.Format,
	chakra.JSON,
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
}
