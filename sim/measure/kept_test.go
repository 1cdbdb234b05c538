package measure

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const keptA = `{"run":{"program":"simulate","command":["simulate","x"],"seed":1,"trace":{"name":"x","sha256":"aa"},
 "settings":{"L":"1us"},"units":{"load":"flits/cycle"},"warnings":[]},
 "backend":"b","model":"m","params":{"L_ps":1000000,"queue_bytes":1000,"never":null},
 "complete":true,"makespan_ps":1000,"finish_ps":[1000,900,0],"wall_s":1.5,"ops_per_s":3,"load":2,
 "jobs":[{"name":"one","makespan_ps":10,"ranks":2},{"name":"two","makespan_ps":20}],
 "unknown":{"deep":{"er":[[1,2],[3]]},"text":"a b","big":123456789012345678901234567890},
 "ports":{"columns":["port","bytes"],"rows":[["p1",5],["p2",6],["p3",7]]},
 "bins":{"columns":["size","count"],"rows":[[1,5],[2,6]]}}`

const keptB = `{"run":{"program":"simulate","command":["simulate","y"],"seed":1,"trace":{"name":"y","sha256":"aa"},
 "settings":{"L":"2us"},"units":{},"warnings":[]},
 "backend":"b","model":"m","params":{"L_ps":2000000,"queue_bytes":1e3,"never":5},
 "complete":true,"makespan_ps":1500.0,"finish_ps":[1000,1800,5],"wall_s":9,"load":3,
 "jobs":[{"name":"two","makespan_ps":22},{"name":"three","makespan_ps":1}],
 "unknown":{"text":"a b","big":123456789012345678901234567891,"deep":{"er":[[1,2],[4],[5]]},"more":{"x":1}},
 "ports":{"rows":[["p2",6],["p1",10]],"columns":["port","bytes"]},
 "bins":{"columns":["size","count","sum"],"rows":[[1,5,9],[2,7,9]]}}`

