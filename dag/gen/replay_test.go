// Package gen_test checks the generators that make traces rank by rank: that their traces run, how many messages they
// have, and, for small ones, every op.
package gen_test

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/fft"
	"github.com/tracedag/tracedag/dag/gen/masterworker"
	"github.com/tracedag/tracedag/dag/gen/nbody"
	"github.com/tracedag/tracedag/dag/gen/rankwise"
	"github.com/tracedag/tracedag/dag/gen/schedgen"
	"github.com/tracedag/tracedag/dag/gen/stencil"
	"github.com/tracedag/tracedag/dag/gen/sweep3d"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/internal/golden"
	"github.com/tracedag/tracedag/sim/ideal"
	"github.com/tracedag/tracedag/sim/loggops"
)

// mustMake returns the trace of a source, after checking that it is the same rank by rank, and as long as the source
// says.
func mustMake(t *testing.T, what string, s *rankwise.Source, err error) *dag.Trace {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	tr, err := dag.ReadAll(s)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	h, err := s.Header()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if tr.Ops() != h.Ops || len(tr.Ranks) != h.Ranks {
		t.Errorf("%s: %d ops on %d ranks, expected %d on %d", what, tr.Ops(), len(tr.Ranks), h.Ops, h.Ranks)
	}
	next := 0
	read := s.NewReader(dag.All)
	for _, batch := range h.Batches {
		ranks, err := read(batch)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if batch.First != next || !reflect.DeepEqual(ranks, tr.Ranks[batch.First:batch.Last]) {
			t.Errorf("%s: batch %+v is not what the trace has from rank %d on", what, batch, next)
		}
		next = batch.Last
		ops, deps := int64(0), int64(0)
		for i := range ranks {
			ops += int64(ranks[i].Len())
			deps += int64(len(ranks[i].Deps.Off))
		}
		if ops != batch.Ops || deps > batch.Deps {
			t.Errorf("%s: batch %+v has %d ops and %d dependencies", what, batch, ops, deps)
		}
	}
	if next != h.Ranks {
		t.Errorf("%s: batches end at rank %d of %d", what, next, h.Ranks)
	}
	return tr
}

// mustRun checks that the trace of a source has nothing wrong and runs to its end, with messages that wait for their
// receives and with messages that do not. It returns how many messages there
// were, each collective alltoall counted as one to every other member.
func mustRun(t *testing.T, what string, s *rankwise.Source, err error) (messages int64) {
	t.Helper()
	tr := mustMake(t, what, s, err)
	if problems, n := dag.ValidateLimit(tr, 3); n > 0 {
		t.Fatalf("%s: %d problems: %v", what, n, problems)
	}
	timeline, err := ideal.Run(tr)
	if err != nil || !timeline.Result.Complete {
		t.Fatalf("%s: ideal: not complete, error %v", what, err)
	}
	choice, err := collective.ParseChoice("alltoall=pairwise")
	if err != nil {
		t.Fatal(err)
	}
	lowered, err := collective.Lower(context.Background(), tr, choice)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	params, err := loggops.Preset("default")
	if err != nil {
		t.Fatal(err)
	}
	for _, params.S = range []int64{0, 1 << 40} {
		replay, err := loggops.Compile(dag.FromTrace(lowered), loggops.Strict, t.Logf)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		r, err := replay.Run(loggops.Options{Params: params})
		if err != nil || !r.Complete {
			t.Fatalf("%s: loggops, S = %d: not complete, error %v", what, params.S, err)
		}
		messages = r.Messages
	}
	return messages
}

