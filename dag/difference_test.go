package dag

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// inBatches is a source of a trace with batches of given numbers of ranks.
type inBatches struct {
	Source
	sizes []int // repeated
}

func (s *inBatches) Header() (*Header, error) {
	h, err := s.Source.Header()
	if err != nil {
		return nil, err
	}
	own := *h
	own.Batches = nil
	for first, i := 0, 0; first < own.Ranks; i++ {
		last := min(first+s.sizes[i%len(s.sizes)], own.Ranks)
		own.Batches = append(own.Batches, Batch{First: first, Last: last})
		first = last
	}
	return &own, nil
}

// randomTrace returns a trace of n ranks with values in all columns.
func randomTrace(random *rand.Rand, n int) *Trace {
	b := NewBuilder(n)
	for rank := range n {
		r := b.Rank(rank)
		for i := range random.IntN(40) {
			op := Op{
				Kind: Kind(random.IntN(NumKinds)), Bytes: random.Int64N(3) << 33, Duration: Time(random.IntN(2)),
				Tag: random.Int64N(3), Stream: random.Int32N(2) * 300, Priority: -random.Int32N(2),
			}
			if random.IntN(4) == 0 {
				op.Name, op.Attrs = fmt.Sprint("op", random.IntN(3)), fmt.Sprintf(`{"x":%d}`, random.IntN(2))
				op.Timed, op.MeasuredStart, op.MeasuredEnd = true, 1, Time(random.IntN(3))
			}
			r.Add(op)
			if i > 0 && random.IntN(2) == 0 {
				r.Requires(i, random.IntN(i))
			}
		}
	}
	return b.Trace()
}

// exchanged returns the difference with the sides exchanged.
func exchanged(d *Difference) *Difference {
	out := *d
	out.Facts = slices.Clone(d.Facts)
	for i := range out.Facts {
		out.Facts[i].A, out.Facts[i].B = d.Facts[i].B, d.Facts[i].A
	}
	if d.First != nil {
		first := *d.First
		first.A, first.B = d.First.B, d.First.A
		out.First = &first
	}
	return &out
}

func compare(t *testing.T, a, b Source) *Difference {
	t.Helper()
	d, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCompareProperties: a trace equals itself and its copy, a difference mirrors that of the exchanged traces, it does
// not depend on the batches, and it has the ops that a comparison op by op finds.
func TestCompareProperties(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		a := randomTrace(random, 1+random.IntN(9))
		b := &Trace{Meta: a.Meta, Comms: a.Comms, Ranks: CopyRanks(a.Ranks)}
		for range random.IntN(3) {
			rank := random.IntN(len(b.Ranks))
			b.Ranks[rank] = b.Ranks[rank].Clone()
			if n := b.Ranks[rank].Len(); n > 0 {
				b.Ranks[rank].Tag.Set(random.IntN(n), 7)
			}
		}
		if random.IntN(4) == 0 {
			b = randomTrace(random, 1+random.IntN(9))
		}
		whole := compare(t, FromTrace(a), FromTrace(b))
		if d := compare(t, FromTrace(a), FromTrace(a)); !d.Equal() {
			t.Errorf("seed %d: a trace differs from itself: %+v", seed, d)
		}
		if d := compare(t, FromTrace(b), FromTrace(a)); !reflect.DeepEqual(exchanged(d), whole) {
			t.Errorf("seed %d: a, b: %+v\nb, a: %+v", seed, whole, d)
		}
		inA := &inBatches{FromTrace(a), []int{1 + random.IntN(4), 1 + random.IntN(4)}}
		inB := &inBatches{FromTrace(b), []int{1 + random.IntN(4), 1 + random.IntN(4)}}
		if d := compare(t, inA, inB); !reflect.DeepEqual(d, whole) {
			t.Errorf("seed %d: in batches %+v\nin all %+v", seed, d, whole)
		}
		checkDifference(t, fmt.Sprint("seed ", seed), a, b, whole)
	}
}

