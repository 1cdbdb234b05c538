package kineto

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// FuzzRead reads two files, whatever they contain, and checks that the trace is valid.
func FuzzRead(f *testing.F) {
	a, b := string(plainFile(f, "../../testdata/kineto/rank0.json")), string(plainFile(f, "../../testdata/kineto/rank1.json"))
	f.Add(a, b)
	f.Add(a, b[:len(b)/2])
	f.Add(strings.ReplaceAll(a, `"Seq"`, `"seq"`), strings.ReplaceAll(b, `"Seq"`, `"seq"`))
	f.Add(`[{"ph":"X","cat":"kernel","ts":1e3,"dur":NaN,"name":"C:\dir\","args":{"stream":7}},]`, `{"traceEvents":[]}`)
	f.Add(`[{"name":"aten::mm","ph":"X","ts":1,"dur":5,"tid":1,"pid":"CPU functions","args":{}},
		{"name":"gloo:all_reduce","ph":"X","ts":2,"dur":5,"tid":2,"pid":"CPU functions","args":{}}]`, "")
	f.Fuzz(func(t *testing.T, a, b string) {
		var inputs []*format.Input
		for i, text := range []string{a, b} {
			if text != "" {
				inputs = append(inputs, &format.Input{Name: "rank" + string(rune('0'+i)) + ".json",
					Reader: strings.NewReader(text)})
			}
		}
		if len(inputs) == 0 {
			return
		}
		detect([]byte(a[:min(len(a), format.DetectBytes)]))
		own := newOptions()
		own.OnlyPresent, own.MergeCalcs, own.KeepHost = true, len(a)%2 == 0, len(a)%3 == 0
		trace, err := read(inputs, format.ReadOptions{Own: own, Lenient: true, Warn: func(string, ...any) {}})
		if err != nil {
			return
		}
		if problems := dag.Validate(trace); len(problems) > 0 {
			t.Fatal(problems[0])
		}
	})
}

// FuzzMicros reads numbers, and compares them with themselves with more zeros.
func FuzzMicros(f *testing.F) {
	for _, text := range []string{"1712867402348667.125", "0.0000005", "-3.25", "1.7e+15", "12e-3", "-0.5e1", "NaN", ""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, ok := parseMicros(text)
		if ok && (m.ps < 0 || m.ps > 999_999) {
			t.Fatalf("%q is %+v", text, m)
		}
		if ok && bytes.IndexByte(text, '.') >= 0 && !bytes.ContainsAny(text, "eE") {
			if n, ok := parseMicros(append(bytes.Clone(text), '0')); !ok || m != n {
				t.Fatalf("%q is %+v, with a zero %+v", text, m, n)
			}
		}
	})
}
