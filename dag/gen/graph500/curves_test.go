package graph500

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestCurves compares curves with the results for single degrees, and checks their degrees.
func TestCurves(t *testing.T) {
	p := Default()
	p.Scale = 17
	curves, err := Curves(p, Span{1, math.MaxInt32})
	if err != nil {
		t.Fatal(err)
	}
	var degrees []int64
	for _, c := range curves {
		degrees = append(degrees, c.Degree)
		single := p
		single.RootDegree = c.Degree
		d, err := Describe(single, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		for level, want := range d.Levels {
			if c.Mean[level] != want.Mean || c.Sigma[level] != want.Sigma || c.Truncated[level] != want.MeanTruncated {
				t.Fatalf("degree %d, level %d: %v, %v, %v, want %+v", c.Degree, level, c.Mean[level], c.Sigma[level],
					c.Truncated[level], want)
			}
		}
	}
	if last := degrees[len(degrees)-1]; degrees[63] != 64 || degrees[64] != 67 || degrees[80] != 134 || last != 1<<22 {
		t.Errorf("degrees %v", degrees)
	}
	if !slices.Contains(degrees, 1<<16) || len(slices.Compact(degrees)) != len(curves) || len(curves) != 64+16*16 {
		t.Errorf("%d degrees: %v", len(curves), degrees)
	}
	for _, c := range []struct {
		span Span
		want []int64
	}{{Span{100, 100}, []int64{100}}, {Span{62, 70}, []int64{62, 63, 64, 67, 70}}, {Span{65, 66}, []int64{65, 66}}} {
		curves, err := Curves(p, c.span)
		var got []int64
		for _, c := range curves {
			got = append(got, c.Degree)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: degrees %v, error %v, want %v", c.span, got, err, c.want)
		}
	}
	if _, err := Curves(p, Span{1 << 23, 1 << 24}); err == nil || !strings.Contains(err.Error(), "degrees from 1 to 4194304") {
		t.Errorf("degrees above the ends of edges: error %v", err)
	}
	var table, csv bytes.Buffer
	if err := writeCurves(&table, curves[:2], false, false); err != nil {
		t.Fatal(err)
	}
	if err := writeCurves(&csv, curves[:2], true, false); err != nil {
		t.Fatal(err)
	}
	if want := "degree,level,mean,sigma,truncated\n1,0,1,0,1\n1,1,1887.11,2711.67,1887.11\n"; !strings.HasPrefix(csv.String(), want) {
		t.Errorf("CSV begins with\n%.80s, want\n%s", csv.String(), want)
	}
	if rows := strings.Count(table.String(), "\n"); rows != 1+2*p.MaxLevels {
		t.Errorf("table of %d lines", rows)
	}
}