// TestSchedgen replays the patterns of Schedgen, but those that are meant not to run.
func TestSchedgen(t *testing.T) {
	never := []string{"chained_dissem"}
	for _, v := range []schedgen.Variant{schedgen.Upstream, schedgen.ATLAHS} {
		for _, pattern := range schedgen.Patterns() {
			if !slices.Contains(pattern.Has, v) || slices.Contains(never, pattern.Name) {
				continue
			}
			for _, ranks := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 27, 32} {
				p := schedgen.Default()
				p.Variant, p.Ranks, p.Bytes, p.SegmentSize, p.NWay = v, ranks, 1000, 300, 1+ranks%4
				p.NB, p.NBPoll, p.CPU = 10*dag.Nanosecond, dag.Time(ranks%3)*dag.Nanosecond, ranks%3
				p.Root = ranks / 3
				n := int64(ranks)
				want := int64(-1)
				switch pattern.Name {
				case "binarytreebcast":
					p.Root, want = 0, n-1
				case "binomialtreebcast", "binomialtreereduce", "gather", "scatter":
					want = n - 1
				case "pipelinedring", "pipelinedringdep":
					want = 4 * (n - 1)
				case "linear_alltoall", "linear_alltoallv":
					want = n * (n - 1)
				case "allreduce_ring":
					want = 2 * n * (n - 1)
				case "doublering":
					want = 2 * n
				case "linbarrier":
					want = 2 * (n - 1)
				case "allreduce_recdoub":
					if ranks&(ranks-1) != 0 {
						continue
					}
				case "resnet152":
					if ranks > 1 {
						continue // no rank has the tags of another
					}
				case "random_bisect", "random_bisect_fd_sym":
					if ranks < 2 {
						continue
					}
					if want = n / 2; pattern.Name == "random_bisect_fd_sym" {
						want = n / 2 * 2
					}
				}
				what := fmt.Sprintf("%s %s on %d ranks", v, pattern.Name, ranks)
				s, err := schedgen.NewSource(pattern.Name, p, int64(ranks))
				if got := mustRun(t, what, s, err); want >= 0 && got != want {
					t.Errorf("%s: %d messages, expected %d", what, got, want)
				}
			}
		}
	}
}

// TestStencil checks the number of messages of grids of one to six dimensions by formulas.
func TestStencil(t *testing.T) {
	for _, grid := range [][]int{
		{1}, {2}, {7}, {1, 1}, {2, 3}, {5, 1}, {3, 4}, {2, 2, 2}, {1, 4, 3}, {3, 3, 3}, {2, 1, 3, 2}, {2, 3, 1, 2, 2},
		{2, 1, 2, 3, 1, 2}, {2, 2, 2, 2, 2, 2},
	} {
		for variant := range 4 {
			p := stencil.Default()
			p.Grid, p.Periodic, p.Diagonal, p.Iterations = grid, variant&1 != 0, variant&2 != 0, 3
			p.Cells, p.Halo = make([]int64, len(grid)), make([]int64, len(grid))
			ranks, wide := int64(1), 0
			for d, n := range grid {
				p.Cells[d], p.Halo[d] = int64(5+d), int64(1+d%3)
				ranks *= int64(n)
				if n > 1 {
					wide++
				}
			}
			// Along a dimension of n ranks there are n - 1 pairs of neighbours, n if it is periodic.
			want := int64(0)
			switch {
			case p.Periodic && p.Diagonal:
				want = ranks
				for range wide {
					want *= 3
				}
				want -= ranks
			case p.Periodic:
				want = 2 * int64(wide) * ranks
			case p.Diagonal:
				want = 1
				for _, n := range grid {
					want *= int64(3*n - 2)
				}
				want -= ranks
			default:
				for _, n := range grid {
					want += 2 * ranks / int64(n) * int64(n-1)
				}
			}
			what := fmt.Sprintf("%+v", p)
			s, err := stencil.NewSource(p)
			if got := mustRun(t, what, s, err); got != 3*want {
				t.Errorf("%s: %d messages, expected %d", what, got, 3*want)
			}
		}
	}
}

