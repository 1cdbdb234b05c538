// This file reads the records of NVIDIA's own NCCL: ranges named after its functions, whose payloads have sizes,
// partners and communicators. They count only if there are no annotations of an NCCL patched for ATLAHS, which
// writes these ranges, too.

package nsys

import (
	"bytes"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// stockReader collects ranges, because only the end shows whether they count.
type stockReader struct {
	calls   []stockCall
	schemas map[schemaKey][]schemaEntry
}

// stockKind is the kind of a range.
type stockKind uint8

const (
	stockInit stockKind = iota
	stockGroupStart
	stockGroupEnd
	stockOp
)

// stockCall is a range.
type stockCall struct {
	start, end int64
	row        int64
	thread     int64 // globalTid
	payload    payload
	kind       stockKind
	op         opKind
}

// payload is the used part of a payload. Missing fields are absent.
type payload struct {
	comm, bytes                        int64
	ranks, rank, device, root, partner int64
}

const absent = math.MinInt64

// stockNames are the ends of function names, behind "nccl".
var stockNames = map[string]stockCall{
	"GroupStart": {kind: stockGroupStart}, "GroupEnd": {kind: stockGroupEnd},
	"CommInitRank": {kind: stockInit}, "CommInitRankConfig": {kind: stockInit},
	"CommInitRankScalable": {kind: stockInit},
	"CommInitAll":          {kind: stockInit}, "CommSplit": {kind: stockInit},
	"Broadcast": {kind: stockOp, op: opBroadcast}, "Bcast": {kind: stockOp, op: opBroadcast},
	"Reduce": {kind: stockOp, op: opReduce}, "AllGather": {kind: stockOp, op: opAllGather},
	"ReduceScatter": {kind: stockOp, op: opReduceScatter}, "AllReduce": {kind: stockOp, op: opAllReduce},
	"Send": {kind: stockOp, op: opSend}, "Recv": {kind: stockOp, op: opRecv},
}

// annotation stores a range of NCCL.
func (s *stockReader) annotation(row *annotationRow) {
	name, ok := strings.CutPrefix(row.text, "nccl")
	if !ok || row.end == unknownTime || checkTimes(row.start, row.end) != nil {
		return
	}
	c, ok := stockNames[name]
	if !ok {
		return
	}
	c.start, c.end, c.row, c.thread = row.start, row.end, row.row, row.globalTid
	c.payload = payload{absent, absent, absent, absent, absent, absent, absent}
	switch {
	case len(row.binary) > 0:
		s.readBinary(row.binary, &c.payload)
	case strings.HasPrefix(row.json, "{"):
		c.payload.readJSON(row.json)
	case row.json != "":
		s.readBinary([]byte(row.json), &c.payload)
	}
	s.calls = append(s.calls, c)
}

// set sets the field of a payload with NCCL's name.
func (p *payload) set(name string, v int64) {
	switch name {
	case "NCCL communicator ID":
		p.comm = v
	case "Message size [bytes]":
		p.bytes = v
	case "No. of ranks":
		p.ranks = v
	case "Rank":
		p.rank = v
	case "CUDA device":
		p.device = v
	case "Root":
		p.root = v
	case "Peer rank":
		p.partner = v
	}
}

// readJSON reads a payload as JSON, at any depth of objects.
func (p *payload) readJSON(text string) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil {
		p.walk("", v, 0)
	}
}

