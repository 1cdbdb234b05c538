package storage

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/par"
)

// findUnits returns the units of a trace in ascending order. It returns an error for the first malformed access.
func findUnits(ctx context.Context, t *dag.Trace) ([]unit, error) {
	ends := map[int32]int64{}
	for rank := range t.Ranks {
		if err := par.Interrupted(ctx); err != nil {
			return nil, err
		}
		r := t.Ranks[rank]
		for op, kind := range r.Kind {
			if kind != dag.IO {
				continue
			}
			number, address, bytes := r.Peer.At(op), r.Tag.At(op), r.Bytes.At(op)
			subkind, release := r.Subkind.At(op), r.Release.At(op)
			var problem string
			switch {
			case subkind != dag.Read && subkind != dag.Write:
				problem = fmt.Sprintf("io op with subkind %q, expected read or write", subkind)
			case number < 0:
				problem = fmt.Sprintf("access to unit %d, expected 0 or more", number)
			case address < 0 || bytes < 0 || address > math.MaxInt64-bytes:
				problem = fmt.Sprintf("access to %d bytes at address %d, expected 0 or more of each, "+
					"and an end below 2^63", bytes, address)
			case release < 0:
				problem = fmt.Sprintf("release time %v, expected 0s or more", release)
			default:
				if end := address + bytes; end >= ends[number] {
					ends[number] = end
				}
				continue
			}
			return nil, fmt.Errorf("rank %d, op %d: %s", rank, op, problem)
		}
	}
	units := make([]unit, 0, len(ends))
	for number, end := range ends {
		units = append(units, unit{number, end})
	}
	slices.SortFunc(units, func(a, b unit) int { return int(a.number) - int(b.number) })
	return units, nil
}
