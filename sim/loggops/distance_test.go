package loggops_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// twoSites is two hosts at each of two sites, 10 us apart one way and 30 us the other.
const twoSites = `<platform version="4.1"><zone id="z" routing="Full">
<host id="a" speed="1Gf"/><host id="b" speed="1Gf"/><host id="c" speed="1Gf"/><host id="d" speed="1Gf"/>
<link id="near" bandwidth="1GBps" latency="2us"/>
<link id="there" bandwidth="1GBps" latency="10us"/><link id="back" bandwidth="1GBps" latency="30us"/>
<link id="self" bandwidth="1GBps" latency="300ns"/>
<route src="a" dst="a"><link_ctn id="self"/></route>
<route src="a" dst="b"><link_ctn id="near"/></route><route src="c" dst="d"><link_ctn id="near"/></route>
<route src="a" dst="c" symmetrical="NO"><link_ctn id="near"/><link_ctn id="there"/></route>
<route src="c" dst="a" symmetrical="NO"><link_ctn id="back"/><link_ctn id="near"/></route>
</zone></platform>`

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLatencyByDistance compares the time of one message with o + L + o, where L is the latency of the route.
func TestLatencyByDistance(t *testing.T) {
	file := write(t, "p.xml", twoSites)
	const us, o = dag.Microsecond, 100 * dag.Nanosecond
	for _, test := range []struct {
		topology, placement string
		from, to            int
		want                dag.Time
	}{
		{file, "packed", 0, 1, 2 * us}, {file, "packed", 0, 2, 12 * us}, {file, "packed", 2, 0, 32 * us},
		{file, "packed", 3, 2, 2 * us}, {file, "strided:2", 0, 1, 12 * us},
		{file, write(t, "hosts", "0\n0\n2\n3\n"), 0, 1, 300 * dag.Nanosecond},
		{file, write(t, "names", "c\na\nb\nd\n"), 0, 1, 32 * us},
		{"leafspine:hosts=4,tor=2,spines=2,latency=1us,switchlatency=200ns", "packed", 0, 1, 2*us + 200*dag.Nanosecond},
		{"leafspine:hosts=4,tor=2,spines=2,latency=1us,switchlatency=200ns", "packed", 0, 3, 4*us + 600*dag.Nanosecond},
		{"leafspine:hosts=4,tor=2,spines=2,latency=1us,switchlatency=200ns", "strided:2", 0, 1,
			4*us + 600*dag.Nanosecond},
	} {
		b := dag.NewBuilder(4)
		b.Rank(test.from).Send(int32(test.to), 1, 0)
		b.Rank(test.to).Recv(int32(test.from), 1, 0)
		r, err := backends.Run(b.Trace(), "loggops", backends.Set("topology="+test.topology,
			"placement="+test.placement, "o=100", "g=0", "G=0", "S=1MiB"))
		if err != nil {
			t.Errorf("%+v: %v", test, err)
			continue
		}
		if want := test.want + 2*o; dag.Time(r.Makespan.Ticks)*r.Makespan.Unit != want {
			t.Errorf("%+v: makespan %v, expected %v", test, r.Makespan, want)
		}
	}
}

// TestLatencyByDistanceThreads compares runs on several threads with those on one.
func TestLatencyByDistanceThreads(t *testing.T) {
	const ranks = 48
	b := dag.NewBuilder(ranks)
	for r := range ranks {
		last := []int(nil)
		for step := 1; step < 12; step++ {
			s := b.Rank(r).Send(int32((r+step*step)%ranks), int64(1000*step), int64(step), last...)
			v := b.Rank(r).Recv(int32((r-step*step%ranks+ranks)%ranks), int64(1000*step), int64(step), last...)
			last = []int{s, v}
		}
	}
	trace := b.Trace()
	var want *sim.Result
	for _, threads := range []int{1, 2, 4} {
		r, err := backends.Run(trace, "loggops", backends.Set("topology=fattree:hosts=48,tor=4,pod=16", "G=400Gbps"),
			backends.Options(sim.RunOptions{Threads: threads}))
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = r
		}
		if fmt.Sprint(r.Finish) != fmt.Sprint(want.Finish) {
			t.Errorf("%d threads: other ends than with one", threads)
		}
	}
}

// TestLatencyByDistanceRefused expects errors for options without a rule.
func TestLatencyByDistanceRefused(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, 1, 0)
	b.Rank(1).Recv(0, 1, 0)
	trace := b.Trace()
	alone := write(t, "p.xml", `<platform version="4.1"><zone id="z" routing="Full"><host id="a"/><host id="b"/>`+
		`</zone></platform>`)
	for _, test := range []struct{ set, want string }{
		{"topology=star:hosts=2 model=atlahs", "expected --model strict"},
		{"topology=star:hosts=2 L=1us", "--topology and --L exclude each other"},
		{"placement=random", "needs --topology"},
		{"topology=star:hosts=1", "use a larger --topology"},
		{"topology=spectrumx:gpus=16", "found GPUs with several"},
		{"topology=" + alone, "expected a route from a to b, found none"},
	} {
		_, err := backends.Run(trace, "loggops", backends.Set(strings.Fields(test.set)...))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, expected %s", test.set, err, test.want)
		}
	}
}
