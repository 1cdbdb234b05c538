// This file parses lines as Schedgen does: a hash selects the function, and fields have fixed positions.

package mpi

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/schedgen"
)

// function is a function that Schedgen supports.
type function struct {
	name          string
	atlahsOnly    bool
	pointToPoint  bool // skipped with --traces-nop2p
	collective    bool // skipped with --traces-nocolls
	unimplemented bool
	convert       func(s *schedule, fn *function) error // nil: ignored

	kind                       dag.Kind // of messages
	algorithm, atlahsAlgorithm func(*schedgen.Emitter, schedgen.Call)
	// Positions of a collective's fields: its count and type size (0: none, it moves one byte), root (0: none),
	// communicator and end time. The size of the communicator is two positions behind it.
	count, size, root, comm, end int
}

// functions are the functions that Schedgen supports, except those equal to their neighbours.
var functions = slices.Concat([]function{
	{name: "MPI_Init", convert: func(s *schedule, _ *function) error { return s.initialize(4) }},
	{name: "MPI_Init_thread", atlahsOnly: true, convert: func(s *schedule, _ *function) error {
		return s.initialize(6)
	}},
	{name: "MPI_Finalize", convert: (*schedule).finalize},
	{name: "MPI_Send", pointToPoint: true, kind: dag.Send, convert: (*schedule).blocking},
	{name: "MPI_Rsend", pointToPoint: true, kind: dag.Send, convert: (*schedule).blocking},
	{name: "MPI_Recv", pointToPoint: true, kind: dag.Recv, convert: (*schedule).blocking},
	{name: "MPI_Isend", pointToPoint: true, kind: dag.Send, convert: (*schedule).nonblocking},
	{name: "MPI_Irecv", pointToPoint: true, kind: dag.Recv, convert: (*schedule).nonblocking},
	{name: "MPI_Sendrecv", pointToPoint: true, convert: (*schedule).exchange},
	{name: "MPI_Wait", pointToPoint: true, convert: (*schedule).wait},
	{name: "MPI_Waitall", pointToPoint: true, convert: (*schedule).waitAll},
	{name: "MPI_Send_init", atlahsOnly: true, pointToPoint: true, kind: dag.Send, convert: (*schedule).prepare},
	{name: "MPI_Recv_init", atlahsOnly: true, pointToPoint: true, kind: dag.Recv, convert: (*schedule).prepare},
	{name: "MPI_Start", atlahsOnly: true, pointToPoint: true, convert: (*schedule).start},
	{name: "MPI_Request_free", atlahsOnly: true, pointToPoint: true, convert: (*schedule).free},

	{name: "MPI_Barrier", collective: true, comm: 2, end: 5, algorithm: schedgen.Dissemination},
	{name: "MPI_Bcast", collective: true, count: 3, size: 5, root: 7, comm: 8, end: 11,
		algorithm: schedgen.BinomialBcast},
	{name: "MPI_Reduce", collective: true, count: 4, size: 6, root: 9, comm: 10, end: 13,
		algorithm: schedgen.BinomialReduce},
	{name: "MPI_Allreduce", collective: true, count: 4, size: 6, comm: 9, end: 12, algorithm: schedgen.Dissemination,
		atlahsAlgorithm: schedgen.RecursiveDoubling},
	{name: "MPI_Allgather", collective: true, count: 3, size: 5, comm: 12, end: 15, algorithm: schedgen.Dissemination},
	{name: "MPI_Alltoall", collective: true, count: 3, size: 5, comm: 12, end: 15, algorithm: schedgen.LinearAlltoall},
	{name: "MPI_Iallreduce", collective: true, count: 4, size: 6, comm: 9, end: 13, algorithm: schedgen.Dissemination,
		convert: (*schedule).startAllreduce},
}, named(function{}, "MPI_Comm_rank", "MPI_Comm_size", "MPI_Iprobe", "MPI_Test", "MPI_Testall", "MPI_Get_count"),
	named(function{unimplemented: true}, "MPI_Scan", "MPI_Exscan", "MPI_Gather", "MPI_Gatherv", "MPI_Scatter",
		"MPI_Scatterv", "MPI_Allgatherv", "MPI_Alltoallv"))

// named returns copies of a function with the given names.
func named(fn function, names ...string) []function {
	all := make([]function, len(names))
	for i, name := range names {
		all[i] = fn
		all[i].name = name
	}
	return all
}

