package store

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// checkRanks returns an error, that of the first rank with one, if a rank has what no file may have: references that
// lead nowhere, unknown kinds, negative sizes or times. first is the number of the first of the ranks.
func checkRanks(ranks []dag.Rank, first, comms, jobs int) error {
	return parallel(len(ranks), func(i int) error {
		if err := checkRank(&ranks[i], comms, jobs); err != nil {
			return fmt.Errorf("rank %d: %w", first+i, err)
		}
		return nil
	})
}

func checkRank(r *dag.Rank, comms, jobs int) error {
	for i, k := range r.Kind {
		if k >= dag.NumKinds {
			return fmt.Errorf("op %d: unknown kind %d", i, uint8(k))
		}
	}
	for i, s := range r.Subkind {
		if s >= dag.NumSubkinds {
			return fmt.Errorf("op %d: unknown subkind %d", i, uint8(s))
		}
	}
	for _, err := range []error{
		notNegative(colBytes, r.Bytes), notNegative(colRecvBytes, r.RecvBytes), notNegative(colDuration, r.Duration),
		notNegative(colFlops, r.Flops), notNegative(colRelease, r.Release),
		below(colComm, &r.Comm, int64(max(1, comms))), below(colJob, &r.Job, int64(max(1, jobs))),
		below(colStream, &r.Stream, 1<<31), below(colNIC, &r.NIC, 1<<31), below(colHost, &r.Host, 1<<31),
		below(colDims, &r.Dims, 1<<31),
	} {
		if err != nil {
			return err
		}
	}
	return r.CheckReferences()
}

func notNegative[T ~int64](column int, values []T) error {
	all := T(0)
	for _, v := range values {
		all |= v
	}
	if all >= 0 {
		return nil
	}
	for i, v := range values {
		if v < 0 {
			return fmt.Errorf("op %d: %s is %d, expected 0 or more", i, columns[column].name, v)
		}
	}
	return nil
}

// below returns an error if a value of the column is not in 0..limit-1.
func below(column int, values *dag.Narrow, limit int64) error {
	for i := range values.Len() {
		if v := values.At(i); v < 0 || int64(v) >= limit {
			return fmt.Errorf("op %d: %s is %d, expected 0..%d", i, columns[column].name, v, limit-1)
		}
	}
	return nil
}
