package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// result returns the document of a result with a number of ranks.
func result(title string, ranks int) []byte {
	var finish, parts []string
	for rank := range ranks {
		finish = append(finish, fmt.Sprint(7_000_000_000_000_000_000+uint64(rank)))
		parts = append(parts, fmt.Sprintf(`{"rank":%d,"compute_ps":%d,"wait_ps":7000000000000000000}`, rank, rank))
	}
	quoted, _ := json.Marshal(title)
	return fmt.Appendf(nil, `{"run":{"program":"simulate","version":"1","command":["simulate","a b"],"seed":3,`+
		`"trace":{"name":"x.goal","title":%s,"sha256":"0123456789abcdef","ranks":%d,"ops":24597},`+
		`"settings":{"L":"1us"},"warnings":["<b>"]},"backend":"packet","params":{"none":null,"on":true,`+
		`"share":0.0000437},"complete":false,"makespan_ps":%s,"finish_ps":[%s],"never_run":3,"ops":24597,`+
		`"messages":18446744073709551616,"bytes":1e3,`+
		`"stuck":[{"rank":0,"op":1,"kind":"recv","waits_for":"a message"}],"fct_ps":{"min":1,"p50":2500,"p99":3},`+
		`"flows":{"columns":["src","fct_ps"],"rows":[%s]},"ports":{"columns":["port","bytes","utilisation"],"rows":[`+
		`["a->b",5,0.25],["b->a",50,1]]},"jobs":[{"name":%s,"ranks":1,"start_ps":0,"finish_ps":9,"makespan_ps":9}],`+
		`"critical_path":{"length_ps":10,"compute_ps":6,"compute_share":0.6,"ops":2,"by_name":[{"name":%s,"steps":1,`+
		`"time_ps":6}],"by_rank":[{"rank":0,"steps":1,"time_ps":6}],"sensitivity":{"L":2}},"breakdown":[%s],`+
		`"breakdown_total":{"compute_ps":5,"wait_ps":95}}`, quoted, ranks, finish[ranks-1], strings.Join(finish, ","),
		strings.TrimSuffix(strings.Repeat("[0,1234],[1,99],", 700), ","), quoted, quoted, strings.Join(parts, ","))
}

var titles = []string{"plain", "</script><b>&amp;<!--", "\u202eabc \u05e9\u05dc\u05d5\u05dd",
	strings.Repeat("x", 10_000),
	"", " \x00\x1f\ufeff", "'\"`", "a\u00a0b"}

// TestValues checks that each number and text in a page is the value in its result to which it points.
func TestValues(t *testing.T) {
	from := regexp.MustCompile(`<(?:span|bdi) data-from="([^"]*)"[^>]*>([^<]*)<`)
	for _, title := range titles {
		for _, ranks := range []int{1, 8, 300, 2000} {
			page, document := write(t, result(title, ranks))
			start := strings.Index(page, `id="result">`) + len(`id="result">`)
			embedded := page[start : start+strings.Index(page[start:], "</script>")]
			root, err := decode([]byte(embedded))
			if err != nil {
				t.Fatalf("%q, %d ranks: %v", title, ranks, err)
			}
			whole, err := decode(document)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(page, "</script>") != 2 {
				t.Errorf("%q: %d ends of scripts", title, strings.Count(page, "</script>"))
			}
			found := from.FindAllStringSubmatch(page, -1)
			if len(found) < 60 {
				t.Errorf("%q, %d ranks: only %d values", title, ranks, len(found))
			}
			for _, m := range found {
				pointer := html.UnescapeString(m[1])
				v := resolve(root, pointer)
				if of := resolve(whole, pointer); fmt.Sprint(of) != fmt.Sprint(v) {
					t.Errorf("%s is %v in the page, %v in the result", pointer, v, of)
				}
				if text := html.UnescapeString(m[2]); !says(text, v) {
					t.Errorf("%s is %v, shown as %q", pointer, v, text)
				}
			}
		}
	}
}

func write(t *testing.T, document []byte) (page string, extended []byte) {
	t.Helper()
	r, err := Simulation(document)
	if err != nil {
		t.Fatal(err)
	}
	var out, again, whole bytes.Buffer
	if err := r.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteHTML(&again); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Errorf("two pages of a result differ: %v", err)
	}
	if err := r.WriteJSON(&whole); err != nil {
		t.Fatal(err)
	}
	return out.String(), whole.Bytes()
}

