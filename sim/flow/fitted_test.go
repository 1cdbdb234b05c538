package flow_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
	"github.com/tracedag/tracedag/sim/fit"
	"github.com/tracedag/tracedag/sim/flow"
)

// fittedFile is a parameter file of two segments.
const fittedFile = `{"backend":"flow","model":"cm02","topology":"star:hosts=2,rate=100Gbps,latency=1us","parameters":{
"async_small":{"value":1000,"low":1000,"high":1000,"unit":"B"},"detached":{"value":5000,"low":1,"high":9,"unit":"B"},
"envelope":{"value":16,"low":16,"high":16,"unit":"B"},"cross_traffic":{"value":0,"low":0,"high":1,"unit":"1"}},
"segments":[{"from":0,"to":8193,"parameters":{"latency_factor":{"value":1,"low":1,"high":1,"unit":"1"},
"bandwidth_factor":{"value":1,"low":1,"high":1,"unit":"1"},"os":{"value":1e-6,"low":0,"high":0,"unit":"s"},
"os_per_byte":{"value":1e-10,"low":0,"high":0,"unit":"s/B"},"or":{"value":5e-7,"low":0,"high":0,"unit":"s"},
"or_per_byte":{"value":2e-10,"low":0,"high":0,"unit":"s/B"}}},
{"from":8193,"parameters":{"latency_factor":{"value":2,"low":2,"high":2,"unit":"1"},
"bandwidth_factor":{"value":0.5,"low":1,"high":1,"unit":"1"}}}],"seed":1}`

// TestParams runs messages with a parameter file, and compares their ends with hand calculations: a byte takes 80 ps,
// the path 2 us, twice as much above 8192 bytes.
func TestParams(t *testing.T) {
	const us, ns = dag.Microsecond, dag.Nanosecond
	file := filepath.Join(t.TempDir(), "machine.json")
	if err := os.WriteFile(file, []byte(fittedFile), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		bytes int64
		set   string
		want  dag.Time
	}{
		{984, "", 1098400 + 2*us + 80*ns + 696800},
		{984, "os=0:2e-6", 2*us + 2*us + 80*ns + 696800}, // a flag replaces the values of the file
		{8192, "", 2*us + 656640},
		{8193, "", 4*us + 2*656720},
		{984, "topology=star:hosts=3,rate=100Gbps,latency=2us", 1098400 + 4*us + 80*ns + 696800},
	} {
		var warnings strings.Builder
		env := &sim.Env{Warn: func(m string, _ ...any) { warnings.WriteString(m) }}
		set := []string{"params=" + file}
		if c.set != "" {
			set = append(set, c.set)
		}
		r, err := backends.Run(traceOf(2, message{0, 1, c.bytes, 0}), "flow", backends.Env(env), backends.Set(set...))
		if err != nil || end(r, 1) != c.want {
			t.Errorf("%d bytes, %q: ends at %v (%v), expected %v", c.bytes, c.set, r.Makespan, err, c.want)
		}
		if other := strings.HasPrefix(c.set, "topology"); other != (warnings.Len() > 0) {
			t.Errorf("%q: warnings %q", c.set, warnings.String())
		}
	}
}

// TestParamsErrors checks that files of other backends or with unknown parameters are errors.
func TestParamsErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "machine.json")
	for _, c := range []struct{ from, to, want string }{
		{`"flow"`, `"loggops"`, `found backend "loggops"`},
		{`"cm02"`, `"cm03"`, `found "cm03"`},
		{`"async_small"`, `"async"`, "unknown parameter"},
		{`"os":{`, `"oss":{`, `unknown parameter "oss"`},
		{`"unit":"s/B"`, `"unit":"s"`, "os_per_byte in s, expected s/B"},
		{`"cross_traffic":{"value":0`, `"cross_traffic":{"value":2`, "expected 0 or 1"},
		{`"latency_factor":{"value":2`, `"latency_factor":{"value":2e9`, "expected numbers"},
		{`"latency_factor":{"value":1,"low":1,"high":1,"unit":"1"},`, "", "lacks latency_factor"},
	} {
		text := strings.Replace(fittedFile, c.from, c.to, 1)
		if text == fittedFile {
			t.Fatalf("%s is not in the file", c.from)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := backends.Run(traceOf(2, message{0, 1, 1, 0}), "flow", backends.Set("params="+file))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %q", c.to, err, c.want)
		}
	}
}

// FuzzSettings checks that no parameter file crashes, and that what one sets is valid.
func FuzzSettings(f *testing.F) {
	f.Add([]byte(fittedFile))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := fit.Parse(data)
		if err != nil {
			return
		}
		settings, err := flow.Settings(file)
		if err == nil && len(settings) < 3 {
			t.Errorf("settings %v", settings)
		}
	})
}

// TestRoutes: routes have the latency of their links and the rate of the slowest one.
func TestRoutes(t *testing.T) {
	route, hosts, err := flow.Routes(context.Background(), "star:hosts=4,rate=100Gbps,latency=1us", true)
	if err != nil || hosts != 4 {
		t.Fatal(hosts, err)
	}
	if r, err := route(0, 3); err != nil || r.Latency != 2e-6 || r.Rate != 12.5e9 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := route(0, 4); err == nil || !strings.Contains(err.Error(), "expected ranks below 4") {
		t.Errorf("error %v", err)
	}
}
