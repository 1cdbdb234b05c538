package backends_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// extremes are traces of two ranks whose times or sizes are at the end of their ranges.
var extremes = []struct {
	name  string
	least *big.Int // lower bound of the makespan in picoseconds, on any network
	sent  *big.Int // bytes of all messages
	trace func(b *dag.Builder)
}{
	{"a calc of nearly 106 days before a message", picosecondsOf(dag.MaxTime-1, 1), big.NewInt(8), func(b *dag.Builder) {
		b.Rank(0).Send(1, 8, 0, b.Rank(0).Calc(dag.MaxTime-1))
		b.Rank(1).Recv(0, 8, 0)
	}},
	{"a calc of nearly 106 days after a message", picosecondsOf(dag.MaxTime-1, 1), big.NewInt(8), func(b *dag.Builder) {
		b.Rank(0).Send(1, 8, 0)
		b.Rank(1).Calc(dag.MaxTime-1, b.Rank(1).Recv(0, 8, 0))
	}},
	{"a chain of 200 calcs of a day", picosecondsOf(86_400*dag.Second, 200), big.NewInt(0), func(b *dag.Builder) {
		var last []int
		for range 200 {
			last = []int{b.Rank(0).Calc(86_400*dag.Second, last...)}
		}
		b.Rank(1).Calc(1)
	}},
	{"three calcs of 106 days on one stream", picosecondsOf(dag.MaxTime, 1), big.NewInt(0), func(b *dag.Builder) {
		for range 3 {
			b.Rank(0).Calc(dag.MaxTime)
		}
		b.Rank(1).Calc(1)
	}},
	{"three calcs of 106 days on three streams", picosecondsOf(dag.MaxTime, 1), big.NewInt(0), func(b *dag.Builder) {
		for stream := range int32(3) {
			b.Rank(1).Add(dag.Op{Duration: dag.MaxTime, Stream: stream})
		}
		b.Rank(0).Calc(1)
	}},
	{"a message of 2^62 bytes", big.NewInt(0), bytesOf(1<<62, 1), func(b *dag.Builder) {
		b.Rank(0).Send(1, 1<<62, 0)
		b.Rank(1).Recv(0, 1<<62, 0)
	}},
	{"a message of 2^63-1 bytes", big.NewInt(0), bytesOf(math.MaxInt64, 1), func(b *dag.Builder) {
		b.Rank(0).Send(1, math.MaxInt64, 0)
		b.Rank(1).Recv(0, math.MaxInt64, 0)
	}},
	{"nine messages of 2^62 bytes", big.NewInt(0), bytesOf(1<<62, 9), func(b *dag.Builder) {
		for tag := range int64(9) {
			b.Rank(0).Send(1, 1<<62, tag)
			b.Rank(1).Recv(0, 1<<62, tag)
		}
	}},
	{"a message of 2^62 bytes to the own rank", big.NewInt(0), bytesOf(1<<62, 1), func(b *dag.Builder) {
		b.Rank(0).Send(0, 1<<62, 0)
		b.Rank(0).Recv(0, 1<<62, 0)
		b.Rank(1).Calc(1)
	}},
	{"a message with a release time of nearly 106 days", picosecondsOf(dag.MaxTime-1, 1), big.NewInt(8),
		func(b *dag.Builder) {
			b.Rank(0).Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 8, Release: dag.MaxTime - 1})
			b.Rank(1).Recv(0, 8, 0)
		}},
	{"a calc beyond 106 days by its release time", picosecondsOf(dag.MaxTime-1, 2), big.NewInt(0), func(b *dag.Builder) {
		b.Rank(1).Add(dag.Op{Duration: dag.MaxTime - 1, Release: dag.MaxTime - 1})
		b.Rank(0).Calc(1)
	}},
	{"a message", big.NewInt(0), big.NewInt(1 << 20), func(b *dag.Builder) {
		b.Rank(0).Send(1, 1<<20, 0)
		b.Rank(1).Recv(0, 1<<20, 0)
	}},
}

// picosecondsOf returns n times t.
func picosecondsOf(t dag.Time, n int64) *big.Int { return bytesOf(int64(t), n) }

func bytesOf(size, n int64) *big.Int { return new(big.Int).Mul(big.NewInt(size), big.NewInt(n)) }

// extremeParameters are parameters at the end of their ranges, by backend.
var extremeParameters = map[string][][]string{
	"loggops": {
		{}, {"L=9223372s"}, {"o=9223372s"}, {"g=9223372s"}, {"G=1B/s"}, {"O=1B/s"}, {"S=0"}, {"S=0", "L=9223372s"},
		{"S=0", "o=9223372s", "g=9223372s", "G=1B/s", "O=1B/s"},
	},
	"analytical": {{}, {"congestion=aware"}, {"rendezvous=on"}, {"rendezvous=on", "congestion=aware"}},
	"packet": {
		{}, {"o=9223372s"}, {"g=9223372s"}, {"local-latency=9223372s"}, {"local-rate=8bps"}, {"S=0"},
		{"S=0", "o=9223372s", "g=9223372s", "local-latency=9223372s", "local-rate=8bps"},
	},
	"flow": {
		{}, {"o=9223372s"}, {"local-latency=9223372s"}, {"local-rate=8bps"}, {"S=0"}, {"flow-model=smpi"},
		{"flow-model=lv08", "latency-factor=1000000", "bandwidth-factor=0.000001", "S=0"},
		{"S=0", "o=9223372s", "local-latency=9223372s", "local-rate=8bps", "tcp-gamma=1"},
	},
	"flit":  {{}, {"o=2305843s"}, {"cycle=1s"}, {"local-cycles=65535", "cycle=1s"}},
	"ideal": {{}},
	"slots": {{}, {"slot=9223372s"}, {"packet-size=9223372036854775807"}},
}

