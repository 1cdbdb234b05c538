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

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
)

// directDrive is the parameters of Direct Drive.
type directDrive struct {
	literal bool  // parameter compat: compat.go
	block   int64 // bytes, as all sizes

	slice                  int64
	slb, gs, mds, ccs, bss int64 // servers
	replicas               int64
	quorum                 int64 // replicas; 0: all
	lookup                 string
	mounts                 bool
	space                  string
	readReplica            replicaChoice
	mountRequest           int64
	mountReply             int64
	mountTime              dag.Time
	lookupRequest          int64
	lookupReply            int64
	lookupTime             dag.Time
	readRequest            int64
	replicaAck, writeReply int64
	readRate, writeRate    rate
}

func newDirectDrive() architecture {
	return &directDrive{
		block: 512,
		slice: 1 << 20,
		slb:   1, gs: 1, mds: 1, ccs: 8, bss: 64,
		replicas:     3,
		lookup:       "ccs",
		mounts:       true,
		space:        "per-asu",
		readReplica:  replicaChoice{kind: "rr"},
		mountRequest: 4096, mountReply: 4096, mountTime: 683 * dag.Nanosecond,
		lookupRequest: 1024, lookupReply: 4096, lookupTime: 683 * dag.Nanosecond,
		readRequest: 1024,
		replicaAck:  1024, writeReply: 4096,
		readRate: newRate(6e9), writeRate: newRate(15e8),
	}
}

func (d *directDrive) params() param.Set {
	servers := func(at *int64, name, help string) param.Param { return param.Count(at, name, help, maxRanks) }
	message := func(at *int64, name, help string) param.Param { return size(at, name, help, 0, maxMessage) }
	return param.Set{
		toggle(&d.literal, "compat", "reproduce the public converter including its mistakes; sets replicas, quorum, "+
			"lookup, mount, space and read-replica"),
		size(&d.block, "block", "bytes per block of the trace's addresses; only for compat, which uses block numbers "+
			"as bytes", 1, 1<<40),
		size(&d.slice, "slice", "bytes per slice", 1, 1<<62),
		servers(&d.slb, "n_slb", "software load balancers (SLB)"),
		servers(&d.gs, "n_gs", "gateway services (GS)"),
		servers(&d.mds, "n_mds", "metadata services (MDS)"),
		servers(&d.ccs, "n_ccs", "change coordinators (CCS)"),
		servers(&d.bss, "n_bss", "block storage services (BSS)"),
		servers(&d.replicas, "replicas", "replicas per slice, each on its own BSS"),
		param.New(&quorum{&d.quorum}, "quorum", "acknowledged replicas at which a write is answered"),
		param.Choice(&d.lookup, "lookup", "service that a read queries for the replica first", "ccs", "none").
			Placeholder("ccs|none"),
		toggle(&d.mounts, "mount", "query the map of slices before the first access of a host"),
		param.Choice(&d.space, "space", "address space: per-asu: one per unit; shared: one for all units",
			"per-asu", "shared").Placeholder("per-asu|shared"),
		param.New(&d.readReplica, "read-replica", "replica that serves a read; rr is round robin").
			Placeholder("rr|first|random:SEED"),
		message(&d.mountRequest, "mount-request", "bytes of a mount request, on each of three hops"),
		message(&d.mountReply, "mount-reply", "bytes of a mount reply, on each of three hops"),
		duration(&d.mountTime, "mount-time", "service time of the MDS per mount"),
		message(&d.lookupRequest, "lookup-request", "bytes of a lookup request to the CCS"),
		message(&d.lookupReply, "lookup-reply", "bytes of a lookup reply"),
		duration(&d.lookupTime, "lookup-time", "service time of the CCS per lookup"),
		message(&d.readRequest, "read-request", "bytes of a read request to a replica"),
		message(&d.replicaAck, "replica-ack", "bytes of a replica's acknowledgement of a write"),
		message(&d.writeReply, "write-reply", "bytes of the reply of the CCS to a write"),
		param.New(&d.readRate, "read-rate", "read rate of a BSS"),
		param.New(&d.writeRate, "write-rate", "write rate of a CCS and of a BSS"),
	}
}

func (d *directDrive) check(given map[string]bool) error {
	if d.literal {
		return d.checkCompat(given)
	}
	if d.replicas > d.bss {
		return fmt.Errorf("%d replicas on %d block storage services (n_bss), expected at most one on each",
			d.replicas, d.bss)
	}
	if d.quorum > d.replicas {
		return fmt.Errorf("quorum %d of %d replicas, expected at most all", d.quorum, d.replicas)
	}
	return nil
}

func (d *directDrive) compat() bool { return d.literal }

func (d *directDrive) kinds() []int64 {
	return []int64{d.slb, d.gs, d.mds, d.ccs, d.bss}
}