func resolve(root value, pointer string) any {
	v := root.of
	for _, name := range strings.Split(pointer, "/")[1:] {
		switch of := v.(type) {
		case map[string]any:
			v = of[name]
		case []any:
			i, _ := strconv.Atoi(name)
			v = of[i]
		}
	}
	return v
}

// says reports whether a text is a value, to the digits of the text.
func says(text string, v any) bool {
	switch of := v.(type) {
	case string:
		return text == of
	case bool:
		return text == map[bool]string{true: "yes", false: "no"}[of]
	case nil:
		return text == "–"
	}
	number, name, _ := strings.Cut(text, "\u00a0")
	x, err := strconv.ParseFloat(number, 64)
	exact, _ := strconv.ParseFloat(fmt.Sprint(v), 64)
	if err != nil {
		return false
	}
	unit := 1.0
	for _, all := range scales {
		for _, s := range all {
			if s.name == name {
				unit = s.value
			}
		}
	}
	mantissa, exponent, _ := strings.Cut(number, "e")
	decimals := 0
	if _, fraction, found := strings.Cut(mantissa, "."); found {
		decimals = len(fraction)
	}
	power, _ := strconv.Atoi(exponent)
	return math.Abs(x*unit-exact) <= 0.5000001*math.Pow10(power-decimals)*unit+math.Abs(exact)*1e-15
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		unit unit
		x    float64
		want string
	}{
		{plain, 0, "0"}, {plain, 9999, "9999"}, {plain, 24597, "24.6 k"}, {plain, 0.04369, "0.04369"},
		{plain, 1e19, "10000000000 G"},
		{time, 4051932934000, "4.052 s"}, {time, 999.96e9, "1000 ms"}, {time, 1, "1 ps"}, {time, 2e17, "200000 s"},
		{size, 4404227656, "4.404 GB"}, {rate, 4e11, "400 Gb/s"}, {percent, 0.75, "75 %"},
		{percent, 4.369e-9, "4.369e-07 %"},
		{plain, -12345, "-12.35 k"},
	} {
		if got := c.unit.format(c.x); got != strings.ReplaceAll(c.want, " ", "\u00a0") {
			t.Errorf("%v: %q, want %q", c.x, got, c.want)
		}
	}
}

func TestCut(t *testing.T) {
	long := "[" + strings.TrimSuffix(strings.Repeat("1,", 1001), ",") + "]"
	for document, want := range map[string]string{
		`{}`:                          `{}`,
		`{"a":` + long + `}`:          `{}`,
		`{"a":` + long + `,"b":1}`:    `{"b":1}`,
		`{"b" : 1, "a":` + long + `}`: `{"b":1}`,
		`{"b":{"a":` + long + `,"c":[ true , null ]},"d":"\"{["}`:     `{"b":{"c":[true,null]},"d":"\"{["}`,
		`{"a":[[1],` + long + `,{"x":{}}]}`:                           `{"a":[[1],[],{"x":{}}]}`,
		`{"a":"` + strings.Repeat("x", maxText) + `"}`:                `{"a":null}`,
		`{"o":{"` + strings.Repeat("x", maxText) + `":1},"b":-1.5e3}`: `{"b":-1.5e3}`,
	} {
		if got, _ := cut([]byte(document), 5); string(got) != want {
			t.Errorf("%.60s: %s, want %s", document, got, want)
		}
	}
	got, omitted := cut([]byte(`{"a":`+long+`,"b":{"a":`+long+`,"c":1}}`), 1001)
	if len(omitted) > 0 || len(got) < 4000 {
		t.Errorf("a list with an entry per rank: %v omitted", omitted)
	}
	text := `"` + strings.Repeat("y", maxText-10) + `",`
	got, _ = cut([]byte(`{"a":[`+strings.Repeat(text, 400)+`1],"b":1}`), 5)
	if string(got) != `{"b":1}` {
		t.Errorf("a list of long texts: %d bytes", len(got))
	}
}

