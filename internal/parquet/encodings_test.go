package parquet

// The decoders' fast paths, compared with the simplest decoder.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestLookUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, distinct := range []int{1, 2, 100, 127, 128, 129, 200, 255, 256, 257, 1000, 65535, 65536} {
		for _, width := range []int{1, 3, 7, 8, 9, 16, 17, 24} {
			for _, room := range []int{distinct, max(distinct, byteNumbers)} {
				dictionary := make([]int64, room)
				for i := range dictionary {
					dictionary[i] = int64(i)*3 + 1
				}
				dictionary = dictionary[:distinct:room]
				for range 20 {
					n := rng.IntN(200)
					numbers := make([]int64, n)
					for i := range numbers {
						numbers[i] = rng.Int64N(min(int64(distinct), 1<<width))
					}
					if n > 0 && rng.IntN(3) == 0 {
						numbers[rng.IntN(n)] = rng.Int64N(1 << width)
					}
					page := appendPackedHeader([]byte{byte(width)}, n)
					page = appendPacked(page, append(slices.Clip(numbers), make([]int64, -n&7)...), width)
					got := make([]int64, n)
					err := lookUp(got, page, dictionary)
					wrong := slices.IndexFunc(numbers, func(number int64) bool { return number >= int64(distinct) })
					if wrong >= 0 {
						want := fmt.Sprintf("number %d of a dictionary of %d values", numbers[wrong], distinct)
						if err == nil || err.Error() != want {
							t.Fatalf("%d values, %d bits: got error %v, want %s", distinct, width, err, want)
						}
						continue
					}
					if err != nil {
						t.Fatalf("%d values, %d bits: %v", distinct, width, err)
					}
					for i, number := range numbers {
						if want := number*3 + 1; got[i] != want {
							t.Fatalf("%d values, %d bits: value %d is %d, want %d", distinct, width, i, got[i], want)
						}
					}
				}
			}
		}
	}
}

func TestDelta(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for _, typ := range []Type{Int32, Int64} {
		for width := range 8 * typ.Width() {
			for range 20 {
				values := make([]int64, 1+rng.IntN(400))
				all, last := int64(0), int64(0)
				for i := range values {
					last += int64(rng.Uint64() >> (64 - max(1, width)))
					if typ == Int32 {
						last = int64(int32(last))
					}
					values[i] = last
					all |= last
				}
				page := append(appendDelta(nil, values, typ), "rest"...)
				got := make([]int64, len(values))
				rest, gotAll, lost, err := decodeDelta(got, page, typ)
				if err != nil || string(rest) != "rest" || !slices.Equal(got, values) || gotAll != all || lost != 0 {
					t.Fatalf("%v, %d bits: got %v, rest %q, all %x, lost %x, error %v, want %v", typ, width, got, rest,
						gotAll, lost, err, values)
				}
				small := make([]uint8, len(values))
				_, _, lost, err = decodeDelta(small, page, typ)
				fits := uint64(all) < 256
				if err != nil || fits != (lost == 0) || fits && int64(small[len(small)-1]) != last {
					t.Fatalf("%v, %d bits, as bytes: got %v, lost %x, error %v", typ, width, small, lost, err)
				}
			}
		}
	}
}

