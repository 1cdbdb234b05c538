package store

// The decoders' fast paths against the plainest way to decode.

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
	for _, typ := range []physicalType{typeInt32, typeInt64} {
		for width := range 8 * typ.width() {
			for range 20 {
				values := make([]int64, 1+rng.IntN(400))
				all, last := int64(0), int64(0)
				for i := range values {
					last += int64(rng.Uint64() >> (64 - max(1, width)))
					if typ == typeInt32 {
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
		var rep, def bitmap
		inList, isEmpty := rng.IntN(100), rng.IntN(100)
		rows, before := 0, rng.IntN(3)
		for i := range n {
			if i > 0 && rng.IntN(100) < inList { // an element more, of a list that is not empty
				if def.words[(i-1)/64]>>((i-1)%64)&1 == 1 {
					rep.append(1)
					def.append(1)
					continue
				}
			}
			rows++
			rep.append(0)
			if rng.IntN(100) < isEmpty {
				def.append(0)
			} else {
				def.append(1)
			}
		}
		p := &page{n: n, rep: levels{1, rep.appendLevels(nil)[4:]}, def: levels{1, def.appendLevels(nil)[4:]}}
		read := func(levels func(r *listReader) error) *listReader {
			r := &listReader{out: &buffer[uint32]{}, decoder: &decoder{}, count: 7}
			r.row, r.last = before-1, before+rows-1
			r.leaf.maxDef, r.leaf.slotDef = 1, 1
			r.out.begin(before+rows, 7)
			if err := levels(r); err != nil {
				t.Fatal(err)
			}
			return r
		}
		want := read(func(r *listReader) error { return r.byteLevels(p) })
		got := read(func(r *listReader) error { return r.levels(p) })
		if !got.out.used {
			got.out.room(got.row+1, got.row+1)
		}
		if got.row != want.row || got.count != want.count || !slices.Equal(got.out.values, want.out.values) {
			t.Fatalf("got row %d, count %d, ends %v, want %d, %d, %v", got.row, got.count, got.out.values, want.row,
				want.count, want.out.values)
		}
	}
}
