package kineto

import (
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tracedag/tracedag/formats/format"
)

func TestMicros(t *testing.T) {
	for text, want := range map[string]micros{
		"0": {}, "12": {12, 0}, "1712867402348667": {1712867402348667, 0}, "4458676522690.655": {4458676522690, 655000},
		"134.0": {134, 0}, "0.0000005": {0, 0}, "0.0000015": {0, 2}, "0.00000051": {0, 1}, "0.9999999": {1, 0},
		"-1": {-1, 0}, "-0.25": {-1, 750000}, "1.7e+15": {1700000000000000, 0}, "1.5e0": {1, 500000}, "25E-1": {2, 500000},
		"1e-3": {0, 1000}, "-25e-1": {-3, 500000},
	} {
		if got, ok := parseMicros([]byte(text)); !ok || got != want {
			t.Errorf("%s is %+v, %v, want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-", ".", "NaN", "1e", "1e999", "0x1", "99999999999999999999", "1 "} {
		if got, ok := parseMicros([]byte(text)); ok {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// readText reads a file with one rank.
func readText(t *testing.T, text string) (*recording, error) {
	t.Helper()
	o := &readOptions{own: newOptions(), steps: []string{stepName}}
	return readRecording(&format.Input{Name: "rank0.json", Reader: strings.NewReader(text)}, o)
}

const kernelEvent = `{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%d,"dur":2,"args":{"stream":7,"device":0}}`

// TestDamage reads files with damaged events.
func TestDamage(t *testing.T) {
	k := func(ts int) string { return fmt.Sprintf(kernelEvent, ts) }
	named := func(name string) string { return strings.Replace(k(2), `"k"`, `"`+name+`"`, 1) }
	for _, c := range []struct {
		name, text   string
		ops, damaged int64
		cut          int64 // -1: whole
		second       string
	}{
		{"whole", "[" + k(1) + "," + k(2) + "]", 2, 0, -1, "k"},
		{"comma at the end", "[" + k(1) + ",\n" + k(2) + ",\n]", 2, 0, -1, "k"},
		{"no end", "[" + k(1) + ",\n" + k(2) + ",\n", 2, 0, 0, "k"},
		{"cut", "[" + k(1) + "," + k(2)[:40], 1, 0, 0, ""},
		{"bare words", "[" + strings.Replace(k(1), `"args":{`, `"args":{"a":NaN,"b":-Infinity,"c":inf,`, 1) + "]", 1, 0, -1, ""},
		{"quotes", "[" + k(1) + "," + named(`a "quoted" name`) + "]", 2, 0, -1, `a "quoted" name`},
		{"backslash", "[" + k(1) + "," + named(`C:\dir\`) + "]", 2, 0, -1, `C:\dir\`},
		{"escapes", "[" + k(1) + "," + named(`a \"b\", \u0041\\`) + "]", 2, 0, -1, `a "b", A\`},
		{"quote and comma", "[" + k(1) + "," + named(`f("x", y)`) + "]", 2, 0, -1, `f("x", y)`},
		{"control character", "[" + k(1) + "," + named("a\x01\xff") + "]", 2, 0, -1, "a\x01\uFFFD"},
		{"bad event", "[" + k(1) + `, {"ph":"X",!,"ts":}, ` + k(3) + "]", 2, 1, -1, "k"},
		{"other top", `{"a":1,"traceEvents":[` + k(1) + `],"b":[1,{"c":2}]}`, 1, 0, -1, ""},
		{"cut after", `{"traceEvents":[` + k(1) + `],"b":[1,`, 1, 0, 0, ""},
	} {
		r, err := readText(t, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if int64(len(r.ops)) != c.ops || r.damage.events != c.damaged || r.damage.end != (c.cut >= 0) {
			t.Errorf("%s: %d ops, damage %+v", c.name, len(r.ops), r.damage)
		}
		if c.second != "" && len(r.ops) == 2 && r.texts.text(r.ops[1].name) != c.second {
			t.Errorf("%s: name %q", c.name, r.texts.text(r.ops[1].name))
		}
	}
	for _, text := range []string{"", "1", "{}", `{"traceEvents":1}`, `{"a":`, `"a"`} {
		if _, err := readText(t, text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// TestWindow reads events that are longer than the window, and a file in pieces.
func TestWindow(t *testing.T) {
	long := strings.Replace(fmt.Sprintf(kernelEvent, 1), `"k"`, `"`+strings.Repeat("k", 3*windowSize)+`"`, 1)
	text := "[" + strings.Repeat(long+",", 3) + fmt.Sprintf(kernelEvent, 2) + "]"
	r, err := readText(t, text)
	if err != nil || len(r.ops) != 4 || r.damage.events > 0 || r.damage.end {
		t.Fatalf("%v, %+v", err, r.damage)
	}
	o := &readOptions{own: newOptions(), steps: []string{stepName}}
	small := `{"a":"b","traceEvents":[` + fmt.Sprintf(kernelEvent, 1) + "," + fmt.Sprintf(kernelEvent, 2) + `],"c":{}}`
	r, err = readRecording(&format.Input{Name: "x", Reader: iotest.OneByteReader(strings.NewReader(small))}, o)
	if err != nil || len(r.ops) != 2 || r.damaged() {
		t.Fatalf("%v, %+v", err, r.damage)
	}
}

// TestPart reads parts of all-to-alls.
func TestPart(t *testing.T) {
	for _, c := range []struct {
		list   string
		member int
		want   int64
		ok     bool
	}{{"[512, 0, 7]", 0, 512, true}, {"[512, 0, 7]", 2, 7, true}, {"[512, 0, 7]", 3, 0, false}, {"[]", 0, 0, false},
		{"", 1, 0, false}, {"[1, x]", 1, 0, false}, {"[1, -2]", 1, -2, false}} {
		if n, ok := part(c.list, c.member); ok != c.ok || ok && n != c.want {
			t.Errorf("%q, %d: %d, %v", c.list, c.member, n, ok)
		}
	}
}
