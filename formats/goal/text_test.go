package goal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// oneBlock returns a schedule of one rank with these lines.
func oneBlock(lines ...string) string {
	return "num_ranks 1\nrank 0 {\n" + strings.Join(lines, "\n") + "\n}\n"
}

func TestTextErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "f:1: expected num_ranks, found end of file"},
		{"junk", "{}",
			`f:1: expected "num_ranks", "rank", "calc", "send", "recv", a label, "}" or a comment, found "{"`},
		{"bad utf8", oneBlock("\xff"), `f:3: expected "num_ranks", "rank", "calc", "send", "recv", a label, "}" or a ` +
			`comment, found "\xff"`},
		{"true line", oneBlock("calc 1\r", "", "/* a", "b */calc 1", "// c", "calc x"),
			`f:8: expected the nanoseconds of a calc, found "x"`},
		{"no colon", oneBlock("l1 calc 5"), `f:3: expected ":", "requires" or "irequires" after a label, found "calc"`},
		{"no op", oneBlock("l1: foo"), `f:3: expected "calc", "send" or "recv", found "foo"`},
		{"no unit", oneBlock("send 5 to 0"), `f:3: expected "b" (bytes), found "to"`},
		{"to", oneBlock("send 5b from 0"), `f:3: expected "to", found "from"`},
		{"from", oneBlock("recv 5b to 0"), `f:3: expected "from", found "to"`},
		{"send to any", oneBlock("send 5b to -1"), `f:3: expected a rank, found "-"`},
		{"source", oneBlock("recv 5b from -2"), `f:3: expected a rank or -1, found "-"`},
		{"attributes", oneBlock("send 5b to 0 cpu 1 tag 2"), `f:3: expected "nic" or end of line, found "tag"`},
		{"calc attributes", oneBlock("calc 5 nic 1"), `f:3: expected "cpu" or end of line, found "nic"`},
		{"number missing", oneBlock("calc"), "f:3: expected the nanoseconds of a calc, found end of line"},
		{"undefined", oneBlock("a: calc 1", "a requires bee"),
			`f:4: expected a label that an earlier line of the block defines, found the undefined label "bee"`},
		{"undefined left", oneBlock("a: calc 1", "bee irequires a"),
			`f:4: expected a label that an earlier line of the block defines, found the undefined label "bee"`},
		{"label of another block", "num_ranks 2\nrank 0 {\nl1: calc 5\n}\nrank 1 {\nl2: calc 6\nl2 requires l1\n}\n",
			`f:7: expected a label that an earlier line of the block defines, found the undefined label "l1"`},
		{"blank in the middle", "num_ranks 1\nrank 0 { l1: calc 5\n}\n", "f:2: expected end of line " +
			`(a statement begins in the first column of its line), found "l1"`},
		{"brace below", "num_ranks 1\nrank 0\n{\n}\n", `f:2: expected "{" on the same line, found end of line`},
		{"order", "num_ranks 2\nrank 1 {\n}\n",
			"f:2: expected the block of rank 0 (all ranks in order, each once), found the block of rank 1"},
		{"twice", "num_ranks 2\nrank 0 {\n}\nrank 0 {\n}\n",
			"f:4: expected the block of rank 1 (all ranks in order, each once), found the block of rank 0"},
		{"nested", "num_ranks 2\nrank 0 {\nrank 1 {\n}\n}\n",
			`f:3: expected "}" to close the block of rank 0, found the block of rank 1`},
		{"stray", "num_ranks 1\n}\n", `f:2: expected an open block to close, found "}"`},
		{"ranks unknown", "rank 0 {\n}\n",
			"f:2: expected num_ranks, at least 1, before the first block ends, found none"},
		{"ranks change", "num_ranks 3\nrank 0 {\n}\nnum_ranks 1\n",
			"f:4: expected num_ranks 3, as before the first block, found 1"},
		{"blocks missing", "num_ranks 3\nrank 0 {\n}\n\n",
			"f:5: expected the blocks of ranks 1 to 2, found end of file"},
		{"block open", "num_ranks 3\nrank 0 {\n", `f:3: expected "}", found end of file`},
		{"comment open", oneBlock("/* calc 5"), `f:5: expected "*/" to end the comment of line 3, found end of file`},
		{"cut in a line", "num_ranks 1\nrank 0 {\nsend 5b to", "f:3: expected a rank, found end of line"},
		{"cpu range", oneBlock("calc 5 cpu 2147483648"), "f:3: expected a cpu in 0..2147483647, found 2147483648"},
		{"nic range", oneBlock("recv 5b from 0 nic 999999999999999999999999999999999999999999"),
			"f:3: expected a nic in 0..2147483647, found 9999999999999999999999999999999999999999..."},
		{"calc range", oneBlock("calc 9223372036854776"),
			"f:3: expected the nanoseconds of a calc in 0..9223372036854775, found 9223372036854776"},
		{"size range", oneBlock("send 9223372036854775808b to 0"),
			"f:3: expected a size in bytes in 0..9223372036854775807, found 9223372036854775808"},
		{"tag range", oneBlock("send 5b to 0 tag 4294967296"),
			"f:3: expected a tag or -1 in 0..4294967295, found 4294967296"},
		{"target range", oneBlock("send 5b to 4294967295"), "f:3: expected a rank in 0..2147483647, found 4294967295"},
		{"source range", oneBlock("recv 5b from 4294967294"),
			"f:3: expected a rank or -1 in 0..2147483647, found 4294967294"},
		{"ranks range", "num_ranks 4294967296", "f:1: expected the number of ranks in 0..4294967295, found 4294967296"},
		{"rank range", "num_ranks 1\nrank 4294967296 {\n}", "f:2: expected a rank in 0..4294967295, found 4294967296"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Text.Read(stream("f", []byte(c.text)), options(false))
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if !errors.As(err, new(*format.SyntaxError)) {
				t.Errorf("the error is a %T", err)
			}
		})
	}
}

