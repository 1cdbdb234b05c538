package measure

import (
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestSampleCount checks the limits of samples and of their rows.
func TestSampleCount(t *testing.T) {
	c := SampleCount{Period: dag.Nanosecond}
	for range MostSamples {
		if err := c.Take(1); err != nil {
			t.Fatal(err)
		}
	}
	err := c.Take(5 * dag.Microsecond)
	if err == nil || !strings.Contains(err.Error(), "--sample 1ns: expected at most 10000000 samples, found more at 5us") {
		t.Errorf("error %v", err)
	}
	for range MostSampleRows {
		if err := c.Row(1); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Row(1); err == nil || !strings.Contains(err.Error(), "100000000 rows of samples") {
		t.Errorf("error %v", err)
	}
}
