// This file holds the schedules that simulate is measured on.

package simulate

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/pattern"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/goal"
	"github.com/tracedag/tracedag/formats/store"
)

// schedule is a trace to measure on, or a small one of the same kind.
type schedule struct {
	name  string
	trace func(small bool) (*dag.Trace, error)
}

// All schedules but alltoall have three million ops or more.
var schedules = []schedule{
	{"ring", repeated("ring", 256, 1<<20, 16)},
	{"recdoubling", repeated("recdoubling", 1024, 4<<10, 200)},
	{"stencil2d", repeated("stencil2d", 1024, 4<<10, 450)},
	{"dissemination", repeated("dissemination", 16384, 4<<10, 10)},
	{"training", func(small bool) (*dag.Trace, error) {
		if small {
			return training{tensor: 4, pipeline: 2, data: 2, layers: 2, microbatches: 4, steps: 2}.trace()
		}
		return training{tensor: 8, pipeline: 8, data: 4, layers: 4, microbatches: 16, steps: 2}.trace()
	}},
	{"application", func(small bool) (*dag.Trace, error) {
		if small {
			return application{x: 4, y: 4, iterations: 12, reduce: 4, burst: 6, burstSize: 5}.trace(), nil
		}
		return application{x: 32, y: 32, iterations: 240, reduce: 20, burst: 60, burstSize: 40}.trace(), nil
	}},
	{"alltoall", func(small bool) (*dag.Trace, error) {
		if small {
			return linearAlltoall(32), nil
		}
		return linearAlltoall(512), nil
	}},
}

// repeated returns the constructor of a pattern of dag/gen/pattern.
func repeated(name string, ranks int, bytes int64, iterations int) func(small bool) (*dag.Trace, error) {
	return func(small bool) (*dag.Trace, error) {
		p := pattern.Default()
		p.Ranks, p.Bytes, p.Iterations = ranks, bytes, iterations
		if small {
			p.Ranks, p.Iterations = ranks/16, 4
		}
		return pattern.Generate(name, p)
	}
}

// application describes a stencil with periodic boundaries on x times y ranks: in every iteration a rank exchanges
// messages with four neighbours, with a tag per iteration, while it computes, and then computes the boundary. After
// some iterations all ranks synchronize by dissemination; after others each rank sends to many ranks at once.
type application struct {
	x, y, iterations int
	reduce           int // iterations between two synchronizations
	burst, burstSize int // iterations between two bursts, and messages of a burst
}

func (a application) trace() *dag.Trace {
	ranks := a.x * a.y
	b := dag.NewBuilder(ranks)
	for me := range ranks {
		r, random := b.Rank(me), rand.New(rand.NewPCG(2, uint64(me)))
		calc := func(mean int64, after ...int) int {
			return r.Calc(dag.Time(mean+random.Int64N(mean/4+1))*dag.Nanosecond, after...)
		}
		col, row := me%a.x, me/a.x
		neighbours := [4]int{(col+1)%a.x + row*a.x, (col+a.x-1)%a.x + row*a.x, col + (row+1)%a.y*a.x,
			col + (row+a.y-1)%a.y*a.x}
		var last []int // the end of the previous iteration
		for k := range a.iterations {
			var exchanged []int
			for d, peer := range neighbours {
				exchanged = append(exchanged, r.Recv(int32(peer), 2048, int64(k*8+d^1), last...))
			}
			for d, peer := range neighbours {
				exchanged = append(exchanged, r.Send(int32(peer), 2048, int64(k*8+d), last...))
			}
			last = []int{calc(2500, append(exchanged, calc(20_000, last...))...)}
			if k%a.reduce == a.reduce-1 {
				for distance := 1; distance < ranks; distance *= 2 {
					last = []int{
						r.Send(int32((me+distance)%ranks), 8, int64(k*8+4), last...),
						r.Recv(int32((me+ranks-distance)%ranks), 8, int64(k*8+4), last...),
					}
				}
			}
			if k%a.burst == a.burst-1 {
				var all []int
				for distance := 1; distance <= a.burstSize; distance++ {
					all = append(all, r.Recv(int32((me+ranks-distance)%ranks), 1000, int64(k*8+5), last...),
						r.Send(int32((me+distance)%ranks), 1000, int64(k*8+5), last...))
				}
				last = []int{calc(1000, all...)}
			}
		}
	}
	return b.Trace()
}

// linearAlltoall returns an all-to-all in which every rank posts all its sends and receives, of 1000 bytes, at once.
func linearAlltoall(ranks int) *dag.Trace {
	b := dag.NewBuilder(ranks)
	for me := range ranks {
		r := b.Rank(me)
		for distance := 1; distance < ranks; distance++ {
			r.Send(int32((me+distance)%ranks), 1000, 0)
			r.Recv(int32((me+ranks-distance)%ranks), 1000, 0)
		}
	}
	return b.Trace()
}

// stored is a schedule on disk.
type stored struct {
	ops         int64
	store, goal string // paths
}

// write stores the schedule in the folder, as a store and as a GOAL binary.
func (s *schedule) write(folder string, small bool) (stored, error) {
	t, err := s.trace(small)
	if err != nil {
		return stored{}, err
	}
	path := filepath.Join(folder, s.name)
	files := stored{ops: t.Ops(), store: path + ".parquet", goal: path + ".bin"}
	return files, errors.Join(writeFile(files.store, &store.Format, t), writeFile(files.goal, &goal.Binary, t))
}

func writeFile(path string, f *format.Format, t *dag.Trace) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Write(file, t, format.WriteOptions{}), file.Close())
}

// TestBenchmarkSchedules checks that there is nothing wrong with the schedules.
func TestBenchmarkSchedules(t *testing.T) {
	for _, s := range schedules {
		trace, err := s.trace(true)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		for _, problem := range dag.Validate(trace) {
			t.Errorf("%s: %v", s.name, problem)
		}
	}
}
