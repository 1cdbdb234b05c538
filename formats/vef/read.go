// This file reads plain VEF text, line by line, into records.
//
// Nearly all lines have seven or nine whole numbers with single blanks between them. They are parsed in place;
// other lines and all errors go through fields.

package vef

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/vef/model"
	"github.com/tracedag/tracedag/memory"
)

// reader reads a file.
type reader struct {
	ctx     context.Context // carries the limit of memory; may be nil
	file    string
	lenient bool
	warn    func(message string, args ...any)

	line    int64 // current line, from 1
	header  header
	started bool // whether the header was read
	comms   []comm
	members int64 // of all communicators

	rounded, firstRounded int64 // number of times that are no whole picoseconds, and the line of the first

	records  []record
	jumps    []jump  // changes of the offset between line and record numbers
	messages []int32 // record of each message, in file order
	// for messages not numbered 0, 1, 2, ...: position of each in messages
	messageByID map[int64]int32
	instances   []instance
	instanceBy  map[int64]int32 // as messageByID
	model       *modelText      // of an extended trace
}

// record is a line: a message or a task's part in a collective.
type record struct {
	size    int64    // bytes; of collectives, send_size
	recv    int64    // recv_size, of collectives only
	time    dag.Time // since the dependency
	ref     int64    // ID of the dependency; after resolve, index of its record
	a, task int32    // a: destination of a message, instance of a collective; task: the executing task
	dep     uint8
	kind    uint8
	sorted  bool // part of a chain in another order than the file's
}

// The kinds of record.
const (
	message uint8 = iota
	participation
)

// jump states that the line of record first, and of later ones, is the index plus offset.
type jump struct {
	first  int
	offset int64
}

// instance is a collective.
type instance struct {
	id          int64
	comm        int32
	op          uint8
	mixed       bool  // the modes or sizes of its records differ
	root        int32 // task; -1: none
	rootRecord  int32
	first, last int32 // record
	count       int32 // of its records
	size        int64 // of its first record, for comparison
	sum         int64 // of all contributions, or of all parts of a scatter; -1: overflow
	members     int64 // start of its records in the table by position
}

// maxRecords is the maximum number of records of a trace; it lets three times as many ops or dependencies have
// int32 numbers.
const maxRecords = 1 << 29

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a VEF trace")
	if err != nil {
		return nil, err
	}
	r, err := readFile(in, o)
	if err != nil {
		return nil, err
	}
	if r.model != nil {
		source, err := r.source(o)
		if err != nil {
			return nil, err
		}
		return memory.ReadTrace(o.Context, source)
	}
	return r.trace()
}

// readFile reads all records of a file.
func readFile(in *format.Input, o format.ReadOptions) (*reader, error) {
	r := &reader{ctx: o.Context, file: in.Name, lenient: o.Lenient, warn: o.Warn}
	if in.At != nil {
		r.records = make([]record, 0, min(in.Size/shortestRecord, 1<<20))
	}
	err := format.EachLines(o.Context, in.Reader, r.lines)
	var syntax *format.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, err
	case errors.Is(err, format.ErrLongLine):
		return nil, r.failAt(r.line+1, inRecord, "a shorter line", err.Error())
	case err != nil:
		return nil, &format.FileError{File: in.Name, Err: err}
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return r, nil
}

// shortestRecord is the length of "0 0 0 0 0 0 -1\n".
const shortestRecord = 15

func (r *reader) fail(class, expected, found string) error {
	return r.failAt(r.line, class, expected, found)
}

func (r *reader) failAt(line int64, class, expected, found string) error {
	return &format.SyntaxError{File: r.file, Line: line, Class: class, Expected: expected, Found: found}
}

// lineOf returns the line of a record.
func (r *reader) lineOf(i int32) int64 {
	low, high := 0, len(r.jumps)
	for high-low > 1 {
		middle := (low + high) / 2
		if r.jumps[middle].first <= int(i) {
			low = middle
		} else {
			high = middle
		}
	}
	return int64(i) + r.jumps[low].offset
}

// lines parses whole lines.
func (r *reader) lines(b []byte) error {
	inBody := r.started && r.model == nil && int64(len(r.comms)) == r.header.comms
	for p := 0; p < len(b); {
		r.line++
		if inBody {
			next, err := r.canonical(b, p)
			if err != nil {
				return err
			}
			if next > 0 {
				p = next
				continue
			}
		}
		end := p + bytes.IndexByte(b[p:], '\n')
		if err := r.anyLine(b[p:end]); err != nil {
			return err
		}
		inBody = r.started && r.model == nil && int64(len(r.comms)) == r.header.comms
		p = end + 1
	}
	return nil
}