// TestNumbers checks what each number becomes, and which need compat mode to be cut as the reference cuts them.
func TestNumbers(t *testing.T) {
	op := func(text string, compat bool) (dag.Op, error) {
		trace, err := Text.Read(stream("f", []byte(oneBlock(text))), options(compat))
		if err != nil {
			return dag.Op{}, err
		}
		return trace.Ranks[0].Op(0), nil
	}
	const either, compatOnly, never = 0, 1, 2
	for _, c := range []struct {
		text    string
		allowed int
		want    dag.Op
	}{
		{"calc 9223372036854775", either, dag.Op{Duration: 9223372036854775000}},
		{"calc 9223372036854776", never, dag.Op{}},
		{"calc 000000000000000000000000000000007", either, dag.Op{Duration: 7000}},
		{"calc 18446744073709551617", compatOnly, dag.Op{Duration: 1000}},
		{"calc 18446744073709551615", never, dag.Op{}},
		{"calc 1 cpu 255", either, dag.Op{Duration: 1000, Stream: 255}},
		{"calc 1 cpu 2147483904", compatOnly, dag.Op{Duration: 1000}},
		{"send 9223372036854775807b to 1", either, dag.Op{Kind: dag.Send, Bytes: 9223372036854775807, Peer: 1}},
		{"send 9223372036854775808b to 1", never, dag.Op{}},
		{"send 18446744073709551618b to 1", compatOnly, dag.Op{Kind: dag.Send, Bytes: 2, Peer: 1}},
		{"send 1b to 2147483647 nic 255", either, dag.Op{Kind: dag.Send, Bytes: 1, Peer: 2147483647, NIC: 255}},
		{"send 1b to 2147483648 nic 1", compatOnly, dag.Op{Kind: dag.Send, Bytes: 1, Peer: -2147483648, NIC: 1}},
		{"send 1b to 4294967295", compatOnly, dag.Op{Kind: dag.Send, Bytes: 1, Peer: -1}},
		{"send 1b to 4294967299", compatOnly, dag.Op{Kind: dag.Send, Bytes: 1, Peer: 3}},
		{"send 1b to 0 nic 4294967295", compatOnly, dag.Op{Kind: dag.Send, Bytes: 1, NIC: 255}},
		{"recv 1b from -1 tag -1", either, dag.Op{Kind: dag.Recv, Bytes: 1, Peer: dag.AnySource, Tag: dag.AnyTag}},
		{"recv 1b from 4294967295 tag 4294967295", either,
			dag.Op{Kind: dag.Recv, Bytes: 1, Peer: dag.AnySource, Tag: dag.AnyTag}},
		{"recv 1b from 4294967294", compatOnly, dag.Op{Kind: dag.Recv, Bytes: 1, Peer: -2}},
		{"recv 1b from 18446744073709551615", compatOnly, dag.Op{Kind: dag.Recv, Bytes: 1, Peer: dag.AnySource}},
		{"recv 1b from 0 tag 4294967294", either, dag.Op{Kind: dag.Recv, Bytes: 1, Tag: 4294967294}},
		{"recv 1b from 0 tag 4294967297", compatOnly, dag.Op{Kind: dag.Recv, Bytes: 1, Tag: 1}},
		{"recv 1b from 0 tag 18446744073709551615", compatOnly, dag.Op{Kind: dag.Recv, Bytes: 1, Tag: dag.AnyTag}},
		{"send 1b to 0 tag -1", either, dag.Op{Kind: dag.Send, Bytes: 1, Tag: dag.AnyTag}},
	} {
		for _, compat := range []bool{false, true} {
			got, err := op(c.text, compat)
			accepted := c.allowed == either || c.allowed == compatOnly && compat
			if (err == nil) != accepted || accepted && got != c.want {
				t.Errorf("%s, compat %v: got %+v, error %v", c.text, compat, got, err)
			}
			if err != nil && !strings.Contains(err.Error(), "in 0..") {
				t.Errorf("%s: error %q does not name the range", c.text, err)
			}
		}
	}
	// The number of ranks is cut as well.
	text := []byte("num_ranks 4294967297\nrank 18446744073709551616 {\ncalc 1\n}\n")
	trace, err := Text.Read(stream("f", text), options(true))
	if err != nil || trace.Ops() != 1 || len(trace.Ranks) != 1 {
		t.Errorf("compat: error %v", err)
	}
}

