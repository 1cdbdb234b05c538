package astratext

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// The files in testdata, and what the converter of Chakra makes of them, are compared in package dialects.

const layerLine = "conv1 -1 10 NONE 0 20 NONE 0 30 ALLREDUCE 64 1\n"

func readText(text string, own Options) (*dag.Trace, []string, error) {
	var warnings []string
	o := format.ReadOptions{Own: &own, Warn: func(message string, args ...any) {
		warnings = append(warnings, fmt.Sprintf(message, args...))
	}}
	t, err := read([]*format.Input{{Name: "w.txt", Reader: strings.NewReader(text)}}, o)
	return t, warnings, err
}

func TestErrors(t *testing.T) {
	dlrm := strings.Replace(layerLine, "10 NONE 0", "10 ALLTOALL 8", 1) + layerLine
	for text, want := range map[string]string{
		"":                             "w.txt:1: expected a kind of workload",
		"DATA\n":                       "w.txt:2: expected a kind of workload",
		"\nDATA\n":                     "w.txt:1: expected a kind of workload, such as DATA, found an empty line",
		"SERIAL\n1\n":                  `w.txt:1: expected MICRO, DATA, MODEL, HYBRID_DATA_MODEL,`,
		"HYBRID_TRANSFORMER x: 4\n1\n": "found HYBRID_TRANSFORMER, which only ASTRA-sim 1.0 supports",
		"HYBRID_CUSTOMIZED\n1\n":       "w.txt:1: expected a kind that Chakra's converter supports",
		"DATA\n1 2\n":                  "w.txt:2: expected a number of layers and no other field, found 2 fields",
		"DATA\nx\n":                    `w.txt:2: expected a number of layers, found "x"`,
		"DATA\n-1\n":                   `w.txt:2: expected a number of layers, found "-1"`,
		"DATA\n1\nconv1 -1 10\n":       "w.txt:3: expected the 12 fields of a layer, found 3",
		"DATA\n1\n\n" + strings.Replace(layerLine, " 10 ", " 1.5 ", 1):    `w.txt:4: expected a time in cycles, found "1.5"`,
		"DATA\n1\n" + strings.Replace(layerLine, " 20 ", " -20 ", 1):      `w.txt:3: expected a time in cycles, found "-20"`,
		"DATA\n1\n" + strings.Replace(layerLine, "64", "64kB", 1):         `w.txt:3: expected a size in bytes, found "64kB"`,
		"DATA\n1\n" + strings.Replace(layerLine, "ALLREDUCE", "BCAST", 1): `w.txt:3: expected NONE, ALLREDUCE, ALLTOALL, `,
		"DATA\n1\n" + strings.Replace(layerLine, "conv", "\xff", 1):       "w.txt:3: expected UTF-8",
		"MODEL\n1\n" + layerLine + layerLine:                              "w.txt:2: expected 2, the number of layers",
		"DATA\n1\n" + strings.Repeat(layerLine, maxLayers+1):              "w.txt:65539: expected at most 65536 layers",
		"HYBRID_DLRM\n1\n" + layerLine:                                    "w.txt:1: expected HYBRID_DLRM and the number of",
		"HYBRID_DLRM 0\n2\n" + dlrm:                                       "w.txt:1: expected the number of the last bottom",
		"HYBRID_DLRM 1\n2\n" + layerLine + layerLine:                      "w.txt:3: expected ALLTOALL forward in the first",
	} {
		_, _, err := readText(text, Options{Ranks: 1})
		var syntax *format.SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: got %v, want %s", text, err, want)
		}
	}
	for _, m := range []Options{
		{Ranks: 1 << 30}, {Passes: 1 << 40}, {Ranks: 1 << 16, Passes: 1 << 10}, {Ranks: 1 << 40, Passes: 1 << 40},
	} {
		if _, _, err := readText("DATA\n1\n"+layerLine, m); err == nil || !strings.Contains(err.Error(), "expected at most") {
			t.Errorf("%+v: %v", m, err)
		}
	}
	_, _, err := readText("DATA\n1\n"+layerLine, Options{Ranks: 1, Cycle: dag.MaxTime / 20})
	if err == nil || !strings.Contains(err.Error(), "expected less than") {
		t.Errorf("long cycles: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	known := Options{Ranks: 2, Cycle: dag.Nanosecond}
	for _, c := range []struct {
		text string
		m    Options
		want []string
	}{
		{"DATA\n1\n" + layerLine, known, nil},
		{"DATA\n1\n" + layerLine, Options{Ranks: 2}, []string{"a cycle is read as 1 us"}},
		{"DATA\n1\n" + layerLine, Options{Cycle: 1}, []string{"read as the workload of 1 rank"}},
		{"MICRO\n1\n" + layerLine, Options{Ranks: 2}, nil},
		{"DATA\n3\n" + layerLine, known, []string{"w.txt:2: the text announces 3 layers and has 1"}},
		{"MICRO\n1\n" + strings.Replace(layerLine, "NONE 0", "NONE 5", 2), known, []string{"2 collectives NONE"}},
		{"HYBRID_DLRM 4\n1\n" + strings.Replace(layerLine, "NONE 0", "NONE 5", 2), known, nil},
	} {
		_, got, err := readText(c.text, c.m)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		}
		if !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%q, %+v: got the warnings %q, want %q", c.text, c.m, got, c.want)
		}
	}
}

