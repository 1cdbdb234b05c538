package goal

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/store"
)

// shortReads is a file that returns few bytes per call.
type shortReads struct {
	io.ReaderAt
	most int
}

func (s shortReads) ReadAt(b []byte, at int64) (int, error) {
	return s.ReaderAt.ReadAt(b[:min(len(b), s.most)], at)
}

// inParts returns the source of a text whose blocks of more than long ops are read in parts, in windows of few bytes.
func inParts(text []byte, own *Options, long, part, window int) *textSource {
	in := plainFile("x.goal", text)[0]
	in.At = shortReads{in.At, window}
	s := newTextSource(in, options(false), own, 64)
	s.long, s.part = long, part
	return s
}

// checkParts checks that a text whose blocks are read in parts has the header and the store of one that is read as a
// whole. It returns the number of ranks that were read in parts.
func checkParts(t *testing.T, text []byte, own *Options, rng *rand.Rand) (parted int) {
	t.Helper()
	o := options(false)
	o.Own = own
	want, err := Text.Read(stream("x.goal", text), o)
	if err != nil {
		t.Fatal(err)
	}
	var whole, parts bytes.Buffer
	if err := store.Write(&whole, want); err != nil {
		t.Fatal(err)
	}
	s := inParts(text, own, 1+rng.IntN(20), 1+rng.IntN(20), 1+rng.IntN(200))
	h, err := s.Header()
	if err != nil {
		t.Fatal(err)
	}
	if what, err := s.Disagreement(); err != nil || what != dag.Disagreement(want) {
		t.Fatalf("disagreement %q, error %v, expected %q", what, err, dag.Disagreement(want))
	}
	described := dag.WithHeader(s, h)
	if err := store.Format.WriteSource(&parts, described, format.WriteOptions{Frugal: true}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(parts.Bytes(), whole.Bytes()) {
		t.Fatalf("%q: in parts, the store is another one", text)
	}
	if got, err := dag.ReadAll(s); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: batches give another trace, error %v", text, err)
	}
	for _, b := range h.Batches {
		if s.InParts(b) {
			parted++
		}
	}
	return parted
}

// checkRuns checks the ops and dependencies of the blocks that a source reads in parts.
func checkRuns(t testing.TB, s *textSource, h *dag.Header, want *dag.Trace) {
	t.Helper()
	for _, b := range h.Batches {
		if !s.InParts(b) {
			continue
		}
		ops, whole := 0, want.Ranks[b.First]
		err := s.ReadParts(b, func(run dag.Run) error {
			for i := range run.Ops.Len() {
				at := run.First + i
				if run.Rank != b.First || at != ops || run.Ops.Op(i) != whole.Op(at) ||
					!slices.Equal(run.Ops.Deps.Of(i), whole.Deps.Of(at)) ||
					!slices.Equal(run.Ops.StartDeps.Of(i), whole.StartDeps.Of(at)) {
					return fmt.Errorf("rank %d: op %d, the %d-th, is another one", run.Rank, at, ops)
				}
				ops++
			}
			return nil
		})
		if err != nil || ops != whole.Len() || len(whole.Order.Off)+len(whole.StartOrder.Off) > 0 {
			t.Fatalf("%d ops of rank %d, expected %d; error %v", ops, b.First, whole.Len(), err)
		}
	}
}

