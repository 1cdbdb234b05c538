package flow_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// platformCase is a recorded run of SimGrid.
type platformCase struct {
	Config struct {
		LatencyFactor   float64 `json:"latency_factor"`
		BandwidthFactor float64 `json:"bandwidth_factor"`
		WeightS         float64 `json:"weight_S"`
		Gamma           float64 `json:"tcp_gamma"`
		CrossTraffic    bool    `json:"crosstraffic"`
	}
	XML   string `json:"platform_xml"`
	Links []struct {
		Name    string
		BW, Lat float64
		Sharing string
	}
	Routes []struct {
		Src, Dst string
		Links    []string
	}
	Flows []struct {
		Src, Dst             string
		Start, Bytes, Finish float64
	}
}

// platform returns the platform file and the hosts of a case.
func (c *platformCase) platform() (text string, host map[string]int) {
	host = map[string]int{}
	if c.XML != "" {
		for i := range 1024 {
			host[fmt.Sprintf("n%d", i)] = i
		}
		return c.XML, host
	}
	var b, routes strings.Builder
	for _, r := range c.Routes {
		for _, name := range []string{r.Src, r.Dst} {
			if _, known := host[name]; !known {
				host[name] = len(host)
				fmt.Fprintf(&b, "<host id=%q speed=\"1Gf\"/>\n", name)
			}
		}
		fmt.Fprintf(&routes, "<route src=%q dst=%q symmetrical=\"NO\">", r.Src, r.Dst)
		for _, l := range r.Links {
			fmt.Fprintf(&routes, "<link_ctn id=%q/>", l)
		}
		routes.WriteString("</route>\n")
	}
	for _, l := range c.Links {
		fmt.Fprintf(&b, "<link id=%q bandwidth=\"%.17gBps\" latency=\"%.17gs\" sharing_policy=%q/>\n", l.Name, l.BW,
			l.Lat, strings.ToUpper(l.Sharing))
	}
	return `<platform version="4.1"><zone id="z" routing="Full">` + b.String() + routes.String() +
		`</zone></platform>`, host
}

// TestPlatformRuns compares ends of flows on platform files with SimGrid.
func TestPlatformRuns(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS names no folder of vectors")
	}
	paths, err := filepath.Glob(filepath.Join(folder, "flow", "cases", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	worst := 0.0
	for _, name := range paths {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var c platformCase
			if err := json.Unmarshal(data, &c); err != nil {
				t.Fatal(err)
			}
			text, host := c.platform()
			file := filepath.Join(t.TempDir(), "p.xml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			flows := c.Flows
			slices.SortStableFunc(flows, func(a, b struct {
				Src, Dst             string
				Start, Bytes, Finish float64
			}) int {
				return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(host[a.Src], host[b.Src]))
			})
			ranks := 0
			for _, f := range flows {
				ranks = max(ranks, host[f.Src]+1, host[f.Dst]+1)
			}
			b, last, calc := dag.NewBuilder(ranks), map[int]dag.Time{}, map[int][]int{}
			for i, f := range flows {
				from, start := host[f.Src], dag.Time(math.Round(f.Start*1e12))
				r := b.Rank(from)
				calc[from] = []int{r.Calc(start-last[from], calc[from]...)}
				r.Send(int32(host[f.Dst]), int64(f.Bytes), int64(i), calc[from]...)
				b.Rank(host[f.Dst]).Recv(int32(from), int64(f.Bytes), int64(i))
				last[from] = start
			}
			times := ends(t, b.Trace(), "topology="+file, "flow-model=cm02",
				fmt.Sprintf("latency-factor=%g", c.Config.LatencyFactor),
				fmt.Sprintf("bandwidth-factor=%g", c.Config.BandwidthFactor),
				fmt.Sprintf("weight-s=%g", c.Config.WeightS), fmt.Sprintf("tcp-gamma=%.0f", c.Config.Gamma),
				fmt.Sprintf("cross-traffic=%v", c.Config.CrossTraffic))
			if len(times) != len(flows) {
				t.Fatalf("%d flows, expected %d", len(times), len(flows))
			}
			for i, f := range flows {
				d := math.Abs(float64(times[i])/1e12-f.Finish) / f.Finish
				if worst = max(worst, d); !(d <= max(1e-6, 1e-12/f.Finish)) { // ends are whole picoseconds
					t.Errorf("flow %d from %s to %s ends at %v, in SimGrid at %.12g s", i, f.Src, f.Dst, times[i],
						f.Finish)
				}
			}
		})
	}
	t.Logf("largest relative difference %.2g", worst)
}