// A cycle is a microsecond, or as long as it is said to be.
func TestCycle(t *testing.T) {
	text := "DATA\n1\n" + layerLine
	text = strings.Replace(text, "30 ALL", "9000000000000 ALL", 1) // 104 days, in microseconds
	for cycle, want := range map[dag.Time][]dag.Time{
		0:                  {10 * dag.Microsecond, 9e12 * dag.Microsecond},
		dag.Nanosecond:     {10 * dag.Nanosecond, 9e12 * dag.Nanosecond},
		3 * dag.Picosecond: {30, 27e12},
	} {
		trace, _, err := readText(text, Options{Ranks: 3, Cycle: cycle})
		if err != nil {
			t.Fatal(err)
		}
		for rank := range trace.Ranks {
			r := trace.Ranks[rank]
			if got := []dag.Time{r.Duration.At(0), r.Duration.At(1)}; r.Len() != 3 || !slices.Equal(got, want) {
				t.Errorf("cycle %v, rank %d: %d ops, durations %v, want %v", cycle, rank, r.Len(), got, want)
			}
			if r.ID(2) != uint64(3*rank+2) {
				t.Errorf("rank %d: the last op has the id %d", rank, r.ID(2))
			}
		}
	}
}

// The last bottom layer may be named as ASTRA-sim 1.0 wants it.
func TestLastBottomLayer(t *testing.T) {
	lines := "\n3\n" + strings.Replace(layerLine, "10 NONE 0", "10 ALLTOALL 8", 1) + layerLine + layerLine
	short, err := parse("w", []byte("HYBRID_DLRM 2"+lines), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	long, err := parse("w", []byte("HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER: 2"+lines), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if short.lastBottom != 2 || long.lastBottom != 2 {
		t.Errorf("got %d and %d", short.lastBottom, long.lastBottom)
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]bool{
		"DATA\n54\nconv1":                       true,
		"HYBRID_DLRM\t4\t\t\r\n8\t\t\r\n":       true,
		"HYBRID_TRANSFORMER x: 4\n96\n":         false,
		"HYBRID_CUSTOMIZED\n96\n":               true,
		"DATA\nlayers\n":                        false,
		"data\n1\n":                             false,
		"DATA":                                  false,
		"\nDATA\n1\n":                           false,
		"num_ranks 2\n":                         false,
		"":                                      false,
		"MODEL of the world\n1" + layerLine[:5]: false,
	} {
		if got := detect([]byte(text)); got != want {
			t.Errorf("detect(%q) = %v", text, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		f.Fatal("no texts in testdata")
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), uint8(2), uint8(2))
	}
	f.Fuzz(func(t *testing.T, text string, ranks, passes uint8) {
		m := Options{Ranks: int(ranks%4) + 1, Passes: int(passes%4) + 1}
		trace, _, err := readText(text, m)
		if err != nil {
			return
		}
		if len(trace.Ranks) != m.Ranks {
			t.Errorf("%d ranks, want %d", len(trace.Ranks), m.Ranks)
		}
		for i := range trace.Ranks {
			if err := trace.Ranks[i].CheckReferences(); err != nil {
				t.Errorf("rank %d: %v", i, err)
			}
		}
		if problems := dag.Validate(trace); len(problems) > 0 {
			t.Errorf("%v", problems)
		}
	})
}