// TestUnits checks that cpus and nics above 255, which binaries do not have, survive in texts, but that compat mode
// cuts them as the reference does.
func TestUnits(t *testing.T) {
	text := oneBlock("l1: calc 1 cpu 256", "l2: send 1b to 0 tag 0 cpu 255 nic 511",
		"l3: recv 1b from 0 tag 0 nic 2147483647", "l4: calc 1 cpu 2147483647", "l5: calc 1 cpu 255")
	trace := parseText(t, text, false)
	r := trace.Ranks[0]
	if got := [...]int32{r.Stream.At(0), r.Stream.At(1), r.NIC.At(1), r.NIC.At(2), r.Stream.At(3), r.Stream.At(4)}; got !=
		[...]int32{256, 255, 511, math.MaxInt32, math.MaxInt32, 255} {
		t.Errorf("got %v", got)
	}
	want := []format.Loss{{Kind: "streams or NICs above 255, beyond the range of GOAL binaries and LogGOPSim", Count: 4}}
	if got := Text.Losses(trace); !reflect.DeepEqual(got, want) {
		t.Errorf("got losses %v", got)
	}
	written := encode(t, Text, trace)
	if again := parseText(t, string(written), false); !reflect.DeepEqual(again, trace) {
		t.Errorf("got\n%s", written)
	}
	r = parseText(t, text, true).Ranks[0]
	if got := [...]int32{r.Stream.At(0), r.Stream.At(1), r.NIC.At(1), r.NIC.At(2), r.Stream.At(3)}; got !=
		[...]int32{0, 255, 255, 255, 255} {
		t.Errorf("compat: got %v", got)
	}
}

