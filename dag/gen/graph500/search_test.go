package graph500

import (
	"math"
	"slices"
	"testing"
)

// sum adds up the traffic of all processes in a level.
func sum(level []amount) (total amount) {
	for _, a := range level {
		total.queries += a.queries
		total.messages += a.messages
	}
	return total
}

// TestControl: in the four levels of a run with 72 processes the reference program counted 15975 packets that were no
// messages with queries.
func TestControl(t *testing.T) {
	p := Default()
	s := search{p: &p, root: 60, levels: make([][]amount, 4)}
	sent, received := int64(0), int64(0)
	for rank := range p.Nodes {
		out, in := s.control(rank)
		sent += out
		received += in
	}
	if sent != 15975 || received != sent {
		t.Errorf("%d are sent, %d received", sent, received)
	}
}

// TestTotals holds the queries of a level, the mean of 20 seeds, against what the equations give, where those of single
// processes do not vary much.
func TestTotals(t *testing.T) {
	const seeds = 20
	levels := 0
	for _, f := range profiles(t) {
		p := f.params()
		w := p.equations(f.Dr)
		for l := 1; l < len(f.Levels); l++ {
			if w.sigma(l) > 0.2*f.Levels[l] || f.Levels[l] < 1e-3*f.TotalEdges {
				continue
			}
			levels++
			mean := 0.0
			for seed := range int64(seeds) {
				s := newSearch(&p, seed)
				if l < len(s.levels) {
					mean += float64(sum(s.levels[l]).queries) / seeds
				}
			}
			want := f.Levels[l] * float64(p.Nodes-1) / float64(p.Nodes)
			if math.Abs(mean-want) > 0.05*want {
				t.Errorf("scale %d, edge factor %d, root degree %d, eq. 7 %s, level %d: %.5g queries, expected %.5g",
					f.S, f.Fe, f.Dr, f.Variant, l, mean, want)
			}
		}
	}
	if levels < 50 {
		t.Errorf("only %d levels were compared", levels)
	}
}

// TestReference compares with runs of the reference program: the messages with queries of those that have as many
// levels.
func TestReference(t *testing.T) {
	for _, c := range []struct {
		scale, nodes int
		degree       int64
		levels       int
		messages     float64 // the mean
	}{
		{16, 72, 1, 5, 20151},
		{16, 72, 1, 6, 23824.5},
		{16, 72, 16, 4, 20286.3},
		{16, 72, 1000, 6, 19985.7},
		{14, 36, 16, 4, 5154.5},
		{14, 36, 16, 5, 6418},
	} {
		p := Default()
		p.Scale, p.Nodes, p.RootDegree, p.HIntDiv = c.scale, c.nodes, c.degree, true
		const seeds = 100
		messages, runs := 0.0, 0.0
		for seed := range int64(seeds) {
			if s := newSearch(&p, seed); len(s.levels) == c.levels {
				runs++
				for _, level := range s.levels {
					messages += float64(sum(level).messages)
				}
			}
		}
		if runs < 0.1*seeds || math.Abs(messages/runs-c.messages) > 0.05*c.messages {
			t.Errorf("scale %d, root degree %d, %d levels: %.1f messages in %v of %d runs, expected %.1f",
				c.scale, c.degree, c.levels, messages/runs, runs, seeds, c.messages)
		}
	}
}

func TestEnd(t *testing.T) {
	p := Default()
	s := search{p: &p}
	for _, c := range []struct {
		level     int
		left      int64
		rest      float64
		maxLevels int
		want      bool
	}{
		{1, 100, 0.1, 9, true},
		{1, 0, 0.1, 9, false},
		{1, -3, 0.1, 9, false},
		{5, 10, 0.1, 9, true},
		{6, 10, 0.1, 9, false},
		{6, 11, 0.1, 9, true},
		{6, 1, 0, 9, true},
		{9, 50, 0, 9, false},
		{1, 100, 0, 1, false},
	} {
		p.Rest, p.MaxLevels = c.rest, c.maxLevels
		if got := s.continues(c.level, c.left, 100); got != c.want {
			t.Errorf("level %d with %d of 100 left: %v", c.level, c.left, got)
		}
	}
}

func TestVariation(t *testing.T) {
	p := Default()
	p.Variation, p.RootDegree, p.RootProcess = 0, 16, 5
	s := newSearch(&p, 3)
	for l, level := range s.levels {
		equal := !slices.ContainsFunc(level, func(a amount) bool { return a != level[0] })
		if equal != (l > 0) {
			t.Errorf("level %d: all send the same is %v", l, equal)
		}
	}
	if s.root != 5 || s.rootDegree != 16 || s.levels[0][5] != (amount{16, 14}) {
		t.Errorf("root %d of degree %d sends %v", s.root, s.rootDegree, s.levels[0][5])
	}
}

// TestRuns holds the division of queries among messages against the rule for one message after the other.
func TestRuns(t *testing.T) {
	for _, coalescing := range []int64{1, 2, 3, 16, 256} {
		for messages := int64(0); messages < 40; messages++ {
			for queries := int64(0); queries <= messages*coalescing; queries += 1 + queries/50 {
				var got, want []int64
				for _, r := range (amount{queries, messages}).runs(coalescing) {
					for range r.messages {
						got = append(got, r.queries)
					}
				}
				q := queries
				for m := messages; m > 0; m-- {
					n := coalescing
					if q < coalescing+m-1 {
						n = (q + m - 1) / m
					}
					want = append(want, n)
					q -= n
				}
				if !slices.Equal(got, want) || q != 0 {
					t.Fatalf("%d queries in %d messages of %d: %v, expected %v", queries, messages, coalescing, got,
						want)
				}
			}
		}
	}
}
