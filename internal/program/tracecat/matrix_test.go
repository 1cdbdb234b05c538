package tracecat

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// load is a matrix of shares in JSON.
type load struct {
	Nodes int
	Edge  int `json:"nodes_per_row"`
	Racks []int
	Share [][]float64
}

// TestPlotMatrix draws matrices of traces and of CSV files, and compares the shares in JSON.
func TestPlotMatrix(t *testing.T) {
	t.Chdir(t.TempDir())
	b := dag.NewBuilder(4)
	b.Meta().Attrs = attr.Racks{0, 2}.Encode()
	b.Rank(0).Send(1, 30, 0)
	b.Rank(1).Recv(0, 30, 0)
	b.Rank(3).Send(2, 10, 0)
	b.Rank(2).Recv(3, 10, 0)
	trace := b.Trace()
	rows := [][]float64{{0, 0.75, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0.25, 0}}
	got := session(trace).Run(New, "--json", "--plot", "matrix=t.svg", "--plot", "matrix:log=t.png")
	var summary struct{ Load load }
	if err := json.Unmarshal([]byte(got.Stdout), &summary); err != nil || got.Status != 0 {
		t.Fatalf("status %d, %s, error %v", got.Status, got.Stderr, err)
	}
	if want := (load{4, 1, []int{0, 2}, rows}); !reflect.DeepEqual(summary.Load, want) {
		t.Errorf("load %+v, expected %+v", summary.Load, want)
	}
	svg, err := os.ReadFile("t.svg")
	if err != nil || !strings.Contains(string(svg), ">fraction of load<") || !strings.Contains(string(svg), "<image") {
		t.Errorf("error %v, picture %.300s", err, svg)
	}

	var big strings.Builder // 1,026 nodes: 3 in a row
	big.WriteString("racks,0,513\n")
	for i := range 1026 {
		cells := strings.Repeat("1,", 1026)
		big.WriteString(strings.TrimSuffix(cells[:2*i]+"0,"+cells[2*i+2:], ",") + "\n")
	}
	for name, content := range map[string]string{
		"small.csv": "0,3\n1,0\n", "big.csv": big.String(), "bad.csv": "0,1\n1,0,2\n", "odd.csv": "racks,1\n0,1\n1,0\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got = session(trace).Run(New, "--json", "--plot", "matrix=two.svg", "small.csv", "big.csv")
	lines := strings.Split(strings.TrimSpace(got.Stdout), "\n")
	if got.Status != 0 || len(lines) != 2 {
		t.Fatalf("status %d, %s", got.Status, got.Stderr)
	}
	var all [2]load
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &all[i]); err != nil {
			t.Fatal(err)
		}
	}
	if want := (load{2, 1, nil, [][]float64{{0, 0.75}, {0.25, 0}}}); !reflect.DeepEqual(all[0], want) {
		t.Errorf("load %+v, expected %+v", all[0], want)
	}
	cell, diagonal := 9/(1026.*1025), 6/(1026.*1025)
	if m := all[1]; m.Edge != 3 || len(m.Share) != 342 || !reflect.DeepEqual(m.Racks, []int{0, 513}) ||
		math.Abs(m.Share[0][341]-cell) > 1e-15 || math.Abs(m.Share[5][5]-diagonal) > 1e-15 {
		t.Errorf("%d rows of %d, racks %v, shares %v and %v", len(m.Share), m.Edge, m.Racks, m.Share[0][341], m.Share[5][5])
	}
	for args, want := range map[string]string{
		"--plot matrix=x.svg bad.csv":            "bad.csv:2: expected 2 rows of 2 numbers each, found 3 numbers in row 2",
		"--plot matrix=x.svg odd.csv":            "odd.csv:1: expected first nodes of racks",
		"--plot matrix=x.svg small.csv t.svg":    "1 of 2 files are node matrices",
		"--plot matrix:loud=x.svg small.csv":     "expected one of linear, log",
		"--plot matrix=x.svg --matrix small.csv": "omit --ops, --matrix",
	} {
		if got := session(trace).Run(New, strings.Fields(args)...); got.Status == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("tracecat %s: status %d, %q, expected %q", args, got.Status, got.Stderr, want)
		}
	}
}