// TestSweep checks the page of a sweep with more points than it has room for.
func TestSweep(t *testing.T) {
	var s Sweep
	for i := range listed + 5 {
		point := fmt.Sprintf(`{"run":{"program":"simulate","factors":{"L":"%dus","</script>":"a"},"seed":1},`+
			`"backend":"packet","makespan_ps":%d,"finish_ps":[1,2],"fct_ps":{"p99":%d}}`, i%7, 1000+i, i)
		if i == 3 {
			point = `{"run":{"factors":{"L":"3us"}},"backend":"packet","error":"<no>"}`
		}
		if err := s.Add([]byte(point)); err != nil {
			t.Fatal(err)
		}
	}
	r, err := s.Report()
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`data-from="/report/points">1005<`, `data-from="/report/shown">1000<`,
		`data-from="/report/failed">1<`, "Point 4 failed: ", "&lt;no&gt;",
		`data-from="/points/999/makespan_ps" title="1999 ps"`} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Count(page.String(), "</script>") != 2 || strings.Contains(page.String(), "finish_ps") {
		t.Error("unescaped text or lists of points")
	}
}

// FuzzSimulation checks that every document gives a page of bounded size, with a valid document in it.
func FuzzSimulation(f *testing.F) {
	for _, title := range titles {
		f.Add(result(title, 3))
	}
	f.Add([]byte(`{"finish_ps":[1e400,"x"],"breakdown_total":{"wait_ps":1},"ports":{"columns":["use"],"rows":[1,[]]}}`))
	f.Add([]byte(`{"jobs":[1],"stuck":{},"critical_path":{"length_ps":1e-9,"by_name":[{}]},"fct_ps":[]}`))
	f.Add([]byte("{}0"))
	f.Add([]byte(`{"matrix":{"bytes":[[1,2],[0]],"largest":[{}]},"report":{"ranks":[]}}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		for _, read := range []func([]byte) (*Report, error){Simulation, Trace} {
			r, err := read(bytes.Clone(document))
			if err != nil {
				return
			}
			var page bytes.Buffer
			if err := r.WriteHTML(&page); err != nil {
				t.Fatal(err)
			}
			if !json.Valid(r.page) {
				t.Fatalf("invalid JSON in the page: %s", r.page)
			}
			if n := strings.Count(page.String(), "</script>"); n != 2 {
				t.Fatalf("%d ends of scripts", n)
			}
		}
	})
}

// TestSections checks that each section has a link to its anchor in the documentation, and that the anchor exists.
func TestSections(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/report.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	begins := regexp.MustCompile(`\.section\("([^"]+)", "([^"]+)"`)
	sections := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range begins.FindAllStringSubmatch(string(source), -1) {
			sections++
			anchors := strings.Count(string(text), `<a id="`+m[1]+`"></a>`)
			if strings.Contains(string(text), "\n## "+m[2]+"\n") && m[1] == strings.ToLower(m[2]) {
				anchors++
			}
			if anchors != 1 {
				t.Errorf("%s: section %s: %d anchors in docs/reference/report.md, want 1", file, m[1], anchors)
			}
		}
	}
	if sections < 20 {
		t.Errorf("%d sections", sections)
	}
	page, _ := write(t, result("x", 8))
	links := strings.Count(page, `<a class="manual" href="https://github.com/tracedag/tracedag/blob/main/docs/`+
		"reference/report.md#")
	if n := strings.Count(page, "<section "); links != n || n < 5 {
		t.Errorf("%d links of %d sections", links, n)
	}
}

// TestMatrixCells checks that the script finds the values of the matrix, and that their places are those of the figure.
func TestMatrixCells(t *testing.T) {
	from := regexp.MustCompile(`<rect class="axisline" x="200" y="40" width="560" height="560" style="fill:none" ` +
		`data-cells="([^"]*)" data-rows="(\d+)" data-edge="(\d+)"/>`)
	for _, c := range []struct{ matrix, rows, edge string }{
		{`{"ranks_per_row":1,"pairs":1,"bytes":[[0,5],[0,0]]}`, "2", "1"},
		{`{"ranks_per_row":4,"pairs":1,"bytes":[[0,5,0],[0,0,0],[0,0,0]]}`, "3", "4"},
		{`{"pairs":1,"bytes":[[5]]}`, "1", "1"},
	} {
		page, _ := write(t, []byte(`{"finish_ps":[1],"matrix":`+c.matrix+`}`))
		m := from.FindStringSubmatch(page)
		if m == nil || m[1] != "/matrix/bytes" || m[2] != c.rows || m[3] != c.edge {
			t.Errorf("%s: %q", c.matrix, m)
		}
	}
}