// lower returns the name in Schedgen's messages.
func (fn *function) lower() string {
	return strings.ToLower(fn.name[len("MPI_"):])
}

// hashLength is the number of bytes of a line that are hashed.
const hashLength = 14

// hash returns the hash by which Schedgen identifies functions.
func hash(line []byte) int {
	sum := 0
	for i, c := range line[:min(hashLength, len(line))] {
		if c == ':' {
			break
		}
		sum += (i + 1) * int(int8(c)>>1)
	}
	return sum
}

// functionsByHash has the functions of both variants.
var functionsByHash = func() (tables [2][1 << 13]*function) {
	for i := range functions {
		fn := &functions[i]
		if fn.collective && fn.convert == nil {
			fn.convert = (*schedule).collective
		}
		h := hash([]byte(fn.name))
		tables[schedgen.ATLAHS][h] = fn
		if !fn.atlahsOnly {
			tables[schedgen.Upstream][h] = fn
		}
	}
	return tables
}()

// function returns the function of the current line, or nil if Schedgen skips the line.
func (f *scheduleReader) function() *function {
	variant := schedgen.Upstream
	if f.atlahs {
		variant = schedgen.ATLAHS
	}
	if h := hash(f.text); uint(h) < uint(len(functionsByHash[variant])) {
		return functionsByHash[variant][h]
	}
	return nil
}

// cut finds the fields of the current line.
func (f *scheduleReader) cut() {
	f.cuts = f.cuts[:0]
	for i, c := range f.text {
		if c == ':' || c == ',' {
			f.cuts = append(f.cuts, i)
		}
	}
	f.cuts = append(f.cuts, len(f.text))
}

// field returns the k-th field behind the name.
func (f *scheduleReader) field(k int) ([]byte, error) {
	if k >= len(f.cuts) {
		return nil, f.fail(fmt.Sprintf("%d fields behind the name", k), fmt.Sprint(len(f.cuts)-1))
	}
	return bytes.TrimLeft(f.text[f.cuts[k-1]+1:f.cuts[k]], " \t\r\v\f"), nil
}

// values reads fields of the current line and keeps the first error.
type values struct {
	f   *scheduleReader
	err error
}

// field returns a field, or nil after an error.
func (v *values) field(k int) []byte {
	if v.err != nil {
		return nil
	}
	text, err := v.f.field(k)
	v.err = err
	return text
}

func (v *values) fail(expected string, found []byte) {
	if v.err == nil {
		v.err = v.f.fail(expected, fmt.Sprintf("%.60q", found))
	}
}

// integer reads a whole number with the prefixes of C, 0x and 0, truncated to 32 bits.
func (v *values) integer(k int) int32 {
	text := v.field(k)
	rest, negative := text, false
	if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
		negative, rest = rest[0] == '-', rest[1:]
	}
	base := uint64(10)
	switch {
	case len(rest) > 2 && rest[0] == '0' && rest[1]|0x20 == 'x' && digit(rest[2]) < 16:
		base, rest = 16, rest[2:]
	case len(rest) > 0 && rest[0] == '0':
		base = 8
	}
	magnitude, n := digits(rest, base)
	if n == 0 {
		v.fail("a whole number", text)
	}
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	magnitude = min(magnitude, limit)
	if negative {
		magnitude = -magnitude
	}
	return int32(uint32(magnitude))
}

// digits returns the number at the beginning of a text, 2^64-1 for larger numbers, and its length.
func digits(text []byte, base uint64) (value uint64, n int) {
	for n < len(text) {
		d := digit(text[n])
		if d >= base {
			break
		}
		if value > (math.MaxUint64-d)/base {
			value = math.MaxUint64
		} else {
			value = value*base + d
		}
		n++
	}
	return value, n
}

// digit returns the value of a digit of a base up to 16, and 16 for other bytes.
func digit(c byte) uint64 {
	switch {
	case '0' <= c && c <= '9':
		return uint64(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return uint64(c|0x20-'a') + 10
	}
	return 16
}

// address reads a whole number of 64 bits.
func (v *values) address(k int) uint64 {
	text := v.field(k)
	rest, negative := text, false
	if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
		negative, rest = rest[0] == '-', rest[1:]
	}
	value, n := digits(rest, 10)
	if n == 0 {
		v.fail("an address", text)
	}
	if negative && value < math.MaxUint64 {
		value = -value
	}
	return value
}

