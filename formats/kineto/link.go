// This file connects what a recording has, and sorts it.

package kineto

import (
	"cmp"
	"slices"
)

// link connects each device op with the call that launched it, removes calls that are not needed, and sorts.
func (p *parser) link() error {
	order := make([]int32, 0, len(p.calls)) // by correlation
	for i := range p.calls {
		if p.calls[i].correlation >= 0 {
			order = append(order, int32(i))
		}
	}
	byCorrelation := func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.calls[a].correlation, p.calls[b].correlation), cmp.Compare(a, b))
	}
	if !slices.IsSortedFunc(order, byCorrelation) {
		slices.SortFunc(order, byCorrelation)
	}
	find := func(correlation int64) int32 {
		n, ok := slices.BinarySearchFunc(order, correlation, func(i int32, correlation int64) int {
			return cmp.Compare(p.calls[i].correlation, correlation)
		})
		if !ok {
			return -1
		}
		return order[n]
	}
	for i := range p.ops {
		o := &p.ops[i]
		c := int32(-1)
		if o.correlation >= 0 {
			c = find(o.correlation)
		}
		if o.correlation = int64(c); c >= 0 {
			p.calls[c].launches = true
		}
		if i%4096 == 0 {
			if err := p.watch.Err(); err != nil {
				return err
			}
		}
	}
	for i := range p.syncs {
		s := &p.syncs[i]
		s.correlation, s.record = int64(find(s.correlation)), int64(find(s.record))
	}
	p.sortCalls()
	return nil
}

// sortCalls removes the calls that neither launch nor wait nor record, and sorts the others by time.
func (p *parser) sortCalls() {
	order := make([]int32, 0, len(p.calls))
	for i := range p.calls {
		if p.calls[i].launches || p.calls[i].kind != callOther {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.calls[a].start, p.calls[b].start), cmp.Compare(a, b))
	})
	at := make([]int32, len(p.calls))
	for i := range at {
		at[i] = -1
	}
	sorted := make([]call, len(order))
	for i, from := range order {
		sorted[i], at[from] = p.calls[from], int32(i)
	}
	p.calls = sorted
	renumber := func(n *int64) {
		if *n >= 0 {
			*n = int64(at[*n])
		}
	}
	for i := range p.ops {
		renumber(&p.ops[i].correlation)
	}
	for i := range p.syncs {
		renumber(&p.syncs[i].correlation)
		renumber(&p.syncs[i].record)
	}
	p.sortOps()
	defer p.useHost()
	slices.SortStableFunc(p.marks, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	slices.SortStableFunc(p.steps, func(a, b stepRange) int { return cmp.Compare(a.start, b.start) })
}

// sortOps sorts device ops by start; those that start together by the time of their launch, then by their end.
func (p *parser) sortOps() {
	launched := func(o *deviceOp) int64 { return o.correlation } // calls are sorted by time
	compare := func(a, b deviceOp) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(launched(&a), launched(&b)),
			cmp.Compare(a.end(), b.end()))
	}
	if !slices.IsSortedFunc(p.ops, compare) {
		slices.SortStableFunc(p.ops, compare)
	}
}
