package sim

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// uniformNetwork is the network of Uniform in events, for tests.
type uniformNetwork struct {
	Uniform
	send, receive []uint64 // by rank: the time from which its NIC can send and receive
}

func (n *uniformNetwork) Lookahead() uint64 { return n.Latency }

func (n *uniformNetwork) Ordered() bool { return true }

func (n *uniformNetwork) Eager(a *Actor, m uint32, t uint64) {
	op := a.Op(m)
	first := max(t, n.send[op.Rank])
	n.send[op.Rank] = first + n.Gap + (max(op.Size, 1)-1)*n.PerByte
	a.Schedule(uint32(op.Peer), first+n.Latency, 0, m)
}

func (n *uniformNetwork) Event(a *Actor, _ NetworkEvent, m uint32) {
	op := a.Op(m)
	a.Announce(m)
	last := max(a.Now(), n.receive[op.Peer]) + (max(op.Size, 1)-1)*n.PerByte
	n.receive[op.Peer] = last + n.Gap
	a.Deliver(m, a.Now()-n.Latency, last)
}

func (n *uniformNetwork) Request(*Actor, uint32, uint64) { panic("a message waits for its receive") }
func (n *uniformNetwork) Grant(*Actor, uint32, uint64)   { panic("a message waits for its receive") }

// shifts returns a trace whose ranks do the same with the ranks at some distances, with few lengths and sizes, so that
// many times are equal. Some messages have no receive, or the other way round.
func shifts(random *rand.Rand) *dag.Trace {
	ranks, steps := fewestFolded+random.IntN(40), foldedBlock+random.IntN(100)
	lost := random.IntN(3) / 2 * random.IntN(4) // in 256 sends or receives
	back := 1 + random.IntN(40)                 // the farthest dependency; far ones let many ops be ready at once
	b := dag.NewBuilder(ranks)
	for n := 0; n < steps; n++ {
		shift, tag, size := 1+random.IntN(3), random.Int64N(2), []int64{0, 1, 2, 8, 64}[random.IntN(5)]
		kind, length := random.IntN(5), dag.Time(random.IntN(4)*10)
		noSend, noRecv := random.IntN(256) < lost, random.IntN(256) < lost
		var deps [2][]int
		for k := range deps {
			for range random.IntN(4) {
				deps[k] = append(deps[k], 1+random.IntN(back))
			}
		}
		all := random.IntN(20) == 0 // many dependents or dependencies
		for r := range ranks {
			rank := b.Rank(r)
			require := func(i int, on []int) {
				for _, d := range on {
					if d <= i {
						rank.Requires(i, i-d)
					}
				}
				if all {
					for d := range min(i, back) {
						rank.Requires(i, i-d-1)
					}
				}
			}
			if kind == 0 {
				require(rank.Calc(length+dag.Time(r%3)), deps[0])
				continue
			}
			if !noSend {
				require(rank.Send(int32((r+shift)%ranks), size, tag), deps[0])
			}
			if !noRecv {
				require(rank.Recv(int32((r+ranks-shift)%ranks), size, tag), deps[1])
			}
		}
	}
	return b.Trace()
}

// TestUniform compares replays over a uniform network by uniformRun and by actors, on any number of threads.
func TestUniform(t *testing.T) {
	seeds := uint64(120)
	if testing.Short() {
		seeds = 40
	}
	complete, incomplete := 0, 0
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 73))
		trace := shifts(random)
		pick := func(values ...uint64) uint64 { return values[random.IntN(len(values))] }
		u := Uniform{Send: pick(0, 5, 10, 35), Receive: pick(0, 5, 10, 40), Latency: pick(1, 10, 20, 64, 1000),
			Gap: pick(1, 5, 10, 50), PerByte: pick(0, 1, 5)}
		run := func(uniform *Uniform, threads, busy int) (*Program, *Outcome) {
			p, err := Compile(dag.FromTrace(trace), CompileOptions{DenseStreams: true, Fold: true})
			if err != nil {
				t.Fatal(err)
			}
			n := &uniformNetwork{u, make([]uint64, p.Ranks()), make([]uint64, p.Ranks())}
			e, err := NewEngine(p, Host{
				Busy:       func(uint64) uint64 { return u.Send },
				Receiving:  func(uint64) uint64 { return u.Receive },
				Rendezvous: math.MaxUint64,
				Uniform:    uniform,
			}, n, nil, threads)
			if err != nil {
				t.Fatal(err)
			}
			if (e.uniform != nil) != (uniform != nil) {
				t.Fatalf("seed %d: uniform %v, expected %v", seed, e.uniform != nil, uniform != nil)
			}
			e.busy = busy
			out, err := e.Run()
			if err != nil {
				t.Fatal(err)
			}
			return p, out
		}
		p, want := run(nil, 1, busy)
		wantResult := want.Result(p)
		for threads := 1; threads <= 3; threads++ {
			p, got := run(&u, threads, 0)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, %d threads: outcome %+v, expected %+v", seed, threads, got, want)
			}
			if result := got.Result(p); !reflect.DeepEqual(result, wantResult) {
				t.Fatalf("seed %d, %d threads: result %+v, expected %+v", seed, threads, result, wantResult)
			}
		}
		if wantResult.Complete {
			complete++
		} else {
			incomplete++
		}
	}
	if complete == 0 || incomplete == 0 {
		t.Errorf("%d replays complete, %d incomplete, expected some of each", complete, incomplete)
	}
}

// endingContext ends after some checks.
type endingContext struct {
	context.Context
	left int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestUniformInterrupted checks that a replay ends soon after its context has, even within a window.
func TestUniformInterrupted(t *testing.T) {
	b := dag.NewBuilder(fewestFolded)
	for r := range fewestFolded {
		for range 3 * checkEvents / fewestFolded {
			b.Rank(r).Calc(1)
		}
	}
	p, err := Compile(dag.FromTrace(b.Trace()), CompileOptions{DenseStreams: true, Fold: true})
	if err != nil {
		t.Fatal(err)
	}
	u := Uniform{Latency: 1 << 40, Gap: 1}
	e, err := NewEngine(p, Host{Uniform: &u}, &uniformNetwork{Uniform: u}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	if e.uniform == nil {
		t.Fatal("the network is not uniform")
	}
	ran := int64(0)
	e.SetProgress(func(ops int64) { ran += ops })
	e.SetContext(&endingContext{context.Background(), 1}) // at the start
	_, err = e.Run()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, expected %v", err, context.Canceled)
	}
	if all := int64(p.NumOps()); ran == 0 || ran > all/2 {
		t.Errorf("%d of %d ops ran", ran, all)
	}
}