// TestIndentation checks that indented statements, braces and comments mean what they mean in column one.
func TestIndentation(t *testing.T) {
	plain := "num_ranks 2\nrank 0 {\na: calc 1\nb: calc 2\nb requires a\n/* x */\n// y\n}\nrank 1 {\ncalc 3\n}\n"
	indented := "\t num_ranks 2\n  rank 0 {\n\ta: calc 1\n    b: calc 2\n \t b requires a\n  /* x */\n\t// y\n }\n" +
		" rank 1 { \n \n calc 3\n\t}\n"
	if got := parseText(t, indented, false); !reflect.DeepEqual(got, parseText(t, plain, false)) {
		t.Errorf("got %+v", got)
	}
	for _, text := range []string{
		"num_ranks 1 rank 0 {\n}\n", "num_ranks 1 // c\nrank 0 {\n}\n", "num_ranks 1\nrank 0 { }\n",
		"num_ranks 1\nrank 0 { calc 1\n}\n", "num_ranks 1\nrank 0 {\n/* c */ }\n", "num_ranks 1\n/* c */ rank 0 {\n}\n",
		"num_ranks 1\nrank 0 {\n/*\n*/ calc 1\n}\n", "num_ranks 2\nrank 0 {\n} rank 1 {\n}\n",
	} {
		if _, err := Text.Read(stream("f", []byte(text)), options(false)); err == nil {
			t.Errorf("accepted %q", text)
		}
	}
}

// TestUnusualTexts checks forms that hardly anybody writes but the reference takes.
func TestUnusualTexts(t *testing.T) {
	const much = 1 << 20 // more than is read at a time
	long := strings.Repeat("x", much)
	for _, c := range []struct {
		name, text string
		ops        []int
	}{
		{"ops between blocks belong to the next", "num_ranks 2\ncalc 1\nrank 0 {\n}\nx: calc 2\nrank 1 {\ncalc 3\n}",
			[]int{1, 2}},
		{"all glued", "num_ranks 2rank 0{calc 1\n}rank 1{a:calc1\nb:send1bto0\nb requiresa\n}", []int{1, 2}},
		{"nothing after the last block is read", "num_ranks 1\nrank 0 {\n}}{ \xff num_ranks 0", []int{0}},
		{"a long label", "num_ranks 1\nrank 0 {\n" + long + ": calc 1\n" + long + " irequires " + long + "\n}",
			[]int{1}},
		{"a long comment", "/*" + long + "*/num_ranks 1\nrank 0 {\n//" + long + "\n/*" + long + "\n" + long +
			"*/calc 1\n}", []int{1}},
		{"a long number", "num_ranks 1\nrank 0 {\ncalc " + strings.Repeat("0", much) + "1\n}", []int{1}},
		{"a comment that looks closed", "/*/ */num_ranks 1\nrank 0 {\n}", []int{0}},
		{"CR LF", "num_ranks 1\r\n \r\nrank 0 {\r\n// c\r\na: calc 1\r\na requires a \r\n}\r\n", []int{1}},
		{"end of file in the last block", "num_ranks 2\nrank 0 {\n}\nrank 1 {\ncalc 1", []int{0, 1}},
		{"no block at all", "calc 1\nnum_ranks 1", []int{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace := parseText(t, c.text, false)
			checkStream(t, []byte(c.text), options(false), new(Options))
			var ops []int
			for i := range trace.Ranks {
				ops = append(ops, trace.Ranks[i].Len())
			}
			if !reflect.DeepEqual(ops, c.ops) {
				t.Errorf("got %v ops, want %v", ops, c.ops)
			}
		})
	}
}

