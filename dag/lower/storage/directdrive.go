// This file models Azure Direct Drive: G. Kramer, "Direct Drive - Azure's Next-generation Block Storage Architecture",
// SDC 2022, as described in P. Jordan's report of January 2024 in the ATLAHS repository. Message sizes and rates are
// those of the public converter TrimVis/DirectDriveSim. docs/reference/storage.md lists the assumptions of this model.

package storage

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
)

// directDrive is the parameters of Direct Drive.
type directDrive struct {
	literal toggle // parameter compat: compat.go
	block   size

	slice                  size
	slb, gs, mds, ccs, bss count
	replicas               count
	quorum                 quorum
	lookup                 word
	mounts                 toggle
	space                  word
	readReplica            replicaChoice
	mountRequest           size
	mountReply             size
	mountTime              duration
	lookupRequest          size
	lookupReply            size
	lookupTime             duration
	readRequest            size
	replicaAck, writeReply size
	readRate, writeRate    rate
}

func newDirectDrive() architecture {
	servers := func(n int64) count { return count{n, maxRanks} }
	message := func(n int64) size { return size{n, 0, maxMessage} }
	return &directDrive{
		block: size{512, 1, 1 << 40},
		slice: size{1 << 20, 1, 1 << 62},
		slb:   servers(1), gs: servers(1), mds: servers(1), ccs: servers(8), bss: servers(64),
		replicas:     servers(3),
		quorum:       quorum{count{0, maxRanks}},
		lookup:       word{"ccs", []string{"ccs", "none"}},
		mounts:       toggle{true},
		space:        word{"per-asu", []string{"per-asu", "shared"}},
		readReplica:  replicaChoice{kind: "rr"},
		mountRequest: message(4096), mountReply: message(4096), mountTime: duration{683},
		lookupRequest: message(1024), lookupReply: message(4096), lookupTime: duration{683},
		readRequest: message(1024),
		replicaAck:  message(1024), writeReply: message(4096),
		readRate: newRate(6e9), writeRate: newRate(15e8),
	}
}

func (d *directDrive) parameters() []parameter {
	return []parameter{
		{"compat", "do what the public converter does, mistakes included; decides replicas, quorum, lookup, " +
			"mount, space and read-replica", &d.literal},
		{"block", "bytes of a block of the trace's addresses; only for compat, which takes numbers of blocks for bytes",
			&d.block},
		{"slice", "bytes of a slice", &d.slice},
		{"n_slb", "software load balancers", &d.slb},
		{"n_gs", "gateway services", &d.gs},
		{"n_mds", "metadata services", &d.mds},
		{"n_ccs", "change coordinators", &d.ccs},
		{"n_bss", "block storage services", &d.bss},
		{"replicas", "of each slice", &d.replicas},
		{"quorum", "replicas that have acknowledged a write when it is answered", &d.quorum},
		{"lookup", "what a read asks first: ccs, none", &d.lookup},
		{"mount", "whether a host asks for the map of slices before its first access", &d.mounts},
		{"space", "addresses: per-asu: of every unit apart; shared: the same for all units", &d.space},
		{"read-replica", "which replica serves a read: rr (in turn), first, random:SEED", &d.readReplica},
		{"mount-request", "bytes of a mount request, on each of three hops", &d.mountRequest},
		{"mount-reply", "bytes of the answer, on each of three hops", &d.mountReply},
		{"mount-time", "of the metadata service for a mount", &d.mountTime},
		{"lookup-request", "bytes of the question of a read to the coordinator", &d.lookupRequest},
		{"lookup-reply", "bytes of the answer", &d.lookupReply},
		{"lookup-time", "of the coordinator for the answer", &d.lookupTime},
		{"read-request", "bytes of the request to a replica", &d.readRequest},
		{"replica-ack", "bytes of a replica's acknowledgement of a write", &d.replicaAck},
		{"write-reply", "bytes of the coordinator's answer to a write", &d.writeReply},
		{"read-rate", "of a replica", &d.readRate},
		{"write-rate", "of a coordinator and of a replica", &d.writeRate},
	}
}

