package timeline_test

import (
	"encoding/json"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
	"github.com/tracedag/tracedag/sim/measure"
	"github.com/tracedag/tracedag/sim/timeline"
)

// TestCollector checks the section of a message between two ranks by hand.
func TestCollector(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, 4096, 7)
	b.Rank(1).Recv(0, 4096, 7)
	trace := b.Trace()
	replay, err := backends.Compile(trace, "loggops", backends.Set("L=1us", "o=500ns", "G=100Gbps"))
	if err != nil {
		t.Fatal(err)
	}
	c := timeline.NewCollector(timeline.Options{Trace: trace})
	if c.Report() != nil {
		t.Error("a report before the run")
	}
	result, err := measure.Run(replay, sim.RunOptions{Path: &sim.PathOptions{}}, c)
	if err != nil {
		t.Fatal(err)
	}
	found, err := json.Marshal(c.Report())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"lanes":3,"slices":4,"kinds":[{"kind":"overhead","slices":2,"time_ps":1000000},` +
		`{"kind":"wait","slices":1,"time_ps":1827600},{"kind":"message","slices":1,"time_ps":1327600}],` +
		`"waits":[{"rank":1,"op":0,"name":"recv from 0","start_ps":0,"time_ps":1827600}]}`
	if string(found) != want {
		t.Errorf("found\n%s\nwant\n%s", found, want)
	}
	sections := 0
	for _, s := range result.Sections {
		if s.Key == "timeline" {
			sections++
		}
	}
	if sections != 1 {
		t.Errorf("%d sections", sections)
	}
}
