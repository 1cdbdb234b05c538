package collective

import (
	"sync"

	"github.com/tracedag/tracedag/dag"
)

// defaults is the table "default", which applies if no rule of a choice fits.
const defaults = "barrier=dissemination; bcast=binomial; reduce=binomial; allreduce=ring:>1MiB,recdoubling; " +
	"gather=binomial; gatherv=linear; scatter=binomial; scatterv=linear; allgather=ring; allgatherv=ring; " +
	"alltoall=pairwise; alltoallv=pairwise; reducescatter=ring; scan=recdoubling; exscan=recdoubling"

// table is a named choice that covers all collectives.
type table struct {
	name   string
	text   string
	direct bool          // Choice.direct
	idle   []dag.Subkind // Choice.idle
	single bool          // the algorithms are those of one rank per node

	once   sync.Once
	parsed Choice // of text, after once
}

var tables = [...]*table{
	{name: "default", text: defaults},
	{name: "mpich", text: mpich},
	{name: "openmpi", text: openMPI},
	{name: "smpi-default", text: smpiDefault, direct: true},
	{name: "smpi-mpich", text: smpiMPICH, direct: true, idle: []dag.Subkind{dag.Allreduce, dag.Allgatherv}},
	{name: "smpi-ompi", text: smpiOMPI, direct: true},
	{
		name: "smpi-mvapich2", text: smpiMVAPICH2, direct: true,
		idle: []dag.Subkind{dag.Bcast, dag.Reduce, dag.Allreduce}, single: true,
	},
	{name: "smpi-impi", text: smpiIMPI, direct: true, idle: []dag.Subkind{dag.Reduce}, single: true},
}

// parseTable is ParseChoice, which refers to algorithms that refer to tables.
var parseTable func(text string) (Choice, error)

func init() { parseTable = ParseChoice }

// choice returns the choice of the table. Most programs use one table or none, so it is parsed at the first call.
func (t *table) choice() *Choice {
	t.once.Do(func() {
		var err error
		if t.parsed, err = parseTable(t.text); err != nil {
			panic(err) // a test parses all tables
		}
		t.parsed.direct = t.direct
		for _, kind := range t.idle {
			t.parsed.idle[kind] = true
		}
	})
	return &t.parsed
}

func findTable(name string) *table {
	for _, t := range tables {
		if t.name == name {
			return t
		}
	}
	return nil
}

// SingleRank returns the name of the table at the start of the choice if its algorithms are those of one rank per node
// whatever the nodes are, else "".
func (c *Choice) SingleRank() string {
	for _, t := range tables {
		if t.single && c.table == &t.parsed {
			return t.name
		}
	}
	return ""
}

// Tables returns the names of the tables, one of which may start a choice.
func Tables() []string {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.name
	}
	return names
}