func (d *directDrive) check(given map[string]bool) error {
	if d.literal.on {
		return d.checkCompat(given)
	}
	if d.replicas.n > d.bss.n {
		return fmt.Errorf("%d replicas on %d block storage services (n_bss), expected at most one on each",
			d.replicas.n, d.bss.n)
	}
	if d.quorum.n > d.replicas.n {
		return fmt.Errorf("a quorum of %d of %d replicas, expected at most all", d.quorum.n, d.replicas.n)
	}
	return nil
}

func (d *directDrive) compat() bool { return d.literal.on }

func (d *directDrive) kinds() []int64 {
	return []int64{d.slb.n, d.gs.n, d.mds.n, d.ccs.n, d.bss.n}
}

// quorum is a number of replicas; 0 means all.
type quorum struct{ count }

func (q *quorum) String() string {
	if q.n == 0 {
		return "all"
	}
	return q.count.String()
}

func (q *quorum) Set(text string) error {
	if text == "all" {
		q.n = 0
		return nil
	}
	if err := q.count.Set(text); err != nil {
		return fmt.Errorf("%w, or all", err)
	}
	return nil
}

// replicaChoice is the policy that selects the replica of a read.
type replicaChoice struct {
	kind string // "rr", "first" or "random"
	seed int64  // of "random"
}

func (c *replicaChoice) String() string {
	if c.kind == "random" {
		return "random:" + strconv.FormatInt(c.seed, 10)
	}
	return c.kind
}

func (c *replicaChoice) Set(text string) error {
	number, random := strings.CutPrefix(text, "random:")
	seed, err := strconv.ParseInt(number, 10, 64)
	switch {
	case random && err == nil:
		*c = replicaChoice{"random", seed}
	case text == "rr", text == "first":
		*c = replicaChoice{kind: text}
	default:
		return errors.New("expected rr, first or random:SEED with a whole number")
	}
	return nil
}

// drive lowers accesses to Direct Drive.
type drive struct {
	*directDrive
	slbs, gss, mdss, ccss, bsss []int32         // ranks of the servers
	base                        map[int32]int64 // first slice of each unit; nil: 0 for all units
	table                       int64           // number of slices, for compat
	stride                      int64           // distance of the replicas of a slice, in services
	waits                       int64           // acknowledgements that the reply to a write waits for
	mounted                     int64           // mounts so far
	reads                       map[int64]int32 // reads of each slice so far, modulo the number of replicas
	draws                       *rand.PCG       // for read-replica=random
	acks                        []int32         // acknowledgements of the current write
}

func (d *directDrive) serve(l *layout) (server, error) {
	s := &drive{
		directDrive: d, slbs: l.servers[0], gss: l.servers[1], mdss: l.servers[2], ccss: l.servers[3],
		bsss:   l.servers[4],
		stride: d.bss.n / d.replicas.n, waits: d.quorum.n, reads: make(map[int64]int32),
	}
	if s.waits == 0 {
		s.waits = d.replicas.n
	}
	if d.readReplica.kind == "random" {
		s.draws = rand.NewPCG(uint64(d.readReplica.seed), 0)
	}
	if d.literal.on {
		s.table = d.compatTable(l.trace)
		return s, nil
	}
	if d.space.is == "shared" {
		return s, nil
	}
	s.base = make(map[int32]int64, len(l.units))
	next := int64(0)
	for _, u := range l.units {
		s.base[u.number] = next
		slices := u.end / d.slice.bytes
		if u.end%d.slice.bytes > 0 {
			slices++
		}
		if slices > math.MaxInt64-next {
			return nil, errors.New("the units have more than 2^63 slices in all")
		}
		next += slices
	}
	return s, nil
}

