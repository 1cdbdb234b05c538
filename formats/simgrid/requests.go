// This file has the requests under way of a rank: nonblocking messages that no wait has completed.

package simgrid

import (
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// requests is the requests under way of a rank, in the order of their ops. Wildcards of keys are those of dag. An
// addition, a removal and a search take constant time, whatever the number of requests.
type requests struct {
	all   []request // with removed ones, unless these are more than half
	left  int       // number of requests under way
	byKey map[key]queue
}

// request is a request, under way or removed.
type request struct {
	key
	op   int
	next int  // index of the next one of the key; 0: none
	over bool // removed
}

// queue is the requests under way of a key: the indices of the first and the last one.
type queue struct{ first, last int }

// fewRequests is the number of removed requests that are kept in any case.
const fewRequests = 64

// add adds a request for an op behind those of all others.
func (r *requests) add(k key, op int) {
	if r.byKey == nil {
		r.byKey = make(map[key]queue)
	}
	if len(r.all) > 2*r.left+fewRequests {
		r.compact()
	}
	i := len(r.all)
	r.all = append(r.all, request{key: k, op: op})
	r.left++
	q, found := r.byKey[k]
	if found {
		r.all[q.last].next = i
	} else {
		q.first = i
	}
	q.last = i
	r.byKey[k] = q
}

// compact frees the removed requests.
func (r *requests) compact() {
	all := r.all
	r.clear()
	for _, q := range all {
		if !q.over {
			r.add(q.key, q.op)
		}
	}
}

// clear removes all requests.
func (r *requests) clear() {
	r.all, r.left = r.all[:0], 0
	clear(r.byKey)
}

// removeFirst removes the oldest request of a key, which has one, and returns its op.
func (r *requests) removeFirst(k key) (op int) {
	q := r.byKey[k]
	first := &r.all[q.first]
	first.over = true
	r.left--
	if q.first == q.last {
		delete(r.byKey, k)
	} else {
		q.first = first.next
		r.byKey[k] = q
	}
	return first.op
}

// has reports whether the request of an op is under way.
func (r *requests) has(op int) bool {
	i, found := slices.BinarySearchFunc(r.all, op, func(q request, op int) int { return q.op - op })
	return found && !r.all[i].over
}

// ops yields the ops of the requests under way.
func (r *requests) ops(yield func(op int) bool) {
	for i := range r.all {
		if q := &r.all[i]; !q.over && !yield(q.op) {
			return
		}
	}
}

// oldest returns the oldest request that a wait of a rank for a key completes: its op and its own key. A receive from
// any source or with any tag is found by what it met, unless another request has that key.
func (r *requests) oldest(k key, rank int) (op int, own key, found bool) {
	if q, found := r.byKey[k]; found {
		return r.all[q.first].op, k, true
	}
	if int(k.destination) != rank {
		return 0, key{}, false
	}
	for _, wild := range [...]key{
		{dag.AnySource, k.destination, k.tag}, {k.source, k.destination, dag.AnyTag},
		{dag.AnySource, k.destination, dag.AnyTag},
	} {
		if q, has := r.byKey[wild]; has && (!found || r.all[q.first].op < op) {
			op, own, found = r.all[q.first].op, wild, true
		}
	}
	return op, own, found
}
