package flit

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// transfer returns a trace with a message from rank 0 to the last of the ranks.
func transfer(ranks int, bytes int64) *dag.Trace {
	b := dag.NewBuilder(ranks)
	b.Rank(0).Send(int32(ranks-1), bytes, 0)
	b.Rank(ranks-1).Recv(0, bytes, 0)
	return b.Trace()
}

// runWarned runs a trace and returns the warnings in order.
func runWarned(t *testing.T, tr *dag.Trace, o Options) (*sim.Result, *Report, []string, error) {
	t.Helper()
	c, err := Compile(dag.FromTrace(tr))
	if err != nil {
		t.Fatal(err)
	}
	var warnings []string
	o.Warn = func(message string, args ...any) { warnings = append(warnings, fmt.Sprintf(message, args...)) }
	result, report, err := c.Run(o)
	return result, report, warnings, err
}

// TestRoundTrip compares the rate of a message over links of any latency, with buffers of any size and both kinds of
// routers, with the share of the rate in the warning; without a warning the link is busy all the time. With the buffer
// that the warning asks for there is none.
func TestRoundTrip(t *testing.T) {
	share := regexp.MustCompile(`carries at most (\d+) % of the rate of such a link; use --set local-buffer=(\d+)$`)
	for _, buffered := range []bool{false, true} {
		for _, whole := range []bool{false, true} {
			for _, latency := range []int{1, 7, 40, 300} {
				for _, packets := range []int{1, 2, 3, 6, 20, 90} {
					p := Presets()[0].Params
					p.WholeCredits, p.Pipeline, p.LocalBuffer = whole, 3, packets*p.PacketFlits
					p.InjectionBuffer = 1 << 20
					if buffered {
						p.OutputBuffer, p.Speedup = 64, 2
					}
					o := Options{Params: p, Network: mustParse(t, fmt.Sprintf("mesh:dims=2,latency=%dns", latency))}
					const flits = 16_000
					_, report, warnings, err := runWarned(t, transfer(2, flits*16), o)
					if err != nil {
						t.Fatal(err)
					}
					got := flits / float64(report.Cycles-uint64(3*latency)-8)
					want := 1.0
					name := fmt.Sprintf("buffers %v, whole credits %v, latency %d, %d packets", buffered, whole, latency, packets)
					if len(warnings) > 0 {
						m := share.FindStringSubmatch(warnings[0])
						if len(warnings) > 1 || m == nil {
							t.Fatalf("%s: %q", name, warnings)
						}
						percent, _ := strconv.Atoi(m[1])
						want = float64(percent) / 100
						o.Params.LocalBuffer, _ = strconv.Atoi(m[2])
						_, _, warnings, err := runWarned(t, transfer(2, flits*16), o)
						if err != nil || len(warnings) > 0 {
							t.Errorf("%s: %v, %q with the buffer of the remedy", name, err, warnings)
						}
					}
					if math.Abs(got-want) > 0.02+0.05*want {
						t.Errorf("%s: %.3f flits per cycle, want %.3f; %q", name, got, want, warnings)
					}
				}
			}
		}
	}
}

// TestUnusedFabric checks which placements cause a warning that no flit crosses a link between routers.
func TestUnusedFabric(t *testing.T) {
	for _, c := range []struct {
		topology  string
		placement []uint32
		want      string
	}{
		{"mesh:dims=2", nil, ""},
		{"star:hosts=4", nil, ""},
		{"dragonfly:p=2,a=2,h=1,globallatency=1ns", nil, "at router0, with 2 of 12 hosts at 6 switches in use; use --placement"},
		{"dragonfly:p=2,a=2,h=1,globallatency=1ns", []uint32{0, 2}, ""},
		{"dragonfly:p=2,a=2,h=1,globallatency=1ns", []uint32{5, 5}, "both ends of the only message are on one host, with 1 of 12 hosts"},
	} {
		o := Options{Params: Presets()[0].Params, Network: mustParse(t, c.topology+",latency=1ns"), Placement: Placement{Hosts: c.placement}}
		if _, _, warnings, err := runWarned(t, transfer(2, 100), o); err != nil ||
			!strings.Contains(strings.Join(warnings, "\n"), c.want) || (c.want == "") != (len(warnings) == 0) {
			t.Errorf("%s, %v: %v, warnings %q, want %q", c.topology, c.placement, err, warnings, c.want)
		}
	}
}

