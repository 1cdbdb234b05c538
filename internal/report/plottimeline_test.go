package report

import (
	"fmt"
	"strings"
	"testing"
)

// events is a timeline of two ranks: a calc and a message of 4096 bytes from one to the other.
const events = `{"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":0,"tid":0,"name":"process_name","args":{"name":"rank 0"}},
{"ph":"M","pid":0,"tid":0,"name":"process_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"rank 1"}},
{"ph":"M","pid":1,"tid":0,"name":"process_sort_index","args":{"sort_index":0}},
{"ph":"M","pid":0,"tid":3,"name":"thread_name","args":{"name":"stream 3"}},
{"ph":"M","pid":0,"tid":9,"name":"thread_name","args":{"name":"empty"}},
{"ph":"X","pid":0,"tid":3,"ts":0,"dur":1.000001,"cat":"calc","name":"a","args":{"op":0}},
{"ph":"X","pid":0,"tid":3,"ts":1.5,"dur":0.2,"cat":"send","name":"b","args":{"op":1,"bytes":4096}},
{"ph":"s","pid":0,"tid":3,"ts":1.5,"name":"message","cat":"message","id":1},
{"ph":"C","pid":0,"tid":3,"ts":1.5,"name":"x","args":{"y":1}},
{"ph":"X","pid":1,"tid":0,"ts":4,"dur":0.2,"cat":"recv","name":"c","args":{"op":0,"bytes":4096}},
{"ph":"f","bp":"e","pid":1,"tid":0,"ts":4,"name":"message","cat":"message","id":1},
{"ph":"s","pid":0,"tid":3,"ts":1.5,"name":"message","cat":"message","id":2}
],"otherData":{"a":[1,2]}}`

func spacetimeOf(t *testing.T) *Report {
	t.Helper()
	r, err := TimelineFile(strings.NewReader(events), 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTimelineFile compares tracks, spans and arrows of a timeline with the file.
func TestTimelineFile(t *testing.T) {
	for least, arrows := range map[uint64]int{0: 1, 4096: 1, 4097: 0} {
		r, err := TimelineFile(strings.NewReader(events), least)
		if err != nil {
			t.Fatal(err)
		}
		m := r.spacetime
		var got []string
		for _, track := range m.tracks[:m.drawn] {
			for _, s := range track.spans {
				got = append(got, fmt.Sprint(track.name, " ", sliceNames[s.kind].name, " ", s.from, "+", s.takes))
			}
		}
		want := "rank 1 thread 0 overhead 4+0.2, rank 0 stream 3 calc 0+1.000001, rank 0 stream 3 overhead 1.5+0.2"
		if text := strings.Join(got, ", "); text != want || len(m.arrows) != arrows {
			t.Errorf("%s; %d arrows; expected %s; %d", text, len(m.arrows), want, arrows)
		}
		if arrows == 1 {
			a := m.arrows[0]
			if a.from.name != "rank 0 stream 3" || a.to.name != "rank 1 thread 0" || a.start != 1.5 || a.end != 4 ||
				a.bytes != 4096 {
				t.Errorf("arrow %+v", a)
			}
		}
		p := drawSpacetime(&source{Report: r})
		if p == nil || len(p.panels[0].y.names) != 2 || len(p.keys) != 2+arrows {
			t.Errorf("picture %+v", p)
		}
	}
	array := events[strings.Index(events, "["):strings.Index(events, `,"otherData"`)]
	if r, err := TimelineFile(strings.NewReader(array), 0); err != nil || r.spacetime.drawn != 2 {
		t.Errorf("array of events: %v", err)
	}
}

func TestTimelineFileErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "expected a timeline in JSON",
		"1":                                  "found 1",
		"PAR1":                               "expected a timeline in JSON",
		"{}":                                 "expected a member traceEvents",
		`{"traceEvents":1}`:                  "traceEvents: expected an array",
		`{"traceEvents":[1]}`:                "event 0: ",
		`{"traceEvents":[{}`:                 "EOF",
		`[{"ph":"X","ts":-1}]`:               `event 0: ts: expected microseconds, at most 2^63 ps, found "-1"`,
		`[{},{"ph":"X","ts":1,"dur":1e300}]`: "event 1: dur: expected microseconds",
		`[{"ph":"X","ts":1}]`:                `dur: expected microseconds, at most 2^63 ps, found ""`,
		`[{"ph":"M","name":"thread_name"}]`:  "args of thread_name",
		`[{"ph":"M","name":"process_sort_index","args":{"sort_index":0.5}}]`: "sort_index: expected a whole number",
	} {
		if _, err := TimelineFile(strings.NewReader(text), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %q", text, err, want)
		}
	}
}

// FuzzTimelineFile checks that a timeline is an error, or that its picture can be drawn.
func FuzzTimelineFile(f *testing.F) {
	f.Add(events)
	f.Add(`[{"ph":"s","id":"a","ts":1},{"ph":"X","ts":1,"dur":2},{"ph":"f","id":"a","ts":2}]`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := TimelineFile(strings.NewReader(text), 1)
		if err != nil {
			return
		}
		if p := drawSpacetime(&source{Report: r}); p != nil {
			for _, panel := range p.panels {
				panel.setRanges()
			}
			new(PlotData).add(p)
		}
	})
}
