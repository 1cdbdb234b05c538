package vef

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// FuzzRead checks that whatever is accepted is a sound trace, that it is written as something that reads as the same, and
// that the parser of canonical lines understands what that of all lines does.
func FuzzRead(f *testing.F) {
	for _, pattern := range []string{"*.vef", "invalid/*.vef"} {
		files, err := filepath.Glob(vectors + pattern)
		if err != nil || len(files) == 0 {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	for seed := range uint64(20) {
		x := newRandomText(rand.New(rand.NewPCG(seed, 3)))
		order := rand.New(rand.NewPCG(seed, 4)).Perm(len(x.lines))
		f.Add(x.text(order))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if fields := strings.Fields(firstRecord(string(text))); len(fields) > 1 && len(fields[1]) > 2 {
			return // many tasks take time, and show nothing that few do not
		}
		if strings.Contains(string(text), "EXT") {
			return // models have fuzz targets of their own
		}
		trace, _, err := readText("x.vef", text, format.ReadOptions{})
		spread := bytes.ReplaceAll(text, []byte(" "), []byte("  "))
		trace2, _, err2 := readText("x.vef", spread, format.ReadOptions{})
		if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
			t.Fatalf("error %v, and with other blanks %v", err, err2)
		}
		if err != nil {
			return
		}
		for _, problem := range dag.Validate(trace) {
			t.Fatalf("unsound: %v", problem)
		}
		losses(trace)
		var out, out2, again bytes.Buffer
		if err := write(&out, trace, format.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := write(&out2, trace2, format.WriteOptions{}); err != nil || !bytes.Equal(out.Bytes(), out2.Bytes()) {
			t.Fatalf("wrote\n%s, and with other blanks\n%s", out.Bytes(), out2.Bytes())
		}
		third, _, err := readText("x.vef", out.Bytes(), format.ReadOptions{})
		if err != nil {
			t.Fatalf("%v in\n%s", err, out.Bytes())
		}
		err = write(&again, third, format.WriteOptions{})
		if err != nil || !slices.Equal(records(again.Bytes(), 0), records(out.Bytes(), 0)) {
			t.Fatalf("wrote\n%s, then\n%s", out.Bytes(), again.Bytes())
		}
	})
}

func firstRecord(text string) string {
	for l := range strings.Lines(text) {
		if strings.TrimSpace(l) != "" && l[0] != '#' {
			return l
		}
	}
	return ""
}