func (s *drive) mount(w *writer, host int32) (end int32) {
	if !s.mounts.on {
		return none
	}
	slb := s.slbs[s.mounted%s.slb.n]
	gs, mds := s.gss[s.mounted%s.gs.n], s.mdss[s.mounted%s.mds.n]
	if s.literal.on {
		gs, mds = s.gss[0], s.mdss[0]
	}
	s.mounted++
	request, reply := s.mountRequest.bytes, s.mountReply.bytes
	asked, at := w.message(host, none, slb, none, request)
	_, at = w.message(slb, at, gs, none, request)
	_, at = w.message(gs, at, mds, none, request)
	at = w.calc(mds, at, s.mountTime.ns)
	_, at = w.message(mds, at, gs, none, reply)
	_, at = w.message(gs, at, slb, none, reply)
	_, end = w.message(slb, at, host, asked, reply)
	return end
}

func (s *drive) access(a *access) {
	switch {
	case s.literal.on:
		s.compatAccess(a)
		return
	case a.bytes == 0:
		a.nothing()
		return
	}
	size, end := s.slice.bytes, a.address+a.bytes
	first, last := a.address/size, (end-1)/size
	if !a.split(last - first + 1) {
		return
	}
	base := s.base[a.unit]
	start := a.address
	for k := first; k <= last && a.err == nil; k++ {
		bytes := min(size-(start-k*size), end-start)
		s.part(a, base+k, bytes)
		start += bytes
	}
}

// part writes the part of an access that is in one slice.
func (s *drive) part(a *access, slice, bytes int64) {
	ccs := s.ccss[slice%s.ccs.n]
	if a.write {
		s.writePart(a, slice, ccs, bytes)
	} else {
		s.readPart(a, slice, ccs, bytes)
	}
}

func (s *drive) readPart(a *access, slice int64, ccs int32, bytes int64) {
	host, bss := a.host.rank, s.replica(slice, s.readFrom(slice))
	var asked, at int32
	if s.lookup.is == "ccs" {
		asked, at = a.issue(ccs, s.lookupRequest.bytes)
		at = a.calc(ccs, at, s.lookupTime.ns)
		_, known := a.message(ccs, at, host, asked, s.lookupReply.bytes)
		asked, at = a.message(host, known, bss, none, s.readRequest.bytes)
	} else {
		asked, at = a.issue(bss, s.readRequest.bytes)
	}
	if s.literal.on {
		asked = none
	}
	at = a.serve(bss, at, &s.readRate, bytes)
	_, data := a.message(bss, at, host, asked, bytes)
	a.end(data)
}

func (s *drive) writePart(a *access, slice int64, ccs int32, bytes int64) {
	sent, at := a.issue(ccs, bytes)
	calc := a.serve(ccs, at, &s.writeRate, bytes)
	s.acks = s.acks[:0]
	for r := range s.replicas.n {
		bss := s.replica(slice, r)
		copied, at := a.message(ccs, calc, bss, none, bytes)
		at = a.serve(bss, at, &s.writeRate, bytes)
		_, ack := a.message(bss, at, ccs, copied, s.replicaAck.bytes)
		s.acks = append(s.acks, ack)
	}
	_, reply := a.message(ccs, none, a.host.rank, sent, s.writeReply.bytes)
	a.requireAll(ccs, s.acks[:s.waits])
	a.end(reply)
}

// replica returns the rank of replica r of a slice.
func (s *drive) replica(slice, r int64) int32 {
	if s.literal.on {
		return s.compatReplica(slice, r)
	}
	i := slice%s.bss.n + r*s.stride
	if i >= s.bss.n {
		i -= s.bss.n
	}
	return s.bsss[i]
}

// readFrom returns the replica that serves the next read of a slice.
func (s *drive) readFrom(slice int64) (r int64) {
	switch s.readReplica.kind {
	case "rr":
		turn := s.reads[slice]
		s.reads[slice] = (turn + 1) % int32(s.replicas.n)
		return int64(turn)
	case "random":
		high, _ := bits.Mul64(s.draws.Uint64(), uint64(s.replicas.n))
		return int64(high)
	}
	return 0
}
