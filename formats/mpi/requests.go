// This file follows requests from the call that starts them to the call that waits for them.
//
// A request is identified by the address of its variable. The trace does not have the result of a test, or the
// requests that MPI_Waitsome completes. The last such call before the next use of the request, or before the end, is
// taken to complete it. anywaits.go chooses the requests that MPI_Waitany completes.

package mpi

import (
	"cmp"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// requests are the requests of a rank.
type requests struct {
	byAddress map[uint64]int32
	all       []request
	integers  bool      // the variables have 4 bytes, as an address has shown; else 8, as pointers have
	sets      []testSet // requests that the same call tested last
	tested    []int32   // op that follows each relevant test point, by id
	array     requestArray
	changes   int      // number of times a request was started, ended, or tested by another call than before
	polledFor dag.Time // time in polled
	polled    finding  // calls of MPI_Waitsome whose recorded time is kept
	unwaited  finding  // requests that no call completes
	cancelled finding  // receives that MPI_Cancel ended
	undone    []int32  // their ops
	found     []int32  // requests of the current call
}

// request is one variable.
type request struct {
	op         int32 // in progress
	active     bool
	kind       dag.Kind
	bytes      int64
	set        int32 // its test set, or noTest
	pool       int32 // its pool, or noPool
	line       int64 // line of its start
	persistent bool
	none       bool   // the partner is MPI_PROC_NULL
	prepared   dag.Op // of a persistent request
}

// order returns the position of the request among those of a call that waits for several.
func (q *request) order() int {
	if q.kind == dag.Coll {
		return 0
	}
	return 1
}

const noTest = -1

// testSet is requests that one call, and no later one, may have completed.
type testSet struct {
	point int32 // id of that call's test point
	size  int32
}

// testPoint is a call in the current gap after which requests may have been complete.
type testPoint struct {
	id      int32
	at      span
	waiting int32 // requests for which it is the last such call, plus 1 for a call that waits
	waits   bool
	calls   dag.Time // in earlier calls of the gap that become no op
}

// callsBehind returns the time of the gap up to the end of the test in calls that become no op.
func (t *testPoint) callsBehind() dag.Time {
	return t.calls + max(0, t.at.end-t.at.start)
}

// requestArray is the array of requests of the latest call. Programs poll the same array repeatedly.
type requestArray struct {
	address, stride uint64
	count           int64
	known           int     // number of requests known then
	requests        []int32 // in the array
	changes         int     // at its last test
	set             int32   // test set of the requests in progress then, or noTest
	pool            int32   // pool of the requests in progress then, or noPool
}

// requestAt returns the index of the request at an address, or -1.
func (q *requests) requestAt(address uint64) int32 {
	if i, ok := q.byAddress[address]; ok {
		return i
	}
	return -1
}

// request returns the index of the request at an address, a new one if necessary.
func (r *rankReader) request(address uint64) int32 {
	if i, ok := r.byAddress[address]; ok {
		return i
	}
	if r.byAddress == nil {
		r.byAddress = make(map[uint64]int32)
	}
	i := int32(len(r.all))
	r.all = append(r.all, request{set: noTest, pool: noPool})
	r.byAddress[address] = i
	return i
}

// noteAlignment derives the size of request variables from an address.
func (q *requests) noteAlignment(address uint64) {
	q.integers = q.integers || address%8 != 0
}

// stride returns the distance of requests in an array.
func (r *rankReader) stride() uint64 {
	if r.integers || r.library == mpich {
		return 4
	}
	return 8
}

// startRequest adds an op whose end a later call waits for.
func (r *rankReader) startRequest(address uint64, op *dag.Op, at span) {
	r.noteAlignment(address)
	r.closeGap(at.start)
	i := r.request(address)
	r.all[i].persistent = false
	r.startOp(i, op, at)
	r.leave(at)
}

// startOp adds the op of a request. The gap before it must be closed.
func (r *rankReader) startOp(i int32, op *dag.Op, at span) {
	r.complete(i)
	r.changes++
	q := &r.all[i]
	q.active, q.kind, q.bytes, q.line = true, op.Kind, op.Bytes, r.line
	q.op = int32(r.add(op, at))
	r.after.clear()
	r.after.starts = append(r.after.starts, int(q.op))
}

// complete ends a request in progress that no later call uses: the last call that tested it completed it.
func (r *rankReader) complete(i int32) {
	q := &r.all[i]
	if !q.active {
		return
	}
	r.changes++
	q.active = false
	if q.pool != noPool {
		r.leavePool(q, mustEnd)
		return
	}
	if q.set == noTest {
		r.unwaited.add(q.line)
		return
	}
	set := &r.sets[q.set]
	if r.tested[set.point] == noTest {
		r.closeTests()
	}
	if follows := r.tested[set.point]; int(follows) < r.b.Len() {
		r.b.Requires(int(follows), int(q.op))
	} else { // the op after the test is the next op
		r.after.ends = append(r.after.ends, int(q.op))
	}
	set.size--
	q.set = noTest
}

// forget removes the request from a variable.
func (r *rankReader) forget(address uint64) {
	if i := r.requestAt(address); i >= 0 {
		r.complete(i)
		r.all[i].persistent = false
	}
}

// prepare stores the op of a persistent request.
func (r *rankReader) prepare(address uint64, op *dag.Op, none bool) {
	i := r.request(address)
	r.complete(i)
	q := &r.all[i]
	q.persistent, q.none, q.prepared = true, none, *op
}

// requestCall converts a call about requests.
func (r *rankReader) requestCall(c *call, f *fields, at span) error {
	r.noteAlignment(f.request)
	array := false
	r.found = r.found[:0]
	switch c.do {
	case start, free, cancel, waitOne, testOne:
		if i := r.requestAt(f.request); i >= 0 {
			r.found = append(r.found, i)
		}
	default:
		if f.numbers[0] < 0 {
			return r.fail(inValue, "a number of requests", "a negative one")
		}
		array = true
		r.findArray(f.request, f.numbers[0])
		if a := &r.array; a.set != noTest && a.changes == r.changes && r.sets[a.set].size > 1 &&
			(c.do == waitAny || c.do == waitSome || c.do == testSome) {
			r.testAgain(a.set, at, r.waits(c, at))
			return nil
		}
		if a := &r.array; c.do == waitAny && a.pool != noPool && a.changes == r.changes {
			r.waitInPool(a.pool, at)
			return nil
		}
		r.found = append(r.found, r.array.requests...)
	}
	switch c.do {
	case start, startAll:
		r.startPersistent(c, f, at)
		return nil
	case free:
		for _, i := range r.found {
			if q := &r.all[i]; q.active && q.set == noTest && q.pool == noPool {
				q.active = false // it ends without a call
				r.changes++
			}
		}
		r.forget(f.request)
		return nil
	case cancel:
		for _, i := range r.found {
			r.cancel(&r.all[i])
		}
		return nil
	}
	r.found = slices.DeleteFunc(r.found, func(i int32) bool { return !r.all[i].active })
	switch {
	case len(r.found) == 0: // null requests
	case c.do == waitOne || c.do == waitAll || c.do == waitSome && len(r.found) == 1,
		c.do == waitAny && len(r.found) == 1 && r.all[r.found[0]].pool == noPool:
		r.wait(at)
	case c.do == waitAny && !r.isMixed():
		r.waitAny(at)
	case array:
		r.array.set = r.test(r.array.set, at, r.waits(c, at))
		r.array.changes = r.changes
	default:
		r.test(noTest, at, false)
	}
	return nil
}

// waits reports whether a call about an array of pending requests only waits for them. MPI_Waitsome of SMPI waits for
// the first request and tests the others, each for smpiPoll or more; the trace does not separate the two, so the
// recorded time is that of tests.
func (r *rankReader) waits(c *call, at span) bool {
	if c.do == waitSome && r.library == smpi && at.end-at.start >= smpiPoll {
		r.polled.add(r.line)
		r.polledFor += at.end - max(at.start, r.last)
		return false
	}
	return c.do != testSome
}

// cancel marks a receive in progress as without a message.
func (r *rankReader) cancel(q *request) {
	if q.active && q.kind == dag.Recv {
		r.cancelled.add(r.line)
		r.undone = append(r.undone, q.op)
	}
}

// findArray sets r.array to the known requests of an array.
func (r *rankReader) findArray(address uint64, count int64) {
	a := &r.array
	stride := r.stride()
	if a.address == address && a.count == count && a.stride == stride && a.known == len(r.all) {
		return
	}
	*a = requestArray{address: address, stride: stride, count: count, known: len(r.all), requests: a.requests[:0],
		set: noTest, pool: noPool}
	if count <= int64(2*len(r.all)) {
		for k := range uint64(count) {
			if i := r.requestAt(address + k*stride); i >= 0 {
				a.requests = append(a.requests, i)
			}
		}
		return
	}
	// The array is longer than the number of requests, so most of its entries are null.
	var addresses []uint64
	for other := range r.byAddress {
		if d := other - address; d%stride == 0 && d/stride < uint64(count) {
			addresses = append(addresses, other)
		}
	}
	slices.Sort(addresses)
	for _, other := range addresses {
		a.requests = append(a.requests, r.byAddress[other])
	}
}

// startPersistent starts persistent requests.
func (r *rankReader) startPersistent(c *call, f *fields, at span) {
	r.found = slices.DeleteFunc(r.found, func(i int32) bool { return !r.all[i].persistent })
	if c.do == start && len(r.found) == 0 || c.do == startAll && int64(len(r.found)) < f.numbers[0] {
		r.problems.add(r.line, inCall, "starts of requests that were not prepared")
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

// wait adds an op of duration 0 that waits for the requests found. SMPI waits for a collective alone, before any
// message.
func (r *rankReader) wait(at span) {
	r.changes++
	for _, k := range r.found {
		r.releaseTest(k)
		r.leavePool(&r.all[k], mayEnd)
	}
	r.closeGap(at.start)
	rest := r.found
	if r.library == smpi {
		slices.SortStableFunc(rest, func(i, j int32) int { return r.all[i].order() - r.all[j].order() })
		for len(rest) > 1 && r.all[rest[0]].kind == dag.Coll {
			r.waitFor(rest[:1], span{at.start, at.start})
			rest = rest[1:]
		}
	}
	r.waitFor(rest, at)
	r.leave(at)
}

// waitFor adds an op of duration 0 that waits for requests.
func (r *rankReader) waitFor(requests []int32, at span) {
	i := r.add(&dag.Op{Kind: dag.Calc}, at)
	for _, k := range requests {
		q := &r.all[k]
		r.b.Requires(i, int(q.op))
		q.active = false
	}
	r.after.clear()
	r.after.ends = append(r.after.ends, i)
}

// test records that a call may have completed the requests found, including all requests of set. It returns their
// new test set.
func (r *rankReader) test(set int32, at span, waits bool) int32 {
	if set == noTest {
		set = int32(len(r.sets))
		r.sets = append(r.sets, testSet{point: noTest})
	}
	for _, k := range r.found {
		if q := &r.all[k]; q.set != set {
			r.changes++
			r.releaseTest(k)
			r.leavePool(q, mayEnd)
			q.set = set
			r.sets[set].size++
			if t := r.pendingPoint(r.sets[set].point); t != nil {
				t.waiting++
			}
		}
	}
	r.testAgain(set, at, waits)
	return set
}

// testAgain makes a call the last one that tested the requests of a set.
func (r *rankReader) testAgain(set int32, at span, waits bool) {
	s := &r.sets[set]
	if t := r.pendingPoint(s.point); t != nil {
		t.waiting -= s.size
	}
	point := testPoint{id: int32(len(r.tested)), at: at, waiting: s.size, waits: waits, calls: r.calls}
	if waits {
		point.waiting++
	}
	s.point = point.id
	r.tested = append(r.tested, noTest)
	if len(r.pending) == cap(r.pending) { // points that no request needs count as computation
		r.pending = slices.DeleteFunc(r.pending, func(t testPoint) bool { return t.waiting == 0 })
		r.pending = slices.Grow(r.pending, len(r.pending)+1)
	}
	r.pending = append(r.pending, point)
}

// releaseTest removes a request from its test set.
func (r *rankReader) releaseTest(k int32) {
	q := &r.all[k]
	if q.set == noTest {
		return
	}
	s := &r.sets[q.set]
	s.size--
	if t := r.pendingPoint(s.point); t != nil {
		t.waiting--
	}
	q.set = noTest
}

// pendingPoint returns a test point if it is in the current gap, else nil.
func (r *rankReader) pendingPoint(id int32) *testPoint {
	i, found := slices.BinarySearchFunc(r.pending, id, func(t testPoint, id int32) int { return cmp.Compare(t.id, id) })
	if !found {
		return nil
	}
	return &r.pending[i]
}

// closeTests ends the current gap behind its last test point, so that an op follows each of them.
func (r *rankReader) closeTests() {
	if n := len(r.pending); n > 0 {
		last := &r.pending[n-1]
		later := max(0, r.calls-last.callsBehind())
		r.calls = min(r.calls, last.callsBehind())
		r.closeGap(last.at.end)
		r.calls = later
	}
}