// TestStencilPresets compares the messages and allreduces of applications with docs/reference/generators/stencil.md.
func TestStencilPresets(t *testing.T) {
	for name, want := range map[string]struct {
		ranks, messages, allreduces, largest int64 // per iteration; bytes of the largest message
	}{
		"lulesh":     {64, 936, 1, 31 * 31 * 72}, // (3*4-2)^3 - 64 pairs of neighbours
		"hpcg":       {64, 936, 3, 104 * 104 * 8},
		"milc4d":     {64, 8 * 64, 2, 3 * 8 * 8 * 8 * 24},
		"cloverleaf": {64, 2 * 2 * 7 * 8, 1, 2 * 480 * 120},
	} {
		p, err := stencil.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := stencil.NewSource(p)
		tr := mustMake(t, name, s, err)
		n, largest := int64(p.Iterations), int64(0)
		for _, r := range tr.Ranks {
			for i, kind := range r.Kind {
				if kind == dag.Send {
					largest = max(largest, r.Bytes.At(i))
				}
			}
		}
		if got := int64(len(tr.Ranks)); got != want.ranks || count(tr, dag.Send) != n*want.messages ||
			count(tr, dag.Coll) != n*want.ranks*want.allreduces || largest != want.largest {
			t.Errorf("%s: %d ranks, %d messages of up to %d bytes, %d parts of allreduces; expected %+v", name, got,
				count(tr, dag.Send), largest, count(tr, dag.Coll), want)
		}
	}
	if _, err := stencil.Preset("milc"); err == nil || !slices.Contains(stencil.Presets(), "milc4d") {
		t.Error("expected an error for the preset milc, and the preset milc4d")
	}
}

func TestSweep3D(t *testing.T) {
	for _, grid := range [][2]int{{1, 1}, {1, 2}, {3, 1}, {2, 2}, {3, 4}, {7, 5}} {
		for _, blocks := range [][2]int64{{1, 1}, {2, 4}, {5, 6}} {
			p := sweep3d.Default()
			p.GridX, p.GridY, p.Z, p.ZBlock, p.AngleBlock = grid[0], grid[1], 5, blocks[0], blocks[1]
			x, y := int64(grid[0]), int64(grid[1])
			calcs := (p.Z + p.ZBlock - 1) / p.ZBlock * ((p.Angles + p.AngleBlock - 1) / p.AngleBlock)
			sweeps := int64(p.Iterations) * 8 * calcs * ((x-1)*y + x*(y-1))
			what := fmt.Sprintf("%+v", p)
			s, err := sweep3d.NewSource(p)
			mustRun(t, what, s, err)
			if got := count(mustMake(t, what, s, err), dag.Send); got != sweeps {
				t.Errorf("%s: %d messages, expected %d", what, got, sweeps)
			}
		}
	}
}

func TestFFT(t *testing.T) {
	for _, c := range []struct {
		size          []int64
		rows, columns int
		inverse       bool
		want          int64 // messages of an iteration, where each member sends to each other
	}{
		{[]int64{64, 64}, 1, 1, true, 0},
		{[]int64{64, 32}, 1, 8, false, 8 * 7},
		{[]int64{64, 32}, 4, 4, true, 2 * 16 * 15},
		{[]int64{16, 16, 16}, 1, 1, true, 0},
		{[]int64{16, 32, 64}, 4, 1, true, 2 * 4 * 3},
		{[]int64{16, 32, 64}, 1, 8, true, 2 * 8 * 7},
		{[]int64{16, 32, 8}, 4, 8, false, 32 * (3 + 7)},
		{[]int64{16, 32, 8}, 4, 8, true, 2 * 32 * (3 + 7)},
	} {
		p := fft.Default()
		p.Size, p.Rows, p.Columns, p.Inverse, p.Iterations = c.size, c.rows, c.columns, c.inverse, 2
		what := fmt.Sprintf("%+v", p)
		s, err := fft.NewSource(p)
		if got := mustRun(t, what, s, err); got != 2*c.want {
			t.Errorf("%s: %d messages, expected %d", what, got, 2*c.want)
		}
	}
}

func TestMasterWorker(t *testing.T) {
	for _, anySource := range []bool{false, true} {
		for _, workers := range []int{1, 2, 5, 16} {
			for _, tasks := range []int64{0, 1, 4, 5, 6, 100} {
				p := masterworker.Default()
				p.AnySource, p.Workers, p.Tasks = anySource, workers, tasks
				what := fmt.Sprintf("%+v", p)
				s, err := masterworker.NewSource(p, 1)
				if got := mustRun(t, what, s, err); got != 2*tasks {
					t.Errorf("%s: %d messages, expected %d", what, got, 2*tasks)
				}
			}
		}
	}
}