// checkDifference checks a difference against a comparison op by op.
func checkDifference(t *testing.T, name string, a, b *Trace, d *Difference) {
	t.Helper()
	ops, ranks, first := int64(0), 0, ""
	for rank := range max(len(a.Ranks), len(b.Ranks)) {
		ra, rb := &none, &none
		if rank < len(a.Ranks) {
			ra = a.Ranks[rank]
		}
		if rank < len(b.Ranks) {
			rb = b.Ranks[rank]
		}
		differs := false
		for i := range max(ra.Len(), rb.Len()) {
			both := i < min(ra.Len(), rb.Len())
			if both && ra.Op(i) == rb.Op(i) && slices.Equal(ra.Deps.Of(i), rb.Deps.Of(i)) {
				continue
			}
			if both {
				ops++
			}
			differs = true
			if first == "" {
				first = fmt.Sprint(rank, " ", i)
			}
		}
		if differs {
			ranks++
		}
	}
	got := ""
	if d.First != nil {
		got = fmt.Sprint(d.First.Rank, " ", d.First.Op)
	}
	if d.Ops != ops || d.Ranks != ranks || got != first {
		t.Errorf("%s: %d ops on %d ranks, first %q; want %d on %d, %q", name, d.Ops, d.Ranks, got, ops, ranks, first)
	}
}

// TestCompareEveryField: a change of any field of an op is a difference in that field.
func TestCompareEveryField(t *testing.T) {
	for id := range Fields {
		a := build(1, func(b *Builder) {
			for range 3 {
				b.Rank(0).Calc(1)
			}
			b.Rank(0).Requires(1, 0)
			b.Rank(0).Requires(2, 0)
			b.Rank(0).RequiresStart(1, 0)
			b.Rank(0).RequiresStart(2, 0)
		})
		b := &Trace{Meta: a.Meta, Comms: a.Comms, Ranks: []*Rank{a.Ranks[0].Clone()}}
		op := 1
		switch column := Fields[id].Of(b.Ranks[0]).(type) {
		case *Column[Kind]:
			column.Set(op, Send)
		case *Column[Subkind]:
			column.Set(op, Marker)
		case *Column[int32]:
			column.Set(op, 5)
		case *Column[int64]:
			column.Set(op, 5)
		case *Column[Time]:
			column.Set(op, 5)
		case *Narrow:
			column.Set(op, 500)
		case *Text:
			column.Append(op, "x")
		case *Times:
			*column = Times{Unmeasured, 0}
		case *Edges:
			if FieldID(id) == FieldOrder || FieldID(id) == FieldStartOrder {
				op = 0
				column.Append(0, 2)
				column.Append(0, 1)
			} else {
				column.Off[0] = -1
			}
		}
		d := compare(t, FromTrace(a), FromTrace(b))
		if len(d.Fields) != 1 || d.Fields[0].Field != FieldID(id) || d.Fields[0].Ops != 1 || d.Fields[0].Op != op ||
			d.First == nil || d.First.Op != op || d.Ops != 1 {
			t.Errorf("%s: %+v", Fields[id].Name, d)
		}
	}
}

// TestCompareColumns: columns of different lengths and widths with the same values are equal.
func TestCompareColumns(t *testing.T) {
	a, b := new(Rank), new(Rank)
	a.Kind, b.Kind = make([]Kind, 5), make([]Kind, 5)
	b.Bytes = make(Column[int64], 3)
	a.Job = NewNarrow(nil, []int32{1, 2, 0, 0})
	b.Job = NewNarrow([]uint8{1, 2}, nil)
	b.MeasuredStart = []Time{Unmeasured}
	b.Deps.End = []uint32{0, 0}
	b.Order.End = []uint32{0}
	header := Trace{Meta: Meta{Jobs: []string{"x", "y", "z"}}, Comms: []Comm{World(1)}}
	ta, tb := header, header
	ta.Ranks, tb.Ranks = []*Rank{a}, []*Rank{b}
	if d := compare(t, FromTrace(&ta), FromTrace(&tb)); !d.Equal() {
		t.Errorf("%+v", d)
	}
}

