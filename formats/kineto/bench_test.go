package kineto

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/formats/format"
)

// inflated returns the content of a file with its events repeated.
func inflated(t testing.TB, path string, times int) []byte {
	text := string(plainFile(t, path))
	from, to := strings.Index(text, "[\n{"), strings.Index(text, "\n],\n")
	events := text[from+1 : to]
	return []byte(text[:from+1] + strings.Repeat(events+",", times-1) + events + text[to:])
}

// BenchmarkRead reads the events of a file of 9 MB.
func BenchmarkRead(b *testing.B) {
	text := inflated(b, "../../testdata/kineto/rank0.json", 2500)
	o := &readOptions{own: newOptions(), steps: []string{stepName}}
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	events := int64(0)
	for b.Loop() {
		r, err := readRecording(&format.Input{Name: "rank0.json", Reader: bytes.NewReader(text)}, o)
		if err != nil {
			b.Fatal(err)
		}
		events += r.damage.read
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