// canonical parses the line at p if it is a record of whole numbers with single blanks, and returns the position
// behind it. It returns 0 if the line is another one or has an error.
func (r *reader) canonical(b []byte, p int) (next int, err error) {
	var values [8]uint64
	if len(b)-p < 2 {
		return 0, nil
	}
	participates := b[p] == 'G'
	n := 6 // numbers before the last field
	at := p
	if participates {
		at, n = p+1, 8
	}
	for i := range n {
		v, end := digits(b, at)
		if end == at || end-at > 18 || b[end] != ' ' {
			return 0, nil
		}
		values[i] = v
		at = end + 1
	}
	dep := values[n-2]
	ref := int64(-1)
	switch {
	case dep > depCollective:
		return 0, nil
	case dep == depNone:
		if b[at] != '-' || b[at+1] != '1' {
			return 0, nil
		}
		at += 2
	default:
		if dep == depCollective {
			if b[at] != 'G' {
				return 0, nil
			}
			at++
		}
		v, end := digits(b, at)
		if end == at || end-at > 18 {
			return 0, nil
		}
		ref, at = int64(v), end
	}
	if b[at] == '\r' {
		at++
	}
	if b[at] != '\n' {
		return 0, nil
	}
	tasks := uint64(r.header.tasks)
	ticks := values[n-1]
	if ticks > uint64(dag.MaxTime/r.header.clock) {
		return 0, nil
	}
	rec := record{time: dag.Time(ticks) * r.header.clock, dep: uint8(dep), ref: ref}
	if participates {
		if values[2] >= numOps || values[3] >= tasks || values[1] >= uint64(len(r.comms)) {
			return 0, nil
		}
		rec.kind, rec.task = participation, int32(values[3])
		rec.size, rec.recv = int64(values[4]), int64(values[5])
		return at + 1, r.addParticipation(&rec, int64(values[0]), int32(values[1]), uint8(values[2]))
	}
	if values[1] >= tasks || values[2] >= tasks {
		return 0, nil
	}
	rec.task, rec.a, rec.size = int32(values[1]), int32(values[2]), int64(values[3])
	return at + 1, r.addMessage(&rec, int64(values[0]))
}

// anyLine parses any line.
func (r *reader) anyLine(line []byte) error {
	if len(line) > 0 && line[0] == '#' {
		return nil
	}
	fields := strings.Fields(string(line))
	switch {
	case len(fields) == 0:
		return nil
	case !r.started:
		r.started = true
		return r.readHeader(fields)
	case r.model != nil:
		r.model.lines = append(r.model.lines, model.Line{Number: r.line, Fields: fields})
		return nil
	case strings.EqualFold(fields[0], "EXT") && len(r.comms) == 0 && len(r.records) == 0:
		r.model = &modelText{kind: model.Line{Number: r.line, Fields: fields[1:]}}
		return nil
	case int64(len(r.comms)) < r.header.comms:
		return r.readComm(fields)
	case fields[0][0] == 'C':
		return r.fail(inCommunicator, fmt.Sprintf("the %d communicators of the header", r.header.comms), "one more")
	case fields[0][0] == 'G':
		return r.readParticipation(fields)
	}
	return r.readMessage(fields)
}

const (
	messageSyntax       = "a message: ID src dst size Dep time IDdep"
	participationSyntax = "a collective record: Gid comm op task send_size recv_size Dep time IDdep"
)

func (r *reader) readMessage(fields []string) error {
	if len(fields) != 7 {
		return r.fail(inRecord, messageSyntax, strconv.Itoa(len(fields))+" fields")
	}
	id, ok := parseCount(fields[0])
	if !ok {
		return r.fail(inRecord, "the number of a message, or G and that of a collective", quote(fields[0]))
	}
	var rec record
	var err error
	if rec.task, err = r.readTask("a source", fields[1]); err != nil {
		return err
	}
	if rec.a, err = r.readTask("a destination", fields[2]); err != nil {
		return err
	}
	if rec.size, ok = parseCount(fields[3]); !ok {
		return r.fail(inRecord, "a size in bytes", quote(fields[3]))
	}
	if err := r.readDependency(&rec, fields[4:]); err != nil {
		return err
	}
	return r.addMessage(&rec, id)
}