// TestRates checks the warnings about rates that have no effect, whose remedy leads to no warning.
func TestRates(t *testing.T) {
	for _, c := range []struct {
		topology, given, want string
	}{
		{"star:hosts=4", "", ""},
		{"star:hosts=4", "x.topo", "the rate of 100 Gb/s in x.topo has no effect"},
		{"star:hosts=4,rate=128Gbps", "--topology", ""},
		{"star:hosts=4,rate=400Gbps", "--topology", "128 Gb/s; use --set cycle=320ps"},
		{"star:hosts=4,rate=25Gbps", "--topology", "use --set cycle=5.12ns"},
		{"dragonfly:p=2,a=2,h=1,rate=100Gbps,globalrate=200Gbps,globallatency=1ns", "--topology", "rates from 100 to 200 Gb/s"},
	} {
		o := Options{Params: Presets()[0].Params, Network: mustParse(t, c.topology+",latency=1ns"), Rates: c.given}
		_, _, warnings, err := runWarned(t, transfer(4, 100), o)
		if text := strings.Join(warnings, "\n"); err != nil || !strings.Contains(text, c.want) || (text == "") != (c.want == "") {
			t.Errorf("%s: %v, warnings %q, want %q", c.topology, err, text, c.want)
		}
		if _, cycle, ok := strings.Cut(strings.Join(warnings, ""), "--set "); ok {
			if err := o.Params.keys().AssignAll(cycle); err != nil {
				t.Fatal(err)
			}
			if _, _, warnings, err = runWarned(t, transfer(4, 100), o); err != nil || len(warnings) > 0 {
				t.Errorf("%s, %s: %v, warnings %q", c.topology, cycle, err, warnings)
			}
		}
	}
	for text, want := range map[string]string{
		"star:hosts=4": "", "star:hosts=4,rate=1Gbps": "--topology", "dragonfly:p=1,a=2,h=1, globalrate=3Gbps": "--topology",
		"torus": "",
	} {
		if got := ratesGiven(text, false); got != want {
			t.Errorf("%s: rates of %q, want %q", text, got, want)
		}
	}
	if got := ratesGiven("x:rate", true); got != "x:rate" {
		t.Errorf("a file has the rates of %q", got)
	}
}

// TestTooLarge checks that messages of any size run, are announced, or are refused at once with the limit, but never
// wrap around.
func TestTooLarge(t *testing.T) {
	for _, preset := range Presets() {
		network := mustParse(t, preset.Topology)
		for shift := range 63 {
			for _, bytes := range []int64{1 << shift, 1<<shift - 1, math.MaxInt64 - 1<<shift + 1} {
				p := preset.Params
				n, err := newNetwork(t.Context(), network, &p)
				if err != nil {
					t.Fatal(err)
				}
				flits := max(1, uint64(bytes/int64(p.FlitBytes))+uint64(min(1, bytes%int64(p.FlitBytes))))
				if got := n.flitsOf(uint64(bytes)); got < flits || p.Pad && got%uint64(p.PacketFlits) > 0 ||
					got-flits > uint64(p.PacketFlits) {
					t.Errorf("%s: %d bytes are %d flits, want %d", preset.Name, bytes, got, flits)
				}
				tooLong := flits > uint64(dag.MaxTime)/uint64(p.Cycle)
				if !tooLong && bytes > 1<<20 {
					continue // would run
				}
				_, _, _, err = runWarned(t, transfer(8, bytes), Options{Params: p, Network: network})
				var refused *CyclesError
				if errors.As(err, &refused) != tooLong || tooLong && !strings.Contains(err.Error(), "106 days") {
					t.Errorf("%s: %d bytes: error %v", preset.Name, bytes, err)
				}
			}
		}
	}
	// Sums of several messages saturate.
	b := dag.NewBuilder(2)
	for tag := range 3 {
		b.Rank(0).Send(1, math.MaxInt64, int64(tag))
		b.Rank(1).Recv(0, math.MaxInt64, int64(tag))
	}
	o := Options{Params: Presets()[0].Params, Network: mustParse(t, Presets()[0].Topology)}
	o.Params.FlitBytes = 1
	_, _, _, err := runWarned(t, b.Trace(), o)
	var refused *CyclesError
	if !errors.As(err, &refused) || refused.Cycles != math.MaxUint64 {
		t.Errorf("error %v, want one with saturated cycles", err)
	}
}

