package storage

import (
	"context"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// record is an access of a test trace.
type record struct {
	unit    int32
	address int64
	bytes   int64
	write   bool
	time    dag.Time
}

// traceOf returns the trace of records in order of time, with one rank per unit.
func traceOf(records ...record) *dag.Trace {
	var units []int32
	for _, r := range records {
		if !slices.Contains(units, r.unit) {
			units = append(units, r.unit)
		}
	}
	slices.Sort(units)
	b := dag.NewBuilder(len(units))
	for _, r := range records {
		subkind := dag.Read
		if r.write {
			subkind = dag.Write
		}
		rank, _ := slices.BinarySearch(units, r.unit)
		b.Rank(rank).Add(dag.Op{
			Kind: dag.IO, Subkind: subkind, Bytes: r.bytes, Peer: r.unit, Tag: r.address, Release: r.time,
		})
	}
	return b.Trace()
}

func mustParse(t testing.TB, text string) Choice {
	t.Helper()
	c, err := ParseChoice(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustLower(t testing.TB, tr *dag.Trace, choice string) (*dag.Trace, *Report) {
	t.Helper()
	lowered, report, err := Lower(context.Background(), tr, mustParse(t, choice))
	if err != nil {
		t.Fatalf("%s: %v", choice, err)
	}
	return lowered, report
}
