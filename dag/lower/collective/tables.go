package collective

// Defaults is the choice, in the language of [ParseChoice], that holds wherever another one says nothing. It is the
// table "default".
const Defaults = "barrier=dissemination; bcast=binomial; reduce=binomial; allreduce=ring:>1MiB,recdoubling; " +
	"gather=binomial; gatherv=linear; scatter=binomial; scatterv=linear; allgather=ring; allgatherv=ring; " +
	"alltoall=pairwise; alltoallv=pairwise; reducescatter=ring; scan=recdoubling; exscan=recdoubling"

// table is a choice by name, for all collectives.
type table struct {
	name   string
	text   string
	choice Choice
}

var tables = [...]*table{
	{name: "default", text: Defaults},
	{name: "mpich", text: mpich},
	{name: "openmpi", text: openMPI},
}

func init() {
	for _, t := range tables {
		var err error
		if t.choice, err = ParseChoice(t.text); err != nil {
			panic(err) // a test parses them all
		}
	}
}

func findTable(name string) *table {
	for _, t := range tables {
		if t.name == name {
			return t
		}
	}
	return nil
}

// Tables returns the names of the tables with which a choice may begin.
func Tables() []string {
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.name
	}
	return names
}
