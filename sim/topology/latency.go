// This file finds latencies between hosts, for backends without links.

package topology

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/platform"
)

// Latencies has the latencies of paths between the hosts of a network or a platform: those of all links and switches of
// the route, or of the first of the shortest paths. It is safe for concurrent use.
type Latencies struct {
	// Topology describes the network.
	Topology sim.Topology
	// Names are those of the hosts of a platform; nil: another network.
	Names []string

	hosts int
	least dag.Time // a lower bound between different hosts
	find  func(from, to uint32) (dag.Time, error)

	mu     sync.Mutex // of find, sparse and err
	dense  []atomic.Int64
	sparse map[[2]uint32]dag.Time
	err    error // the first
}

// mostLatencies is the largest number of latencies that Latencies keeps, at 8 bytes each for few hosts.
const mostLatencies = 1 << 21

// NewLatencies returns the latencies of a network of a specification or a file, such as those of [Load], or of a
// platform file. Networks of GPUs are errors: their hosts have several ports.
func NewLatencies(ctx context.Context, text string) (*Latencies, error) {
	l := &Latencies{sparse: make(map[[2]uint32]dag.Time)}
	load := l.network
	if IsPlatform(text) {
		load = l.platform
	}
	if err := load(ctx, text); err != nil {
		return nil, err
	}
	if l.hosts*l.hosts <= mostLatencies {
		l.dense = make([]atomic.Int64, l.hosts*l.hosts)
	}
	return l, nil
}

// platform loads a platform file.
func (l *Latencies) platform(_ context.Context, text string) error {
	p, err := platform.Load(text)
	if err != nil {
		return err
	}
	router := platform.NewRouter(p)
	l.hosts, l.Names, l.Topology = len(p.Hosts), p.Hosts, *p.Describe()
	l.least = dag.Time(min(float64(maxLatency), p.LeastLatency()*float64(dag.Second)))
	l.find = func(from, to uint32) (dag.Time, error) {
		path, err := router.Route(from, to)
		if err != nil {
			return 0, err
		}
		t := math.Round(path.Latency * float64(dag.Second))
		if t >= math.MaxInt64 {
			return 0, fmt.Errorf("%s: expected a latency of less than %v from %s to %s, found %g s", p.File,
				dag.Time(math.MaxInt64), p.Hosts[from], p.Hosts[to], path.Latency)
		}
		return dag.Time(t), nil
	}
	return nil
}

// network loads another network.
func (l *Latencies) network(ctx context.Context, text string) error {
	n, err := Load(text)
	if err != nil {
		return err
	}
	if err := n.RefuseGPUs(); err != nil {
		return fmt.Errorf("%s: %w", shorten(text), err)
	}
	routes, err := NewRoutes(ctx, n, nil)
	if err != nil {
		return err
	}
	l.hosts, l.Topology, l.least = n.Hosts, *n.Describe(text), maxLatency
	for i := range n.Links {
		l.least = min(l.least, n.Links[i].Latency)
	}
	l.find = func(from, to uint32) (dag.Time, error) {
		t, ok := n.pathLatency(routes, from, to)
		if !ok {
			return 0, fmt.Errorf("%s: expected a path from %s to %s, found none", shorten(text), n.Name(from),
				n.Name(to))
		}
		return t, nil
	}
	return nil
}

// pathLatency returns the latency of the links and switches on the first of the shortest paths between two hosts, and
// whether there is a path. That of a host to itself is 0.
func (n *Network) pathLatency(r *Routes, from, to uint32) (t dag.Time, ok bool) {
	if from == to {
		return 0, true
	}
	at := from
	for port := range n.FirstPath(r, from, to) {
		if at != from {
			t += n.SwitchLatency[at-uint32(n.Hosts)]
		}
		t += n.Links[port/2].Latency
		at = n.Head(port)
	}
	return t, at == to
}

// Hosts returns the number of hosts.
func (l *Latencies) Hosts() int { return l.hosts }

// Least returns a lower bound of the latencies between different hosts.
func (l *Latencies) Least() dag.Time { return l.least }

// Between returns the latency between two hosts. Without a path, it returns 0 and keeps the error for Err.
func (l *Latencies) Between(from, to uint32) dag.Time {
	var place *atomic.Int64
	if l.dense != nil {
		place = &l.dense[int(from)*l.hosts+int(to)]
		if known := place.Load(); known != 0 {
			return dag.Time(known - 1)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := [2]uint32{from, to}
	if t, known := l.sparse[key]; known {
		return t
	}
	t, err := l.find(from, to)
	if err != nil {
		if l.err == nil {
			l.err = err
		}
		return 0
	}
	if place != nil {
		place.Store(int64(t) + 1)
		return t
	}
	if len(l.sparse) >= mostLatencies {
		clear(l.sparse)
	}
	l.sparse[key] = t
	return t
}

// Err returns the first error of Between.
func (l *Latencies) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