func (p *payload) walk(name string, v any, depth int) {
	switch v := v.(type) {
	case map[string]any:
		if depth < 8 {
			for _, key := range sortedKeys(v) {
				p.walk(key, v[key], depth+1)
			}
		}
	case []any:
		if depth < 8 {
			for _, x := range v {
				p.walk(name, x, depth+1)
			}
		}
	case json.Number:
		p.setText(name, v.String())
	case string:
		p.setText(name, v)
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// setText is set for a number as text, which may be hexadecimal.
func (p *payload) setText(name, text string) {
	if v, err := strconv.ParseUint(text, 0, 64); err == nil {
		p.set(name, int64(v))
	} else if v, err := strconv.ParseInt(text, 0, 64); err == nil {
		p.set(name, v)
	}
}

// schemaKey identifies a schema of payloads.
type schemaKey struct{ domain, schema int64 }

// schemaEntry is a field of a payload.
type schemaEntry struct {
	index, kind, offset int64
	name                string
}

// readSchemas reads the schemas of binary payloads.
func (s *stockReader) readSchemas(d *database) error {
	s.schemas = make(map[schemaKey][]schemaEntry)
	columns := []string{"domainId", "schemaId", "idx", "type", "name", "offset"}
	err := d.each(tableEntries, columns, "", "", func(v []driver.Value) error {
		key := schemaKey{asInt(v[0], 0), asInt(v[1], 0)}
		s.schemas[key] = append(s.schemas[key], schemaEntry{index: asInt(v[2], 0), kind: asInt(v[3], 0),
			offset: asInt(v[5], absent), name: asText(v[4])})
		return nil
	})
	for _, entries := range s.schemas {
		slices.SortStableFunc(entries, func(a, b schemaEntry) int { return int(a.index - b.index) })
	}
	return err
}

// entrySizes are the sizes in bytes of NVTX's payload entry types that are whole numbers; negative: signed.
var entrySizes = map[int64]int{
	1: -1, 2: 1, 3: -2, 4: 2, 5: -4, 6: 4, 7: -8, 8: 8, 9: -8, 10: 8, // char to unsigned long long
	11: -1, 12: 1, 13: -2, 14: 2, 15: -4, 16: 4, 17: -8, 18: 8, 22: 8, 23: 8, // int8 to uint64, size, address
}

// payloadHeader is the number of bytes before the fields of a binary payload.
const payloadHeader = 32

// readBinary reads a binary payload: a header that identifies it, then the fields of its schema.
func (s *stockReader) readBinary(data []byte, p *payload) {
	entries := s.entries(data)
	if entries == nil { // as text, in some versions
		decoded, err := hex.DecodeString(string(bytes.TrimPrefix(data, []byte("0x"))))
		if err != nil {
			return
		}
		data = decoded
		if entries = s.entries(data); entries == nil {
			return
		}
	}
	data = data[payloadHeader:]
	next := int64(0) // absent: unknown
	for i, e := range entries {
		size, known := entrySizes[e.kind]
		signed := size < 0
		width := int64(max(size, -size))
		offset := e.offset
		if offset == absent || offset == 0 && i > 0 {
			if next == absent || !known {
				next = absent
				continue
			}
			offset = (next + width - 1) / width * width
		}
		if next = absent; !known {
			continue
		}
		if offset < 0 || offset > int64(len(data))-width {
			return
		}
		next = offset + width
		var raw [8]byte
		copy(raw[:], data[offset:next])
		v := int64(binary.LittleEndian.Uint64(raw[:]))
		if signed {
			shift := 64 - 8*width
			v = v << shift >> shift
		}
		p.set(e.name, v)
	}
}

// entries returns the fields of a binary payload, or nil if its schema is unknown.
func (s *stockReader) entries(data []byte) []schemaEntry {
	if len(data) < payloadHeader {
		return nil
	}
	return s.schemas[schemaKey{int64(binary.LittleEndian.Uint32(data)), int64(binary.LittleEndian.Uint32(data[8:]))}]
}

// finishStock creates events from the ranges.
func (m *machine) finishStock() error {
	calls := m.stock.calls
	m.stock.calls = nil
	if m.r.annotated {
		return nil
	}
	without := int64(0)
	for i := range calls {
		c := &calls[i]
		if c.kind == stockOp && (c.payload.bytes == absent || c.op.p2p() && c.payload.partner == absent ||
			(c.op == opBroadcast || c.op == opReduce) && c.payload.root == absent) {
			without++
			continue
		}
		if err := m.stockCall(c); err != nil {
			return fmt.Errorf("%s, row %d: %w", tableAnnotations, c.row, err)
		}
	}
	if without == 0 {
		return nil
	}
	return m.r.problem("such calls are skipped", fmt.Errorf("%d NCCL calls have no payload with sizes, "+
		"partners and roots: expected a newer NCCL, or the annotations of an NCCL patched for ATLAHS",
		without))
}

func (m *machine) stockCall(c *stockCall) error {
	t := m.thread(uint64(c.thread), processKey(c.thread))
	switch c.kind {
	case stockInit:
		return m.stockInit(t, c)
	case stockGroupStart:
		if t.depth++; t.depth == 1 {
			t.b.reset(c.start, c.end)
		}
	case stockGroupEnd:
		if t.depth == 0 || !t.b.open {
			return nil
		}
		if t.depth--; t.depth == 0 {
			return m.stockClose(t, c)
		}
	case stockOp:
		alone := t.depth == 0
		if alone {
			t.b.reset(c.start, c.end)
		}
		if err := m.stockDetail(t, c); err != nil {
			return err
		}
		if alone {
			return m.stockClose(t, c)
		}
	}
	return nil
}

// stockClose ends the batch with the range in which its kernels were launched.
func (m *machine) stockClose(t *thread, c *stockCall) error {
	b := &t.b
	b.end = c.end
	t.take(c.start, c.end)
	for i := range max(len(b.kernels), len(b.nodes)) {
		b.launches = append(b.launches,
			launchAnnotation{int32(min(i+1, len(b.kernels))), int32(min(i+1, len(b.nodes)))})
	}
	b.host = c.start
	m.spread(t)
	return m.close(t, false)
}

// spread separates the collectives of a group that belong to several ranks of one communicator in the process.
// They are called rank by rank, or collective by collective. All ranks call the same collectives, so their
// assignment does not matter.
func (m *machine) spread(t *thread) {
	comms := m.r.procs[t.proc].comms
	b := &t.b
	done := make(map[int32]bool)
	for _, d := range b.details {
		ranks := len(comms[d.comm].ranks)
		if ranks < 2 || done[d.comm] {
			continue
		}
		done[d.comm] = true
		var calls []*detail
		for i := range b.details {
			if b.details[i].comm == d.comm {
				calls = append(calls, &b.details[i])
			}
		}
		each := len(calls) / ranks
		if len(calls)%ranks != 0 || d.op.p2p() {
			continue
		}
		same := func(step, of int) bool { // whether calls i and i+step are equal if both are in one run of length of
			for i := range calls {
				if i/of == (i+step)/of && i+step < len(calls) && calls[i].member != calls[i+step].member {
					return false
				}
			}
			return true
		}
		byTurns := same(1, ranks)
		if !byTurns && !same(each, len(calls)) {
			continue
		}
		for i, call := range calls {
			if call.stream = uint64(i / each); byTurns {
				call.stream = uint64(i % ranks)
			}
		}
	}
}

func (m *machine) stockInit(t *thread, c *stockCall) error {
	p := &c.payload
	if p.ranks < 1 || p.ranks > math.MaxInt32 || p.rank < 0 || p.rank >= p.ranks {
		return nil // a rank outside all parts of a split
	}
	if p.comm == absent {
		if p.comm = 0; m.r.procs[t.proc].inits > 0 {
			return fmt.Errorf("process %d creates several communicators, and their payloads do not distinguish them: "+
				"expected a newer NCCL", m.r.procs[t.proc].pid)
		}
	}
	err := m.init(t, &annotation{comm: uint64(p.comm), id: uint64(p.comm), rank: int32(p.rank), nranks: int32(p.ranks)})
	if err == nil && p.device != absent {
		proc := &m.r.procs[t.proc]
		proc.comms[proc.commOf[uint64(p.comm)]].rankOf(int32(p.rank)).device = int32(p.device)
	}
	return err
}

func (m *machine) stockDetail(t *thread, c *stockCall) error {
	p := &c.payload
	id := p.comm
	if id == absent {
		if id = 0; len(m.r.procs[t.proc].comms) > 1 {
			return fmt.Errorf("nccl%v: the payload does not identify one of the process's %d communicators", c.op,
				len(m.r.procs[t.proc].comms))
		}
		if comms := m.r.procs[t.proc].comms; len(comms) == 1 {
			id = int64(comms[0].id)
		}
	}
	comm, err := m.comm(t, &annotation{comm: uint64(id)})
	if comm < 0 {
		return err
	}
	peer := int64(0)
	switch {
	case c.op.p2p():
		peer = p.partner
	case c.op == opBroadcast || c.op == opReduce:
		peer = p.root
	}
	if peer < 0 || peer > math.MaxInt32 || p.bytes < 0 {
		return fmt.Errorf("nccl%v: expected a size and a rank, found %d and %d", c.op, p.bytes, peer)
	}
	b := &t.b
	if b.at == unknownTime {
		b.at = c.start
	}
	b.details = append(b.details, detail{member: member{bytes: p.bytes, peer: int32(peer), comm: comm, op: c.op,
		inPlace: noRank}, stock: true})
	return nil
}
