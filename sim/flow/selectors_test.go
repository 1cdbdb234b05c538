package flow_test

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// selectorPlatform is the platform of testdata/selectors.csv.
const selectorPlatform = `<platform version="4.1">
 <cluster id="c" prefix="n" suffix="" radical="0-63" speed="20Gf" bw="1.25GBps" lat="8us" sharing_policy="SPLITDUPLEX"
  loopback_bw="8GBps" loopback_lat="400ns"/>
</platform>
`

// TestSMPISelectors compares the times of collectives under SMPI's selectors with those of its tables of algorithms:
// that of the longest rank and the mean of all. All ranks called at once, after one call for the set-up of the
// communicator. SimGrid 3.32 measured them with the overheads below.
func TestSMPISelectors(t *testing.T) {
	file, err := os.Open(filepath.Join("testdata", "selectors.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	platform := filepath.Join(t.TempDir(), "platform.xml")
	if err := os.WriteFile(platform, []byte(selectorPlatform), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		choice, err := collective.ParseChoice("smpi-" + row[0])
		if err != nil {
			t.Fatal(err)
		}
		var n [3]int
		for i := range n {
			if n[i], err = strconv.Atoi(row[4+i]); err != nil {
				t.Fatal(err)
			}
		}
		bytes, root, ranks := n[0], n[1], n[2]
		trace := calledAtOnce(t, row[3], int64(bytes), root, ranks)
		env := sim.Env{}
		if row[9] != "1" {
			trace.Nodes, env.Sharing = nodesOf(t, row[9], ranks), sim.ShareAlways
		}
		r, err := backends.Run(trace, "flow", backends.Collectives(choice), backends.Env(&env),
			backends.Set("topology="+platform, "flow-model=smpi", "os=0:8e-7", "ois=0:5e-7", "or=0:6e-7:1e-10",
				"async-small="+row[1], "detached="+row[2]))
		if err != nil || !r.Complete {
			t.Fatal(row, err)
		}
		longest, mean := float64(r.Makespan.Ticks)/1e12, 0.0
		for rank := range ranks {
			mean += float64(end(r, rank)) / 1e12 / float64(ranks)
		}
		for i, got := range []float64{longest, mean} {
			if want, err := strconv.ParseFloat(row[7+i], 64); err != nil || !(math.Abs(got/want-1) <= 0.01) {
				t.Errorf("%s: %.6g s, %+.2g (%v)", strings.Join(row, ","), got, got/want-1, err)
			}
		}
	}
}

// nodesOf returns the hosts of ranks by the column per_node: "c4" is round robin over 4 hosts, "3-2" is 3 ranks on the
// first host, 2 on the next one, and so on.
func nodesOf(t *testing.T, text string, ranks int) (nodes []int32) {
	t.Helper()
	var sizes []int
	hosts, robin := strings.CutPrefix(text, "c")
	for part := range strings.SplitSeq(hosts, "-") {
		size, err := strconv.Atoi(part)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, size)
	}
	for node := 0; len(nodes) < ranks; node++ {
		if robin {
			nodes = append(nodes, int32(node%sizes[0]))
			continue
		}
		for range sizes[node%len(sizes)] {
			nodes = append(nodes, int32(node))
		}
	}
	return nodes[:ranks]
}

// calledAtOnce returns a trace of one collective. The bytes are the vector of a bcast, reduction or scan, and one block
// otherwise. A name that ends in w means half a block at every third rank, and one and a half at every third.
func calledAtOnce(t *testing.T, name string, bytes int64, root, ranks int) *dag.Trace {
	t.Helper()
	kinds := map[string]dag.Subkind{"gatherw": dag.Gatherv, "scatterw": dag.Scatterv, "allgatherw": dag.Allgatherv,
		"reducescatterw": dag.ReduceScatter}
	kind, uneven := kinds[name]
	if !uneven {
		var ok bool
		if kind, ok = dag.ParseSubkind(name); !ok {
			t.Fatalf("collective %q", name)
		}
	}
	element := int64(1)
	switch kind {
	case dag.Reduce, dag.Allreduce, dag.ReduceScatter:
		if bytes%8 == 0 {
			element = 8
		}
	}
	block := func(rank int) int64 {
		if !uneven {
			return bytes
		}
		return bytes / element * int64(1+rank%3) / 2 * element
	}
	sum := int64(0)
	for rank := range ranks {
		sum += block(rank)
	}
	b := dag.NewBuilder(ranks)
	for rank := range ranks {
		op := dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: block(rank), Peer: int32(root),
			Attrs: attr.WithElement("", element)}
		switch kind {
		case dag.Gatherv, dag.Allgather, dag.Allgatherv:
			op.RecvBytes = sum
		case dag.Scatter, dag.Scatterv:
			if op.Bytes, op.RecvBytes = 0, block(rank); rank == root {
				op.Bytes = sum
			}
		case dag.Alltoall, dag.Alltoallv:
			op.Bytes, op.RecvBytes = sum, sum
		case dag.ReduceScatter:
			op.Bytes, op.RecvBytes = sum, block(rank)
		}
		b.Rank(rank).Add(op)
	}
	return b.Trace()
}
