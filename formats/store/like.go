package store

// Ranks of a block with the same values in a column.

// likeRanks is the ranks of a block that have, in one column, the values of the rank before. Many schedules give most
// ranks the same values, so readers decode a fraction of them, and those who compare ranks find them in the same
// memory. Ranks are equal if their encoded values are, of which many have one byte.
type likeRanks struct {
	enabled bool
	ranks   []rankRows // of the block
	first   []int32    // by rank: the first one of those with its values
	next    int        // the first rank not yet decoded as a whole
}

// begin begins a block.
func (l *likeRanks) begin(b *block) {
	l.enabled, l.ranks, l.next, l.first = b.alike, b.ranks, 0, l.first[:0]
}

// rows returns the rows with the values of rank k of the block, which has the given rows.
func (l *likeRanks) rows(k int, of rows) rows {
	if k >= len(l.first) {
		return of
	}
	return l.ranks[l.first[k]].rows
}

// same reports whether rank k of the block has the values of the rank before.
func (l *likeRanks) same(k int) bool {
	return k < len(l.first) && int(l.first[k]) < k
}

// each calls do for the rows of each rank among rows first to last-1 of the block, those of one page. Pages must come
// in order. If comparable is set, the rank may have the values of the rank before, which has the rows before, all of
// them in the page; do reports whether it has.
func (l *likeRanks) each(first, last int, do func(of, before rows, comparable bool) (same bool, err error)) error {
	for l.next < len(l.ranks) && l.ranks[l.next].last <= first { // their page had another form
		l.next++
	}
	for ; l.next < len(l.ranks) && l.ranks[l.next].first < last; l.next++ {
		k := l.next
		own, before := l.ranks[k].rows, rows{}
		of := rows{max(own.first, first), min(own.last, last)}
		if k > 0 {
			before = l.ranks[k-1].rows
		}
		comparable := of == own && before.first >= first && before.last-before.first == own.last-own.first
		same, err := do(of, before, comparable)
		if err != nil {
			return err
		}
		if own.first >= first {
			for len(l.first) < k {
				l.first = append(l.first, int32(len(l.first)))
			}
			if same {
				l.first = append(l.first, l.first[k-1])
			} else {
				l.first = append(l.first, int32(k))
			}
		}
		if own.last > last {
			break
		}
	}
	return nil
}
