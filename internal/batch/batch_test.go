package batch_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/batch"
)

func TestReport(t *testing.T) {
	var r batch.Report
	if got := r.Summary(); got != "0 traces" {
		t.Error(got)
	}
	r.Add(batch.Entry{Input: "a<b>.goal", SHA256: "12", Status: batch.Added, Output: "out/a.parquet", Read: 35_400_000,
		Written: 1_600_000, Warnings: []string{"a: odd"}, Seconds: 0.5})
	if got := r.Summary(); got != "1 trace: 1 added; 35.4 MB -> 1.6 MB" {
		t.Error(got)
	}
	r.Add(batch.Entry{Input: "b", Status: batch.Failed, Error: "b: wrong", Read: 7})
	r.Add(batch.Entry{Input: "c", Status: batch.Unchanged, Output: "out/c.parquet", Read: 999, Written: 999})
	r.Add(batch.Entry{Input: "README", Status: "no trace"})
	if got := r.Summary(); got != "3 traces: 1 added, 1 unchanged, 1 failed; 35.4 MB -> 1.6 MB" {
		t.Error(got)
	}
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	const want = `{"input":"a<b>.goal","sha256":"12","status":"added","output":"out/a.parquet","warnings":["a: odd"],"wall_s":0.5}
{"input":"b","status":"failed","error":"b: wrong","wall_s":0}
{"input":"c","status":"unchanged","output":"out/c.parquet","wall_s":0}
{"input":"README","status":"no trace","wall_s":0}
`
	if text.String() != want {
		t.Errorf("%s, expected %s", text.String(), want)
	}
}

func TestSize(t *testing.T) {
	for size, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 1_600_000: "1.6 MB",
		math.MaxInt64: "9.2 EB",
	} {
		if got := batch.Size(size); got != want {
			t.Errorf("%d is %s, expected %s", size, got, want)
		}
	}
}