// endless is a reader of one byte, forever.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestEndlessLine(t *testing.T) {
	_, err := Text.Read([]*format.Input{{Name: "f", Reader: endless('a')}}, options(false))
	if want := "f:1: expected a shorter line, found more than 64MiB"; err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// TestTextReaders checks that it does not matter in what pieces a text comes, and that read errors are passed on.
func TestTextReaders(t *testing.T) {
	for _, name := range []string{"syntax_quirks", "rank_unordered_labels", "sg_resnet_8"} {
		text := readFile(t, filepath.Join(vectors, name+".goal"))
		want := parseText(t, string(text), false)
		for _, r := range []io.Reader{
			iotest.OneByteReader(bytes.NewReader(text)), iotest.DataErrReader(bytes.NewReader(text)),
			iotest.HalfReader(bytes.NewReader(text)),
		} {
			got, err := Text.Read([]*format.Input{{Name: "f", Reader: r}}, options(false))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s through %T: error %v", name, r, err)
			}
		}
		failing := io.MultiReader(bytes.NewReader(text[:len(text)/2]), iotest.ErrReader(errors.New("disk on fire")))
		_, err := Text.Read([]*format.Input{{Name: "f", Reader: failing}}, options(false))
		if err == nil || err.Error() != "f: reading: disk on fire" {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	if _, err := Text.Read(nil, options(false)); err == nil {
		t.Error("read nothing")
	}
}

func TestDetectText(t *testing.T) {
	for text, want := range map[string]bool{
		"num_ranks 2\n":                      true,
		"num_ranks2":                         false,
		"num_ranks":                          false,
		"num_ranks\t\t7rank 0 {":             true,
		" \r\n// c\n/* d */num_ranks 4":      true,
		"rank 0 {\nnum_ranks 1\n}":           true,
		"rank 0{":                            true,
		"rank 0 is the root":                 false,
		"/* " + strings.Repeat("x", 4000):    false,
		"// a comment without end":           false,
		"":                                   false,
		"{\"num_ranks\": 2}":                 false,
		"num_rankss 4":                       false,
		"/":                                  false,
		"//\n/**/ /* */\n\n\trank 12 \t {\n": true,
	} {
		if got := Text.Detect([]byte(text)); got != want {
			t.Errorf("%.40q: got %v", text, got)
		}
	}
}

// TestLabelTable compares the table with a map on random labels, block after block.
func TestLabelTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	prefixes := []string{"l", "op_", "x", "l1_", "a0"}
	randomLabel := func(n int) string {
		prefix := prefixes[min(rng.IntN(20), len(prefixes)-1)]
		switch rng.IntN(8) {
		case 0:
			return prefix + "0" + fmt.Sprint(rng.IntN(n))
		case 1:
			return prefix + fmt.Sprint(rng.Uint64())
		case 2:
			return prefix + "_"
		}
		return prefix + fmt.Sprint(rng.IntN(2*n))
	}
	var table labelTable
	for range 300 {
		want := map[string]int{}
		n := 1 + rng.IntN(1+rng.IntN(3000))
		shift := rng.IntN(3)
		for op := range n {
			label := randomLabel(n)
			if rng.IntN(4) > 0 {
				label = prefixes[0] + fmt.Sprint(op+shift)
			}
			table.define([]byte(label), op)
			if _, ok := want[label]; !ok {
				want[label] = op
			}
		}
		for label, op := range want {
			if got := table.lookup([]byte(label)); got != op {
				t.Fatalf("%s names op %d, want %d", label, got, op)
			}
		}
		for range n {
			label := randomLabel(n)
			if _, ok := want[label]; !ok && table.lookup([]byte(label)) >= 0 {
				t.Fatalf("%s is defined", label)
			}
		}
		table.reset()
	}
}

