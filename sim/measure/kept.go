package measure

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/memory"
)

// Kept is a result that was written as JSON and kept. It is a tree of values; only [CompareKept] interprets it, without
// a list of the sections that backends have.
type Kept struct {
	root conf.Node
}

// keptValue is the least memory of a value of a kept result in bytes.
const keptValue = 80

// LoadKept reads a file of results within the limit of memory; see [ReadKept]. It returns its text, too.
func LoadKept(ctx context.Context, r io.Reader, name string) ([]Kept, []byte, error) {
	text, err := memory.ReadContent(ctx, r)
	if err == nil {
		values := bytes.Count(text, []byte(",")) + bytes.Count(text, []byte("[")) + bytes.Count(text, []byte("{"))
		err = memory.Check(ctx, "values", keptValue, int64(values))
	}
	if err != nil {
		return nil, nil, err
	}
	kept, err := ReadKept(text, name)
	return kept, text, err
}

// ReadKept reads results: one JSON object, or several, such as the lines of a sweep. It refuses other JSON, keys that
// appear twice in a mapping and numbers out of the range of float64, and accepts members that it does not know. Errors
// contain name and line.
func ReadKept(text []byte, name string) ([]Kept, error) {
	nodes, err := conf.ReadJSON(text, name)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, &conf.Error{
			File: name, Line: 1, Expected: "a result of simulate --json", Found: "an empty file",
		}
	}
	kept := make([]Kept, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		const expected = `a result of simulate --json, an object with the members "backend" and "params"`
		if n.Kind != conf.Map {
			return nil, &conf.Error{File: name, Line: n.Line, Expected: expected, Found: n.Found()}
		}
		for _, key := range [...]string{"backend", "params"} {
			if !n.Has(key) {
				return nil, &conf.Error{File: name, Line: n.Line, Expected: expected, Found: "one without " + key}
			}
		}
		if err := checkKept(n, name); err != nil {
			return nil, err
		}
		kept[i].root = *n
	}
	return kept, nil
}

// checkKept checks the keys and numbers of a value.
func checkKept(n *conf.Node, name string) error {
	switch n.Kind {
	case conf.Number:
		if !inRange(n.Text) {
			return &conf.Error{File: name, Line: n.Line, Expected: "a number in the range of float64", Found: n.Found()}
		}
	case conf.List:
		for i := range n.List {
			if err := checkKept(&n.List[i], name); err != nil {
				return err
			}
		}
	case conf.Map:
		keys := make([]string, len(n.Members))
		for i := range n.Members {
			if err := checkKept(&n.Members[i].Value, name); err != nil {
				return err
			}
			keys[i] = n.Members[i].Key
		}
		slices.Sort(keys)
		for i := 1; i < len(keys); i++ {
			if keys[i] == keys[i-1] {
				return &conf.Error{
					File: name, Line: n.Line, Expected: "each key once",
					Found: fmt.Sprintf("%.60q twice", keys[i]),
				}
			}
		}
	}
	return nil
}

// inRange reports whether a number is cheap to compute with: its text is short, and it is in the range of float64.
func inRange(text string) bool {
	const longest, largest = 400, 400 // characters, and power of ten
	if len(text) > longest {
		return false
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		power, err := strconv.Atoi(text[at+1:])
		if err != nil || power > largest || power < -largest {
			return false
		}
	}
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// member returns the value of a key, nil if there is none.
func member(n *conf.Node, key string) *conf.Node {
	if n == nil || n.Kind != conf.Map {
		return nil
	}
	for i := range n.Members {
		if n.Members[i].Key == key {
			return &n.Members[i].Value
		}
	}
	return nil
}