func readKept(t testing.TB, text string) []Kept {
	t.Helper()
	kept, err := ReadKept([]byte(text), "r.json")
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func TestCompareKept(t *testing.T) {
	d := CompareKept(readKept(t, keptA), readKept(t, keptB))
	if len(d.Points) != 1 || d.Equal {
		t.Fatalf("%+v", d)
	}
	lines := func(changes []Change) (all []string) {
		for _, c := range changes {
			relative := ""
			if c.Relative != nil {
				relative = fmt.Sprintf(" %+.3g", *c.Relative)
			}
			if c.Origin {
				relative += " origin"
			}
			all = append(all, fmt.Sprintf("%s|%s|%s|%s%s", c.Metric, c.Item, c.A, c.B, relative))
		}
		return all
	}
	wantRun := []string{
		`run.settings.L||"1us"|"2us"`, `params.L_ps||1000000|2000000 +1`, `params.never||null|5`,
		`run.command||["simulate","x"]|["simulate","y"] origin`, `run.trace.name||"x"|"y" origin`,
	}
	if got := lines(d.Points[0].Run); !slices.Equal(got, wantRun) {
		t.Errorf("run:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wantRun, "\n"))
	}
	want := []string{
		"unknown.more|||\"(1 members)\"", "makespan_ps||1000|1500.0 +0.5", "load||2|3 +0.5",
		"unknown.big||123456789012345678901234567890|123456789012345678901234567891 +8.1e-30",
		"finish_ps|rank 2|0|5", "finish_ps|rank 1|900|1800 +1",
		`jobs|one|"(3 members)"|`, `jobs|three||"(2 members)"`, "jobs.makespan_ps|two|20|22 +0.1",
		`unknown.deep.er|2||"(a list of 1)"`, "unknown.deep.er|1 0|3|4 +0.333",
		`ports|p3|"(a list of 2)"|`, "ports.bytes|p1|5|10 +1",
		"bins.sum|0||9", "bins.sum|1||9", "bins.count|1|6|7 +0.167",
	}
	if got := lines(d.Points[0].Results); !slices.Equal(got, want) {
		t.Errorf("results:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if d.Differ != int64(len(want)+3) {
		t.Errorf("%d of %d values differ", d.Differ, d.Compared)
	}
}

// TestKeptOrigin: results that differ only in their origin and in wall-clock figures are equal.
func TestKeptOrigin(t *testing.T) {
	other := keptA
	for _, change := range []string{`["simulate","x"]>["y"]`, `"name":"x">"name":"z"`, `"wall_s":1.5>"wall_s":7`,
		`"ops_per_s":3,>`, `"queue_bytes":1000>"queue_bytes":1.000e3`} {
		from, to, _ := strings.Cut(change, ">")
		if !strings.Contains(other, from) {
			t.Fatal(from)
		}
		other = strings.Replace(other, from, to, 1)
	}
	if d := CompareKept(readKept(t, keptA), readKept(t, other)); !d.Equal || len(d.Points) != 1 {
		t.Errorf("%+v", d)
	}
}

func TestCompareKeptSweeps(t *testing.T) {
	sweep := func(values string, g, scale int) (text string) {
		for l := range strings.FieldsSeq(values) {
			text += fmt.Sprintf(`{"backend":"b","params":{"L_ps":%s,"g_ps":%d},"makespan_ps":%s}`+"\n", l, g,
				l+strings.Repeat("0", scale))
		}
		return text
	}
	for _, c := range []struct {
		a, b         string
		pairs, onlyA string
		onlyB        string
	}{
		{sweep("1 2 3", 5, 1), sweep("3 1 2", 5, 1), "", "", ""},
		{sweep("1 2 3", 5, 1), sweep("1 2 3", 6, 1), "L=1ps L=2ps L=3ps", "", ""},
		{sweep("1 2 3", 5, 1), sweep("2 3 4", 5, 2), "L=2ps L=3ps", "L=1ps", "L=4ps"},
		{sweep("2", 5, 1), sweep("1 2", 5, 2), "L=2ps", "", "L=1ps"},
		{sweep("1 1 2", 5, 1), sweep("1 2", 5, 1), "", "L=1ps", ""},
		{sweep("1", 5, 1), sweep("2", 5, 1), "[]", "", ""},
		{ // a failed point has no parameters
			sweep("1", 5, 1) + `{"backend":"b","params":{},"error":"x"}` + sweep("3", 5, 1),
			sweep("3", 6, 1) + `{"backend":"b","params":{},"error":"y"}` + sweep("1", 6, 1), "L=1ps [] L=3ps", "", "",
		},
	} {
		d := CompareKept(readKept(t, c.a), readKept(t, c.b))
		var pairs []string
		for _, p := range d.Points {
			pairs = append(pairs, cmp.Or(p.Point.String(), "[]"))
		}
		texts := func(points []Point) (all []string) {
			for _, p := range points {
				all = append(all, p.String())
			}
			return all
		}
		got := strings.Join(pairs, " ") + "|" + strings.Join(texts(d.OnlyA), " ") + "|" + strings.Join(texts(d.OnlyB), " ")
		if want := c.pairs + "|" + c.onlyA + "|" + c.onlyB; got != want || d.Equal != (want == "||") {
			t.Errorf("%s%sgot %s, equal %v, want %s", c.a, c.b, got, d.Equal, want)
		}
	}
}

func TestReadKeptErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "r.json:1: expected a result of simulate --json, found an empty file",
		"[]":                                    `r.json:1: expected a result of simulate --json, an object with the members "backend" and "params", found a list`,
		"\n{\"backend\":\"x\"}":                 "found one without params",
		"{}":                                    "found one without backend",
		"{\"backend\":1,\n\"params\":{}":        "r.json:2: expected JSON, found the end of the file",
		`{"backend":1,"params":{},"x":1,"x":2}`: `expected each key once, found "x" twice`,
		`{"backend":1,"params":{}} x`:           "r.json:1: expected JSON, found invalid character 'x'",
		`{"backend":1,"params":{}} ]`:           "r.json:1: expected a JSON value or the end of the file, found other text",
		`{"backend":1,"params":{},"x":1e999}`:   "expected a number in the range of float64, found 1e999",
		`{"backend":1,"params":{},"x":1e-999999}`:                        "expected a number in the range of float64, found 1e-999999",
		`{"backend":1,"params":{},"x":` + strings.Repeat("9", 401) + "}": "expected a number in the range of float64",
		strings.Repeat(`{"a":`, 20):                                      "expected at most 16 levels, found more",
		`{"backend":1,"params":{}}{"backend":1}`:                         "found one without params",
		`{"backend":1,"params":{},"x":01}`:                               "expected JSON, found",
		"\xff":                                                           "expected JSON, found invalid character",
	} {
		if _, err := ReadKept([]byte(text), "r.json"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: error %v, want %q", text, err, want)
		}
	}
}

// changesOf returns the changes of all pairs in an order that does not depend on the sides, with the sides exchanged
// if asked, and without relative changes, which depend on the sides.
func changesOf(d *KeptDifference, exchange bool) (all []Change) {
	for _, p := range d.Points {
		for _, c := range slices.Concat(p.Run, p.Results) {
			if exchange {
				c.A, c.B = c.B, c.A
			}
			c.Relative, c.unit = nil, ""
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(x, y Change) int {
		return cmp.Or(cmp.Compare(x.Metric, y.Metric), cmp.Compare(x.Item, y.Item),
			bytes.Compare(x.A, y.A), bytes.Compare(x.B, y.B))
	})
	return all
}

// checkKeptProperties checks what holds for any two files: a file equals itself, and the difference mirrors that of the
// exchanged files and can be written.
func checkKeptProperties(t *testing.T, a, b []Kept) {
	t.Helper()
	if d := CompareKept(a, a); !d.Equal || len(d.Points) > 0 {
		t.Errorf("a differs from itself: %+v", d)
	}
	d, back := CompareKept(a, b), CompareKept(b, a)
	if d.Equal != back.Equal || d.Differ != back.Differ || d.Compared != back.Compared ||
		!reflect.DeepEqual(d.OnlyA, back.OnlyB) || !reflect.DeepEqual(d.OnlyB, back.OnlyA) ||
		!reflect.DeepEqual(changesOf(d, true), changesOf(back, false)) {
		t.Errorf("a, b: %+v\nb, a: %+v", d, back)
	}
	var text bytes.Buffer
	if err := d.WriteJSON(&text, "a", "b"); err != nil || !json.Valid(text.Bytes()) {
		t.Errorf("JSON: %v\n%s", err, text.String())
	}
	text.Reset()
	if err := d.WriteCSV(&text); err != nil {
		t.Error(err)
	}
	if _, err := csv.NewReader(&text).ReadAll(); err != nil {
		t.Errorf("CSV: %v", err)
	}
	if err := d.WriteTable(io.Discard, "a", "b"); err != nil {
		t.Error(err)
	}
}

func TestKeptProperties(t *testing.T) {
	files := []string{keptA, keptB, keptA + keptB, keptB + keptA + keptA}
	for _, a := range files {
		for _, b := range files {
			checkKeptProperties(t, readKept(t, a), readKept(t, b))
		}
	}
}

// FuzzKept: any input is refused or compared with a result without a panic, and the properties hold.
func FuzzKept(f *testing.F) {
	f.Add([]byte(keptA))
	f.Add([]byte(keptB))
	f.Add([]byte(keptB + "\n" + keptA))
	f.Add([]byte(`{"backend":"b","params":[],"run":{"units":5},"finish_ps":[{"rank":1},{"rank":1}],"x":{"columns":["a","a"],"rows":[[1,2]]}}`))
	f.Add([]byte(`{"backend":"b","params":{"a":1e400}}`))
	known := readKept(f, keptA)
	f.Fuzz(func(t *testing.T, text []byte) {
		kept, err := ReadKept(text, "r.json")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "r.json:") {
				t.Errorf("error %v", err)
			}
			return
		}
		checkKeptProperties(t, kept, known)
	})
}

// TestKeptTable: the tables of single results and of points.
func TestKeptTable(t *testing.T) {
	var b bytes.Buffer
	d := CompareKept(readKept(t, keptA), readKept(t, strings.Replace(keptB, `"three"`, `"th\u001bree"`, 1)))
	if err := d.WriteTable(&b, "a.json", "b.json"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"params.L_ps     1us         2us\n", "makespan_ps   1ns                             1500.0 ps                       +50%\n",
		"finish_ps  a      b      change\n", "rank 1     900ps  1.8ns  +100%\n", `"th\x1bree"`,
		"ports  metric  a              b    change\n", "p1     bytes   5B             10B  +100%\n",
		"load          2 flits/cycle",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