// randomText returns a schedule of one rank with n ops and dependencies in any order and direction.
func randomText(rng *rand.Rand, n int) string {
	var lines []string
	defined := 0
	label := func(i int) string { return "l" + fmt.Sprint(i+1) }
	late := rng.IntN(2) == 0
	dependencies := func() {
		for range rng.IntN(4) {
			word := " requires "
			if rng.IntN(3) == 0 {
				word = " irequires "
			}
			a, b := rng.IntN(defined), rng.IntN(defined)
			if rng.IntN(3) > 0 {
				a, b = max(a, b), min(a, b)
			}
			lines = append(lines, label(a)+word+label(b))
		}
	}
	for i := range n {
		lines = append(lines, label(i)+": calc "+fmt.Sprint(i))
		if defined++; !late {
			dependencies()
		}
	}
	if late {
		for range n {
			dependencies()
		}
	}
	return oneBlock(lines...)
}

// TestDependencyOrder checks that lists of dependencies and dependents in any order survive.
func TestDependencyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		trace := parseText(t, randomText(rng, 1+rng.IntN(12)), false)
		checkTextRoundTrip(t, trace)
		if err := trace.Ranks[0].CheckReferences(); err != nil {
			t.Fatal(err)
		}
		data := encode(t, Binary, trace)
		again := parseBinary(t, data)
		if err := again.Ranks[0].CheckReferences(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encode(t, Binary, again), data) {
			t.Fatal("binary -> trace -> binary is not the identity")
		}
		checkTextRoundTrip(t, again)
		// The order of dependents must be that which a builder keeps.
		var b dag.RankBuilder
		b.KeepOrder()
		for i := range trace.Ranks[0].Len() {
			b.Add(trace.Ranks[0].Op(i))
		}
		for _, line := range strings.Split(string(encode(t, Text, trace)), "\n") {
			var op, on int
			if n, _ := fmt.Sscanf(line, "l%d requires l%d", &op, &on); n == 2 {
				b.Requires(op-1, on-1)
			}
			if n, _ := fmt.Sscanf(line, "l%d irequires l%d", &op, &on); n == 2 {
				b.RequiresStart(op-1, on-1)
			}
		}
		if got := b.Rank(); !reflect.DeepEqual(got, *trace.Ranks[0]) {
			t.Fatalf("the builder makes\n%+v, the reader\n%+v", got, trace.Ranks[0])
		}
	}
}

// TestContradictingOrders checks that the order of dependents survives where no text can have both orders.
func TestContradictingOrders(t *testing.T) {
	trace := parseText(t, oneBlock("l1: calc 1", "l2: calc 2", "l3: calc 3", "l4: calc 4",
		"l3 requires l1", "l3 requires l2", "l4 requires l2", "l4 requires l1"), false)
	r := trace.Ranks[0]
	r.Order = dag.Edges{}
	r.Order.Append(0, 3) // op 0: ops 3, 2
	r.Order.Append(0, 2)
	r.Order.Append(1, 1) // op 1: ops 2, 3
	r.Order.Append(1, 2)
	if err := r.CheckReferences(); err != nil {
		t.Fatal(err)
	}
	again := parseText(t, string(encode(t, Text, trace)), false)
	if !bytes.Equal(encode(t, Binary, again), encode(t, Binary, trace)) {
		t.Error("the text round trip changed the order of dependents")
	}
}

