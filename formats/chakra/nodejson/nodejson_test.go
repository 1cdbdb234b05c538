package nodejson

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
)

// record is a File that records its input.
type record struct {
	lines []string
}

func (r *record) Member(line int64, name string, value json.RawMessage) error {
	r.lines = append(r.lines, fmt.Sprintf("%d %s %s", line, name, value))
	return nil
}

func (r *record) Node(line int64, value json.RawMessage) error {
	if string(value) == `"bad"` {
		return Fail("f", line, "a node", Show(value))
	}
	r.lines = append(r.lines, fmt.Sprintf("%d %s", line, value))
	return nil
}

func TestRead(t *testing.T) {
	text := "\n{ \"a\":\n 1, \"list\": [1\n,\n 2, {\"x\":\n3},\n\n[] ], \"b\" : {}\n}\n"
	want := []string{"3 a 1", "3 1", "5 2", "5 {\"x\":\n3}", "8 []", "8 b {}"}
	for name, src := range map[string]io.Reader{
		"at once":    strings.NewReader(text),
		"in bytes":   iotest.OneByteReader(strings.NewReader(text)),
		"with error": iotest.DataErrReader(strings.NewReader(text)),
	} {
		r := &record{}
		if err := Read(context.Background(), &format.Input{Name: "f", Reader: src}, "list", r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(r.lines, want) {
			t.Errorf("%s: got %q, want %q", name, r.lines, want)
		}
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "f:1: expected more JSON, found the end of the file",
		"\n":                          "f:2: expected more JSON, found the end of the file",
		"[]":                          `f:1: expected an object, found "["`,
		"{":                           "f:1: expected more JSON, found the end of the file",
		"{}":                          "f:1: expected a list called list, found the end of the object",
		"{\n\"list\":{}}":             `f:2: expected list to be a list, found "{"`,
		"{\"list\":[]}\n{}":           "f:2: expected the end of the file, found more data after the object",
		"{\"list\":[],\n\"list\":[]}": "f:2: expected one list called list, found another",
		"{\"list\":[1,\n\"bad\"]}":    `f:2: expected a node, found "bad"`,
		"{\"list\":[1,\n2":            "f:2: expected more JSON, found the end of the file",
		"{\"list\":[1,\n2}}":          "f:2: expected JSON, found invalid character '}' after array element",
		"{\"list\":[1,\nx]}":          "f:1: expected JSON, found invalid character 'x' looking for beginning of value",
		"{\"a\":" + strings.Repeat("[", 20000) + "}": "f:1: expected JSON, found invalid character '[' exceeded max depth",
		"{\"list\":" + strings.Repeat("[", 1<<20):    "f:1: expected JSON, found invalid character '[' exceeded max depth",
	} {
		err := Read(context.Background(), &format.Input{Name: "f", Reader: strings.NewReader(text)}, "list", &record{})
		var syntax *format.SyntaxError
		if !errors.As(err, &syntax) || err.Error() != want {
			t.Errorf("%.40q: got %v, want %s", text, err, want)
		}
	}
	broken := errors.New("broken")
	err := Read(context.Background(), &format.Input{Name: "f", Reader: iotest.ErrReader(broken)}, "list", &record{})
	if !errors.Is(err, broken) || err.Error() != "f: reading: broken" {
		t.Errorf("a broken reader: %v", err)
	}
}

func TestValues(t *testing.T) {
	for text, want := range map[string]struct {
		n       int64
		isInt   bool
		u       uint64
		isUint  bool
		s       string
		isValue bool
	}{
		"0":                    {0, true, 0, true, "", false},
		"-1":                   {-1, true, 0, false, "", false},
		"18446744073709551615": {0, false, 1<<64 - 1, true, "", false},
		"1.0":                  {0, false, 0, false, "", false},
		`"1"`:                  {0, false, 0, false, "1", true},
		`""`:                   {0, false, 0, false, "", true},
		"null":                 {0, false, 0, false, "", false},
		"":                     {0, false, 0, false, "", false},
	} {
		value := json.RawMessage(text)
		if n, ok := Int(value); ok != want.isInt || ok && n != want.n {
			t.Errorf("Int(%s) = %d, %v", text, n, ok)
		}
		if u, ok := Uint(value); ok != want.isUint || ok && u != want.u {
			t.Errorf("Uint(%s) = %d, %v", text, u, ok)
		}
		if s, ok := String(value); ok != want.isValue || s != want.s {
			t.Errorf("String(%s) = %q, %v", text, s, ok)
		}
	}
}

func TestFiles(t *testing.T) {
	folder := []string{"a.2.json", "a.0.json", "a.1.json.gz", "a.0.et", "a.json", "a-0.json", "rank_0.json", "b.0.json", "b.2.json"}
	for name, want := range map[string][]string{
		"a.0.json":    {"a.0.json", "a.1.json.gz", "a.2.json"},
		"rank_0.json": {"rank_0.json"},
		"a.2.json":    {"a.2.json"},
		"a.json":      {"a.json"},
		"x":           {"x"},
	} {
		got, err := Files(name, folder)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Files(%q) = %q, %v, want %q", name, got, err, want)
		}
	}
	if got, err := Files("b.0.json", folder); err == nil || !slices.Equal(got, []string{"b.0.json"}) {
		t.Errorf("one of two files that are not all: %q, %v", got, err)
	}
	if got, err := Files("", folder); err == nil {
		t.Errorf("a folder with several traces: %q", got)
	}
	if got, err := Files("", []string{"x.txt", "r-1.json", "r-0.json"}); err != nil ||
		!slices.Equal(got, []string{"r-0.json", "r-1.json"}) {
		t.Errorf("a folder: %q, %v", got, err)
	}
	if got, err := Files("", []string{"x.txt"}); err != nil || len(got) > 0 {
		t.Errorf("a folder without a trace: %q, %v", got, err)
	}
}

