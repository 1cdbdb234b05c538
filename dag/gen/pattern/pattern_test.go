package pattern

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/golden"
	"github.com/tracedag/tracedag/internal/permute"
)

func mustGenerate(t testing.TB, name string, p Params) *dag.Trace {
	t.Helper()
	tr, err := Generate(name, p)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestValid: every pattern gives a trace that can run to its end, whatever the number of ranks.
func TestValid(t *testing.T) {
	for _, pattern := range Patterns() {
		for ranks := 1; ranks <= 33; ranks++ {
			if _, err := Generate(pattern.Name, Params{Ranks: ranks, Iterations: 1}); err != nil {
				if p := permutationOf(pattern.Name); p != nil && p.Bits && p.Check(&permute.Shape{Hosts: ranks}) != nil {
					continue // defined for powers of two
				}
			}
			for _, iterations := range []int{1, 2, 5} {
				p := Params{Ranks: ranks, Bytes: 100, Iterations: iterations, Compute: 3, Root: ranks / 2}
				tr := mustGenerate(t, pattern.Name, p)
				for _, problem := range dag.Validate(tr) {
					t.Errorf("%s on %d ranks: %v", pattern.Name, ranks, problem)
				}
				for rank := range tr.Ranks {
					checkRounds(t, tr.Ranks[rank], iterations)
				}
			}
		}
	}
}

// checkRounds checks that every op of an iteration is before every op of the next.
func checkRounds(t *testing.T, r *dag.Rank, iterations int) {
	t.Helper()
	period := r.Len() / iterations
	waited := make([]bool, r.Len())
	for i := range r.Len() {
		if opens := i%period == 0; opens != (r.Kind[i] == dag.Calc) || opens && r.Duration.At(i) != 3 {
			t.Errorf("op %d is %+v", i, r.Op(i))
		}
		deps := r.Deps.Of(i)
		if (len(deps) == 0) != (i == 0) {
			t.Errorf("op %d waits for %d ops", i, len(deps))
		}
		for _, off := range deps {
			on := i - int(off)
			waited[on] = true
			if i%period == 0 && on/period != i/period-1 || i%period != 0 && on/period != i/period {
				t.Errorf("op %d waits for op %d, of another iteration", i, on)
			}
		}
	}
	for i := range r.Len() - period {
		if !waited[i] {
			t.Errorf("nothing waits for op %d", i)
		}
	}
}

// permutationOf returns the permutation of a name, or nil.
func permutationOf(name string) *permute.Permutation {
	for _, p := range permute.All() {
		if p.Name == name {
			return &p
		}
	}
	return nil
}

// TestPermutations checks the messages of every rank: one to its target and one from its source, or none.
func TestPermutations(t *testing.T) {
	for _, p := range permute.All() {
		shape := permute.Shape{Hosts: 64}
		tr := mustGenerate(t, p.Name, Params{Ranks: 64, Bytes: 8192, Iterations: 3})
		for rank, r := range tr.Ranks {
			var got []string
			for i := range r.Len() {
				if op := r.Op(i); op.Kind != dag.Calc {
					got = append(got, fmt.Sprint(op.Kind, op.Bytes, op.Peer))
				}
			}
			to, from := p.To(&shape, uint32(rank)), p.From(&shape, uint32(rank))
			var want []string
			for range 3 {
				if int(to) != rank {
					want = append(want, fmt.Sprint(dag.Send, 8192, to), fmt.Sprint(dag.Recv, 8192, from))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, rank %d: messages %v, want %v", p.Name, rank, got, want)
			}
		}
	}
	_, err := Generate("transpose", Params{Ranks: 32, Iterations: 1})
	if want := "pattern transpose: ranks: expected a power of four, found 32; the next one is 64"; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestBytes checks how much each pattern sends in an iteration.
func TestBytes(t *testing.T) {
	const bytes = 1000
	for ranks := 1; ranks <= 17; ranks++ {
		n := int64(ranks)
		rounds := int64(0)
		for 1<<rounds < n {
			rounds++
		}
		power, exponent := int64(1), int64(0)
		for power*2 <= n {
			power, exponent = power*2, exponent+1
		}
		neighbours := int64(4)
		if isPrime := !slices.Contains([]int{4, 6, 8, 9, 10, 12, 14, 15, 16}, ranks); isPrime {
			neighbours = 2 // one row
		}
		if ranks == 1 {
			neighbours = 0
		}
		for name, want := range map[string]int64{
			"alltoall":      n * (n - 1) * bytes,
			"binomial":      (n - 1) * bytes,
			"dissemination": n * rounds * bytes,
			"recdoubling":   (power*exponent + 2*(n-power)) * bytes,
			"ring":          2 * (n - 1) * bytes,
			"stencil2d":     n * neighbours * bytes,
		} {
			tr := mustGenerate(t, name, Params{Ranks: ranks, Bytes: bytes, Iterations: 3})
			sum := int64(0)
			for rank := range tr.Ranks {
				for i, kind := range tr.Ranks[rank].Kind {
					if kind == dag.Send {
						sum += tr.Ranks[rank].Bytes.At(i)
					}
				}
			}
			if sum != 3*want {
				t.Errorf("%s on %d ranks sends %d bytes, expected %d", name, ranks, sum, 3*want)
			}
		}
	}
}

// TestGolden lists the ops of small cases.
func TestGolden(t *testing.T) {
	for _, pattern := range Patterns() {
		ranks := 6
		if permutationOf(pattern.Name) != nil {
			ranks = 4
		}
		tr := mustGenerate(t, pattern.Name, Params{Ranks: ranks, Bytes: 60, Iterations: 2, Compute: 5, Root: 1})
		var b strings.Builder
		for rank := range tr.Ranks {
			r := tr.Ranks[rank]
			for i := range r.Len() {
				switch op := r.Op(i); op.Kind {
				case dag.Calc:
					fmt.Fprintf(&b, "%d.%d calc %v", rank, i, op.Duration)
				case dag.Send:
					fmt.Fprintf(&b, "%d.%d send %d to %d", rank, i, op.Bytes, op.Peer)
				case dag.Recv:
					fmt.Fprintf(&b, "%d.%d recv %d from %d", rank, i, op.Bytes, op.Peer)
				}
				for _, off := range r.Deps.Of(i) {
					fmt.Fprintf(&b, " after %d.%d", rank, i-int(off))
				}
				b.WriteString("\n")
			}
		}
		golden.Check(t, filepath.Join("testdata", pattern.Name+".txt"), b.String())
	}
}

func TestDeterministic(t *testing.T) {
	want := mustGenerate(t, "stencil2d", Default())
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if !reflect.DeepEqual(mustGenerate(t, "stencil2d", Default()), want) {
		t.Error("the result depends on the number of processors")
	}
}

func TestRefused(t *testing.T) {
	for want, change := range map[string]func(p *Params){
		"ranks is 0, expected 1..16777216":        func(p *Params) { p.Ranks = 0 },
		"ranks is 16777217, expected 1..16777216": func(p *Params) { p.Ranks = 1<<24 + 1 },
		"bytes is -1, expected 0..274877906944":   func(p *Params) { p.Bytes = -1 },
		"iterations is 0, expected 1..":           func(p *Params) { p.Iterations = 0 },
		"compute time is -1ps, expected 0 or":     func(p *Params) { p.Compute = -1 },
		"root is 16, expected 0..15":              func(p *Params) { p.Root = 16 },
		"more than 1073741824 ops on a rank":      func(p *Params) { p.Iterations = 1 << 30 },
	} {
		p := Default()
		change(&p)
		if _, err := Generate("ring", p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %s", err, want)
		}
	}
	if _, err := Generate("rings", Default()); err == nil || !strings.Contains(err.Error(), "alltoall, binomial") {
		t.Errorf("error %v, expected the patterns' names", err)
	}
}

func BenchmarkGenerate(b *testing.B) {
	for _, bench := range []struct {
		name                     string
		ranks, bytes, iterations int
	}{
		{"ring", 1024, 1 << 20, 1},
		{"dissemination", 4096, 8, 50},
		{"alltoall", 1024, 8, 2},
		{"stencil2d", 4096, 8, 100},
	} {
		b.Run(bench.name, func(b *testing.B) {
			p := Params{Ranks: bench.ranks, Bytes: int64(bench.bytes), Iterations: bench.iterations, Compute: 1}
			ops := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				ops += mustGenerate(b, bench.name, p).Ops()
			}
			b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}