// Levels of one bit give the same lists as any levels do, and touch nothing before their rows.
func TestBitLevels(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 5000 {
		n := 1 + rng.IntN(400)
		var rep, def Bitmap
		inList, isEmpty := rng.IntN(100), rng.IntN(100)
		rows, before := 0, rng.IntN(3)
		for i := range n {
			if i > 0 && rng.IntN(100) < inList { // an element more, of a list that is not empty
				if def.words[(i-1)/64]>>((i-1)%64)&1 == 1 {
					rep.Append(1)
					def.Append(1)
					continue
				}
			}
			rows++
			rep.Append(0)
			if rng.IntN(100) < isEmpty {
				def.Append(0)
			} else {
				def.Append(1)
			}
		}
		p := &Page{N: n, rep: levels{1, rep.appendLevels(nil)[4:]}, def: levels{1, def.appendLevels(nil)[4:]}}
		leaf := Leaf{MaxRep: 1, MaxDef: 1, slotDef: 1}
		read := func(l *Lists) (ends []uint32, at int, count uint32) {
			ends = make([]uint32, before+rows)
			Fill(ends, 7)
			if l.Empty {
				return ends, before - 1 + l.Rows, 7
			}
			at, count, err := l.Ends(ends, before-1, 7)
			if err != nil {
				t.Fatal(err)
			}
			return ends, at, count
		}
		got, err := new(Decoder).Lists(p, leaf)
		if err != nil {
			t.Fatal(err)
		}
		want := Lists{n: n, leaf: leaf}
		if err := want.expand(new(Decoder), p); err != nil {
			t.Fatal(err)
		}
		if got.Rows != want.Rows || got.Continues != want.Continues || !got.Empty && !got.bits {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		if got.HasBits() {
			sameCut(t, rng, got, read)
		}
		gotEnds, gotAt, gotCount := read(&got)
		wantEnds, wantAt, wantCount := read(&want)
		if gotAt != wantAt || gotCount != wantCount || !slices.Equal(gotEnds, wantEnds) {
			t.Fatalf("got row %d, count %d, ends %v, want %d, %d, %v", gotAt, gotCount, gotEnds, wantAt, wantCount,
				wantEnds)
		}
	}
}

// sameCut cuts lists and compares the parts with the whole.
func sameCut(t *testing.T, rng *rand.Rand, whole Lists, read func(l *Lists) ([]uint32, int, uint32)) {
	t.Helper()
	want, at, count := read(&whole)
	elements := whole.Elements()
	if uint32(elements) != count-7 {
		t.Fatalf("%d elements, expected %d", elements, count-7)
	}
	before := len(want) - whole.Rows
	got, last, end := make([]uint32, len(want)), before-1, uint32(7)
	Fill(got, 7)
	rest := whole
	var parts []Lists
	for rest.Rows > 0 {
		rows := 1 + rng.IntN(min(rest.Rows, 9))
		part := rest.Cut(rows)
		if part.Rows != rows {
			t.Fatalf("%d rows, expected %d", part.Rows, rows)
		}
		first := end
		var err error
		if last, end, err = part.Ends(got[:last+1+rows], last, end); err != nil {
			t.Fatal(err)
		}
		if elements := part.Elements(); uint32(elements) != end-first {
			t.Fatalf("%d elements in a part, expected %d", elements, end-first)
		}
		parts = append(parts, part)
	}
	if last != at || end != count || !slices.Equal(got, want) || rest.n != 0 {
		t.Fatalf("got ends %v in parts, expected %v; %d entries remain", got, want, rest.n)
	}
	lengths := func(l *Lists) []uint32 {
		ends := make([]uint32, l.Rows)
		if _, _, err := l.Ends(ends, -1, 0); err != nil {
			t.Fatal(err)
		}
		return ends
	}
	for i := range parts {
		for k := range parts[:i] {
			a, b := &parts[i], &parts[k]
			if same := slices.Equal(lengths(a), lengths(b)); a.Same(b) != same {
				t.Fatalf("lists %v and %v: same is %v", lengths(a), lengths(b), !same)
			}
		}
	}
}

// TestNumbers compares the numbers of pages with their look-ups.
func TestNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	found := map[int]int{} // by width
	for range 3000 {
		n, distinct := 1+rng.IntN(80), []int{1, 1 + rng.IntN(5), 256, 257, 1 << 16}[rng.IntN(5)]
		numbers := make([]uint16, n)
		for i := range numbers {
			numbers[i] = uint16(rng.IntN(min(distinct, 1+rng.IntN(distinct))))
		}
		p := &Page{N: n, encoding: encRLEDictionary}
		switch {
		case distinct == 1:
			p.values = appendRun([]byte{0}, 0, 0, n)
		case rng.IntN(5) == 0:
			p.values = appendRuns(nil, numbers, distinct)
		default:
			p.values = appendNumbers(nil, numbers, distinct)
		}
		dictionary := make([]int64, max(1, distinct-rng.IntN(2)))
		for i := range dictionary {
			dictionary[i] = rng.Int64()
		}
		want := make([]int64, n)
		wantErr := lookUp(want, p.values, dictionary)
		all, ok := p.Numbers(n)
		if !ok {
			found[-1]++
			continue
		}
		found[all.width]++
		if _, ok := p.Numbers(n + 9); ok {
			t.Fatalf("%d numbers of %d", n+9, n)
		}
		first := rng.IntN(n)
		got := make([]int64, n)
		err := LookUp(got[first:], all, first, dictionary)
		if err == nil {
			err = LookUp(got[:first], all, 0, dictionary)
		}
		if (err == nil) != (wantErr == nil) || err == nil && !slices.Equal(got, want) {
			t.Fatalf("got %v, %v, expected %v, %v", got, err, want, wantErr)
		}
		count := rng.IntN(min(n-first, 3) + 1)
		other := rng.IntN(n - count + 1)
		if same := slices.Equal(numbers[first:first+count], numbers[other:other+count]); distinct > 1 &&
			all.width > 0 && all.Same(first, other, count) != same {
			t.Fatalf("%d numbers from %d and %d: same is %v", count, first, other, !same)
		}
	}
	if found[-1] == 0 || found[0] == 0 || found[1] == 0 || found[2] == 0 {
		t.Errorf("pages by width: %v, expected some of each", found)
	}
	for _, values := range [][]byte{{}, {8}, {33, 2, 0}, {16, 3, 1}, {4, 3, 1, 1, 1, 1}} {
		if n, ok := (&Page{N: 8, encoding: encRLEDictionary, values: values}).Numbers(8); ok {
			t.Errorf("page %v: got %v, expected none", values, n)
		}
	}
	if _, ok := (&Page{N: 1, encoding: encPlain, values: []byte{0, 2}}).Numbers(1); ok {
		t.Error("a page without dictionary has numbers")
	}
}