func TestNBody(t *testing.T) {
	for ranks := 1; ranks <= 12; ranks++ {
		for _, steps := range []int{1, 3} {
			p := nbody.Default()
			p.Ranks, p.Steps = ranks, steps
			what := fmt.Sprintf("%+v", p)
			s, err := nbody.NewSource(p)
			want := int64(steps * ranks * (ranks - 1))
			if got := mustRun(t, what, s, err); got != want {
				t.Errorf("%s: %d messages, expected %d", what, got, want)
			}
			timeline, err := ideal.Run(mustMake(t, what, s, err))
			if err != nil {
				t.Fatal(err)
			}
			alone := dag.Time(steps) * (dag.Time(ranks)*dag.Time(p.Bodies*p.Bodies)*p.Interaction + dag.Time(p.Bodies)*p.Update)
			if got := timeline.Makespan(); got != alone {
				t.Errorf("%s: makespan %v without a network, expected %v: the messages overlap", what, got, alone)
			}
		}
	}
}

func count(tr *dag.Trace, kind dag.Kind) (n int64) {
	for i := range tr.Ranks {
		for _, k := range tr.Ranks[i].Kind {
			if k == kind {
				n++
			}
		}
	}
	return n
}

// TestGolden lists all ops of small traces.
func TestGolden(t *testing.T) {
	cells := stencil.Params{
		Grid: []int{2, 3}, Cells: []int64{10, 20}, Halo: []int64{1, 2}, CellBytes: 8, Diagonal: true, Iterations: 2,
		Compute: 7,
	}
	ring := cells
	ring.Grid, ring.Cells, ring.Halo, ring.Periodic = []int{3}, []int64{10}, []int64{1}, true
	sums := ring
	sums.Allreduces, sums.AllreduceBytes = 2, 16
	lone := sums
	lone.Grid = []int{1}
	sweep := sweep3d.Params{
		GridX: 2, GridY: 2, X: 3, Y: 5, Z: 3, ZBlock: 2, Angles: 1, AngleBlock: 1, FluxBytes: 8, Grind: 10, Iterations: 1,
	}
	transform := fft.Params{
		Size: []int64{8, 16, 4}, Rows: 2, Columns: 4, ElementBytes: 16, FlopRate: 1e9, Inverse: true, Iterations: 1,
	}
	tasks := masterworker.Params{
		Workers: 2, Tasks: 5, TaskBytes: 10, ResultBytes: 20, Compute: 1000, Spread: 0.5, Handle: 3,
	}
	bodies := nbody.Params{Ranks: 4, Bodies: 10, BodyBytes: 32, Interaction: 2, Update: 3, Steps: 2}
	for name, source := range map[string]func() (*rankwise.Source, error){
		"stencil":      func() (*rankwise.Source, error) { return stencil.NewSource(cells) },
		"stencil-ring": func() (*rankwise.Source, error) { return stencil.NewSource(ring) },
		"stencil-sums": func() (*rankwise.Source, error) { return stencil.NewSource(sums) },
		"stencil-lone": func() (*rankwise.Source, error) { return stencil.NewSource(lone) },
		"sweep3d":      func() (*rankwise.Source, error) { return sweep3d.NewSource(sweep) },
		"fft":          func() (*rankwise.Source, error) { return fft.NewSource(transform) },
		"masterworker": func() (*rankwise.Source, error) { return masterworker.NewSource(tasks, 1) },
		"nbody":        func() (*rankwise.Source, error) { return nbody.NewSource(bodies) },
	} {
		s, err := source()
		got := list(mustMake(t, name, s, err))
		golden.Check(t, filepath.Join("testdata", name+".txt"), got)
	}
}

