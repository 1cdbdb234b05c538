package storage

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/golden"
)

// TestGraphs compares lowered traces with golden files that were checked by hand.
func TestGraphs(t *testing.T) {
	records := []record{
		{unit: 2, address: 1<<20 - 1000, bytes: 3000, write: true, time: 5 * dag.Microsecond},
		{unit: 1, address: 512, bytes: 600, time: 6 * dag.Microsecond},
		{unit: 2, address: 0, bytes: 6, time: 7400 * dag.Nanosecond},
		{unit: 2, address: 4096, bytes: 0, time: 8600 * dag.Nanosecond},
	}
	const few = "n_ccs=2,n_bss=4,replicas=2"
	for name, choice := range map[string]string{
		"serial": few,
		"timed":  few + ",order=timed,lookup=none,quorum=1,header=7,mount=off",
		"spread": few + ",place=spread,order=none,space=shared",
		"compat": "compat,block=1,n_ccs=2,n_bss=4",
	} {
		lowered, _ := mustLower(t, traceOf(records...), "directdrive:"+choice)
		got := "# " + choice + "\n" + dump(lowered)
		golden.Check(t, filepath.Join("testdata", name+".txt"), got)
	}
}

// dump returns a trace as text, one line per op.
func dump(tr *dag.Trace) string {
	var b strings.Builder
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		for i := range r.Len() {
			op := r.Op(i)
			fmt.Fprintf(&b, "rank %d op %d: ", rank, i)
			switch op.Kind {
			case dag.Calc:
				fmt.Fprintf(&b, "%v %v", cmp.Or(op.Subkind.String(), "calc"), op.Duration)
			case dag.Coll:
				fmt.Fprintf(&b, "%v of %d bytes", op.Subkind, op.Bytes)
			default:
				fmt.Fprintf(&b, "%v %d bytes, rank %d, tag %d", op.Kind, op.Bytes, op.Peer, op.Tag)
			}
			for what, value := range [...]int32{op.Comm, op.Stream, op.NIC, op.Job} {
				if value != 0 {
					fmt.Fprintf(&b, ", %s %d", [...]string{"comm", "stream", "nic", "job"}[what], value)
				}
			}
			for _, off := range r.Deps.Of(i) {
				fmt.Fprintf(&b, " <-%d", i-int(off))
			}
			for _, off := range r.StartDeps.Of(i) {
				fmt.Fprintf(&b, " <-start of %d", i-int(off))
			}
			fmt.Fprintf(&b, " %s\n", op.Attrs)
		}
	}
	return strings.ReplaceAll(b.String(), " \n", "\n")
}
