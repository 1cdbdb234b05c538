package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestRan checks the sets of ops that ran, of programs whose last word of bits is full or not.
func TestRan(t *testing.T) {
	for _, ops := range []int{0, 1, 63, 64, 65, 127, 128, 1000} {
		b := dag.NewBuilder(1)
		for range ops {
			b.Rank(0).Calc(1)
		}
		p, err := Compile(dag.FromTrace(b.Trace()), CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(uint64(ops), 1))
		ran, none, all := newSet(ops), p.Ran(0, 1<<7), p.Ran(int64(ops), 1<<7)
		for i := range p.Ops {
			if random.IntN(3) > 0 {
				p.Ops[i].Flags |= 1 << 7
				ran.Add(uint32(i))
			}
		}
		got := p.Ran(ran.Count(), 1<<7)
		if !slices.Equal(got, ran) || all.Count() != int64(ops) || none.Count() != 0 {
			t.Errorf("%d ops: %x ran, expected %x; all are %d, none are %d", ops, got, ran, all.Count(), none.Count())
		}
		n := int64(0)
		for i := range uint32(ops) {
			if got.Has(i) != (p.Ops[i].Flags != 0) || !all.Has(i) {
				t.Errorf("%d ops: has %d is %v", ops, i, got.Has(i))
			}
			if got.Has(i) {
				n++
			}
		}
		if n != got.Count() {
			t.Errorf("%d ops: %d in the set, which counts %d", ops, n, got.Count())
		}
	}
}
