package timeline

import (
	"math/rand/v2"
	"testing"
)

// TestLanes checks that slices of a row do not overlap, whatever the order in which they are reported, also after times
// are rounded down to nanoseconds and boundaries are handled in the order of the reports; and that slices in order take
// no more rows than overlap at a time.
func TestLanes(t *testing.T) {
	type slice struct{ start, end uint64 }
	const perNanosecond = 10
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		var ranks rankTracks
		rows := map[*lane][]slice{}
		ordered, now, most := seed%2 == 0, uint64(0), 1+r.IntN(40)
		var recent []uint64 // ends of the latest slices, if ordered
		for range 400 {
			var s slice
			if ordered {
				now += r.Uint64N(20)
				s.start = now
			} else {
				s.start = r.Uint64N(3000)
			}
			s.end = s.start + r.Uint64N(30)
			if ordered {
				if len(recent) >= most {
					s.start = max(s.start, recent[len(recent)-most])
					now, s.end = s.start, max(s.start, s.end)
				}
				recent = append(recent, s.end)
				for i := len(recent) - 1; i > 0 && recent[i] < recent[i-1]; i-- {
					recent[i], recent[i-1] = recent[i-1], recent[i]
				}
			}
			l := ranks.lane(group{kind: nicGroup}, s.start, s.end, perNanosecond)
			for _, o := range rows[l] { // those before in the file
				if s.start < o.end && o.start < s.end {
					t.Fatalf("seed %d: %v and %v are on one row", seed, s, o)
				}
				from, to, length := s.start/perNanosecond, s.end/perNanosecond, o.end/perNanosecond-o.start/perNanosecond
				if o.start > s.start && to == o.start/perNanosecond && from < to && length > 0 {
					t.Fatalf("seed %d: %v ends in the nanosecond in which %v, earlier in the file, begins", seed, s, o)
				}
			}
			rows[l] = append(rows[l], s)
		}
		if ordered && len(rows) > most {
			t.Errorf("seed %d: %d rows for at most %d slices at a time", seed, len(rows), most)
		}
	}
}

// TestTrackNumbers checks that tracks of a rank have different numbers and the order of the documentation.
func TestTrackNumbers(t *testing.T) {
	var r rankTracks
	tids := map[int64]bool{}
	last := int32(-1 << 31)
	for _, g := range []group{{collectiveGroup, 0}, {streamGroup, 0}, {waitGroup, 0}, {streamGroup, 1}, {waitGroup, 1},
		{streamGroup, 1<<20 - 1}, {nicGroup, 0}, {nicGroup, 5}, {nicGroup, 1 << 30}} {
		for n := range 300 {
			k := r.newTrack(g, n)
			if tids[k.tid] {
				t.Fatalf("%+v: a second track has this tid", k)
			}
			tids[k.tid] = true
			if k.order < last {
				t.Fatalf("%+v is before %d", k, last)
			}
			last = k.order
		}
	}
	for _, stream := range []int32{-1, 1 << 20, 1<<31 - 1} { // large numbers share a place
		if k := r.newTrack(group{streamGroup, stream}, 0); tids[k.tid] {
			t.Errorf("%+v: a second track has this tid", k)
		} else {
			tids[k.tid] = true
		}
	}
}