// TestPlatformLoopback compares messages of a host to itself with hand calculations.
func TestPlatformLoopback(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.xml")
	text := `<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-1" speed="1Gf" bw="1GBps" lat="1us"
		loopback_bw="10GBps" loopback_lat="100ns"/></platform>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte("1\n1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	trace := traceOf(2, message{0, 1, 1_000_000, 0})
	if got := ends(t, trace, "topology="+file, "placement="+hosts); got[0] != 100_100*dag.Nanosecond {
		t.Errorf("ends at %v, expected 100.1us", got[0])
	}
	r, err := backends.Run(trace, "flow", backends.Set("topology="+file, "placement="+hosts, "local-latency=1us"))
	if err != nil || r.Makespan.String() != dag.Microsecond.String() {
		t.Errorf("ends at %v (%v), expected 1us", r.Makespan, err)
	}
	if _, err := backends.Run(trace, "flow", backends.Set("topology="+file, "balance=least")); err == nil {
		t.Error("no error with balance=least")
	}
}

// TestPlatformOptions checks that a platform file sets options of the model, and that other settings replace them.
func TestPlatformOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.xml")
	text := `<platform version="4.1"><config id="general"><prop id="network/model" value="LV08"/>
		<prop id="network/latency-factor" value="2"/><prop id="network/crosstraffic" value="no"/>
		<prop id="network/optim" value="Full"/></config>
		<cluster id="c" prefix="n" suffix="" radical="0-1" speed="1Gf" bw="1GBps" lat="1us"/></platform>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	trace := traceOf(2, message{0, 1, 970_000, 0})
	if got := ends(t, trace, "topology="+file); got[0] != 1004*dag.Microsecond {
		t.Errorf("ends at %v, expected 1004us", got[0])
	}
	if got := ends(t, trace, "bandwidth-factor=1", "topology="+file); got[0] != 974*dag.Microsecond {
		t.Errorf("ends at %v, expected 974us", got[0])
	}
	for _, name := range []string{"latency-factor", "network/latency-factor"} {
		if got := ends(t, trace, name+"=1", "topology="+file); got[0] != 1002*dag.Microsecond {
			t.Errorf("%s: ends at %v, expected 1002us", name, got[0])
		}
	}
	err := os.WriteFile(file, []byte(strings.Replace(text, "LV08", "ns-3", 1)), 0o600)
	if _, run := backends.Run(trace, "flow", backends.Set("topology="+file)); err != nil || run == nil ||
		!strings.Contains(run.Error(), "network/model") {
		t.Errorf("error %v, expected one about network/model", run)
	}
}

