package dag

import (
	"cmp"
	"math/bits"
	"slices"
)

// IOStats summarizes the storage requests of a trace. Each op of kind IO is one request to a storage unit (Peer); it
// is issued at the op's release time.
type IOStats struct {
	Requests IOCounts     `json:"requests"`
	Units    int          `json:"units"`
	First    Time         `json:"first_ps"` // issue time of the first request
	Last     Time         `json:"last_ps"`
	IOPS     float64      `json:"iops"`             // requests per second, from the first to the last
	Rate     float64      `json:"bytes_per_second"` // from the first to the last request
	Sizes    []IOSizes    `json:"sizes"`            // non-empty size classes, ascending
	Times    []IOInterval `json:"intervals"`        // at most 20, of equal length
	Hot      []IOUnit     `json:"hot_units"`        // at most 10, in descending order of requests
}

// IOCounts counts requests.
type IOCounts struct {
	Reads      int64 `json:"reads"`
	Writes     int64 `json:"writes"`
	ReadBytes  Total `json:"read_bytes"`
	WriteBytes Total `json:"write_bytes"`
}

// Total returns the number of requests.
func (c *IOCounts) Total() int64 { return c.Reads + c.Writes }

// Bytes returns the bytes of all requests.
func (c *IOCounts) Bytes() Total {
	all := c.ReadBytes
	all.addSum(c.WriteBytes)
	return all
}

func (c *IOCounts) add(write bool, bytes int64) {
	if write {
		c.Writes++
		c.WriteBytes.add(bytes)
		return
	}
	c.Reads++
	c.ReadBytes.add(bytes)
}

// IOSizes counts the requests with sizes From to To bytes.
type IOSizes struct {
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Reads  int64 `json:"reads"`
	Writes int64 `json:"writes"`
}

// IOInterval counts the requests of one time interval.
type IOInterval struct {
	Start Time `json:"start_ps"`
	IOCounts
}

// IOUnit counts the requests to one unit.
type IOUnit struct {
	Rank int   `json:"rank"`
	Unit int32 `json:"unit"`
	IOCounts
}

// The maximum numbers of intervals and units in IOStats.
const (
	maxIOIntervals = 20
	maxIOUnits     = 10
)

// SummarizeIO returns the statistics of the storage requests of a trace, nil if it has none.
func SummarizeIO(t *Trace) *IOStats {
	s := &IOStats{First: MaxTime}
	var sizes [65]IOCounts
	var units []IOUnit
	eachIO(t, func(rank int, r *Rank, i int, write bool) {
		bytes, at := max(r.Bytes.At(i), 0), r.Release.At(i)
		s.Requests.add(write, bytes)
		s.First, s.Last = min(s.First, at), max(s.Last, at)
		sizes[bits.Len64(uint64(bytes))].add(write, bytes)
	})
	if s.Requests.Total() == 0 {
		return nil
	}
	for k := range sizes {
		if c := &sizes[k]; c.Total() > 0 {
			from, to := int64(0), int64(0)
			if k > 0 {
				from = 1 << (k - 1)
				to = from + (from - 1)
			}
			s.Sizes = append(s.Sizes, IOSizes{from, to, c.Reads, c.Writes})
		}
	}
	span := s.Last - s.First
	length := span/maxIOIntervals + 1
	s.Times = make([]IOInterval, span/length+1)
	for k := range s.Times {
		s.Times[k].Start = s.First + Time(k)*length
	}
	index := make(map[[2]int32]int)
	eachIO(t, func(rank int, r *Rank, i int, write bool) {
		bytes := max(r.Bytes.At(i), 0)
		s.Times[(r.Release.At(i)-s.First)/length].add(write, bytes)
		k := [2]int32{int32(rank), r.Peer.At(i)}
		at, known := index[k]
		if !known {
			at = len(units)
			index[k] = at
			units = append(units, IOUnit{Rank: rank, Unit: k[1]})
		}
		units[at].add(write, bytes)
	})
	s.Units = len(units)
	slices.SortFunc(units, func(a, b IOUnit) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Unit, b.Unit))
	})
	s.Hot = units[:min(len(units), maxIOUnits)]
	if seconds := float64(span) / float64(Second); seconds > 0 {
		s.IOPS = float64(s.Requests.Total()) / seconds
		s.Rate = s.Requests.Bytes().Float() / seconds
	}
	return s
}

// eachIO calls do for every request, by rank and op.
func eachIO(t *Trace, do func(rank int, r *Rank, i int, write bool)) {
	for rank := range t.Ranks {
		r := t.Ranks[rank]
		for i, kind := range r.Kind {
			if kind == IO {
				do(rank, r, i, r.Subkind.At(i) == Write)
			}
		}
	}
}