func TestByRank(t *testing.T) {
	for names, want := range map[string]string{
		"a.1.json a.0.json":          "a.0.json a.1.json",
		"d/anything":                 "d/anything",
		"d/a.7.json":                 "d/a.7.json",
		"a.1.json a.2.json":          "a.2.json: expected files of the ranks 0..1, found rank 2",
		"a.0.json b_0.json":          "b_0.json: expected one file of rank 0, found also a.0.json",
		"a.0.json a.json":            "a.json: expected a file name with a rank number, as in trace.0.json",
		"a.0.json a.9876543210.json": "a.9876543210.json: expected a file name with a rank number, as in trace.0.json",
	} {
		var inputs []*format.Input
		for _, name := range strings.Fields(names) {
			inputs = append(inputs, &format.Input{Name: name})
		}
		sorted, err := byRank(inputs)
		var got []string
		for _, in := range sorted {
			got = append(got, in.Name)
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", names, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{`{"list":[1,{"a":null}],"b":2}`, "{\n\"list\" : [\n] }", `{"list":[`, `[`, `{"a":"b"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := &record{}
		err := Read(context.Background(), &format.Input{Name: "f", Reader: strings.NewReader(text)}, "list", r)
		if err == nil && !json.Valid([]byte(text)) {
			t.Errorf("%q was read", text)
		}
		for _, l := range r.lines {
			line := 0
			if _, err := fmt.Sscan(l, &line); err != nil || line < 1 || line > 1+strings.Count(text, "\n") {
				t.Errorf("%q: line in %q", text, l)
			}
		}
	})
}

// TestLimit checks that a member, a node or space that takes a sixteenth of the limit of memory is refused before it is
// read whole, and that files of any size with small nodes are not.
func TestLimit(t *testing.T) {
	const limit = 1 << 20
	ctx := memory.WithLimit(context.Background(), limit)
	small := strings.Repeat("[1, 2],\n", 2*limit/8) + "[]"
	large := strings.Repeat("a", 4<<20)
	for _, c := range []struct{ text, want string }{
		{`{"list": [` + small + `]}`, ""},
		{`{"list": ["` + large[:limit/64] + `"], "x": "` + large[:limit/64] + `"}`, ""},
		{"{\n" + `"x": "` + large + `"}`, "f: line 2: values of more than 64KiB need more memory than the limit of 1MiB"},
		{"{\n\n" + `"list": [1, "` + large + `"]}`, "f: line 3: values of more than 64KiB need more memory"},
		{"{" + strings.Repeat(" ", len(large)) + "}", "f: line 1: values of more than 64KiB need more memory"},
		{`{"list": ` + strings.Repeat("[", len(large)), "f:1: expected JSON, found"},
	} {
		src := &counted{Reader: strings.NewReader(c.text)}
		err := Read(ctx, &format.Input{Name: "f", Reader: src}, "list", &record{})
		if (c.want == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%.40q of %d bytes: %v, want %q", c.text, len(c.text), err, c.want)
		}
		if c.want != "" && src.n > limit/4 {
			t.Errorf("%.40q: read %d bytes", c.text, src.n)
		}
	}
}

// counted counts the bytes that are read.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += n
	return n, err
}
