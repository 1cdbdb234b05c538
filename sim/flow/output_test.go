package flow_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// TestWindow restricts distributions to flows that start in a window. Flows take 82, 42 and 22 us on an idle star.
func TestWindow(t *testing.T) {
	const us = dag.Microsecond
	trace := traceOf(4, message{0, 1, 1_000_000, 0}, message{1, 2, 500_000, 200 * us}, message{2, 3, 250_000, 400 * us})
	for _, c := range []struct {
		set            []string
		count          int
		least, largest dag.Time
		excluded       int
	}{
		{nil, 3, 22 * us, 82 * us, -1},
		{[]string{"measure-from=200us"}, 2, 22 * us, 42 * us, 1},
		{[]string{"measure-from=1us", "measure-until=400us"}, 1, 42 * us, 42 * us, 2},
		{[]string{"measure-from=1s"}, 0, 0, 0, 3},
	} {
		r, err := backends.Run(trace, "flow",
			backends.Set(append(c.set, "topology=star:hosts=4,rate=100Gbps,latency=1us")...))
		if err != nil {
			t.Fatal(err)
		}
		if section := r.Section("fct_ps"); section != nil {
			var fct struct {
				Min float64 `json:"min"`
				Max float64 `json:"max"`
			}
			text, err := json.Marshal(section.Value)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &fct); err != nil {
				t.Fatal(err)
			}
			if dag.Time(fct.Min) != c.least || dag.Time(fct.Max) != c.largest {
				t.Errorf("%v: %s, expected %v to %v", c.set, text, c.least, c.largest)
			}
		} else if c.count > 0 {
			t.Errorf("%v: no distribution", c.set)
		}
		window := r.Section("fct_window")
		if (window != nil) != (c.excluded >= 0) {
			t.Errorf("%v: section of the window: %v", c.set, window)
		} else if window != nil {
			text, err := json.Marshal(window.Value)
			if want := fmt.Sprintf(`"excluded_flows":%d`, c.excluded); err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%v: %s, expected %s", c.set, text, want)
			}
		}
	}
	if _, err := backends.Run(trace, "flow", backends.Set("topology=star:hosts=4", "measure-from=2us",
		"measure-until=1us")); err == nil {
		t.Error("an empty window is accepted")
	}
}

// TestGap spaces the messages of a NIC. Each takes 2 us and 8 us for its bytes.
func TestGap(t *testing.T) {
	const us = dag.Microsecond
	star := []string{"topology=star:hosts=4,rate=100Gbps,latency=1us", "g=50000"}
	three := []message{{0, 1, 100_000, 0}, {0, 2, 100_000, 0}, {0, 3, 100_000, 0}}
	if got, want := ends(t, traceOf(4, three...), star...),
		[]dag.Time{10 * us, 60 * us, 110 * us}; !slices.Equal(got, want) {
		t.Errorf("ends %v, expected %v", got, want)
	}
	// Messages of another rank do not wait.
	two := []message{{0, 1, 100_000, 0}, {2, 3, 100_000, 0}}
	if got, want := ends(t, traceOf(4, two...), star...), []dag.Time{10 * us, 10 * us}; !slices.Equal(got, want) {
		t.Errorf("ends %v, expected %v", got, want)
	}
	// Those that wait for their receive have the gap when the answer arrives, after 4 us.
	if got, want := ends(t, traceOf(4, three[:2]...), append(star, "S=1000")...),
		[]dag.Time{14 * us, 64 * us}; !slices.Equal(got, want) {
		t.Errorf("ends with rendezvous %v, expected %v", got, want)
	}
	if _, err := backends.Run(traceOf(4, three...), "flow", backends.Set(append(star, "protocol=smpi")...)); err == nil {
		t.Error("a gap is accepted with the protocol smpi")
	}
}

// events is a timeline that keeps the events of the network.
type events struct{ marks []string }

func (*events) Begin(*sim.Layout)                       {}
func (*events) Span(sim.Span)                           {}
func (*events) Transfer(sim.Transfer)                   {}
func (*events) End() error                              { return nil }
func (*events) Counter(uint64, string, string, float64) {}

func (e *events) Mark(at uint64, text string) {
	e.marks = append(e.marks, fmt.Sprintf("%d %s", at, text))
}

// TestMarks checks the marks of failures in timelines, which are those of the packet backend.
func TestMarks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.xml")
	if err := os.WriteFile(file, []byte(`<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-3"
		speed="1f" bw="12.5GBps" lat="1us"/></platform>`), 0o600); err != nil {
		t.Fatal(err)
	}
	trace := traceOf(4, message{0, 1, 1_000_000, 0})
	star := []string{"topology=star:hosts=4,rate=100Gbps,latency=1us", "fail=host1@42us..62us", "fail=host2@50us:25Gbps"}
	want := []string{"42000000 host1-tor0 failed", "50000000 host2-tor0 slowed to 25Gbps",
		"62000000 host1-tor0 restored"}
	for _, backend := range []string{"flow", "packet"} {
		var e events
		if _, err := backends.Run(trace, backend, backends.Set(star...),
			backends.Options(sim.RunOptions{Timeline: &e})); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(e.marks, want) {
			t.Errorf("%s: marks %q, expected %q", backend, e.marks, want)
		}
	}
	var e events
	if _, err := backends.Run(trace, "flow", backends.Set("topology="+file, "fail=c_link_1@42us..62us"),
		backends.Options(sim.RunOptions{Timeline: &e})); err != nil {
		t.Fatal(err)
	}
	want = []string{"42000000 c_link_1_UP, c_link_1_DOWN failed", "62000000 c_link_1_UP, c_link_1_DOWN restored"}
	if !slices.Equal(e.marks, want) {
		t.Errorf("platform: marks %q, expected %q", e.marks, want)
	}
}
