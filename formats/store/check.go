package store

import (
	"errors"
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// checkRanks returns an error about the first rank with invalid data: references out of range, unknown kinds,
// negative sizes or times. first is the number of the first rank.
func checkRanks(ranks []*dag.Rank, first, comms int, m *dag.Meta) error {
	return parallel(len(ranks), func(i int) error {
		if err := checkRank(ranks[i], comms, m); err != nil {
			return fmt.Errorf("rank %d: %w", first+i, err)
		}
		return nil
	})
}

func checkRank(r *dag.Rank, comms int, m *dag.Meta) error {
	if err := checkValues(r, 0, comms, m); err != nil {
		return err
	}
	return r.CheckReferences()
}

// checkValues is checkRank without references, for ops from the given one on.
func checkValues(r *dag.Rank, first, comms int, m *dag.Meta) error {
	for i, k := range r.Kind {
		if k >= dag.NumKinds {
			return fmt.Errorf("op %d: unknown kind %d", first+i, uint8(k))
		}
	}
	for i, s := range r.Subkind {
		if s >= dag.NumSubkinds {
			return fmt.Errorf("op %d: unknown subkind %d", first+i, uint8(s))
		}
	}
	for id := range dag.Fields {
		if limit := dag.Fields[id].Limit(comms, m); limit > 0 {
			err := checkRange(values(r, fieldColumn+id), first, columns[fieldColumn+id].name, limit)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPartReferences checks the references of a part of a rank with the given number of ops.
func checkPartReferences(run dag.Run, ops int) error {
	if len(run.Ops.Order.End)+len(run.Ops.StartOrder.End) > 0 {
		return errors.New("order of dependents: expected none in a rank that is read in parts")
	}
	for _, list := range []struct {
		name  string
		edges *dag.Edges
	}{{"deps", &run.Ops.Deps}, {"start_deps", &run.Ops.StartDeps}} {
		for i := range run.Ops.Len() {
			op := run.First + i
			for _, off := range list.edges.Of(i) {
				if on := op - int(off); uint(on) >= uint(ops) {
					return fmt.Errorf("%s: op %d depends on op %d, expected 0..%d", list.name, op, on, ops-1)
				}
			}
		}
	}
	return nil
}

// checkRange returns an error if a value of a column is negative or not below the limit. first is the number of the
// first op.
func checkRange(column dag.Values, first int, name string, limit uint64) error {
	switch values := column.(type) {
	case *dag.Column[int64]:
		return notNegative(name, *values, first)
	case *dag.Column[dag.Time]:
		return notNegative(name, *values, first)
	case *dag.Narrow:
		return below(name, values, first, int64(min(limit, 1<<31)))
	}
	return nil
}

func notNegative[T ~int64](name string, values []T, first int) error {
	all := T(0)
	for _, v := range values {
		all |= v
	}
	if all >= 0 {
		return nil
	}
	for i, v := range values {
		if v < 0 {
			return fmt.Errorf("op %d: %s: expected 0 or more, found %d", first+i, name, v)
		}
	}
	return nil
}

// below returns an error if a value of the column is not in 0..limit-1.
func below(name string, values *dag.Narrow, first int, limit int64) error {
	for i := range values.Len() {
		if v := values.At(i); v < 0 || int64(v) >= limit {
			return fmt.Errorf("op %d: %s: expected 0..%d, found %d", first+i, name, limit-1, v)
		}
	}
	return nil
}
