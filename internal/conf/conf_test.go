package conf

import (
	"reflect"
	"strings"
	"testing"
)

// text formats a node without lines.
func text(n *Node) string {
	switch n.Kind {
	case List:
		var parts []string
		for i := range n.List {
			parts = append(parts, text(&n.List[i]))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case Map:
		var parts []string
		for i := range n.Members {
			parts = append(parts, n.Members[i].Key+":"+text(&n.Members[i].Value))
		}
		return "{" + strings.Join(parts, " ") + "}"
	case Text:
		return "'" + n.Text + "'"
	case Null:
		return "null"
	case Other:
		return "<" + n.Text + ">"
	}
	return n.Text
}

func TestRead(t *testing.T) {
	for from, want := range map[string]string{
		"":                                   "null",
		"\ufeffa: 1\nb: [x, 'y', 1.50, ~]":   "{a:1 b:['x' 'y' 1.50 null]}",
		"a:\n- b: true\n  c: |\n    d\n- {}": "{a:[{b:true c:'d\n'} {}]}",
		" {\"a\": [1, \"x\", null, false]}":  "{a:[1 'x' null false]}",
		"a: 1\na: 2":                         "",
		`{"a": 1, "a": 2}`:                   "{a:1 a:2}",
		"a":                                  "'a'",
	} {
		n, err := Read([]byte(from), "f")
		if (err != nil) != (want == "") || err == nil && text(&n) != want {
			t.Errorf("%q: %s, %v; want %s", from, text(&n), err, want)
		}
	}
}

func TestReadLines(t *testing.T) {
	for _, from := range []string{"\na: 1\nb:\n- c\n- d\n", "{\n\"a\": 1,\n\"b\": [\n\"c\",\n\"d\"]}"} {
		n, err := Read([]byte(from), "f")
		if err != nil {
			t.Fatal(err)
		}
		b := n.Members[1]
		got := []int64{n.Members[0].Line, n.Members[0].Value.Line, b.Line, b.Value.List[0].Line, b.Value.List[1].Line}
		if want := []int64{2, 2, 3, 4, 5}; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: lines %v, want %v", from, got, want)
		}
	}
}

func TestReadErrors(t *testing.T) {
	for from, want := range map[string]string{
		"a: b\n--- \nc: d":                     "f:3: expected one document, found a second",
		"a: &x 1\nb: 2":                        "f:1: expected a plain value, a list or a mapping, found anchor",
		"a: 1\nb: *x":                          "f:2: expected a plain value, a list or a mapping, found alias",
		"a: .inf":                              "f:1: expected a plain value, a list or a mapping, found inf",
		"a: 1\n2: b":                           "f:1: expected a key that is a word, found int",
		"a: [1":                                "f:1: ",
		strings.Repeat("a", 4097):              "f: expected lines of at most 4096 bytes, found one of 4097: those of JSON may be longer",
		strings.Repeat("a\n", MaxYAMLSize):     "f: expected at most 131072 bytes of YAML, found 262144: JSON may be larger",
		strings.Repeat("[\n", 1001):            "f: expected at most 1000 opening brackets, found 1001: JSON may have more",
		strings.Repeat("- ", 17) + "a":         "f:1: expected at most 16 levels, found more",
		`{"a":` + strings.Repeat(`{"a":`, 100): "f:1: expected at most 16 levels, found more",
		"{\n\"a\":\n":                          "f:2: expected JSON, found the end of the file",
		"{\n\"a\" 1}":                          "f:2: expected JSON, found invalid character",
		"{}\n}":                                "f:",
		"{}\n{}":                               "f:2: expected the end of the file, found more",
	} {
		if _, err := Read([]byte(from), "f"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", from, err, want)
		}
	}
}

func TestReadLoose(t *testing.T) {
	for from, want := range map[string]string{
		"":                              "null",
		"---\n":                         "null",
		"a: b\n---\nc: d":               "{a:'b'}",
		"1: a\n2.5: b\ntrue: c":         "{1:'a' 2.5:'b' true:'c'}",
		"a: &x [1, 2]\nb: *x":           "{a:[1 2] b:[1 2]}",
		"a: &x [*x]\nb: *x":             "{a:[[]] b:[[]]}",
		"a: *x\nb: &x 1":                "{a:<alias> b:1}",
		"a: .inf\nb: [.nan]":            "{a:<inf> b:[<nan>]}",
		"a: &x 1\nb: &x 2\nc: [*x, *x]": "{a:1 b:2 c:[2 2]}",
	} {
		n, err := ReadLoose([]byte(from), "f")
		if err != nil || text(&n) != want {
			t.Errorf("%q: %s, %v; want %s", from, text(&n), err, want)
		}
	}
	for from, want := range map[string]string{
		"null: b":                      "f:1: expected a key, found null",
		strings.Repeat("a", 4097):      "f: expected lines of at most 4096 bytes, found one of 4097",
		strings.Repeat("- ", 17) + "a": "f:1: expected at most 16 levels, found more",
	} {
		if _, err := ReadLoose([]byte(from), "f"); err == nil || err.Error() != want {
			t.Errorf("%.40q: %v, want %s", from, err, want)
		}
	}
}

// FuzzRead checks that reading any text returns, with an error that names the file or a tree of limited depth.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"a: [b, {c: 1}]", `{"a": [1, null]}`, "a: &x [*x]\nb: *x", "? [a]\n: b", "<<: {a: 1}",
		"a: !!str 1\n--- b\n", "a: |\n  x", "- -", "\ufeff{"} {
		f.Add(seed)
	}
	var depth func(n *Node) int
	depth = func(n *Node) int {
		most := 0
		for i := range n.List {
			most = max(most, depth(&n.List[i])+1)
		}
		for i := range n.Members {
			most = max(most, depth(&n.Members[i].Value)+1)
		}
		return most
	}
	f.Fuzz(func(t *testing.T, from string) {
		n, err := Read([]byte(from), "f")
		if err == nil && depth(&n) > maxDepth {
			t.Errorf("%d levels", depth(&n))
		}
		_, looseErr := ReadLoose([]byte(from), "f")
		for _, err := range []error{err, looseErr} {
			if err != nil && !strings.HasPrefix(err.Error(), "f:") {
				t.Error(err)
			}
		}
	})
}
