package parquet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func TestLeafPaths(t *testing.T) {
	schema := []Element{
		{Name: "root", Children: 3}, {Name: "a"},
		{Name: "b", Children: 2}, {Name: "c", Children: 1}, {Name: "d"}, {Name: "e"},
		{Name: "f", Children: 1}, {Name: "g", Children: 1}, {Name: "h"},
	}
	want := [][]string{{"a"}, {"b", "c", "d"}, {"b", "e"}, {"f", "g", "h"}}
	if got := leafPaths(schema); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// testFooter returns a footer with all that ReadFooter reads.
func testFooter() *Footer {
	return &Footer{
		Schema: []Element{
			{Name: "schema", Children: 2, Converted: ConvertedNone, Type: -1},
			{Name: "n", Type: Int64, Converted: ConvertedNone, Repetition: Optional},
			{Name: "s", Type: ByteArray, Converted: ConvertedUTF8},
		},
		Rows: 7,
		Groups: []RowGroup{{Rows: 7, Chunks: []Chunk{
			{Type: Int64, Codec: Zstd, Values: 7, CompressedSize: 70, DictionaryOffset: 4, FirstPage: 20, Nulls: 2,
				Min: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Max: []byte{2, 0, 0, 0, 0, 0, 0, 0}},
			{Type: ByteArray, Codec: Zstd, Values: 7, CompressedSize: 50, FirstPage: 74, Nulls: -1},
		}}},
		Keys:      []KeyValue{{Key: "key", Value: "value"}, {Key: "other"}},
		CreatedBy: "a program",
	}
}

func TestFooter(t *testing.T) {
	want := testFooter()
	file := AppendFooter(nil, want)
	if got := string(file[len(file)-4:]); got != Magic {
		t.Errorf("ends with %q, want %q", got, Magic)
	}
	got, err := ReadFooter(file[:len(file)-8])
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, k := range got.Keys {
		if text := string(file[k.Offset:][:len(k.Value)]); text != k.Value {
			t.Errorf("%s is at offset %d, where the footer has %q instead of %q", k.Key, k.Offset, text, k.Value)
		}
	}
	for n := range len(file) - 8 {
		if _, err := ReadFooter(file[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are accepted", n, len(file)-8)
		}
	}
}

func FuzzFooter(f *testing.F) {
	file := AppendFooter(nil, testFooter())
	f.Add(file[:len(file)-8])
	f.Fuzz(func(t *testing.T, b []byte) {
		footer, err := ReadFooter(b)
		if err != nil {
			return
		}
		for rest := footer.Schema; len(rest) > 0; rest = rest[1:] {
			if n := FieldSize(rest); n > 0 {
				NewLeaf(rest[:n])
			}
		}
	})
}

// values are decoded pages.
type values struct {
	decoder    *Decoder
	leaf       Leaf
	ints       []int64
	intNumbers []int64
	texts      []string
	ends       []uint32
	at         int
	dictionary []byte
	numbers    int
}

func (v *values) Dictionary(body []byte, n int) (err error) {
	v.dictionary, v.numbers = slices.Clone(body), n
	if v.leaf.Type != ByteArray {
		v.intNumbers, err = IntegerDictionary(v.intNumbers, body, n, v.leaf)
		return err
	}
	return PlainTexts(body, n, func(int, string) error { return nil })
}

func (v *values) Page(p *Page) error {
	n := p.N
	if v.leaf.MaxRep > 0 {
		lists, err := v.decoder.Lists(p, v.leaf)
		if err != nil {
			return err
		}
		before := len(v.ends)
		v.ends = append(v.ends, make([]uint32, lists.Rows)...)
		if v.at < 0 && lists.Continues {
			return errors.New("the first list has no start")
		}
		count := uint32(len(v.ints))
		if lists.Empty {
			Fill(v.ends[before:], count)
			v.at += lists.Rows
			return nil
		}
		if v.at, count, err = lists.Ends(v.ends, v.at, count); err != nil {
			return err
		}
		n = int(count) - len(v.ints)
	} else if v.leaf.MaxDef > 0 {
		present, err := v.decoder.Present(p, v.leaf)
		if err != nil {
			return err
		}
		n = 0
		for _, one := range present {
			n += int(one)
		}
	}
	if v.leaf.Type == ByteArray {
		var dictionary []string
		if err := PlainTexts(v.dictionary, v.numbers, func(_ int, s string) error {
			dictionary = append(dictionary, string([]byte(s)))
			return nil
		}); err != nil {
			return err
		}
		return Texts(v.decoder, n, p, dictionary, func(_ int, s string) error {
			v.texts = append(v.texts, string([]byte(s)))
			return nil
		})
	}
	before := len(v.ints)
	v.ints = append(v.ints, make([]int64, n)...)
	_, err := Integers(v.decoder, v.ints[before:], p, v.leaf, v.intNumbers)
	return err
}

// chunks returns encoded chunks of every kind, with their leaves and the values that they hold.
func chunks() (chunks []EncodedChunk, want []values) {
	rng := rand.New(rand.NewPCG(1, 2))
	e := NewEncoder()
	add := func(c EncodedChunk, v values) {
		v.leaf.Type = c.Meta.Type
		chunks, want = append(chunks, c), append(want, v)
	}
	e.Reset()
	add(e.Zeros(Int32, 9), values{ints: make([]int64, 9)})
	for _, distinct := range []int64{1, 5, 300, 1 << 40} {
		ints := make([]int64, 1000)
		for i := range ints {
			ints[i] = rng.Int64N(distinct)
		}
		e.Reset()
		add(e.Integers(Int64, ints, len(ints), false), values{ints: ints})
	}
	ranks := make([]int64, 500)
	for i := range ranks {
		ranks[i] = int64(i / 50)
	}
	e.Reset()
	add(e.Integers(Int32, ranks, len(ranks), true), values{ints: ranks})

	e.Reset()
	var ends []uint32
	var elements []int64
	for i := range 300 {
		n := i % 4
		e.Rep.Append(0)
		e.Rep.AppendSame(1, n-1)
		e.Def.AppendSame(min(1, uint64(n)), max(1, n))
		for range n {
			elements = append(elements, int64(i))
		}
		ends = append(ends, uint32(len(elements)))
	}
	add(e.Integers(Int32, elements, e.Rep.Len(), false), values{
		ints: elements, ends: ends, leaf: Leaf{MaxRep: 1, MaxDef: 1, slotDef: 1},
	})

	e.Reset()
	e.Def.AppendSame(0, 3)
	e.Def.AppendSame(1, 4)
	numbers := e.Indices(4)
	copy(numbers, []uint16{1, 0, 1, 1})
	add(e.Strings([]string{"x", "yy"}, numbers, 7), values{
		texts: []string{"yy", "x", "yy", "yy"}, leaf: Leaf{MaxDef: 1},
	})
	e.BeginTexts(6)
	var texts []string
	for i := range 3 {
		e.Def.Append(0)
		e.AppendText(fmt.Sprint("text ", i))
		texts = append(texts, fmt.Sprint("text ", i))
	}
	c, _ := e.EndTexts()
	add(c, values{texts: texts, leaf: Leaf{MaxDef: 1}})
	return chunks, want
}

func TestChunks(t *testing.T) {
	chunks, want := chunks()
	d := NewDecoder()
	for i, c := range chunks {
		got := values{decoder: d, leaf: want[i].leaf, at: -1}
		if err := d.Pages(&c.Meta, c.Data, got.leaf, &got); err != nil {
			t.Errorf("chunk %d: %v", i, err)
		}
		if !slices.Equal(got.ints, want[i].ints) || !slices.Equal(got.texts, want[i].texts) ||
			!slices.Equal(got.ends, want[i].ends) {
			t.Errorf("chunk %d: got %v, %q, %v, want %v, %q, %v", i, got.ints, got.texts, got.ends, want[i].ints,
				want[i].texts, want[i].ends)
		}
		all, err := d.Dictionary(&c.Meta, c.Data, func(body []byte, n int) error {
			return (&values{leaf: want[i].leaf}).Dictionary(body, n)
		})
		if c.Meta.FirstPage > 0 != all || err != nil {
			t.Errorf("chunk %d: all values in a dictionary: %v, error %v", i, all, err)
		}
	}
}

// FuzzPages decodes pages of any content and any claims.
func FuzzPages(f *testing.F) {
	chunks, want := chunks()
	for i, c := range chunks {
		f.Add(c.Data, c.Meta.Values, want[i].leaf.MaxRep == 1, want[i].leaf.MaxDef == 1, int32(c.Meta.Type))
	}
	f.Fuzz(func(t *testing.T, raw []byte, n int64, list, optional bool, typ int32) {
		if n < 0 || n > 1<<16 || typ != int32(Int32) && typ != int32(Int64) {
			typ, n = int32(ByteArray), min(max(n, 0), 1<<16)
		}
		d := NewDecoder()
		leaf := Leaf{Type: Type(typ), Integers: true}
		if optional || list {
			leaf.MaxDef = 1
		}
		if list {
			leaf.MaxRep, leaf.slotDef = 1, 1
		}
		c := Chunk{Type: leaf.Type, Codec: Zstd, Values: n}
		v := values{decoder: d, leaf: leaf, at: -1}
		if err := d.Pages(&c, raw, leaf, &v); err != nil {
			if e := (*Error)(nil); !errors.As(err, &e) {
				t.Fatalf("error %v of type %T", err, err)
			}
		}
	})
}