func TestCanonicalText(t *testing.T) {
	b := dag.NewBuilder(2)
	r := b.Rank(0)
	r.Add(dag.Op{Name: "first", Duration: 1499})
	r.Add(dag.Op{Name: "l5", Duration: 1500}) // the canonical label of the op of that index
	r.Add(dag.Op{Name: "calc"})
	r.Add(dag.Op{Name: "first", Kind: dag.Send, Bytes: 8, Peer: 1, Stream: 255, NIC: 2}, 1, 0)
	r.Add(dag.Op{Kind: dag.Recv, Peer: dag.AnySource, Tag: dag.AnyTag})
	r.Add(dag.Op{Name: "l99", Kind: dag.Recv, Bytes: 1 << 40, Peer: 1, Tag: -2}, 4)
	r.RequiresStart(2, 5)
	r.RequiresStart(5, 5)
	want := `num_ranks 2

rank 0 {
first: calc 1
l2: calc 2
l3: calc 0
l4: send 8b to 1 tag 0 cpu 255 nic 2
l4 requires l2
l4 requires first
l5: recv 0b from -1 tag -1
l99: recv 1099511627776b from 1 tag 4294967294
l99 requires l5
l3 irequires l99
l99 irequires l99
}

rank 1 {
}
`
	trace := b.Trace()
	if got := string(encode(t, Text, trace)); got != want {
		t.Errorf("got\n%s", got)
	}
	wantLosses := []format.Loss{
		{Kind: "durations rounded to whole nanoseconds", Count: 2},
		{Kind: "tags below -1, written plus 4294967296 (receives with any tag match them)", Count: 1},
		{Kind: "names that are not unique labels", Count: 3},
	}
	if got := Text.Losses(trace); !reflect.DeepEqual(got, wantLosses) {
		t.Errorf("got losses %v", got)
	}
}