// TestPlatformTies checks flows on a FATPIPE link that is the slowest of one of them: its bound equals the link's level
// but for rounding, which decides whether the link slows the other flow. The times are SimGrid's.
func TestPlatformTies(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.xml")
	text := `<platform version="4.1"><zone id="z" routing="Full"><host id="a"/><host id="b"/><host id="c"/>
		<link id="x" bandwidth="74MBps" latency="160us" sharing_policy="FATPIPE"/>
		<link id="y" bandwidth="41MBps" latency="40us" sharing_policy="FATPIPE"/>
		<route src="a" dst="b"><link_ctn id="x"/></route>
		<route src="b" dst="c"><link_ctn id="y"/><link_ctn id="x"/></route></zone></platform>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	trace := traceOf(3, message{0, 1, 10_000_000, 0}, message{1, 2, 10_000_000, 0})
	for model, want := range map[string][]dag.Time{"cm02": {135_295_135_136, 244_102_439_025},
		"lv08": {141_396_172_305, 280_822_272_493}} {
		got := ends(t, trace, "topology="+file, "flow-model="+model, "crosstraffic=false")
		if !slices.Equal(got, want) {
			t.Errorf("%s: ends at %v, expected %v", model, got, want)
		}
	}
}

// TestPlatformSpeeds checks that calcs with operations take the speed of their host, and that warnings say when ranks
// share a core and when speeds are not constant.
func TestPlatformSpeeds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.xml")
	text := `<platform version="4.1"><zone id="z" routing="Full"><host id="a" speed="2Gf"/>
		<host id="b" speed="1Gf,3megaflops" core="2" pstate="1" speed_file="b.speed"/>
		<link id="l" bandwidth="1GBps"/><route src="a" dst="b"><link_ctn id="l"/></route></zone></platform>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b := dag.NewBuilder(4)
	for r := range 4 {
		b.Rank(r).Add(dag.Op{Kind: dag.Calc, Flops: 3_000_000})
		b.Rank(r).Add(dag.Op{Kind: dag.Calc, Flops: 1, Duration: dag.Microsecond})
	}
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte("a\nb\nb\na\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	trace := b.Trace()
	const fast, slow = 1500 * dag.Microsecond, dag.Second
	for _, backend := range []string{"flow", "packet"} {
		var warned []string
		r, err := backends.Run(trace, backend, backends.Set("topology="+file, "placement="+hosts),
			backends.Env(&sim.Env{Warn: func(format string, args ...any) {
				warned = append(warned, fmt.Sprintf(format, args...))
			}}))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{(fast + dag.Microsecond).String(), (slow + dag.Microsecond).String()}
		if got := []string{r.Finish[0].String(), r.Finish[1].String()}; !slices.Equal(got, want) {
			t.Errorf("%s: ends at %v, expected %v", backend, got, want)
		}
		if len(warned) != 3 || !strings.HasPrefix(warned[0], "computations keep the durations of the trace") {
			t.Errorf("%s: warnings %q, expected one about durations first", backend, warned)
		}
		for _, warning := range []string{
			"2 ranks compute on host a with 1 cores: each has the speed of a core, while SimGrid divides it",
			"profiles of hosts, such as that of b, are not read: computations take the speed of their host as if it were " +
				"constant, while SimGrid changes it",
		} {
			if !slices.Contains(warned, warning) {
				t.Errorf("%s: warnings %q, expected %q", backend, warned, warning)
			}
		}
	}
}

// TestPlatformNearTies checks flows back and forth over a FATPIPE link that is the slowest of both: their latencies
// differ by a rounding error, and so one bound is below the level of the link and the other one is not. SimGrid does not
// distinguish them; both are at their bounds, and a third flow has the whole link. The times are SimGrid's.
func TestPlatformNearTies(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.xml")
	text := `<platform version="4.1"><zone id="z" routing="Full"><host id="a"/><host id="b"/><host id="c"/>
		<link id="v" bandwidth="447.197MBps" latency="2.15154e-05s" sharing_policy="SPLITDUPLEX"/>
		<link id="w" bandwidth="806.748MBps" latency="40000342ps" sharing_policy="SPLITDUPLEX"/>
		<link id="x" bandwidth="230.127MBps" latency="11054549ps" sharing_policy="SPLITDUPLEX"/>
		<link id="y" bandwidth="365711KiBps" latency="0.000209948s" sharing_policy="FATPIPE"/>
		<link id="z" bandwidth="88.2655MBps" latency="140us" sharing_policy="FATPIPE"/>
		<link id="u" bandwidth="111.485MBps" latency="0.000595477s"/>
		<route src="a" dst="b" symmetrical="NO"><link_ctn id="v" direction="DOWN"/><link_ctn id="w" direction="DOWN"/>
			<link_ctn id="x" direction="UP"/><link_ctn id="y"/><link_ctn id="z"/></route>
		<route src="b" dst="a" symmetrical="NO"><link_ctn id="z"/><link_ctn id="y"/><link_ctn id="x" direction="DOWN"/>
			<link_ctn id="w" direction="UP"/><link_ctn id="v" direction="UP"/></route>
		<route src="c" dst="b"><link_ctn id="u"/><link_ctn id="z"/></route></zone></platform>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	trace := traceOf(3, message{0, 1, 1_000_000, 0}, message{1, 0, 3_770_492, 0}, message{2, 1, 1_000_000, 0})
	want := []dag.Time{11_751_973_175, 43_140_137_293, 12_296_739_963}
	if got := ends(t, trace, "topology="+file, "flow-model=cm02"); !slices.Equal(got, want) {
		t.Errorf("ends at %v, expected %v", got, want)
	}
}

// TestPlatformTieEnds checks that a FATPIPE link limits a flow from the end of another one on. That one was at its bound
// below the level of the link, and so the others were, too. The times are SimGrid's.
func TestPlatformTieEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.xml")
	text := `<platform version="4.1"><zone id="w" routing="Full">
		<host id="a"/><host id="b"/><host id="c"/><host id="d"/>
		<link id="p" bandwidth="1042MBps"/><link id="q" bandwidth="985MBps"/><link id="r" bandwidth="1657MBps"/>
		<link id="x" bandwidth="87MBps" latency="307us" sharing_policy="FATPIPE"/>
		<link id="s" bandwidth="225MBps" latency="555us"/>
		<route src="a" dst="b"><link_ctn id="p"/><link_ctn id="q"/><link_ctn id="x"/><link_ctn id="r"/></route>
		<route src="c" dst="d"><link_ctn id="r"/><link_ctn id="x"/><link_ctn id="s"/></route></zone></platform>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	trace := traceOf(4, message{0, 1, 3_657_875, 0}, message{1, 0, 1_000_000, 0}, message{2, 3, 1_000_000, 0},
		message{3, 2, 3146, 0})
	want := []dag.Time{47_338_956_835, 15_843_815_231, 30_402_502_480, 11_251_899_299}
	if got := ends(t, trace, "topology="+file, "flow-model=lv08"); !slices.Equal(got, want) {
		t.Errorf("ends at %v, expected %v", got, want)
	}
}

// TestPlatformOneWay checks that a flow whose acknowledgements have no path takes its links alone.
func TestPlatformOneWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.xml")
	text := `<platform version="4.1"><zone id="z" routing="Full"><host id="a"/><host id="b"/>
		<link id="l" bandwidth="1GBps"/><route src="a" dst="b" symmetrical="NO"><link_ctn id="l"/></route></zone></platform>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := ends(t, traceOf(2, message{0, 1, 1_000_000, 0}), "topology="+file, "flow-model=cm02")
	if got[0] != 1000*dag.Microsecond {
		t.Errorf("ends at %v, expected 1ms", got[0])
	}
}
