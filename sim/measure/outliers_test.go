package measure

import (
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// collectives returns a trace of two ranks with collectives of the given kinds, sizes and times. Rank 1 enters each 3
// us later than rank 0.
func collectives(kinds []dag.Subkind, bytes []int64, times []dag.Time) *dag.Trace {
	b := dag.NewBuilder(2)
	at := dag.Time(0)
	for k, kind := range kinds {
		for rank := range 2 {
			start := at + dag.Time(rank)*3*dag.Microsecond
			b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: kind, Bytes: bytes[k], Timed: true, MeasuredStart: start,
				MeasuredEnd: at + 3*dag.Microsecond + times[k]})
		}
		at += 3*dag.Microsecond + times[k]
	}
	return b.Trace()
}

// TestOutliers checks which collectives are outliers, and what they are compared with.
func TestOutliers(t *testing.T) {
	const us = dag.Microsecond
	for name, c := range map[string]struct {
		kinds  []dag.Subkind
		bytes  []int64
		times  []dag.Time
		op     int // outlier; -1: none
		median dag.Time
		others int
	}{
		"same kind and size": {[]dag.Subkind{dag.Barrier, dag.Allreduce, dag.Allreduce, dag.Allreduce, dag.Allreduce},
			[]int64{0, 8, 8, 8, 800}, []dag.Time{us, 90 * us, 2 * us, 4 * us, 60 * us}, 1, 4 * us, 2},
		"not much longer": {[]dag.Subkind{dag.Allreduce, dag.Allreduce}, []int64{8, 8},
			[]dag.Time{5 * us, us}, -1, 0, 0},
		"a little longer than two": {[]dag.Subkind{dag.Bcast, dag.Bcast, dag.Bcast}, []int64{8, 8, 8},
			[]dag.Time{56 * us, 25 * us, 24 * us}, 0, 25 * us, 2},
		"no longer than another": {[]dag.Subkind{dag.Bcast, dag.Bcast, dag.Bcast, dag.Bcast}, []int64{8, 8, 8, 8},
			[]dag.Time{56 * us, 50 * us, 24 * us, 24 * us}, -1, 0, 0},
		"short": {[]dag.Subkind{dag.Bcast, dag.Bcast, dag.Bcast, dag.Allreduce}, []int64{8, 8, 8, 8},
			[]dag.Time{56 * us, 25 * us, 24 * us, 9000 * us}, -1, 0, 0},
		"a later one": {[]dag.Subkind{dag.Bcast, dag.Bcast}, []int64{8, 8}, []dag.Time{us, 90 * us}, -1, 0, 0},
		"other kinds": {[]dag.Subkind{dag.Bcast, dag.Allreduce, dag.Barrier}, []int64{8, 16, 0},
			[]dag.Time{90 * us, 2 * us, us}, 0, 2 * us, 1},
		"larger than all others": {[]dag.Subkind{dag.Bcast, dag.Allreduce}, []int64{80, 16}, []dag.Time{90 * us, 2 * us},
			-1, 0, 0},
		"first of its kind": {[]dag.Subkind{dag.Allgather, dag.Scan, dag.Allreduce, dag.Allreduce, dag.Allreduce},
			[]int64{8, 8, 8, 8, 8}, []dag.Time{us, us, 90 * us, 2 * us, 4 * us}, 2, 4 * us, 2},
		"only one of its kind": {[]dag.Subkind{dag.Bcast, dag.Allreduce}, []int64{8, 8}, []dag.Time{us, 90 * us}, -1, 0,
			0},
		"first barrier": {[]dag.Subkind{dag.Barrier, dag.Barrier, dag.Allreduce}, []int64{0, 0, 8},
			[]dag.Time{90 * us, 2 * us, us}, 0, 2 * us, 1},
	} {
		trace := collectives(c.kinds, c.bytes, c.times)
		found := outliersOf(trace)
		if c.op < 0 {
			if len(found) > 0 {
				t.Errorf("%s: %+v", name, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Op != c.op || found[0].Rank != 1 || found[0].Others != c.others ||
			found[0].Median.Ticks != uint64(c.median) || found[0].Measured.Ticks != uint64(c.times[c.op]) {
			t.Errorf("%s: %+v", name, found)
			continue
		}
		all, err := MeasuredOf(trace, MeasuredOptions{})
		if err != nil {
			t.Fatal(err)
		}
		without, err := MeasuredOf(trace, MeasuredOptions{ExcludeOutliers: true})
		if err != nil {
			t.Fatal(err)
		}
		for rank := range 2 {
			long, _ := all.ranks[rank].runTime()
			short, _ := without.ranks[rank].runTime()
			if long.Ticks-short.Ticks != uint64(c.times[c.op]-c.median) {
				t.Errorf("%s: rank %d took %v, without the outlier %v", name, rank, long, short)
			}
		}
	}
}

// TestResolution checks the greatest common divisor of times, some of them unknown.
func TestResolution(t *testing.T) {
	b := dag.NewBuilder(2)
	for _, at := range [][2]dag.Time{{1_000_001, 7_000_001}, {4_000_001, dag.Unmeasured}} {
		b.Rank(0).Add(dag.Op{Timed: true, MeasuredStart: at[0], MeasuredEnd: at[1]})
	}
	b.Rank(1).Add(dag.Op{Timed: true, MeasuredStart: 5, MeasuredEnd: 12_000_005})
	m, err := MeasuredOf(b.Trace(), MeasuredOptions{})
	if err != nil || m.resolution != 3*dag.Microsecond {
		t.Errorf("resolution %v, error %v", m.resolution, err)
	}
}