// TestParts reads random texts in parts: labels with and without a number, dependencies near their ops and far from
// them, in their order and not.
func TestParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	parted := 0
	for range 200 {
		const ranks = 3
		text := fmt.Appendf(nil, "num_ranks %d\n", ranks)
		for rank := range ranks {
			prefix := []string{"l", "op", "x_"}[rng.IntN(3)]
			jumps, disorder := rng.IntN(4) == 0, rng.IntN(4) == 0
			text = fmt.Appendf(text, "rank %d {\n", rank)
			var labels []string
			waiting := 0 // the first op whose dependencies are not written
			for i := range rng.IntN(120) {
				label := fmt.Sprint(prefix, i+1)
				if jumps {
					label = fmt.Sprint(prefix, "a", rng.IntN(1000), "z", i)
				}
				labels = append(labels, label)
				switch rng.IntN(3) {
				case 0:
					text = fmt.Appendf(text, "%s: calc %d cpu %d\n", label, rng.IntN(1000), rng.IntN(2)*i%5)
				case 1:
					text = fmt.Appendf(text, "%s: send %db to %d tag %d\n", label, rng.IntN(99), rng.IntN(ranks), rng.IntN(3))
				default:
					text = fmt.Appendf(text, "%s: recv %db from %d nic %d\n", label, rng.IntN(99), rng.IntN(ranks), i%2)
				}
				for ; waiting <= i && rng.IntN(8) > 0; waiting++ {
					op := waiting
					if disorder && rng.IntN(9) == 0 {
						op = rng.IntN(i + 1)
					}
					for range rng.IntN(3) {
						text = fmt.Appendf(text, "%s %s %s\n", labels[op], []string{"requires", "irequires"}[rng.IntN(2)],
							labels[rng.IntN(i+1)])
					}
				}
			}
			text = append(text, "}\n"...)
		}
		parted += checkParts(t, text, new(Options), rng)
	}
	if parted < 100 {
		t.Errorf("%d ranks were read in parts", parted)
	}
}

// TestPartsOfClocks reads texts in parts whose blocks have clocks, at their start or later.
func TestPartsOfClocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	chain := func(first, n int) (text string) {
		for i := first; i < first+n; i++ {
			text += fmt.Sprintf("l%d: calc %d\n", i, i)
			if i > 1 {
				text += fmt.Sprintf("l%d requires l%d\n", i, i-1)
			}
		}
		return text
	}
	const marked = clockComment + "\nl61: calc 5 cpu 7\nl62: calc 5\nl62 requires l61\n"
	for _, block := range []string{
		clockComment + "\nl1: calc 5 cpu 7\n" + strings.ReplaceAll(chain(2, 60), "l2 requires l1\n", ""),
		chain(1, 60) + marked,
	} {
		text := []byte("num_ranks 2\nrank 0 {\n" + block + "}\nrank 1 {\n" + chain(1, 80) + "}\n")
		for _, own := range []*Options{{}, {Clock: ClockNone}, {Clock: ClockStream, Stream: 7}} {
			for range 20 {
				checkParts(t, text, own, rng)
			}
		}
	}
}

// TestPartsChange checks that a block whose ops or dependencies change between the passes is an error.
func TestPartsChange(t *testing.T) {
	text := "num_ranks 1\nrank 0 {\n"
	for i := range 60 {
		text += fmt.Sprintf("l%03d: calc 1\n", i)
		if i > 0 {
			text += fmt.Sprintf("l%03d requires l%03d\n", i, i-1)
		}
	}
	text += "}\n"
	for _, change := range []struct{ from, to string }{
		{"l050: calc 1", "//50: calc 1"},
		{"l040 requires l039", "l002 requires l001"},
		{"l040 requires l039", "l030 requires l029"},
		{"l040 requires l039", "//40 requires l039"},
	} {
		content := []byte(text)
		s := inParts(content, new(Options), 10, 10, 16)
		h, err := s.Header()
		if err != nil || !s.InParts(h.Batches[0]) {
			t.Fatal("not in parts", err)
		}
		if change.from[:4] == "l050" {
			copy(content[bytes.Index(content, []byte("l051 requires l050")):], "//")
			copy(content[bytes.Index(content, []byte("l050 requires l049")):], "//")
		}
		copy(content[bytes.Index(content, []byte(change.from)):], change.to)
		err = s.ReadParts(h.Batches[0], func(dag.Run) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "x.goal: expected 60 ops in the blocks of ranks 0 to 0") {
			t.Errorf("%s: error %v", change.to, err)
		}
	}
}