func (r *reader) readParticipation(fields []string) error {
	if len(fields) != 9 {
		return r.fail(inRecord, participationSyntax, strconv.Itoa(len(fields))+" fields")
	}
	id, ok := parseCount(fields[0][1:])
	if !ok {
		return r.fail(inRecord, "G and the number of a collective", quote(fields[0]))
	}
	c, ok := parseCount(fields[1])
	if !ok {
		return r.fail(inRecord, "a communicator", quote(fields[1]))
	}
	if c >= int64(len(r.comms)) {
		return r.fail(inCollective, fmt.Sprintf("one of the %d communicators", len(r.comms)), quote(fields[1]))
	}
	op, ok := parseCount(fields[2])
	if !ok {
		return r.fail(inRecord, "a collective op", quote(fields[2]))
	}
	if op >= numOps {
		return r.fail(inCollective, fmt.Sprintf("a collective op in 0..%d", numOps-1), quote(fields[2]))
	}
	rec := record{kind: participation}
	var err error
	if rec.task, err = r.readTask("a task", fields[3]); err != nil {
		return err
	}
	if rec.size, ok = parseCount(fields[4]); !ok {
		return r.fail(inRecord, "a sent size in bytes", quote(fields[4]))
	}
	if rec.recv, ok = parseCount(fields[5]); !ok {
		return r.fail(inRecord, "a received size in bytes", quote(fields[5]))
	}
	if err := r.readDependency(&rec, fields[6:]); err != nil {
		return err
	}
	return r.addParticipation(&rec, id, int32(c), uint8(op))
}

func (r *reader) readTask(name, word string) (int32, error) {
	task, ok := parseCount(word)
	if !ok || task >= r.header.tasks {
		return 0, r.fail(inRecord, fmt.Sprintf("%s in 0..%d", name, r.header.tasks-1), quote(word))
	}
	return int32(task), nil
}

// readDependency parses the fields Dep, time and IDdep.
func (r *reader) readDependency(rec *record, fields []string) error {
	dep, ok := parseCount(fields[0])
	if !ok || dep > depCollective {
		return r.fail(inRecord, "a kind of dependency in 0..3", quote(fields[0]))
	}
	rec.dep, rec.ref = uint8(dep), -1
	var rounded bool
	if rec.time, rounded, ok = parseTime(fields[1], r.header.clock); !ok {
		return r.fail(inRecord, "a time in clock ticks, within 106 days", quote(fields[1]))
	}
	if rounded {
		if r.rounded == 0 {
			r.firstRounded = r.line
		}
		r.rounded++
	}
	word := fields[2]
	expected := "the number of a message"
	switch rec.dep {
	case depNone:
		if word != "-1" {
			return r.fail(inRecord, "-1, because Dep 0 is no dependency", quote(word))
		}
		return nil
	case depCollective:
		expected = "G and the number of a collective"
		if word[0] != 'G' {
			return r.fail(inRecord, expected, quote(word))
		}
		word = word[1:]
	}
	if rec.ref, ok = parseCount(word); !ok {
		return r.fail(inRecord, expected, quote(fields[2]))
	}
	return nil
}

func (r *reader) addMessage(rec *record, id int64) error {
	k := int32(len(r.messages))
	if r.messageByID == nil && id != int64(k) {
		r.messageByID = make(map[int64]int32, 2*len(r.messages))
		for i := range k {
			r.messageByID[int64(i)] = i
		}
	}
	if r.messageByID != nil {
		if other, twice := r.messageByID[id]; twice {
			return r.fail(inRecord, fmt.Sprintf("a message number other than that of line %d",
				r.lineOf(r.messages[other])), strconv.FormatInt(id, 10))
		}
		r.messageByID[id] = k
	}
	r.messages = append(r.messages, int32(len(r.records)))
	return r.add(rec)
}

// messageOf returns the position in messages of the message with a number, or -1.
func (r *reader) messageOf(id int64) int32 {
	if r.messageByID == nil {
		if id < int64(len(r.messages)) {
			return int32(id)
		}
		return -1
	}
	if k, known := r.messageByID[id]; known {
		return k
	}
	return -1
}

// ids returns the number of each message, or nil if the numbers equal the positions.
func (r *reader) ids() []int64 {
	if r.messageByID == nil {
		return nil
	}
	ids := make([]int64, len(r.messages))
	for id, k := range r.messageByID {
		ids[k] = id
	}
	return ids
}

func (r *reader) addParticipation(rec *record, id int64, comm int32, op uint8) error {
	k := r.instanceOf(id)
	if k < 0 {
		k = int32(len(r.instances))
		if r.instanceBy == nil && id != int64(k) {
			r.instanceBy = make(map[int64]int32, 2*len(r.instances))
			for i := range k {
				r.instanceBy[int64(i)] = i
			}
		}
		if r.instanceBy != nil {
			r.instanceBy[id] = k
		}
		r.instances = append(r.instances, instance{id: id, comm: comm, op: op, root: -1, first: int32(len(r.records)),
			size: -1})
	}
	g := &r.instances[k]
	if g.comm != comm || g.op != op {
		return r.fail(inCollective, fmt.Sprintf("G%d to be one %s, of communicator %d, as on line %d", id,
			opNames[g.op], g.comm,
			r.lineOf(g.first)), fmt.Sprintf("%s, of communicator %d", opNames[op], comm))
	}
	if r.comms[comm].position(rec.task) < 0 {
		return r.fail(inCollective, fmt.Sprintf("a task of communicator %d", comm), strconv.Itoa(int(rec.task)))
	}
	if int(g.count) == len(r.comms[comm].tasks) {
		return r.fail(inCollective, fmt.Sprintf("one record of G%d for each of the %d tasks of communicator %d", id,
			g.count, comm), "one more")
	}
	g.count++
	g.last = int32(len(r.records))
	rec.a = k
	if err := r.addSizes(g, rec); err != nil {
		return err
	}
	return r.add(rec)
}

