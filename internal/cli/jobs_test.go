package cli

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestParseJobInput(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"x", "x@5ms", "a@b"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]jobInput{
		"x":                     {"x", 0},
		"x@7ms":                 {"x", 7 * dag.Millisecond},
		"x@0":                   {"x", 0},
		"x@5ms":                 {"x@5ms", 0},
		"x@5ms@0":               {"x@5ms", 0},
		"a@b@1.5us":             {"a@b", 1500 * dag.Nanosecond},
		"a@b":                   {"a@b", 0},
		"-@2s":                  {"-", 2 * dag.Second},
		"absent":                {"absent", 0},
		"x@9223372.036854775ms": {"x", 9223372036854775},
	} {
		if got, err := parseJobInput("--trace", text); err != nil || got != want {
			t.Errorf("%s: %+v, error %v, expected %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"x@5", "x@", "x@-1ms", "x@1ps@", "x@0.5ps", "x@107000000s"} {
		got, err := parseJobInput("--trace", text)
		if err == nil || !strings.Contains(err.Error(), "--trace "+text+": no such file, nor a file and a start: time") {
			t.Errorf("%s: %+v, error %v", text, got, err)
		}
	}
}

func TestParseNodes(t *testing.T) {
	for _, c := range []struct {
		content string
		nodes   int
		want    []int32
		err     string // after the name
	}{
		{content: "", want: []int32{}},
		{content: "0\n2147483647\n 7 \r\n3", want: []int32{0, math.MaxInt32, 7, 3}},
		{content: "1\n2\n", nodes: 3, want: []int32{1, 2}},
		{content: "1\n3\n", nodes: 3, err: `:2: expected the number of a node, 0..2, found "3"`},
		{content: "1\n2147483648\n", err: `:2: expected the number of a node, 0..2147483647, found "2147483648"`},
		{content: "-1\n", err: `:1: expected the number of a node, 0..2147483647, found "-1"`},
		{content: "1\n\n2\n", err: `:2: expected the number of a node, 0..2147483647, found ""`},
		{content: "1 2\n", err: `:1: expected the number of a node, 0..2147483647, found "1 2"`},
		{content: "1\n" + strings.Repeat("x", 1000), err: `:2: expected the number of a node, 0..2147483647, found "` +
			strings.Repeat("x", 40) + `"`},
		{content: "1\n" + strings.Repeat("0", 1<<17), err: ":2: expected the number of a node, 0..2147483647, found " +
			"a very long line"},
	} {
		got, err := parseNodes(strings.NewReader(c.content), "nodes", c.nodes)
		if c.err == "" && err == nil && slices.Equal(got, c.want) || err != nil && err.Error() == "nodes"+c.err {
			continue
		}
		t.Errorf("%.20q: %v, error %v, expected %v, %q", c.content, got, err, c.want, c.err)
	}
}

// FuzzParseNodes checks that what is read of any content is one node a line, in range.
func FuzzParseNodes(f *testing.F) {
	for _, seed := range []string{"", "0\n1\n2\n", "7", "1\r\n2", "\n", "x", "-1", "99999999999999999999", "+1", "0x1"} {
		f.Add(seed, 8)
	}
	f.Fuzz(func(t *testing.T, content string, nodes int) {
		if nodes < 0 || nodes > math.MaxInt32 {
			return
		}
		got, err := parseNodes(strings.NewReader(content), "nodes", nodes)
		if err != nil {
			if got != nil || !strings.HasPrefix(err.Error(), "nodes:") {
				t.Errorf("%v, error %v", got, err)
			}
			return
		}
		lines := strings.Count(content, "\n")
		if len(content) > 0 && !strings.HasSuffix(content, "\n") {
			lines++
		}
		if len(got) != lines {
			t.Errorf("%d nodes of %d lines", len(got), lines)
		}
		for _, node := range got {
			if node < 0 || nodes > 0 && int(node) >= nodes {
				t.Errorf("node %d of %d", node, nodes)
			}
		}
	})
}
