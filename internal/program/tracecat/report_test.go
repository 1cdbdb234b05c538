package tracecat

import (
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestReport compares the sums of a page with the statistics and with --matrix.
func TestReport(t *testing.T) {
	folder := t.TempDir()
	trace, page := filepath.Join(folder, "x.goal"), filepath.Join(folder, "x.html")
	text := "num_ranks 3\nrank 0 {\na: calc 7\nb: send 0b to 1\nc: send 1b to 1\nd: send 5b to 2\n}\n" +
		"rank 1 {\na: recv 0b from 0\nb: recv 1b from 0\n}\nrank 2 {\na: recv 5b from 0\n}\n"
	if err := os.WriteFile(trace, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		r := clitest.Run(New, args...)
		if r.Status != 0 {
			t.Fatalf("%v: %s", args, r.Stderr)
		}
		return r.Stdout
	}
	var with, plain struct {
		Stats map[string]any `json:"stats"`
		Sizes []struct {
			UpTo     int `json:"up_to_bytes"`
			Messages int `json:"messages"`
		} `json:"sizes"`
		Matrix struct {
			Pairs int         `json:"pairs"`
			Bytes [][]big.Int `json:"bytes"`
		} `json:"matrix"`
		Ranks []struct {
			Ops  int     `json:"ops"`
			Sent big.Int `json:"sent_bytes"`
			Calc big.Int `json:"calc_ps"`
		} `json:"by_rank"`
	}
	for to, args := range map[any][]string{&with: {"--json", "--report", page, trace}, &plain: {"--json", trace}} {
		if err := json.Unmarshal([]byte(run(args...)), to); err != nil {
			t.Fatal(err)
		}
	}
	if plain.Ranks != nil || len(with.Ranks) != 3 || with.Ranks[0].Ops != 4 || with.Ranks[0].Sent.Int64() != 6 ||
		with.Ranks[0].Calc.Int64() != 7000 {
		t.Errorf("by rank: %+v without --report, %+v with it", plain.Ranks, with.Ranks)
	}
	want := []struct{ upTo, messages int }{{0, 1}, {1, 1}, {8, 1}}
	for i, bin := range with.Sizes {
		if len(with.Sizes) != len(want) || bin.UpTo != want[i].upTo || bin.Messages != want[i].messages {
			t.Errorf("sizes %+v, want %v", with.Sizes, want)
			break
		}
	}
	m := with.Matrix
	if m.Pairs != 2 || m.Bytes[0][1].Int64() != 1 || m.Bytes[0][2].Int64() != 5 || m.Bytes[1][0].Sign() != 0 {
		t.Errorf("matrix %+v", m)
	}
	written, err := os.ReadFile(page)
	if err != nil || !strings.HasPrefix(string(written), "<!doctype html>") {
		t.Errorf("%v: %.40q", err, written)
	}
	for args, message := range map[string]string{
		"--report x.txt " + trace:                 "expected a name that ends with .html",
		"--ops --report x.html " + trace:          "--report adds a page to the summary",
		"--report x.html " + trace + " " + trace:  "--report reads one trace, found 2 files",
		"--report missing/folder/x.html " + trace: "missing",
	} {
		r := clitest.Run(New, strings.Fields(args)...)
		if r.Status == 0 || !strings.Contains(r.Stderr, message) {
			t.Errorf("%s: status %d, %q", args, r.Status, r.Stderr)
		}
	}
}