// time reads a time in microseconds.
func (v *values) time(k int) float64 {
	text := v.field(k)
	if v.err != nil {
		return 0
	}
	whole, n := digits(text, 10)
	rest := text[n:]
	if len(rest) > 0 && rest[0] == '.' {
		rest = bytes.TrimLeft(rest[1:], "0")
	}
	if n > 0 && len(rest) == 0 && whole < 1<<53 {
		return float64(whole)
	}
	value, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsInf(value, 0) || math.IsNaN(value) {
		v.fail("a time in microseconds", text)
		return 0
	}
	return value
}

// bytes reads a count and a type size, and returns their product in 32 bits.
func (v *values) bytes(count, size int) int64 {
	return int64(v.integer(count) * v.integer(size))
}

func (s *schedule) initialize(end int) error {
	v := values{f: s.f}
	at := v.time(end)
	if v.err != nil {
		return v.err
	}
	if s.last != 0 {
		return s.f.fail("one MPI_Init at time 0, as Schedgen requires", "another")
	}
	s.last, s.prev = at, s.prev[:0]
	return nil
}

func (s *schedule) finalize(*function) error {
	v := values{f: s.f}
	at := v.time(1)
	if v.err != nil {
		return v.err
	}
	s.f.finalized = true
	s.next = s.next[:0]
	return s.gap(at, at)
}

// message reads the common fields of message calls.
func (v *values) message() (bytes int64, peer, tag, comm int32) {
	return v.bytes(3, 5), v.integer(7), v.integer(8), v.integer(9)
}

func (s *schedule) blocking(fn *function) error {
	v := values{f: s.f}
	end := 12
	if fn.kind == dag.Recv {
		end = 13
	}
	at, until := v.time(1), v.time(end)
	bytes, peer, tag, comm := v.message()
	if v.err != nil {
		return v.err
	}
	op, err := s.message(fn.kind, bytes, s.peer(peer), s.tag(comm, tag))
	if err != nil {
		return err
	}
	return s.close(at, until, predecessor{op: op})
}

// close ends the gap before an op that the next gap waits for.
func (s *schedule) close(start, end float64, on predecessor) error {
	s.next = append(s.next[:0], on.op)
	if err := s.gap(start, end); err != nil {
		return err
	}
	s.prev = append(s.prev, on)
	return nil
}

func (s *schedule) nonblocking(fn *function) error {
	v := values{f: s.f}
	at, until, request := v.time(1), v.time(13), v.address(12)
	bytes, peer, tag, comm := v.message()
	if v.err != nil {
		return v.err
	}
	op, err := s.message(fn.kind, bytes, s.peer(peer), s.tag(comm, tag))
	if err != nil {
		return err
	}
	s.requests[request] = op
	return s.close(at, until, predecessor{op: op, startOnly: true})
}

func (s *schedule) exchange(*function) error {
	v := values{f: s.f}
	at, until := v.time(1), v.time(20)
	out, in := v.bytes(3, 5), v.bytes(10, 12)
	to, from, tag, comm := v.integer(7), v.integer(14), v.integer(8), v.integer(16)
	if v.err != nil {
		return v.err
	}
	t := s.tag(comm, tag) // of both
	sent, err := s.message(dag.Send, out, to+int32(s.shift), t)
	if err != nil {
		return err
	}
	received, err := s.message(dag.Recv, in, from+int32(s.shift), t)
	if err != nil {
		return err
	}
	s.next = append(s.next[:0], sent, received)
	if err := s.gap(at, until); err != nil {
		return err
	}
	s.prev = append(s.prev, predecessor{op: sent}, predecessor{op: received})
	return nil
}

func (s *schedule) wait(*function) error {
	v := values{f: s.f}
	at, until, request := v.time(1), v.time(4), v.address(2)
	if v.err != nil {
		return v.err
	}
	on, known := s.requests[request]
	if !known {
		return nil
	}
	delete(s.requests, request)
	op := s.e.Calc(0, 0)
	s.e.Requires(op, on)
	return s.close(at, until, predecessor{op: op})
}

