package store

// Kinds and subkinds that the model does not have, and NULL instead of a kind: errors that name rank and op.

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// unknownLabels are the strings of a column of labels that are no labels. They are decoded as the numbers from 255
// down, so that those that rows refer to are found; a dictionary may have others.
type unknownLabels []string

// maxUnknown keeps the numbers of unknown labels above those of known ones.
const maxUnknown = 255 - max(dag.NumKinds, dag.NumSubkinds)

const nullLabel = "NULL"

// number returns the number of an unknown label.
func (u *unknownLabels) number(text string) (int, error) {
	i := slices.Index(*u, text)
	if i < 0 {
		if i = len(*u); i == maxUnknown {
			return 0, fmt.Errorf("expected labels of tracedag, found %d others such as %s", maxUnknown, text)
		}
		*u = append(*u, text)
	}
	return 255 - i, nil
}

// label parses a label.
func (r *valueReader[T]) label(s string) (T, error) {
	v, ok := r.parse(s)
	if ok {
		return v, nil
	}
	n, err := r.unknown.number(strconv.Quote(s))
	return T(n), err
}

// checkLabels returns an error about the first row of the given ones that has no label.
func (r *valueReader[T]) checkLabels(b *block, first, last int) error {
	if len(r.unknown) == 0 || !r.block.used {
		return nil
	}
	lowest := 256 - len(r.unknown)
	for row := first; row < last; row++ {
		v := int(r.block.values[row])
		if v < lowest {
			continue
		}
		k, _ := slices.BinarySearchFunc(b.ranks, row, func(rank rankRows, row int) int {
			if rank.last <= row {
				return -1
			}
			return 1
		})
		e := &labelError{
			rank: b.ranks[k].number, op: b.ranks[k].start + row - b.ranks[k].first, column: columns[r.column].name,
			found: r.unknown[255-v], newer: r.file.newer,
		}
		if r.column == colKind {
			e.known = labelNames(dag.NumKinds, func(i int) string { return dag.Kind(i).String() })
		} else {
			e.known = labelNames(dag.NumSubkinds, func(i int) string { return dag.Subkind(i).String() })
		}
		return e
	}
	return nil
}

// labelNames returns the names of labels, without the empty one.
func labelNames(n int, name func(i int) string) string {
	var names []string
	for i := range n {
		if s := name(i); s != "" {
			names = append(names, s)
		}
	}
	return strings.Join(names, ", ")
}

// labelError is an error about an op with an unknown kind or subkind.
type labelError struct {
	rank, op      int
	column, found string
	known         string
	newer         string // the version of the file, if it is newer than this program's
}

func (e *labelError) Error() string {
	text := fmt.Sprintf("rank %d: op %d: %s: expected one of %s, found %s", e.rank, e.op, e.column, e.known, e.found)
	if e.newer != "" {
		text += fmt.Sprintf("; the file has schema version %s, newer than %s: update tracedag", e.newer, Version)
	}
	return text
}
