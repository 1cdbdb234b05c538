package packet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestWarnings checks which runs warn about an unused network, thresholds, parameters without effect and few packets.
func TestWarnings(t *testing.T) {
	const racks = "leafspine:hosts=16,tor=4,spines=2,rate=100Gbps"
	pairs := func(ranks int, ends ...[2]int) *dag.Trace { // not a list of flows: one tag
		b := dag.NewBuilder(ranks)
		for _, e := range ends {
			b.Rank(e[0]).Send(int32(e[1]), 1000, 7)
			b.Rank(e[1]).Recv(int32(e[0]), 1000, 7)
		}
		return b.Trace()
	}
	ring := func(ranks int) *dag.Trace {
		var ends [][2]int
		for i := range ranks {
			ends = append(ends, [2]int{i, (i + 1) % ranks})
		}
		return pairs(ranks, ends...)
	}
	many := func(bytes int64) *dag.Trace { // a list of flows
		b := dag.NewBuilder(16)
		for i := range 16 {
			b.Rank(i).Add(dag.Op{Kind: dag.Send, Peer: int32((i + 7) % 16), Bytes: bytes, Release: dag.Time(i + 1)})
			b.Rank((i+7)%16).Recv(int32(i), bytes, 0)
		}
		return b.Trace()
	}
	for _, c := range []struct {
		name, network, transport string
		trace                    *dag.Trace
		given                    []string
		set                      func(o *Options)
		want                     []string // parts of the warnings, in order
	}{
		{"spread", racks, "ndp", messages(16, [3]int{0, 15, 1000}), nil, nil, nil},
		{"one switch", racks, "ndp", ring(4), nil, nil, []string{
			"no packet crosses a link between switches: the ends of all 4 messages are at tor0, with 4 of 16 hosts at 4 switches"}},
		{"one star", "star:hosts=8", "ndp", ring(4), nil, nil, nil},
		{"one host", racks, "ndp", ring(4), nil, func(o *Options) {
			o.Placement = Placement{Hosts: []uint32{3, 3, 3, 3}, NICs: 1}
		}, []string{"no packet enters the network: the ends of all 4 messages are on one host each, with 1 of 16 hosts"}},
		{"each switch", racks, "ndp", pairs(16, [2]int{0, 1}, [2]int{8, 9}), nil, nil, []string{
			"all 2 messages are at one switch each, with 4 of 16 hosts"}},
		{"thresholds", "leafspine:hosts=16,tor=4,spines=2,rate=400Gbps,latency=2us", "roce",
			messages(16, [3]int{0, 15, 1 << 20}, [3]int{4, 15, 1 << 20}), nil, nil, []string{
				"pfc-low=12, 48KiB, is less than the 204160B on the round trip of a link of 400 Gb/s: after each of ",
				"only 512 packets of 2 flows were measured"}},
		{"no pauses", "leafspine:hosts=16,tor=4,spines=2,rate=400Gbps,latency=2us", "roce",
			messages(16, [3]int{0, 15, 8 << 20}), nil, nil, nil},
		{"short queue", racks, "ndp", messages(16, [3]int{0, 15, 1}), []string{"queue"},
			func(o *Options) { o.Params.Queue = 20000 },
			[]string{"--queue 20kB is less than the bandwidth-delay product of "}},
		{"long queue", racks, "ndp", messages(16, [3]int{0, 15, 1}), []string{"queue"},
			func(o *Options) { o.Params.Queue = 1 << 20 }, nil},
		{"compat", racks, "ndp", messages(16, [3]int{0, 15, 1}), []string{"queue", "buffer"},
			func(o *Options) { o.Params.Queue, o.Params.Compat = 20000, CompatHTSim }, nil},
		{"few", racks, "ndp", many(4096), nil, nil, []string{"only 16 packets of 16 flows were measured, expected at least 1000"}},
		{"enough", racks, "ndp", many(1 << 20), nil, nil, nil},
		{"buffer", racks, "ndp", messages(16, [3]int{0, 15, 1}), []string{"buffer", "buffer-share"}, nil, []string{
			"--buffer has no effect: switch ports with the queueing discipline trim do not share a buffer", "--buffer-share has"}},
		{"buffer of TCP", racks, "tcp", messages(16, [3]int{0, 15, 1}), []string{"buffer", "buffer-share"}, nil, nil},
		{"control queue", racks, "dctcp", messages(16, [3]int{0, 15, 1}), []string{"control-ratio", "control-queue", "ecn"}, nil,
			[]string{"--control-ratio has no effect", "--control-queue has no effect"}},
		{"marks", racks, "tcp", messages(16, [3]int{0, 15, 1}), []string{"ecn"}, nil,
			[]string{"--ecn has no effect: the transport tcp ignores marks"}},
		{"no marks", racks, "swift", messages(16, [3]int{0, 15, 1}), []string{"ecn"}, nil,
			[]string{"--ecn has no effect: switch ports with the queueing discipline randomdrop do not mark"}},
		{"balance", racks, "tcp", messages(16, [3]int{0, 15, 1}), []string{"entropy", "flowlet-gap", "balance"}, nil,
			[]string{"--entropy has no effect: --balance fixed", "--flowlet-gap has no effect"}},
		{"one path", "star:hosts=4", "ndp", messages(4, [3]int{0, 3, 1}), []string{"balance", "entropy"}, nil,
			[]string{"--balance has no effect: the network has one path"}},
		{"order", racks, "roce", messages(16, [3]int{0, 15, 1}), []string{"balance"}, func(o *Options) { o.Params.Balance = Spray },
			[]string{"--balance spray sends packets of a message over several paths, but roce"}},
		{"coupling", racks, "ndp", messages(16, [3]int{0, 15, 1}), []string{"o", "g", "S", "ack-ends"}, nil, nil},
		{"coupling of htsim", racks, "ndp", messages(16, [3]int{0, 15, 1}), []string{"o", "ack-ends"}, nil,
			[]string{"--o has no effect: the coupling htsim has no processor time", "--ack-ends has no effect"}},
	} {
		var got []string
		var rules *Compat
		if c.name == "coupling of htsim" {
			rules = new(Compat)
			*rules = CompatHTSim
		}
		try{network: c.network, transport: c.transport, rules: rules, set: func(o *Options) {
			o.Warn = func(message string, args ...any) { got = append(got, fmt.Sprintf(message, args...)) }
			o.Given = func(name string) bool { return slices.Contains(c.given, name) }
			if c.set != nil {
				c.set(o)
			}
		}}.run(t, c.trace)
		same := len(got) == len(c.want)
		for i := 0; same && i < len(got); i++ {
			same = strings.Contains(got[i], c.want[i])
		}
		if !same {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
