package storage

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// maxParts is how many slices a record may touch.
const maxParts = 1 << 20

// access is a record that is being lowered.
type access struct {
	*lowering
	host    *host
	unit    int32
	address int64 // of its first byte
	bytes   int64
	write   bool

	op     int     // in the source of the host
	label  []byte  // the attributes of the ops that issue it and of those that end it
	await  []int32 // ops of the host that the ops that issue it wait for
	own    [2]int32
	forked bool // there is a marker between what it waits for and the ops that issue it
	joined bool // there will be a marker that waits for the ops that end it
	first  int32
	ends   []int32 // so far, if joined
}

// begin begins with op i of r.
func (a *access) begin(l *lowering, h *host, r *dag.Rank, i int, number int64) {
	*a = access{
		lowering: l, host: h, unit: r.Peer.At(i), address: r.Tag.At(i), bytes: r.Bytes.At(i),
		write: r.Subkind.At(i) == dag.Write, op: i, first: none, label: a.label[:0], ends: a.ends[:0],
	}
	if l.filling {
		a.label = append(attr.IOAccess(number).Append(append(a.label, '{')), '}')
	}
}

// awaitOps makes the access wait for those of the ops that are not none.
func (a *access) awaitOps(ops ...int32) {
	a.await = a.own[:0]
	for _, op := range ops {
		if op != none {
			a.await = append(a.await, op)
		}
	}
}

// split says that the access has n parts, each of which is issued and ended once, and reports whether that is possible.
// It writes a marker where that saves dependencies, or where the program of the host needs to know of one op that the
// access starts with, and one that it ends with.
func (a *access) split(n int64) bool {
	if n > maxParts {
		a.fail("%d bytes at address %d of unit %d touch %d slices, expected at most %d", a.bytes, a.address, a.unit, n,
			maxParts)
		return false
	}
	a.report.SliceOps += n
	h, m := a.host, int64(len(a.await))
	a.joined = h.mixed && n > 1
	if a.joined || n*m > n+m+1 && !a.choice.arch.compat() {
		fork := a.marker(h.rank)
		a.open(fork)
		a.awaitOps(fork)
		a.forked = true
	}
	return true
}

// issue writes the message with which the host begins a part.
func (a *access) issue(to int32, bytes int64) (send, recv int32) {
	send, recv = a.message(a.host.rank, none, to, none, bytes)
	a.open(send)
	a.attach(send)
	return send, recv
}

// open makes the host's last op wait for what the access waits for.
func (a *access) open(op int32) {
	h := a.host
	a.requireAll(h.rank, a.await)
	if a.forked {
		return
	}
	a.first = op
	if h.mixed {
		a.requireAs(h, a.op)
	}
}

// end says that the host's last op ends a part.
func (a *access) end(op int32) {
	a.attach(op)
	a.ended(op)
}

func (a *access) ended(op int32) {
	switch {
	case a.joined:
		a.ends = append(a.ends, op)
	case !a.filling:
		a.host.ends.Append(a.host.records, op)
	}
}

// nothing says that the access has no parts. A marker stands for it.
func (a *access) nothing() {
	op := a.marker(a.host.rank)
	a.open(op)
	a.end(op)
}

// attach gives the host's last op the attributes of the access.
func (a *access) attach(op int32) {
	if a.filling && !a.ranks[a.host.rank].rank.Attrs.Append(int(op), string(a.label)) {
		a.fail("4 GiB of attributes, expected less")
	}
}

// finish ends the access.
func (a *access) finish() {
	h := a.host
	if a.joined {
		a.joined = false
		join := a.marker(h.rank)
		a.requireAll(h.rank, a.ends)
		a.ended(join)
	}
	if h.mixed && !a.filling && a.err == nil {
		h.first[a.op], h.last[a.op] = a.first, h.ends.Of(h.records)[0]
	}
}
