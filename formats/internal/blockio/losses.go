package blockio

import (
	"errors"
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
)

// Check returns an error if the trace has no storage accesses, or some that no format can represent.
func Check(t *dag.Trace) error {
	any := false
	for rank := range t.Ranks {
		r := t.Ranks[rank]
		for i, kind := range r.Kind {
			if kind != dag.IO {
				continue
			}
			any = true
			if s := r.Subkind.At(i); s != dag.Read && s != dag.Write {
				return fmt.Errorf("rank %d, op %d: expected a read or a write, found %q", rank, i, s)
			}
			for _, field := range [...]struct {
				name  string
				value int64
			}{
				{"a unit", int64(r.Peer.At(i))}, {"an address", r.Tag.At(i)}, {"a size", r.Bytes.At(i)},
				{"a time", int64(r.Release.At(i))},
			} {
				if field.value < 0 {
					return fmt.Errorf("rank %d, op %d: expected %s of 0 or more, found %d", rank, i, field.name,
						field.value)
				}
			}
		}
	}
	if !any {
		return errors.New("expected storage accesses (io ops) in the trace, found none")
	}
	return nil
}

// Losses returns the losses of every block-storage format. known reports whether a format keeps the attributes of
// an op, other than the place among ops of equal time.
func Losses(t *dag.Trace, known func(attrs string) bool) format.Losses {
	var others, deps, names, attrs int64
	for i := range t.Ranks {
		r := t.Ranks[i]
		for op, kind := range r.Kind {
			if kind != dag.IO {
				others++
			}
			if r.Deps.Count(op) > 0 || r.StartDeps.Count(op) > 0 {
				deps++
			}
		}
		for op := range r.Attrs.Len() {
			text := r.Attrs.At(op)
			if tied := attr.HasRecordTie(text); text != "" && !tied && !known(text) {
				attrs++
			}
		}
		names += r.Name.Present()
	}
	var l format.Losses
	l.Add("that they are no storage reads or writes, and are skipped", others)
	l.Add("dependencies", deps)
	l.AddFields(t)
	l.Add("names", names)
	l.Add("attributes", attrs)
	l.AddRareFields(t)
	l.AddNodes(t)
	if !unitsAreRanks(t) {
		l.Add("ranks, which the units do not determine", t.Ops()-others)
	}
	return l
}

// unitsAreRanks reports whether reading the trace's units, ascending, as ranks gives the ranks of the trace.
func unitsAreRanks(t *dag.Trace) bool {
	last := int32(-1)
	for i := range t.Ranks {
		r := t.Ranks[i]
		unit := int32(-1)
		for op, kind := range r.Kind {
			if kind != dag.IO {
				continue
			}
			if unit < 0 {
				unit = r.Peer.At(op)
			}
			if unit <= last || r.Peer.At(op) != unit {
				return false
			}
		}
		if unit < 0 {
			return false
		}
		last = unit
	}
	return true
}