// TestMaxCycles checks that a run ends with an error exactly if it needs more cycles than allowed, at the start if that
// is known there.
func TestMaxCycles(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, 1600, 0)
	b.Rank(1).Calc(50*dag.Nanosecond, b.Rank(1).Recv(0, 1600, 0))
	tr := b.Trace()
	o := Options{Params: Presets()[0].Params, Network: mustParse(t, Presets()[0].Topology)}
	_, report, _, err := runWarned(t, tr, o)
	if err != nil {
		t.Fatal(err)
	}
	for most := uint64(1); most < report.Cycles+20; most++ {
		o.MaxCycles = most
		_, again, _, err := runWarned(t, tr, o)
		var refused *CyclesError
		var limited *LimitError
		switch {
		case most < 100 && !errors.As(err, &refused), most >= 100 && most < report.Cycles && !errors.As(err, &limited):
			t.Errorf("at most %d cycles: error %v", most, err)
		case most < report.Cycles && !strings.Contains(err.Error(), "--max-cycles"):
			t.Errorf("at most %d cycles: error %v does not name the limit", most, err)
		case most >= report.Cycles && (err != nil || again.Cycles != report.Cycles):
			t.Errorf("at most %d cycles: error %v", most, err)
		}
	}
}

// TestLongRun checks the estimate of a run of hours, which the limit of cycles then ends early.
func TestLongRun(t *testing.T) {
	o := Options{Params: Presets()[0].Params, Network: mustParse(t, Presets()[0].Topology)}
	var warnings []string
	amount := work{packets: 7_812_500_000, cycles: 62_500_000_000}
	if err := amount.check(nil, &o.Params, 0, func(message string, args ...any) {
		warnings = append(warnings, fmt.Sprintf(message, args...))
	}); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "takes about 2h10m at") {
		t.Errorf("error %v, warnings %q", err, warnings)
	}
	o.MaxCycles = 62_500_000_000 - 1
	if _, _, _, err := runWarned(t, transfer(2, 1e12), o); err == nil || !strings.Contains(err.Error(), "62499999999 (--max-cycles)") {
		t.Errorf("error %v, want the limit", err)
	}
}

// TestFewPackets checks the warning about curves with few packets.
func TestFewPackets(t *testing.T) {
	points := func(packets ...uint64) (all []syntheticPoint) {
		for i, n := range packets {
			all = append(all, syntheticPoint{Traffic: Traffic{Load: float64(i)}, figures: &figures{Report: &Report{Packets: n}}})
		}
		return append(all, syntheticPoint{Traffic: Traffic{Load: 9}}) // failed
	}
	for _, c := range []struct {
		points []syntheticPoint
		want   string
	}{
		{points(0, 1000, 5000), ""},
		{points(0, 999, 5000), "only 999 packets were measured at load 1 (1 of 4 loads have fewer than 1000)"},
		{points(0, 999, 25), "load 2 (2 of 4 loads have fewer than 1000): means and percentiles are unreliable; use --measure 800000"},
		{points(0, 0), "use --measure 20000000"},
	} {
		text := ""
		warnFew(c.points, 20_000, func(message string, args ...any) { text += fmt.Sprintf(message, args...) })
		if !strings.Contains(text, c.want) || (text == "") != (c.want == "") {
			t.Errorf("warning %q, want %q", text, c.want)
		}
	}
}
