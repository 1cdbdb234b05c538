package backends_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim/backends"
)

// TestRunParameters checks that a run takes each kind of parameter, those without flags too.
func TestRunParameters(t *testing.T) {
	trace := pingPong(1000)
	for _, c := range []struct {
		backend string
		options backends.Option
		name    string // of the result's parameter
		want    any
	}{
		{"loggops", backends.SetAll(map[string]string{"L": "3us", "params": "ai"}), "L_ps", int64(3_000_000)},
		{"packet", backends.Set("topology=star:hosts=2", "transport=dctcp", "rto-min=5ms"), "transport_params.rto-min", 5e9},
		{"packet", backends.Set("topology=star:hosts=2", "transport=dctcp", "set=rto-min=5ms"), "transport_params.rto-min", 5e9},
		{"flit", backends.Set("topology=star:hosts=2", "pad-packets=on"), "pad_packets", true},
		{"flit", backends.Set("topology=star:hosts=2", "pipeline=7"), "pipeline", 7},
		{"analytical", backends.Set("network=Ring(2)@50GB/s,500ns", "splits=3"), "splits", 3},
		{"analytical", backends.Set("network=Ring(2)@50GB/s,500ns", "bw0=25"), "bw0_GiBps", 25.0},
	} {
		r, err := backends.Run(trace, c.backend, c.options)
		if err != nil {
			t.Errorf("%s: %v", c.backend, err)
		} else if got := r.Params.Get(c.name); got != c.want {
			t.Errorf("%s: %s is %v, want %v", c.backend, c.name, got, c.want)
		}
	}
}

// TestRunLowers checks that collectives are lowered where the backend needs it.
func TestRunLowers(t *testing.T) {
	b := dag.NewBuilder(4)
	for rank := range 4 {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1000})
	}
	trace := b.Trace()
	for backend, messages := range map[string]bool{"loggops": true, "ideal": false} {
		r, err := backends.Run(trace, backend)
		if err != nil || !r.Complete || r.Messages > 0 != messages {
			t.Errorf("%s: got %+v, error %v", backend, r, err)
		}
	}
}

func TestRunErrors(t *testing.T) {
	trace := pingPong(1000)
	for _, c := range []struct{ backend, text, name, want string }{
		{"nosuch", "L=1us", "", "unknown backend \"nosuch\", expected one of " + strings.Join(backends.Names(), ", ")},
		{"loggops", "L", "", `backend loggops: expected NAME=VALUE, found "L"`},
		{"ideal", "L=1us", "L", `backend ideal: L: unknown parameter, expected one of replay, ops`},
		{"packet", "mss=1000", "topology", `backend packet: topology: the packet backend needs a network, such as fattree:k=8,rate=200Gbps or a file`},
		{"loggops", "L=x", "L", ""},
	} {
		_, err := backends.Run(trace, c.backend, backends.Set(c.text))
		if err == nil || c.want != "" && err.Error() != c.want {
			t.Errorf("%s, %s: error %v, want %s", c.backend, c.text, err, c.want)
		}
		var at *param.Error
		if c.name != "" && (!errors.As(err, &at) || at.Name != c.name) {
			t.Errorf("%s, %s: error %v does not name %s", c.backend, c.text, err, c.name)
		}
	}
}
