package study

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/grid"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/results"
	"github.com/tracedag/tracedag/internal/tables"
)

func TestIdentity(t *testing.T) {
	settings := map[string]string{"transport": "ndp", "topology": "fattree:k=4,rate=100Gbps", "balance": "spray"}
	if got := tables.Identity("packet", settings, 3, strings.Repeat("0", 64)); got != "b698db46d50a8216" {
		t.Errorf("got %s", got)
	}
}

// TestPlace checks that a kept line gets back its place in the study.
func TestPlace(t *testing.T) {
	a := &provenance.Run{Study: "s", ID: "0123456789abcdef", Index: 7, Replica: 2, Factors: map[string]string{"a": "<&>"},
		Units: map[string]string{}, Warnings: []string{"careful"}}
	var line, placed strings.Builder
	unplaced := bare(*a)
	if err := a.WriteLine(&placed, map[string]any{"complete": true, "makespan_ps": 1}); err != nil {
		t.Fatal(err)
	}
	if err := unplaced.WriteLine(&line, map[string]any{"complete": true, "makespan_ps": 1}); err != nil {
		t.Fatal(err)
	}
	if got, _, err := place([]byte(line.String()), a); err != nil || string(got) != placed.String() {
		t.Errorf("got %s, %v, expected %s", got, err, placed.String())
	}
}

// TestKeep checks which changes of a study its folder accepts.
func TestKeep(t *testing.T) {
	const before = "traces: [a.goal]\nset: {queue: 1}\nvary: {transport: [ndp, dctcp]}\nreplicas: 2\n"
	for text, want := range map[string]string{
		before: "",
		"traces: [a.goal, b.goal]\nset: {queue: 1}\nvary: {transport: [swift, ndp, dctcp], load: [1, 2]}\nreplicas: 3\n": "",
		"traces: [a.goal]\nset: {queue: 2}\nvary: {transport: [ndp, dctcp]}\nreplicas: 2\n":                              "queue was 1, is 2",
		"traces: [a.goal]\nset: {queue: 1, x: 2}\nvary: {transport: [ndp, dctcp]}\nreplicas: 2\n":                        "x was absent",
		"traces: [a.goal]\nset: {queue: 1}\nvary: {transport: [ndp]}\nreplicas: 2\n":                                     "lacks the value transport=dctcp",
		"traces: [a.goal]\nset: {queue: 1}\nvary: {transport: [ndp, dctcp]}\nreplicas: 1\n":                              "lacks the value seed=2",
		"traces: [b.goal]\nset: {queue: 1}\nvary: {transport: [ndp, dctcp]}\nreplicas: 2\n":                              "traces: a is not the same",
	} {
		f := results.Folder(filepath.Join(t.TempDir(), "results"))
		var err error
		for _, text := range []string{before, text} {
			var s *grid.Study
			if s, err = grid.Read([]byte(text), "study.yml", nil, nil); err != nil {
				t.Fatal(err)
			}
			err = keep(f, []byte(text), s)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %q", text, err, want)
		}
	}
}