// TestLabelChoice checks which names can be labels.
func TestLabelChoice(t *testing.T) {
	for _, c := range []struct{ names, want string }{
		{"", ""},
		{"a - b", "a l2 b"},
		{"l2 l1", "l2 l1"},
		{"l2 l3 l1", "l2 l3 l1"},
		{"l2 -", "l1 l2"},
		{"l2 l3 -", "l1 l2 l3"},        // op 2 takes l3 from op 1, which then takes l2 from op 0
		{"l2 l3 rank", "l1 l2 l3"},     // likewise
		{"l9 l9 l1", "l9 l2 l1"},       // op 1 is the second l9
		{"l2 l2 l3 l3", "l1 l2 l3 l4"}, // op 1 takes l2 from op 0
		{"a.b _c 9d é tag", "l1 l2 l3 l4 tag"},
	} {
		var r dag.Rank
		fields := strings.Fields(c.names)
		for i, name := range fields {
			r.Kind = append(r.Kind, dag.Calc)
			r.Name.Append(i, strings.Trim(name, "-"))
		}
		choice := chooseLabels(&r)
		var got []string
		for i := range fields {
			got = append(got, string(choice.append(nil, i)))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %v, want %s", c.names, got, c.want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, name := range []string{"spec_example", "syntax_quirks", "rank_unordered_labels", "field_limits", "wildcards",
		"irequires_nb", "dead_ops"} {
		f.Add(readFile(f, filepath.Join(vectors, name+".goal")))
	}
	f.Add([]byte("num_ranks 4294967294")) // more than memory has room for
	f.Add([]byte("num_ranks 1rank 0{A:calc0\nA:send0bto0nic270\nA:calc0\n}"))
	f.Add([]byte("num_ranks 1\ncalc 1 cpu 256\nsend 1b to 0 cpu 3 nic 70000\n"))
	f.Add([]byte("num_ranks 1\nl2: calc 1\nl2: calc 2\nl1: calc 3\nl1 requires l2\nl2 irequires l1\nl2 requires l1"))
	f.Add([]byte(oneBlock("l1: recv 5b from 0 tag 7 cpu 2 nic 3", "l2: send 5b to 0 tag 7", "l3: calc 99999999 cpu 1",
		"l3 requires l1", "l3 irequires l2", "l5: calc 0", "l4: calc 1", "l5: calc 4", "l9 requires l5")))
	f.Fuzz(func(t *testing.T, text []byte) {
		checkUnusual(t, text)
		checkStream(t, text, options(true), new(Options))
		trace, err := Text.Read(stream("f", text), options(true))
		if strict, strictErr := Text.Read(stream("f", text), options(false)); strictErr == nil {
			if loses(Text.Losses(strict), "above 255") {
				again := parseText(t, string(encode(t, Text, strict)), false)
				if !reflect.DeepEqual(withoutNames(again), withoutNames(strict)) {
					t.Fatal("text -> trace -> text -> trace is not the identity")
				}
			} else if err != nil || !reflect.DeepEqual(strict, trace) {
				t.Fatalf("compat mode gives another trace (error %v)", err)
			}
		}
		if err != nil {
			checkPlaced(t, err)
			return
		}
		checkTextRoundTrip(t, trace)
		data := encode(t, Binary, trace)
		if !bytes.Equal(encode(t, Binary, parseBinary(t, data)), data) {
			t.Fatal("binary -> trace -> binary is not the identity")
		}
	})
}

// TestUsualLines compares the trace of lines in the form of generated schedules with that of the same lines in another
// form, for labels of all kinds of order and names, and numbers and attributes of all lengths.
func TestUsualLines(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	number := func() string {
		return strconv.FormatUint(random.Uint64()>>(28+random.IntN(37)), 10)
	}
	for range 300 {
		prefix := []string{"l", "op_", "x9_", "send", "calc", strings.Repeat("long", 5)}[random.IntN(6)]
		var lines []string
		next, defined := 1, []int{}
		for range random.IntN(60) {
			label := next
			switch random.IntN(12) {
			case 0:
				next += 3
			case 1:
				label = max(1, next-2)
			}
			next++
			defined = append(defined, label)
			line := fmt.Sprintf("%s%d: ", prefix, label)
			switch random.IntN(3) {
			case 0:
				line += "calc " + number()
			case 1:
				line += "send " + number() + "b to " + number()
			default:
				line += "recv " + number() + "b from " + number()
			}
			if random.IntN(2) == 0 && !strings.Contains(line, ": calc") {
				line += " tag " + number()
			}
			if random.IntN(2) == 0 {
				line += fmt.Sprint(" cpu ", random.IntN(256))
			}
			if random.IntN(3) == 0 && !strings.Contains(line, ": calc") {
				line += fmt.Sprint(" nic ", random.IntN(256))
			}
			lines = append(lines, line)
			for range random.IntN(3) {
				lines = append(lines, fmt.Sprintf("%s%d %s %s%d", prefix, defined[random.IntN(len(defined))],
					[]string{"requires", "irequires"}[random.IntN(2)], prefix, defined[random.IntN(len(defined))]))
			}
			if random.IntN(20) == 0 {
				lines = append(lines, "other requires "+prefix+"1")
			}
		}
		text := "num_ranks 2\nrank 0 {\n" + strings.Join(lines, "\n") + "\n}\nrank 1 {\n" + strings.Join(lines, "\n") + "\n}\n"
		checkUnusual(t, []byte(text))
	}
}

// checkUnusual checks that a text and the same with a blank before the end of every line, which the fast parser does
// not accept, give the same trace or error.
func checkUnusual(t *testing.T, text []byte) {
	text = append(slices.Clip(text), strings.Repeat("\n", fastRoom)...)
	usual, err := Text.Read(stream("f", text), options(false))
	unusual, errUnusual := Text.Read(stream("f", bytes.ReplaceAll(text, []byte("\n"), []byte(" \n"))), options(false))
	if errUnusual == nil && (err != nil || !reflect.DeepEqual(usual, unusual)) {
		t.Fatalf("%.2000s\nother trace if lines end in a blank: error %v", text, err)
	}
	if errUnusual != nil && (err == nil || err.Error() != errUnusual.Error()) && !bytes.Contains(text, []byte("\r")) {
		t.Fatalf("%.2000s\nerror %v, with blanks %v", text, err, errUnusual)
	}
}