// list lists a trace, an op a line.
func list(tr *dag.Trace) string {
	var b strings.Builder
	b.WriteString(tr.Title + "\n")
	for i := range tr.Comms {
		fmt.Fprintf(&b, "comm %d: ranks %v\n", i, tr.Comms[i].Members())
	}
	for rank := range tr.Ranks {
		r := tr.Ranks[rank]
		for i := range r.Len() {
			op := r.Op(i)
			fmt.Fprintf(&b, "%d.%d ", rank, i)
			switch op.Kind {
			case dag.Calc:
				fmt.Fprintf(&b, "calc %d ps", op.Duration)
				if op.Flops > 0 {
					fmt.Fprintf(&b, ", %d flops", op.Flops)
				}
			case dag.Send, dag.Recv:
				fmt.Fprintf(&b, "%v rank %d, %d bytes, tag %d", op.Kind, op.Peer, op.Bytes, op.Tag)
			default:
				fmt.Fprintf(&b, "%v comm %d, %d bytes", op.Subkind, op.Comm, op.Bytes)
			}
			for _, off := range r.Deps.Of(i) {
				fmt.Fprintf(&b, " after %d.%d", rank, i-int(off))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func TestRefused(t *testing.T) {
	makeStencil := func(change func(p *stencil.Params)) error {
		p := stencil.Default()
		change(&p)
		_, err := stencil.NewSource(p)
		return err
	}
	makeSweep := func(change func(p *sweep3d.Params)) error {
		p := sweep3d.Default()
		change(&p)
		_, err := sweep3d.NewSource(p)
		return err
	}
	makeFFT := func(change func(p *fft.Params)) error {
		p := fft.Default()
		change(&p)
		_, err := fft.NewSource(p)
		return err
	}
	makeTasks := func(change func(p *masterworker.Params)) error {
		p := masterworker.Default()
		change(&p)
		_, err := masterworker.NewSource(p, 1)
		return err
	}
	makeBodies := func(change func(p *nbody.Params)) error {
		p := nbody.Default()
		change(&p)
		_, err := nbody.NewSource(p)
		return err
	}
	const most = math.MaxInt64
	for want, err := range map[string]error{
		"grid has 0 dimensions":                               makeStencil(func(p *stencil.Params) { p.Grid = nil }),
		"grid has 7 dimensions":                               makeStencil(func(p *stencil.Params) { p.Grid = make([]int, 7) }),
		"grid is 0x4x4":                                       makeStencil(func(p *stencil.Params) { p.Grid[0] = 0 }),
		"grid is 4x4194304x2":                                 makeStencil(func(p *stencil.Params) { p.Grid = []int{4, 1 << 22, 2} }),
		"cells has 2 dimensions":                              makeStencil(func(p *stencil.Params) { p.Cells = []int64{1, 2} }),
		"halo has 2 dimensions":                               makeStencil(func(p *stencil.Params) { p.Halo = []int64{1, 2} }),
		"cells is 0, expected 1":                              makeStencil(func(p *stencil.Params) { p.Cells = []int64{0} }),
		"halo is 65, expected 0..64":                          makeStencil(func(p *stencil.Params) { p.Halo = []int64{65} }),
		"cell bytes is -1":                                    makeStencil(func(p *stencil.Params) { p.CellBytes = -1 }),
		"a message to a neighbour exceeds 274877906944 bytes": makeStencil(func(p *stencil.Params) { p.Cells = []int64{most} }),
		"stencil: iterations is 0":                            makeStencil(func(p *stencil.Params) { p.Iterations = 0 }),
		"compute time is -1ps":                                makeStencil(func(p *stencil.Params) { p.Compute = -1 }),
		"rank 0 has 7516192768 ops":                           makeStencil(func(p *stencil.Params) { p.Iterations = 1 << 30 }),
		"x is 0, expected 1..1048576":                         makeSweep(func(p *sweep3d.Params) { p.X = 0 }),
		"z block is 51, expected 1..50":                       makeSweep(func(p *sweep3d.Params) { p.ZBlock = 51 }),
		"angle block is 7, expected 1..6":                     makeSweep(func(p *sweep3d.Params) { p.AngleBlock = 7 }),
		"grid is 8 x 0":                                       makeSweep(func(p *sweep3d.Params) { p.GridY = 0 }),
		"grid is 16777217 x 1":                                makeSweep(func(p *sweep3d.Params) { p.GridX, p.GridY = 1<<24+1, 1 }),
		"flux bytes is 9223372036854775807":                   makeSweep(func(p *sweep3d.Params) { p.FluxBytes = most }),
		"grind time is 9223372":                               makeSweep(func(p *sweep3d.Params) { p.Grind = dag.MaxTime }),
		"sweep3d: iterations is":                              makeSweep(func(p *sweep3d.Params) { p.Iterations = 1 << 28 }),
		"size has 1 dimensions":                               makeFFT(func(p *fft.Params) { p.Size = []int64{8} }),
		"size is 8x12":                                        makeFFT(func(p *fft.Params) { p.Size = []int64{8, 12} }),
		"grid is 3 x 8":                                       makeFFT(func(p *fft.Params) { p.Rows = 3 }),
		"grid is 1048576 x 8":                                 makeFFT(func(p *fft.Params) { p.Rows = 1 << 20 }),
		"no more ranks than elements":                         makeFFT(func(p *fft.Params) { p.Size = []int64{64, 32} }),
		"no more rows than elements":                          makeFFT(func(p *fft.Params) { p.Size = []int64{4, 64, 64} }),
		"element bytes is 0":                                  makeFFT(func(p *fft.Params) { p.ElementBytes = 0 }),
		"expected at most 274877906944":                       makeFFT(func(p *fft.Params) { p.Size = []int64{1 << 30, 1 << 30, 1 << 30} }),
		"flop rate is 0":                                      makeFFT(func(p *fft.Params) { p.FlopRate = 0 }),
		"a computation takes longer": makeFFT(func(p *fft.Params) {
			p.Size, p.FlopRate = []int64{1 << 17, 1 << 10, 1 << 10}, 1
		}),
		"fft: iterations is 0":        makeFFT(func(p *fft.Params) { p.Iterations = 0 }),
		"workers is 0":                makeTasks(func(p *masterworker.Params) { p.Workers = 0 }),
		"workers is 16777216":         makeTasks(func(p *masterworker.Params) { p.Workers = 1 << 24 }),
		"tasks is -1":                 makeTasks(func(p *masterworker.Params) { p.Tasks = -1 }),
		"task bytes is -1":            makeTasks(func(p *masterworker.Params) { p.TaskBytes = -1 }),
		"result bytes is -1":          makeTasks(func(p *masterworker.Params) { p.ResultBytes = -1 }),
		"masterworker: compute":       makeTasks(func(p *masterworker.Params) { p.Compute = dag.MaxTime }),
		"spread is NaN":               makeTasks(func(p *masterworker.Params) { p.Spread = math.NaN() }),
		"spread is 1.5":               makeTasks(func(p *masterworker.Params) { p.Spread = 1.5 }),
		"handle time is -1ps":         makeTasks(func(p *masterworker.Params) { p.Handle = -1 }),
		"nbody: ranks is 0":           makeBodies(func(p *nbody.Params) { p.Ranks = 0 }),
		"bodies is -1":                makeBodies(func(p *nbody.Params) { p.Bodies = -1 }),
		"body bytes is 16385":         makeBodies(func(p *nbody.Params) { p.BodyBytes = 1<<14 + 1 }),
		"interaction time is 9223372": makeBodies(func(p *nbody.Params) { p.Interaction = dag.MaxTime }),
		"update time is 9223372":      makeBodies(func(p *nbody.Params) { p.Update = dag.MaxTime }),
		"steps is 0, expected 1..":    makeBodies(func(p *nbody.Params) { p.Steps = 0 }),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %s", err, want)
		}
	}
}

func BenchmarkGenerate(b *testing.B) {
	cells, sweep, transform := stencil.Default(), sweep3d.Default(), fft.Default()
	cells.Grid, cells.Diagonal = []int{16, 16, 16}, true
	sweep.GridX, sweep.GridY = 32, 32
	transform.Rows, transform.Columns, transform.Iterations = 64, 64, 20
	tasks, bodies := masterworker.Default(), nbody.Default()
	tasks.Workers, tasks.Tasks, bodies.Ranks = 1000, 1000000, 500
	for _, bench := range []struct {
		name   string
		source func() (*rankwise.Source, error)
	}{
		{"stencil", func() (*rankwise.Source, error) { return stencil.NewSource(cells) }},
		{"sweep3d", func() (*rankwise.Source, error) { return sweep3d.NewSource(sweep) }},
		{"fft", func() (*rankwise.Source, error) { return fft.NewSource(transform) }},
		{"masterworker", func() (*rankwise.Source, error) { return masterworker.NewSource(tasks, 1) }},
		{"nbody", func() (*rankwise.Source, error) { return nbody.NewSource(bodies) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			ops := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				s, err := bench.source()
				if err != nil {
					b.Fatal(err)
				}
				tr, err := dag.ReadAll(s)
				if err != nil {
					b.Fatal(err)
				}
				ops += tr.Ops()
			}
			b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}
