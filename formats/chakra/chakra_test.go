package chakra

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/store"
)

func TestTmp(t *testing.T) {
	paths, _ := filepath.Glob("/work/shared/vectors/chakra/*/*.et")
	for _, p := range paths {
		data, _ := os.ReadFile(p)
		in := &format.Input{Name: p, Reader: bytes.NewReader(data)}
		tr, err := read([]*format.Input{in}, format.ReadOptions{Warn: func(m string, a ...any) { t.Logf("  warn "+m, a...) }})
		if err != nil {
			t.Log(p, err)
			continue
		}
		var sb bytes.Buffer
		if err := store.Write(&sb, tr); err != nil {
			t.Error(err)
		}
		tr, err = store.Format.Read([]*format.Input{{Name: "x", At: bytes.NewReader(sb.Bytes()), Size: int64(sb.Len())}}, format.ReadOptions{Warn: t.Logf})
		if err != nil {
			t.Error(err)
			continue
		}
		var out bytes.Buffer
		err = write(func(s string) (io.Writer, error) {
			if strings.HasSuffix(s, ".0.et") {
				return &out, nil
			}
			return io.Discard, nil
		}, tr, format.WriteOptions{})
		t.Log(p, len(data), err, bytes.Equal(out.Bytes(), data), losses(tr), detect(data[:min(4096, len(data))]))
		attrs := 0
		r := &tr.Ranks[0]
		for i := range r.Len() {
			attrs += len(r.Attrs.At(i))
		}
		t.Log("    ops", r.Len(), "attrs", attrs, fmt.Sprintf("%.200s", tr.Attrs), fmt.Sprintf("%.150s", r.Attrs.At(0)))
		jp := strings.TrimSuffix(p, ".et") + ".json"
		if js, err := os.ReadFile(jp); err == nil {
			var jout bytes.Buffer
			err = writeJSON(func(s string) (io.Writer, error) {
				if strings.HasSuffix(s, ".0.json") {
					return &jout, nil
				}
				return io.Discard, nil
			}, tr, format.WriteOptions{})
			tr2, err2 := readJSON([]*format.Input{{Name: jp, Reader: bytes.NewReader(js)}}, format.ReadOptions{Warn: func(string, ...any) {}})
			eq := false
			if err2 == nil {
				out.Reset()
				write(func(s string) (io.Writer, error) {
					if strings.HasSuffix(s, ".0.et") {
						return &out, nil
					}
					return io.Discard, nil
				}, tr2, format.WriteOptions{})
				eq = bytes.Equal(out.Bytes(), data)
			}
			t.Log("    json", err, bytes.Equal(jout.Bytes(), js), err2, eq, detectJSON(js[:min(4096, len(js))]))
		}
	}
	_ = dag.Calc
}
