// This file follows requests from the call that makes them to the one that waits for them.
//
// A request is known by the address of the variable that holds it. The trace does not say what a test finds, or which
// requests MPI_Waitany and MPI_Waitsome complete: the last such call before the request is used again, or before the
// end, must have been the one.

package mpi

import (
	"cmp"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// requests are those of a rank.
type requests struct {
	byAddress map[uint64]int32
	all       []request
	stride    uint64   // distance of requests in an array: 8 for pointers; 4 once an address shows that they are integers
	tested    []int32  // the op that follows each test point that mattered, by its id
	tests     int32    // how many test points there were
	unwaited  finding  // requests that no call completes
	found     []int32  // the requests of an array
	addresses []uint64 // and their addresses
}

// request is one variable.
type request struct {
	op         int32 // that is under way
	active     bool
	test       int32 // id of the test point that may have completed it, noTest
	line       int64 // where it was started
	persistent bool
	none       bool   // the partner is MPI_PROC_NULL
	prepared   dag.Op // of a persistent request
}

const noTest = -1

// testPoint is a call in the gap at hand after which requests may have been complete.
type testPoint struct {
	id      int32
	at      span
	waiting int32 // requests of which it is the last such call, plus 1 for a call that waits
}

// requestAt returns the index of the request at an address, -1 if there was never one.
func (q *requests) requestAt(address uint64) int32 {
	if i, ok := q.byAddress[address]; ok {
		return i
	}
	return -1
}

// request returns the index of the request at an address.
func (r *rankReader) request(address uint64) int32 {
	if i, ok := r.byAddress[address]; ok {
		return i
	}
	if r.byAddress == nil {
		r.byAddress = make(map[uint64]int32)
		r.stride = 8
	}
	if address%8 != 0 {
		r.stride = 4
	}
	i := int32(len(r.all))
	r.all = append(r.all, request{test: noTest})
	r.byAddress[address] = i
	return i
}

// startRequest adds an op whose end a later call waits for.
func (r *rankReader) startRequest(address uint64, op *dag.Op, at span) {
	r.closeGap(at.start)
	i := r.request(address)
	r.all[i].persistent = false
	r.startOp(i, op, at)
	r.leave(at)
}

// startOp adds the op of a request. The gap in front of it must be closed.
func (r *rankReader) startOp(i int32, op *dag.Op, at span) {
	r.settle(i)
	q := &r.all[i]
	q.active, q.line = true, r.line
	q.op = int32(r.add(op, at))
	r.after.clear()
	r.after.starts = append(r.after.starts, int(q.op))
}

// settle ends what is under way at a request that will not be looked at any more: the last call that tested it
// completed it.
func (r *rankReader) settle(i int32) {
	q := &r.all[i]
	if !q.active {
		return
	}
	q.active = false
	if q.test != noTest && r.tested[q.test] == noTest {
		r.closeTests()
	}
	switch {
	case q.test == noTest:
		r.unwaited.add(q.line)
	case int(r.tested[q.test]) < r.b.Len():
		r.b.Requires(int(r.tested[q.test]), int(q.op))
	default: // what follows the test is the next op
		r.after.ends = append(r.after.ends, int(q.op))
	}
	q.test = noTest
}

// forget makes a variable hold no request.
func (r *rankReader) forget(address uint64) {
	if i := r.requestAt(address); i >= 0 {
		r.settle(i)
		r.all[i].persistent = false
	}
}

// prepare stores the op of a persistent request.
func (r *rankReader) prepare(address uint64, op *dag.Op, none bool) {
	i := r.request(address)
	r.settle(i)
	q := &r.all[i]
	q.persistent, q.none, q.prepared = true, none, *op
}

// requestCall does what a call about requests does.
func (r *rankReader) requestCall(c *call, f *fields, at span) error {
	r.found = r.found[:0]
	switch c.do {
	case start, free, waitOne, testOne:
		if i := r.requestAt(f.request); i >= 0 {
			r.found = append(r.found, i)
		}
	default:
		if err := r.findArray(f); err != nil {
			return err
		}
	}
	switch c.do {
	case start, startAll:
		r.startPersistent(c, f, at)
		return nil
	case free:
		for _, i := range r.found {
			if q := &r.all[i]; q.test == noTest {
				q.active = false // it ends by itself
			}
		}
		r.forget(f.request)
		return nil
	}
	r.found = slices.DeleteFunc(r.found, func(i int32) bool { return !r.all[i].active })
	switch {
	case len(r.found) == 0: // null requests
	case c.do == waitOne || c.do == waitAll || c.do == waitSome && len(r.found) == 1:
		r.wait(at)
	default:
		r.test(at, c.do == waitSome)
	}
	return nil
}

// findArray lists the known requests of an array.
func (r *rankReader) findArray(f *fields) error {
	count := f.numbers[0]
	if count < 0 {
		return r.fail(inValue, "a number of requests", "a negative one")
	}
	if f.request%8 != 0 {
		r.stride = 4
	}
	if count <= int64(2*len(r.all)) {
		for k := range uint64(count) {
			if i := r.requestAt(f.request + k*r.stride); i >= 0 {
				r.found = append(r.found, i)
			}
		}
		return nil
	}
	// The array is longer than there are requests, of whom most must be null.
	r.addresses = r.addresses[:0]
	for address := range r.byAddress {
		if d := address - f.request; d%r.stride == 0 && d/r.stride < uint64(count) {
			r.addresses = append(r.addresses, address)
		}
	}
	slices.Sort(r.addresses)
	for _, address := range r.addresses {
		r.found = append(r.found, r.byAddress[address])
	}
	return nil
}

// startPersistent starts persistent requests.
func (r *rankReader) startPersistent(c *call, f *fields, at span) {
	r.found = slices.DeleteFunc(r.found, func(i int32) bool { return !r.all[i].persistent })
	if c.do == start && len(r.found) == 0 || c.do == startAll && int64(len(r.found)) < f.numbers[0] {
		r.problems.add(r.line, inCall, "requests started that no call has prepared")
	}
	r.found = slices.DeleteFunc(r.found, func(i int32) bool { return r.all[i].none })
	if len(r.found) == 0 {
		return
	}
	r.closeGap(at.start)
	for _, i := range r.found {
		op := r.all[i].prepared
		r.startOp(i, &op, at)
	}
	r.leave(at)
}

// wait adds an op of no length that waits for the requests found.
func (r *rankReader) wait(at span) {
	for _, k := range r.found {
		r.releaseTest(k)
	}
	r.closeGap(at.start)
	i := r.add(&dag.Op{Kind: dag.Calc}, at)
	for _, k := range r.found {
		q := &r.all[k]
		r.b.Requires(i, int(q.op))
		q.active, q.test = false, noTest
	}
	r.after.clear()
	r.after.ends = append(r.after.ends, i)
	r.leave(at)
}

// test notes that a call may have completed the requests found.
func (r *rankReader) test(at span, waits bool) {
	point := testPoint{id: r.tests, at: at}
	if waits {
		point.waiting++
	}
	r.tests++
	r.tested = append(r.tested, noTest)
	for _, k := range r.found {
		r.releaseTest(k)
		r.all[k].test = point.id
		point.waiting++
	}
	// Points that no request needs any more are no more than computation.
	r.pending = slices.DeleteFunc(r.pending, func(t testPoint) bool { return t.waiting == 0 })
	r.pending = append(r.pending, point)
}

// releaseTest takes a request from its test point, if that is in the gap at hand.
func (r *rankReader) releaseTest(k int32) {
	i, found := slices.BinarySearchFunc(r.pending, r.all[k].test, func(t testPoint, id int32) int {
		return cmp.Compare(t.id, id)
	})
	if found {
		r.pending[i].waiting--
	}
}

// closeTests ends the gap at hand behind its last test point, so that all of them have an op that follows.
func (r *rankReader) closeTests() {
	if n := len(r.pending); n > 0 {
		r.closeGap(r.pending[n-1].at.end)
	}
}