// extremeNetworks replace the networks of the configurations.
var extremeNetworks = map[string][]string{
	"loggops": {""}, "ideal": {""},
	"analytical": {"network=Ring(2)@50GB/s,500ns", "network=Ring(2)@8bps,9223372s", "network=Switch(2)@8bps,1s"},
	"packet": {
		"topology=star:hosts=2,rate=100Gbps,latency=500ns", "topology=star:hosts=2,rate=2kbps,latency=1000s",
		"topology=star:hosts=2,rate=1B/s",
	},
	"flow": {
		"topology=star:hosts=2,rate=100Gbps,latency=500ns", "topology=star:hosts=2,rate=2kbps,latency=1000s",
		"topology=star:hosts=2,rate=1bps,latency=0s",
	},
	"flit":  {"topology=star:hosts=2", "topology=star:hosts=2,latency=60us"},
	"slots": {"topology=star:hosts=2", "topology=star:hosts=2,rate=1B/s"},
}

// located matches an error that names rank and op.
var located = regexp.MustCompile(`rank [0-9]+ op [0-9]+`)

// TestExtremes runs extreme traces with extreme parameters on every backend. Each run ends with an error that names
// rank, op and the limit, or with correct numbers. The models of LogGOPSim and ATLAHS wrap around as these do, and say
// so.
func TestExtremes(t *testing.T) {
	forAll(t, func(t *testing.T, c *configuration) {
		for _, network := range extremeNetworks[c.backend] {
			for _, params := range extremeParameters[c.backend] {
				for _, e := range extremes {
					b := dag.NewBuilder(2)
					e.trace(b)
					set := append(append([]string{network}, c.params...), params...)
					if network == "" {
						set = set[1:]
					}
					r, err := backends.Run(b.Trace(), c.backend, backends.Set(set...))
					name := fmt.Sprintf("%s: %s", strings.Join(set, " "), e.name)
					if err != nil {
						checkExtremeError(t, name, err)
						continue
					}
					flag, _ := sectionOf(r, "overflow").(sim.Overflow)
					if !r.Complete && r.Aborted == "" && !flag.Wrapped {
						t.Errorf("%s: incomplete: %+v", name, r.Stuck)
					}
					for rank, f := range append(r.Finish, r.Makespan) {
						if !f.InRange() && flag.Message == "" {
							t.Errorf("%s: finish %d is %v, without an error or a flag", name, rank, f)
						}
					}
					if !flag.Wrapped && picoseconds(r.Makespan).Cmp(new(big.Int).Sub(e.least, big.NewInt(1000))) < 0 {
						t.Errorf("%s: makespan %v, expected at least %v ps", name, r.Makespan, e.least)
					}
					if !c.atlahs && r.TotalBytes().Cmp(e.sent) != 0 && r.Aborted == "" {
						t.Errorf("%s: %v bytes, expected %v", name, r.TotalBytes(), e.sent)
					}
					checkExtremeJSON(t, name, r, e.sent)
				}
			}
		}
	})
}

// checkExtremeError checks the error of an extreme run.
func checkExtremeError(t *testing.T, name string, err error) {
	t.Helper()
	text := err.Error()
	switch {
	case strings.Contains(text, "does not support the trace's release times"), strings.Contains(text, "whole nanoseconds"),
		strings.Contains(text, "links of at least"), strings.Contains(text, "expected a capacity of at least one packet"):
	case errors.Is(err, sim.ErrTooLong) && located.MatchString(text),
		located.MatchString(text) && strings.Contains(text, "expected"):
	default:
		t.Errorf("%s: error %q, expected rank, op and limit", name, text)
	}
}

// checkExtremeJSON checks the sum of bytes in the JSON object of a result.
func checkExtremeJSON(t *testing.T, name string, r *sim.Result, sent *big.Int) {
	t.Helper()
	var out strings.Builder
	if err := r.WriteJSON(&out); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var document struct {
		Bytes json.Number `json:"bytes"`
	}
	if err := json.Unmarshal([]byte(out.String()), &document); err != nil || document.Bytes.String() != r.TotalBytes().String() {
		t.Errorf("%s: error %v, JSON has %v bytes, expected %v", name, err, document.Bytes, sent)
	}
}

// sectionOf returns the value of a section, nil if there is none.
func sectionOf(r *sim.Result, key string) any {
	if s := r.Section(key); s != nil {
		return s.Value
	}
	return nil
}
