package graph500

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/loggops"
)

// ofGraph returns parameters of a search of a graph.
func ofGraph(scale, nodes int, change func(p *Params)) Params {
	p := Default()
	p.Scale, p.Nodes, p.QueryTime, p.Coalescing = scale, nodes, dag.Nanosecond, 16
	if change != nil {
		change(&p)
	}
	return p
}

// graphSearches are searches with different kinds of graphs and processes.
func graphSearches() map[string]Params {
	return map[string]Params{
		"default":                      ofGraph(10, 12, nil),
		"two":                          ofGraph(9, 2, func(p *Params) { p.Coalescing = 1 }),
		"paths":                        ofGraph(10, 7, func(p *Params) { p.EdgeFactor, p.MaxLevels = 1, 1 }),
		"more processes than vertices": ofGraph(3, 20, func(p *Params) { p.EdgeFactor = 2 }),
		"root": ofGraph(10, 5, func(p *Params) {
			p.RootDegree, p.RootProcess, p.Notices = 3, 4, NoNotices
		}),
		"weighted": ofGraph(10, 5, func(p *Params) { p.Degrees.Weighted = true }),
	}
}

// TestGraphTrace compares the queries and messages of traces, between each two processes in each level, with those of a
// search with a queue of vertices. A process takes 1 ns per query that it receives.
func TestGraphTrace(t *testing.T) {
	params, err := loggops.Preset("hpc")
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range graphSearches() {
		for seed := range int64(3) {
			for _, dedup := range []bool{false, true} {
				s, err := NewGraphSource(p, dedup, seed)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				tr, err := dag.ReadAll(s)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if h, err := s.Header(); err != nil || tr.Ops() != h.Ops {
					t.Errorf("%s: %d ops, the source has %d, error %v", name, tr.Ops(), h.Ops, err)
				}
				if problems, n := dag.ValidateLimit(tr, 3); n > 0 {
					t.Fatalf("%s: %d problems: %v", name, n, problems)
				}
				replay(t, tr, params)
				got := received(tr)
				want, levels := expected(t, &p, dedup, seed)
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s, seed %d, dedup %v: messages differ", name, seed, dedup)
				}
				if text := fmt.Sprintf("%d levels", levels); !strings.HasSuffix(tr.Title, text) {
					t.Errorf("%s: title is %q, expected %s", name, tr.Title, text)
				}
			}
		}
	}
}

// pair is two processes in a level.
type pair struct{ level, from, to int }

// received returns the queries of the messages between processes, in order.
func received(tr *dag.Trace) map[pair][]int64 {
	all := map[pair][]int64{}
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		for i := range r.Len() {
			if op := r.Op(i); op.Kind == dag.Recv && op.Tag%tagsOfLevel == queryTag {
				key := pair{int(op.Tag / tagsOfLevel), int(op.Peer), rank}
				all[key] = append(all[key], int64(r.Op(i+1).Duration/dag.Nanosecond))
			}
		}
	}
	return all
}

// expected searches the graph from the root with a queue.
func expected(t *testing.T, p *Params, dedup bool, seed int64) (queries map[pair][]int64, levels int) {
	t.Helper()
	g, err := p.newGraph(seed)
	if err != nil {
		t.Fatal(err)
	}
	if dedup {
		g.removeDuplicates()
	}
	d := p.divide(g.vertices(), seed)
	root, err := p.chooseRoot(g, d, seed)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[pair]int64{}
	distance := map[uint32]int{root: 0}
	for queue := []uint32{root}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		levels = max(levels, distance[v]+1)
		for _, w := range g.neighbors(int(v)) {
			if _, found := distance[w]; !found {
				distance[w] = distance[v] + 1
				queue = append(queue, w)
			}
			if d.owner[v] != d.owner[w] {
				counts[pair{distance[v], int(d.owner[v]), int(d.owner[w])}]++
			}
		}
	}
	queries = map[pair][]int64{}
	for key, n := range counts {
		for ; n > 0; n -= p.Coalescing {
			queries[key] = append(queries[key], min(n, p.Coalescing))
		}
	}
	return queries, levels
}

// TestGraphAlike: traces do not depend on the number of processors.
func TestGraphAlike(t *testing.T) {
	p := ofGraph(11, 9, nil)
	want, err := readAll(NewGraphSource(p, false, 4))
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, n := range []int{1, 3} {
		runtime.GOMAXPROCS(n)
		got, err := readAll(NewGraphSource(p, false, 4))
		if err != nil {
			t.Fatal(err)
		}
		for rank := range want.Ranks {
			if !slices.Equal(text(want.Ranks[rank]), text(got.Ranks[rank])) {
				t.Fatalf("GOMAXPROCS %d: rank %d differs", n, rank)
			}
		}
	}
}

// TestDivision: processes have all vertices, in parts that differ by at most one, and are not ranges of them.
func TestDivision(t *testing.T) {
	p := ofGraph(10, 7, nil)
	d := p.divide(1<<10, 1)
	var all []uint32
	for process := range p.Nodes {
		part := d.vertices(process)
		if n := len(part); n != 1024/7 && n != 1024/7+1 {
			t.Errorf("process %d has %d vertices", process, n)
		}
		for _, v := range part {
			if d.owner[v] != uint32(process) {
				t.Errorf("the owner of vertex %d of process %d is %d", v, process, d.owner[v])
			}
		}
		all = append(all, part...)
	}
	if slices.IsSorted(all) {
		t.Error("vertices are in order")
	}
	slices.Sort(all)
	for v := range all {
		if all[v] != uint32(v) {
			t.Fatalf("vertex %d is missing", v)
		}
	}
}

// TestGraphRoot: roots have the given degree and process, and weighted ones have larger degrees.
func TestGraphRoot(t *testing.T) {
	p := ofGraph(10, 5, func(p *Params) { p.RootDegree, p.RootProcess = 3, 4 })
	s, err := newGraphSearch(&p, false, 2)
	if err != nil {
		t.Fatal(err)
	}
	if s.rootDegree != 3 || s.root != 4 {
		t.Errorf("root has degree %d and process %d", s.rootDegree, s.root)
	}
	degrees := [2]int64{}
	for i := range degrees {
		p := ofGraph(10, 5, func(p *Params) { p.Degrees.Weighted = i == 1 })
		for seed := range int64(30) {
			s, err := newGraphSearch(&p, false, seed)
			if err != nil {
				t.Fatal(err)
			}
			degrees[i] += s.rootDegree
		}
	}
	if degrees[1] < 3*degrees[0] {
		t.Errorf("degrees of weighted roots are %d, of others %d", degrees[1], degrees[0])
	}
}

func TestGraphRefused(t *testing.T) {
	for want, change := range map[string]func(p *Params){
		"scale is 25, expected 1..24":                     func(p *Params) { p.Scale = 25 },
		"expected at most 2^31 for a graph in memory":     func(p *Params) { p.Scale, p.EdgeFactor = 24, 1024 },
		"ranks is 4097, expected 2..4096":                 func(p *Params) { p.Nodes = 4097 },
		"no vertex of process 1 has degree 4000, ":        func(p *Params) { p.RootDegree, p.RootProcess = 4000, 1 },
		"no vertex of the graph has degree 4000, expecte": func(p *Params) { p.RootDegree = 4000 },
		"root-process is 12":                              func(p *Params) { p.RootProcess = 12 },
	} {
		p := ofGraph(8, 12, change)
		if _, err := NewGraphSource(p, false, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, expected %q", err, want)
		}
	}
}
