package loggops_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	_ "github.com/tracedag/tracedag/internal/testheap"
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

// TestDefaultNetworkAdvice checks that a run on a terminal names the default bandwidth once, if it takes most of the
// makespan, and only then.
func TestDefaultNetworkAdvice(t *testing.T) {
	type workload struct {
		messages      int
		bytes         int64
		calc, release dag.Time
	}
	for _, test := range []struct {
		work     workload
		settings param.Texts
		sweep    bool
		advises  bool
	}{
		{work: workload{messages: 10, bytes: 64 << 10}, advises: true},
		{work: workload{messages: 10, bytes: 64 << 10}, settings: param.Texts{"model": {"loggopsim"}}, advises: true},
		{work: workload{messages: 10, bytes: 64 << 10}, settings: param.Texts{"model": {"atlahs"}}, advises: true},
		{work: workload{messages: 10, bytes: 64 << 10}, settings: param.Texts{"o": {"1us"}}, advises: true},
		{work: workload{messages: 10, bytes: 100}},
		{work: workload{messages: 0}},
		{work: workload{messages: 10, bytes: 64 << 10, calc: 20 * dag.Millisecond}},
		{work: workload{messages: 10, bytes: 64 << 10, calc: 2 * dag.Millisecond}, advises: true},
		{work: workload{messages: 10, bytes: 64 << 10, release: 20 * dag.Millisecond}},
		{work: workload{messages: 10, bytes: 64 << 10}, settings: param.Texts{"G": {"6"}}},
		{work: workload{messages: 10, bytes: 64 << 10}, settings: param.Texts{"params": {"default"}}},
		{work: workload{messages: 10, bytes: 64 << 10}, sweep: true},
		{work: workload{messages: 10, bytes: 2 << 20}}, // a warning instead
	} {
		b := dag.NewBuilder(2)
		last := b.Rank(0).Calc(test.work.calc)
		for m := range int64(test.work.messages) {
			b.Rank(0).Send(1, test.work.bytes, m, last)
			b.Rank(1).Recv(0, test.work.bytes, m)
		}
		if test.work.release > 0 {
			b.Rank(1).Add(dag.Op{Kind: dag.Calc, Release: test.work.release, Duration: 1})
		}
		var advice []string
		env := &sim.Env{
			Advise: func(message string, args ...any) { advice = append(advice, fmt.Sprintf(message, args...)) },
			Given:  func(name string) bool { return test.settings[name] != nil },
			Sweep:  test.sweep,
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
		if test.advises != (len(advice) == 1 && strings.Contains(advice[0], "1.33 Gb/s")) || len(advice) > 1 {
			t.Errorf("%+v, %v: advice %q", test.work, test.settings, advice)
		}
	}
}