func (s *schedule) waitAll(*function) error {
	v := values{f: s.f}
	at, until, count, first := v.time(1), v.time(5), v.integer(2), v.address(3)
	if v.err != nil {
		return v.err
	}
	stride := uint64(8)
	if s.f.atlahs {
		stride = 4
	}
	op := s.e.Calc(0, 0)
	for _, on := range s.requestsOf(first, stride, count) {
		s.e.Requires(op, on)
	}
	delete(s.requests, first)
	return s.close(at, until, predecessor{op: op})
}

// requestsOf returns the ops of the known requests among count addresses. It tries no more addresses than there
// are requests.
func (s *schedule) requestsOf(first, stride uint64, count int32) []int {
	s.sides = s.sides[:0]
	if int(count) <= 2*len(s.requests)+8 {
		for k := range uint64(max(count, 0)) {
			if op, known := s.requests[first+k*stride]; known {
				s.sides = append(s.sides, op)
			}
		}
		return s.sides
	}
	var addresses []uint64
	for address := range s.requests {
		if d := address - first; d%stride == 0 && d/stride < uint64(count) {
			addresses = append(addresses, address)
		}
	}
	slices.SortFunc(addresses, func(x, y uint64) int { // by distance, modulo 2^64
		if x-first < y-first {
			return -1
		}
		return 1
	})
	for _, address := range addresses {
		s.sides = append(s.sides, s.requests[address])
	}
	return s.sides
}

// prepare reads a persistent request, which counts as 0.9 of its measured time.
func (s *schedule) prepare(fn *function) error {
	v := values{f: s.f}
	at, until, request := v.time(1), v.time(13), v.address(12)
	bytes, peer, tag, comm := v.message()
	if v.err != nil {
		return v.err
	}
	s.persistent[request] = persistentMessage{fn.kind, s.peer(peer), tag, comm, bytes}
	s.last += (until - at) * 0.9
	return nil
}

func (s *schedule) start(*function) error {
	v := values{f: s.f}
	at, until, request := v.time(1), v.time(3), v.address(2)
	if v.err != nil {
		return v.err
	}
	m, known := s.persistent[request]
	if !known {
		return nil
	}
	op, err := s.message(m.kind, m.bytes, m.peer, s.tag(m.comm, m.tag))
	if err != nil {
		return err
	}
	s.requests[request] = op
	return s.close(at, until, predecessor{op: op, startOnly: true})
}

func (s *schedule) free(*function) error {
	v := values{f: s.f}
	delete(s.persistent, v.address(2))
	return v.err
}

// collectiveTag plus the number of a rank's previous collectives is the tag of a collective.
const collectiveTag = 1_000_000

func (s *schedule) collective(fn *function) error {
	call, err := s.readCollective(fn)
	if err != nil || call.subset {
		return err
	}
	algorithm := fn.algorithm
	if s.f.atlahs && fn.atlahsAlgorithm != nil {
		algorithm = fn.atlahsAlgorithm
	}
	tag := s.tag(call.comm, collectiveTag+int32(s.collectives))
	_, err = s.coll(algorithm, call.root, call.bytes, tag, call.start, call.end)
	return err
}

func (s *schedule) startAllreduce(fn *function) error {
	call, err := s.readCollective(fn)
	if err != nil || call.subset {
		return err
	}
	v := values{f: s.f}
	request := v.address(12)
	if v.err != nil {
		return v.err
	}
	tag := goalTag(uint32(collectiveTag + s.collectives))
	marker, err := s.coll(fn.algorithm, 0, call.bytes, tag, call.start, call.end)
	s.requests[request] = marker
	return err
}

// collectiveCall is the line of a collective.
type collectiveCall struct {
	start, end float64
	bytes      int64
	root, comm int32
	subset     bool // not of all ranks
}

func (s *schedule) readCollective(fn *function) (collectiveCall, error) {
	v := values{f: s.f}
	c := collectiveCall{start: v.time(1), end: v.time(fn.end), comm: v.integer(fn.comm), bytes: 1}
	if fn.count > 0 {
		c.bytes = v.bytes(fn.count, fn.size)
	}
	if fn.root > 0 {
		c.root = v.integer(fn.root)
	}
	if size := v.integer(fn.comm + 2); v.err == nil && int(size) != s.f.hosts {
		c.subset = true
		s.f.printed.add(s.f.line, "", fmt.Sprintf("[%s] collective on subcommunicator p=%d, hosts=%d - ignoring",
			fn.lower(), size, s.f.hosts))
	}
	return c, v.err
}
