package tables

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
)

// TestRatio compares ratios with values by hand: those of pairs 2 and 8 have the geometric mean 4.
func TestRatio(t *testing.T) {
	var b bytes.Buffer
	all := New([]string{"t"}, 3)
	all.CompareTo(Reference{"t", "a"})
	all.Write("summary", false, &b)
	for i, run := range []struct {
		t    string
		seed int
		ps   int
	}{{"b", 1, 20}, {"b", 2, 80}, {"b", 4, 7}, {"a", 1, 10}, {"a", 2, 10}, {"a", 3, 10}} {
		line := fmt.Sprintf(`{"run":{"id":"%d","point":"%s","seed":%d,"factors":{"t":"%s"}},"makespan_ps":%d}`, i, run.t,
			run.seed, run.t, run.ps)
		if err := all.Add(strings.NewReader(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := all.Commit(); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%v, %v", rows, err)
	}
	const quantile = 12.706204736432095 // of Student's t, one degree of freedom
	half := quantile * math.Log(2)      // the deviation of log 2 and log 8 is log 2 sqrt(2)
	for i, want := range [][]float64{{2, 4, 4 * math.Exp(-half), 4 * math.Exp(half)}, {3, 1, 1, 1}} {
		cells := rows[i+1][len(rows[0])-4:]
		for k, cell := range cells {
			if got, err := strconv.ParseFloat(cell, 64); err != nil || math.Abs(got-want[k]) > 1e-9*want[k] {
				t.Errorf("row %v: %s is %s, expected %v", rows[i+1], rows[0][len(rows[0])-4+k], cell, want[k])
			}
		}
	}
}