func (r *reader) instanceOf(id int64) int32 {
	if r.instanceBy == nil {
		if id < int64(len(r.instances)) {
			return int32(id)
		}
		return -1
	}
	if k, known := r.instanceBy[id]; known {
		return k
	}
	return -1
}

// addSizes adds the sizes of a record to its collective.
func (r *reader) addSizes(g *instance, rec *record) error {
	size := rec.size // for comparison between members
	switch g.op {
	case opBroadcast:
		size = max(rec.size, rec.recv)
		if rec.size > 0 {
			return r.setRoot(g, rec, size)
		}
	case opScatter:
		size = rec.recv
		if rec.size > 0 {
			return r.setRoot(g, rec, size)
		}
	case opReduce, opGather:
		if g.op == opReduce {
			size = max(rec.size, rec.recv)
		}
		if rec.recv > 0 {
			return r.setRoot(g, rec, size)
		}
	case opAlltoall:
		if rec.recv > 1 {
			return r.fail(inRecord, "a mode of all-to-all, 0 or 1", strconv.FormatInt(rec.recv, 10))
		}
		if n := int64(len(r.comms[g.comm].tasks)); rec.recv == 0 && rec.size > math.MaxInt64/n {
			return r.fail(inRecord, fmt.Sprintf("a size of which %d do not exceed %d bytes", n, int64(math.MaxInt64)),
				strconv.FormatInt(rec.size, 10))
		}
		g.mixed = g.mixed || rec.recv != 0
	}
	g.addSize(size)
	return nil
}

func (r *reader) setRoot(g *instance, rec *record, size int64) error {
	if g.root >= 0 {
		return r.fail(inCollective, fmt.Sprintf("one root of G%d", g.id), fmt.Sprintf("both task %d and task %d",
			g.root, rec.task))
	}
	g.root = rec.task
	g.addSize(size)
	return nil
}

func (g *instance) addSize(size int64) {
	if g.size < 0 {
		g.size = size
	}
	g.mixed = g.mixed || size != g.size
	if g.sum < 0 || size > math.MaxInt64-g.sum {
		g.sum = -1
		return
	}
	g.sum += size
}

func (r *reader) add(rec *record) error {
	i := len(r.records)
	if i == maxRecords {
		return r.fail(inRecord, fmt.Sprintf("at most %d records", maxRecords), "more")
	}
	if offset := r.line - int64(i); len(r.jumps) == 0 || r.jumps[len(r.jumps)-1].offset != offset {
		r.jumps = append(r.jumps, jump{i, offset})
	}
	r.records = append(r.records, *rec)
	return nil
}

// end checks conditions that need the whole file.
func (r *reader) end() error {
	if !r.started {
		return r.failAt(1, inHeader, headerSyntax, "the end of the file")
	}
	if r.model != nil {
		return nil
	}
	h := &r.header
	if int64(len(r.comms)) < h.comms {
		return r.failAt(r.line+1, inCommunicator, fmt.Sprintf("%d communicators", h.comms), strconv.Itoa(len(r.comms)))
	}
	if most := max(freeTasks, r.members+2*int64(len(r.records))); h.tasks > most {
		return r.failAt(h.line, inHeader, fmt.Sprintf("at most %d tasks, or as many as the file uses", freeTasks),
			strconv.FormatInt(h.tasks, 10))
	}
	if err := memory.CheckRanks(r.ctx, h.tasks); err != nil {
		return format.FileErrorf(r.file, "line %d: %w", h.line, err)
	}
	for _, c := range []struct {
		what        string
		said, found int64
	}{
		{"messages", h.messages, int64(len(r.messages))},
		{"collectives", h.global, int64(len(r.instances))},
		{"collective records", h.local, int64(len(r.records) - len(r.messages))},
	} {
		if c.said == c.found {
			continue
		}
		if !r.lenient {
			return r.failAt(h.line, inCount, fmt.Sprintf("%d %s, as in the header", c.said, c.what),
				strconv.FormatInt(c.found, 10))
		}
		r.warn("%s:%d: %s: expected %d %s, as in the header, found %d", r.file, h.line, inCount, c.said,
			c.what, c.found)
	}
	return nil
}

// freeTasks is the number of tasks that even a short trace may have. Each task needs memory, so a trace with more
// tasks must use them.
const freeTasks = 1 << 16
