package main

import (
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// FuzzGrid checks that a grid is refused or has points that all set the same parameters, in the same order.
func FuzzGrid(f *testing.F) {
	f.Add("L=1us..10us:10;G=0.02,0.04")
	f.Add("S=0..1MiB:3,7;L=5")
	f.Add("G=100Gbps..400Gbps:4")
	parameters := []parameter{timeParameter("L", dag.Nanosecond), rateParameter("G", "ns/B"), sizeParameter("S")}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 100 {
			return // much text makes many points, which takes long and shows nothing new
		}
		points, err := parseGrid(text, parameters)
		if err != nil {
			return
		}
		if len(points) == 0 || len(points) > maxPoints {
			t.Fatalf("%d points", len(points))
		}
		for _, point := range points {
			if len(point) != len(points[0]) {
				t.Fatalf("a point sets %d parameters, the first %d", len(point), len(points[0]))
			}
			for k, s := range point {
				if s.name != points[0][k].name || s.value.Sign() < 0 {
					t.Fatalf("a point sets %s to %v", s.name, s.value)
				}
				s.rounded()
			}
		}
	})
}
