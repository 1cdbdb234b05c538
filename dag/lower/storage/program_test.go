package storage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/golden"
)

// application returns a trace of two ranks with calcs, messages and storage accesses.
func application() *dag.Trace {
	b := dag.NewBuilder(2)
	b.Meta().Nodes = []int32{4, 4}
	b.Meta().Jobs = []string{"x", "y"}
	b.Meta().Attrs = `{"a":1}`
	pair := b.AddComm(dag.NewComm("pair", []int32{1, 0}))
	r := b.Rank(0)
	r.Calc(5 * dag.Microsecond)
	r.Add(dag.Op{Kind: dag.IO, Subkind: dag.Write, Peer: 3, Bytes: 2 << 20, Tag: 0, Stream: 2, NIC: 1, Job: 1}, 0)
	r.Send(1, 77, 5, 1)
	r.RequiresStart(r.Calc(dag.Microsecond), 1)
	r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Peer: 1, Bytes: 8}, 2)
	r.Add(dag.Op{
		Kind: dag.Recv, Peer: dag.AnySource, Bytes: 9, Tag: dag.AnyTag, Comm: pair, Attrs: `{"b":2}`, Name: "any",
	})
	r.Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Peer: 3, Bytes: 100, Tag: 100}, 5, 3)
	r.RequiresStart(6, 4)
	r = b.Rank(1)
	r.Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Peer: 7, Bytes: 10, Tag: 1 << 20}, 1) // waits for a later op
	r.Recv(0, 77, 5)
	r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Peer: 1, Bytes: 8}, 0)
	r.Add(dag.Op{Kind: dag.Send, Peer: 0, Bytes: 9, Tag: 0, Comm: pair}, 2)
	return b.Trace()
}

// TestPrograms checks hosts with other ops than accesses.
func TestPrograms(t *testing.T) {
	for name, choice := range map[string]string{
		"program":       "directdrive:n_ccs=2,n_bss=2,replicas=1",
		"programspread": "directdrive:n_ccs=2,n_bss=2,replicas=1,place=spread,order=timed,mount=off",
	} {
		lowered, _ := mustLower(t, application(), choice)
		if problems := dag.Validate(lowered); len(problems) > 0 {
			t.Fatalf("%s: %v", name, problems)
		}
		withMessages, err := collective.Lower(context.Background(), lowered, collective.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		runIdeal(t, withMessages)
		runStrict(t, withMessages)

		var b strings.Builder
		fmt.Fprintf(&b, "# %s\n", choice)
		for i := range lowered.Comms {
			fmt.Fprintf(&b, "communicator %s of %v\n", lowered.Comms[i].Name, lowered.Comms[i].Members())
		}
		fmt.Fprintf(&b, "nodes %v\n%s", lowered.Nodes, dump(lowered))
		golden.Check(t, filepath.Join("testdata", name+".txt"), b.String())
	}
}

// TestRandomPrograms checks on random programs that the lowered trace is valid and completes.
func TestRandomPrograms(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 1))
		ranks := 1 + rng.IntN(3)
		b := dag.NewBuilder(ranks)
		for rank := range ranks {
			r := b.Rank(rank)
			n := 1 + rng.IntN(20)
			for i := range n {
				op := dag.Op{Kind: dag.Calc, Duration: dag.Time(rng.Int64N(1000)) * dag.Nanosecond, Stream: rng.Int32N(2)}
				if rng.IntN(2) == 0 {
					op = dag.Op{
						Kind: dag.IO, Subkind: dag.Read + dag.Subkind(rng.IntN(2)), Peer: rng.Int32N(4),
						Bytes: rng.Int64N(4) * 1000000, Tag: rng.Int64N(1 << 22), Stream: rng.Int32N(2),
					}
				}
				at := r.Add(op)
				for range rng.IntN(3) {
					if i > 0 {
						r.Requires(at, rng.IntN(i))
					}
				}
				if i > 0 && rng.IntN(4) == 0 {
					r.RequiresStart(at, rng.IntN(i))
				}
			}
		}
		tr := b.Trace()
		for _, choice := range choices {
			if strings.Contains(choice, "compat") {
				continue
			}
			lowered, _ := mustLower(t, tr, choice)
			if problems := dag.Validate(lowered); len(problems) > 0 {
				t.Fatalf("seed %d, %s: %v", seed, choice, problems[0])
			}
			runIdeal(t, lowered)
		}
	}
}

// TestProgramAgainstOrder checks the error for accesses that wait for later ones.
func TestProgramAgainstOrder(t *testing.T) {
	b := dag.NewBuilder(1)
	b.Rank(0).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Bytes: 1}, 1)
	b.Rank(0).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Bytes: 1})
	tr := b.Trace()
	for _, order := range []string{"none", "timed"} {
		lowered, _ := mustLower(t, tr, "directdrive:order="+order)
		if problems := dag.Validate(lowered); len(problems) > 0 {
			t.Errorf("%s: %v", order, problems)
		}
		runIdeal(t, lowered)
	}
	_, _, err := Lower(context.Background(), tr, mustParse(t, "directdrive"))
	if err == nil || !strings.Contains(err.Error(), "rank 0: with order=serial") {
		t.Errorf("serial: %v", err)
	}
}