// quorum is a number of replicas; 0 means all.
type quorum struct{ at *int64 }

func (q *quorum) Type() string { return "N|all" }

func (q *quorum) String() string {
	if *q.at == 0 {
		return "all"
	}
	return strconv.FormatInt(*q.at, 10)
}

func (q *quorum) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text == "all":
		n = 0
	case err != nil || n < 1 || n > maxRanks:
		return fmt.Errorf("expected a whole number from 1 to %d, or all, found %q", maxRanks, text)
	}
	*q.at = n
	return nil
}

// replicaChoice is the policy that selects the replica of a read.
type replicaChoice struct {
	kind string // "rr", "first" or "random"
	seed int64  // of "random"
}

func (c *replicaChoice) Type() string { return "policy" }

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
		return fmt.Errorf("expected rr, first or random:SEED with a whole number, found %q", text)
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
		stride: d.bss / d.replicas, waits: d.quorum, reads: make(map[int64]int32),
	}
	if s.waits == 0 {
		s.waits = d.replicas
	}
	if d.readReplica.kind == "random" {
		s.draws = rand.NewPCG(uint64(d.readReplica.seed), 0)
	}
	if d.literal {
		s.table = d.compatTable(l.trace)
		return s, nil
	}
	if d.space == "shared" {
		return s, nil
	}
	s.base = make(map[int32]int64, len(l.units))
	next := int64(0)
	for _, u := range l.units {
		s.base[u.number] = next
		slices := u.end / d.slice
		if u.end%d.slice > 0 {
			slices++
		}
		if slices > math.MaxInt64-next {
			return nil, errors.New("the units have more than 2^63 slices in total")
		}
		next += slices
	}
	return s, nil
}

func (s *drive) mount(w *writer, host int32) (end int32) {
	if !s.mounts {
		return none
	}
	slb := s.slbs[s.mounted%s.slb]
	gs, mds := s.gss[s.mounted%s.gs], s.mdss[s.mounted%s.mds]
	if s.literal {
		gs, mds = s.gss[0], s.mdss[0]
	}
	s.mounted++
	request, reply := s.mountRequest, s.mountReply
	asked, at := w.message(host, none, slb, none, request)
	_, at = w.message(slb, at, gs, none, request)
	_, at = w.message(gs, at, mds, none, request)
	at = w.calc(mds, at, int64(s.mountTime/dag.Nanosecond))
	_, at = w.message(mds, at, gs, none, reply)
	_, at = w.message(gs, at, slb, none, reply)
	_, end = w.message(slb, at, host, asked, reply)
	return end
}

func (s *drive) access(a *access) {
	switch {
	case s.literal:
		s.compatAccess(a)
		return
	case a.bytes == 0:
		a.nothing()
		return
	}
	size, end := s.slice, a.address+a.bytes
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
	ccs := s.ccss[slice%s.ccs]
	if a.write {
		s.writePart(a, slice, ccs, bytes)
	} else {
		s.readPart(a, slice, ccs, bytes)
	}
}

func (s *drive) readPart(a *access, slice int64, ccs int32, bytes int64) {
	host, bss := a.host.rank, s.replica(slice, s.readFrom(slice))
	var asked, at int32
	if s.lookup == "ccs" {
		asked, at = a.issue(ccs, s.lookupRequest)
		at = a.calc(ccs, at, int64(s.lookupTime/dag.Nanosecond))
		_, known := a.message(ccs, at, host, asked, s.lookupReply)
		asked, at = a.message(host, known, bss, none, s.readRequest)
	} else {
		asked, at = a.issue(bss, s.readRequest)
	}
	if s.literal {
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
	for r := range s.replicas {
		bss := s.replica(slice, r)
		copied, at := a.message(ccs, calc, bss, none, bytes)
		at = a.serve(bss, at, &s.writeRate, bytes)
		_, ack := a.message(bss, at, ccs, copied, s.replicaAck)
		s.acks = append(s.acks, ack)
	}
	_, reply := a.message(ccs, none, a.host.rank, sent, s.writeReply)
	a.requireAll(ccs, s.acks[:s.waits])
	a.end(reply)
}

// replica returns the rank of replica r of a slice.
func (s *drive) replica(slice, r int64) int32 {
	if s.literal {
		return s.compatReplica(slice, r)
	}
	i := slice%s.bss + r*s.stride
	if i >= s.bss {
		i -= s.bss
	}
	return s.bsss[i]
}

// readFrom returns the replica that serves the next read of a slice.
func (s *drive) readFrom(slice int64) (r int64) {
	switch s.readReplica.kind {
	case "rr":
		turn := s.reads[slice]
		s.reads[slice] = (turn + 1) % int32(s.replicas)
		return int64(turn)
	case "random":
		high, _ := bits.Mul64(s.draws.Uint64(), uint64(s.replicas))
		return int64(high)
	}
	return 0
}
