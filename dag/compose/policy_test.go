package compose

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParsePlacement(t *testing.T) {
	for text, want := range map[string]Placement{
		"packed":      {},
		"linear":      {},
		"roundrobin":  {Policy: RoundRobin},
		"round-robin": {Policy: RoundRobin},
		"round_robin": {Policy: RoundRobin},
		"rr":          {Policy: RoundRobin},
		"nodes":       {Policy: OwnNodes},
		"random":      {Policy: Random},
		"random:-7":   {Policy: Random, Seed: -7, Seeded: true},
		"strided:3":   {Policy: Strided, Stride: 3},
		"file:a:b":    {Policy: Given, File: "a:b"},
	} {
		if got, err := ParsePlacement(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, error %v, expected %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":          `expected one of packed, roundrobin, strided:N, random, random:SEED, nodes, file:PATH, found ""`,
		"custom":    `nodes, file:PATH, found "custom"`,
		"file:":     `nodes, file:PATH, found "file:"`,
		"packed:1":  `nodes, file:PATH, found "packed:1"`,
		"random:x":  `expected random:SEED, where SEED is a whole number, found "random:x"`,
		"strided:0": `strided: expected a whole number from 1, found "0"`,
		"strided":   `strided:N, random, random:SEED`,
	} {
		if got, err := ParsePlacement(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, error %v, expected %q", text, got, err, want)
		}
	}
}

func TestReadNodes(t *testing.T) {
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
		got, err := readNodes(strings.NewReader(c.content), "nodes", c.nodes)
		if c.err == "" && err == nil && slices.Equal(got, c.want) || err != nil && err.Error() == "nodes"+c.err {
			continue
		}
		t.Errorf("%.20q: %v, error %v, expected %v, %q", c.content, got, err, c.want, c.err)
	}
}

// FuzzReadNodes checks that reading any content gives one node per line, in range.
func FuzzReadNodes(f *testing.F) {
	for _, seed := range []string{"", "0\n1\n2\n", "7", "1\r\n2", "\n", "x", "-1", "99999999999999999999", "+1", "0x1"} {
		f.Add(seed, 8)
	}
	f.Fuzz(func(t *testing.T, content string, nodes int) {
		if nodes < 0 || nodes > math.MaxInt32 {
			return
		}
		got, err := readNodes(strings.NewReader(content), "nodes", nodes)
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
