package storage

import (
	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// maxParts is the maximum number of slices that one access may touch.
const maxParts = 1 << 20

// access is the I/O record at hand.
type access struct {
	*lowering
	host    *host
	unit    int32
	address int64 // first byte
	bytes   int64
	write   bool

	op     int      // index in the source of the host
	label  []byte   // attributes of the ops that issue and end the access
	record []byte   // attributes of the first of them, which also has the record
	await  []int32  // dependencies of the issuing ops
	own    [2]int32 // memory of await
	forked bool     // a marker stands between the dependencies and the issuing ops
	joined bool     // a marker will wait for the ending ops
	first  int32    // first op
	ends   []int32  // ending ops so far, if joined
}

// begin starts the access of op i of r.
func (a *access) begin(l *lowering, h *host, r *dag.Rank, i int, number int64) {
	*a = access{
		lowering: l, host: h, unit: r.Peer.At(i), address: r.Tag.At(i), bytes: r.Bytes.At(i),
		write: r.Subkind.At(i) == dag.Write, op: i, first: none,
		label: a.label[:0], record: a.record[:0], ends: a.ends[:0],
	}
	if l.filling {
		a.label = attr.IOAccess(number).Append(append(a.label, '{'))
		record := attr.IORecord{Write: a.write, Bytes: a.bytes, Unit: a.unit}
		a.record = append(record.Append(append(append(a.record, a.label...), ',')), '}')
		a.label = append(a.label, '}')
	}
}

// awaitOps makes the access wait for the ops other than none.
func (a *access) awaitOps(ops ...int32) {
	a.await = a.own[:0]
	for _, op := range ops {
		if op != none {
			a.await = append(a.await, op)
		}
	}
}

// split declares the number of parts of the access; the system issues and ends each part once. It returns false after
// an error. It writes a marker if that saves dependencies, or if ops of the host wait for the start or end of the
// access.
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

// issue writes the first message of a part, from the host.
func (a *access) issue(to int32, bytes int64) (send, recv int32) {
	send, recv = a.message(a.host.rank, none, to, none, bytes)
	a.open(send)
	a.attach(send)
	return send, recv
}

// open adds the dependencies of the access to the host's last op.
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

// end declares that the host's last op ends a part.
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

// nothing writes a marker in place of an access without parts.
func (a *access) nothing() {
	op := a.marker(a.host.rank)
	a.open(op)
	a.end(op)
}

// attach adds the attributes of the access to the host's last op.
func (a *access) attach(op int32) {
	if !a.filling {
		return
	}
	text := a.label
	if len(a.record) > 0 {
		text, a.record = a.record, a.record[:0]
	}
	if !a.ranks[a.host.rank].rank.Attrs.Append(int(op), string(text)) {
		a.fail("4 GiB of attributes, expected less")
	}
}

// finish completes the access.
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