func TestCompareHeaders(t *testing.T) {
	a := build(4, func(b *Builder) {
		*b.Meta() = Meta{Title: "one", Jobs: []string{"x", "y"}, Attrs: `{"a":1}`}
		b.AddComm(NewComm("even", []int32{0, 2}))
	})
	b := build(4, func(b *Builder) {
		*b.Meta() = Meta{
			Title: "two", Jobs: []string{"x", "z"}, Nodes: []int32{0, 0, 1, 3},
			Provenance: []Provenance{{Program: "p"}},
		}
		b.AddComm(NewComm("even", []int32{0, 3}))
		b.AddComm(NewComm("odd", []int32{1, 3}))
	})
	d := compare(t, FromTrace(a), FromTrace(b))
	text, err := json.Marshal(d.Facts)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"name":"title","a":"one","b":"two"},{"name":"node","where":"rank 1","count":2,"a":1,"b":0},` +
		`{"name":"job_name","where":"job 1","count":1,"a":"y","b":"z"},{"name":"communicators","a":2,"b":3},` +
		`{"name":"communicator","where":"communicator 1","count":1,` +
		`"a":"even, 2 ranks, member 1 is rank 2","b":"even, 2 ranks, member 1 is rank 3"},` +
		`{"name":"attrs","a":"{\"a\":1}","b":""}]`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	// Titles and provenance of a format without them are no difference; neither are nodes as by default.
	b = &Trace{Meta: a.Meta, Comms: a.Comms, Ranks: a.Ranks}
	b.Title, b.Provenance, b.Nodes = "", []Provenance{{Program: "p"}}, []int32{0, 1, 2, 3}
	if d := compare(t, FromTrace(a), FromTrace(b)); !d.Equal() {
		t.Errorf("%+v", d)
	}
}

// digested is a source with a digest.
type digested struct {
	Source
	digest string
	wrong  error
}

func (d *digested) Digest() string { return d.digest }
func (d *digested) Verify() error  { return d.wrong }

func TestCompareDigests(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	a, b := FromTrace(randomTrace(random, 3)), FromTrace(randomTrace(random, 3))
	if compare(t, a, b).Equal() {
		t.Fatal("the traces are equal")
	}
	for _, c := range []struct {
		a, b  string
		equal bool
	}{{"x", "x", true}, {"x", "y", false}, {"", "", false}, {"x", "", false}} {
		if d := compare(t, &digested{a, c.a, nil}, &digested{b, c.b, nil}); d.Equal() != c.equal {
			t.Errorf("digests %q and %q: equal is %v", c.a, c.b, d.Equal())
		}
	}
	damaged := errors.New("damaged")
	if _, err := Compare(&digested{a, "x", nil}, &digested{b, "x", damaged}); !errors.Is(err, damaged) {
		t.Errorf("a damaged trace: %v", err)
	}
}

func TestCompareErrors(t *testing.T) {
	good := FromTrace(randomTrace(rand.New(rand.NewPCG(1, 2)), 3))
	for _, pair := range [][2]Source{{good, &failingReader{good}}, {&failingReader{good}, good}} {
		if _, err := Compare(pair[0], pair[1]); err == nil || !strings.Contains(err.Error(), "no such column") {
			t.Errorf("error %v", err)
		}
	}
	if _, err := Count(&failingReader{good}); err == nil {
		t.Error("Count: no error")
	}
}

// failingReader is a source whose readers fail.
type failingReader struct{ Source }

func (*failingReader) NewReader(Columns) Reader {
	return func(Batch) ([]*Rank, error) { return nil, errors.New("no such column") }
}

// BenchmarkCompare compares two copies of a trace.
func BenchmarkCompare(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	one := randomTrace(random, 5000)
	other := &Trace{Meta: one.Meta, Comms: one.Comms}
	for _, r := range one.Ranks {
		other.Ranks = append(other.Ranks, r.Clone())
	}
	for b.Loop() {
		if d, err := Compare(FromTrace(one), FromTrace(other)); err != nil || !d.Equal() {
			b.Fatal(d, err)
		}
	}
	b.ReportMetric(float64(one.Ops())*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}
