package loggops_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/loggops"
)

// TestDefaultNetworkWarning checks that a large message on the default network causes one warning, unless the caller
// chose the preset or the bandwidth.
func TestDefaultNetworkWarning(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		bytes    int64
		settings param.Texts
		sweep    bool
		warns    bool
	}{
		{bytes: mib},
		{bytes: mib + 1, warns: true},
		{bytes: 4 * mib, settings: param.Texts{"L": {"1us"}}, warns: true},
		{bytes: 4 * mib, settings: param.Texts{"params": {"default"}}},
		{bytes: 4 * mib, settings: param.Texts{"params": {"ai"}}},
		{bytes: 4 * mib, settings: param.Texts{"G": {"6"}}},
		{bytes: 4 * mib, settings: param.Texts{"G": {"400Gbps"}}},
		{bytes: 4 * mib, sweep: true},
	} {
		b := dag.NewBuilder(2)
		b.Rank(0).Send(1, 8, 0)
		b.Rank(0).Send(1, test.bytes, 1)
		b.Rank(1).Recv(0, 8, 0)
		b.Rank(1).Recv(0, test.bytes, 1)
		var warnings []string
		env := &sim.Env{
			Warn:  func(message string, args ...any) { warnings = append(warnings, fmt.Sprintf(message, args...)) },
			Given: func(name string) bool { return test.settings[name] != nil },
			Sweep: test.sweep,
		}
		backend := loggops.Backend.New()
		if err := backend.Params().Apply(test.settings); err != nil {
			t.Fatal(err)
		}
		replay, err := backend.Compile(dag.FromTrace(b.Trace()), env)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := replay.Clone().Run(sim.RunOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if test.warns != (len(warnings) == 1 && strings.Contains(warnings[0], "1.33 Gb/s")) || len(warnings) > 1 {
			t.Errorf("%d bytes, %v: warnings %q", test.bytes, test.settings, warnings)
		}
	}
}
