package timeline

import (
	"bufio"
	"encoding/binary"
	"math"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// perfetto writes Perfetto's protocol buffers: a sequence of TracePacket messages, without dependencies between them
// except for interned names. Field numbers are those of protos/perfetto/trace in Perfetto's source. Times are in
// nanoseconds, rounded down, because Perfetto has no finer clock.
type perfetto struct {
	w      *bufio.Writer
	unit   dag.Time
	uuids  uint64            // of processes, after those of tracks
	root   map[int]uint64    // uuids of processes
	names  map[string]uint64 // interned names of slices
	packet message
	event  message
	inner  message
	last   message
}

// Fields of TracePacket.
const (
	packetTimestamp     = 8
	packetSequence      = 10
	packetTrackEvent    = 11
	packetInterned      = 12
	packetSequenceFlags = 13
	packetDescriptor    = 60
	packetFirst         = 87
)

// Values of TracePacket.sequence_flags.
const (
	stateCleared = 1
	needsState   = 2
)

// Fields of TrackDescriptor.
const (
	descriptorUUID     = 1
	descriptorName     = 2
	descriptorParent   = 5
	descriptorCounter  = 8
	descriptorOrdering = 11
	descriptorRank     = 12

	explicitOrdering = 3
)

// Fields of CounterDescriptor.
const (
	counterUnit     = 3
	counterUnitName = 6

	sizeBytes = 3
)

// Fields of TrackEvent.
const (
	eventCategory        = 3
	eventAnnotation      = 4
	eventType            = 9
	eventNameIID         = 10
	eventTrack           = 11
	eventName            = 23
	eventFlow            = 47
	eventTerminatingFlow = 48
	eventCounterValue    = 30
	eventCounterDouble   = 44

	sliceBegin = 1
	sliceEnd   = 2
	instant    = 3
	counter    = 4
)

// Fields of DebugAnnotation.
const (
	annotationNameIID = 1
	annotationInt     = 4
	annotationJSON    = 9
	annotationName    = 10
)

// Fields of InternedData and its entries.
const (
	internedCategories  = 1
	internedNames       = 2
	internedAnnotations = 3
	internedID          = 1
	internedText        = 2
)

// maxNames is the largest number of interned names. Further names are written with each slice.
const maxNames = 1 << 16

func newPerfetto(w *bufio.Writer) *perfetto {
	return &perfetto{w: w, root: map[int]uint64{}, names: map[string]uint64{}}
}

// begin writes the first packet, with the names of categories and arguments. Their numbers are one above their
// constants.
func (p *perfetto) begin(unit dag.Time) {
	p.unit = unit
	p.start()
	p.packet.varint(packetFirst, 1)
	p.packet.varint(packetSequenceFlags, stateCleared)
	p.inner = p.inner[:0]
	for i, name := range categories {
		p.intern(internedCategories, uint64(i+1), []byte(name))
	}
	for i, name := range arguments {
		p.intern(internedAnnotations, uint64(i+1), []byte(name))
	}
	p.packet.bytes(packetInterned, p.inner)
	p.write()
	p.describe(0, 0, "", 0) // the parent of all
}

// intern appends an entry to interned data.
func (p *perfetto) intern(field int, id uint64, text []byte) {
	p.last = p.last[:0]
	p.last.varint(internedID, id)
	p.last.bytes(internedText, text)
	p.inner.bytes(field, p.last)
}

// start begins a packet.
func (p *perfetto) start() {
	p.packet = p.packet[:0]
	p.packet.varint(packetSequence, 1)
}

// write writes the packet.
func (p *perfetto) write() {
	const tracePacket = 1
	var head [binary.MaxVarintLen64 + 1]byte
	head[0] = tracePacket<<3 | lengthDelimited
	n := binary.PutUvarint(head[1:], uint64(len(p.packet)))
	p.w.Write(head[:n+1])
	p.w.Write(p.packet)
}

// uuid returns the uuid of a process. Tracks have even ones.
func (p *perfetto) process(pid int, name string) {
	p.uuids++
	p.root[pid] = 2*p.uuids - 1
	p.describe(p.root[pid], 0, name, int32(pid))
}

func uuid(t *track) uint64 {
	return 2 * t.id
}

func (p *perfetto) track(t *track) {
	if !t.counter {
		p.describe(uuid(t), p.root[t.pid], t.name, t.order)
		return
	}
	p.start()
	p.descriptor(uuid(t), p.root[t.pid], t.name, t.order)
	p.last = p.last[:0]
	if t.unit == "bytes" {
		p.last.varint(counterUnit, sizeBytes)
	} else {
		p.last.bytes(counterUnitName, valid(t.unit))
	}
	p.event.bytes(descriptorCounter, p.last)
	p.packet.bytes(packetDescriptor, p.event)
	p.write()
}

// describe writes the descriptor of a track or of a parent of tracks.
func (p *perfetto) describe(id, parent uint64, name string, order int32) {
	p.start()
	p.descriptor(id, parent, name, order)
	if parent == 0 {
		p.event.varint(descriptorOrdering, explicitOrdering)
	}
	p.packet.bytes(packetDescriptor, p.event)
	p.write()
}

// descriptor puts the fields of a track into event.
func (p *perfetto) descriptor(id, parent uint64, name string, order int32) {
	p.event = p.event[:0]
	p.event.varint(descriptorUUID, id)
	if parent != 0 {
		p.event.varint(descriptorParent, parent)
	}
	if name != "" {
		p.event.bytes(descriptorName, valid(name))
	}
	p.event.varint(descriptorRank, uint64(order))
}

// at begins a packet with an event on a track at a time.
func (p *perfetto) at(t uint64, id uint64, kind uint64) {
	p.start()
	p.packet.varint(packetTimestamp, p.nanoseconds(t))
	p.event = p.event[:0]
	p.event.varint(eventType, kind)
	p.event.varint(eventTrack, id)
}

// emit ends a packet with an event.
func (p *perfetto) emit() {
	p.packet.bytes(packetTrackEvent, p.event)
	p.write()
}

func (p *perfetto) slice(t *track, s *slice) {
	p.at(s.start, uuid(t), sliceBegin)
	p.packet.varint(packetSequenceFlags, needsState)
	p.event.varint(eventCategory, uint64(s.category)+1)
	name, known := p.names[string(s.name)]
	switch {
	case known:
		p.event.varint(eventNameIID, name)
	case len(p.names) < maxNames:
		name = uint64(len(p.names) + 1)
		p.names[string(s.name)] = name
		p.inner = p.inner[:0]
		p.intern(internedNames, name, s.name)
		p.packet.bytes(packetInterned, p.inner)
		p.event.varint(eventNameIID, name)
	default:
		p.event.bytes(eventName, s.name)
	}
	for _, a := range s.args[:s.n] {
		p.last = p.last[:0]
		p.last.varint(annotationNameIID, uint64(a.name)+1)
		p.last.varint(annotationInt, uint64(a.value))
		p.event.bytes(eventAnnotation, p.last)
	}
	switch s.flow {
	case flowBegin, flowStep:
		p.event.fixed(eventFlow, s.id+1)
	case flowEnd:
		p.event.fixed(eventTerminatingFlow, s.id+1)
	}
	p.emit()
	p.at(s.end, uuid(t), sliceEnd)
	p.emit()
}

func (p *perfetto) mark(t *track, at uint64, text string) {
	p.at(at, uuid(t), instant)
	p.event.bytes(eventName, valid(text))
	p.emit()
}

func (p *perfetto) count(t *track, at uint64, value float64) {
	p.at(at, uuid(t), counter)
	if whole := int64(value); float64(whole) == value {
		p.event.varint(eventCounterValue, uint64(whole))
	} else {
		p.event.fixed(eventCounterDouble, math.Float64bits(value))
	}
	p.emit()
}

// end writes the description of the run as an instant of the track "run".
func (p *perfetto) end(about []byte) {
	if about == nil {
		return
	}
	const pid = -1
	p.process(pid, "run")
	p.at(0, p.root[pid], instant)
	p.event.bytes(eventName, []byte("run"))
	p.last = p.last[:0]
	p.last.bytes(annotationName, []byte("run"))
	p.last.bytes(annotationJSON, about)
	p.event.bytes(eventAnnotation, p.last)
	p.emit()
}

// nanoseconds rounds a time down.
func (p *perfetto) nanoseconds(t uint64) uint64 {
	if p.unit >= dag.Nanosecond {
		return t * uint64(p.unit/dag.Nanosecond)
	}
	return t / uint64(dag.Nanosecond/p.unit)
}

// valid returns a text with bytes that are not UTF-8 replaced.
func valid(text string) []byte {
	return []byte(strings.ToValidUTF8(text, "\uFFFD"))
}

// message is an encoded protocol buffer.
type message []byte

// Wire types.
const (
	varint          = 0
	fixed64         = 1
	lengthDelimited = 2
)

func (m *message) varint(field int, v uint64) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field<<3|varint)), v)
}

func (m *message) fixed(field int, v uint64) {
	*m = binary.LittleEndian.AppendUint64(binary.AppendUvarint(*m, uint64(field<<3|fixed64)), v)
}

func (m *message) bytes(field int, b []byte) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field<<3|lengthDelimited)), uint64(len(b)))
	*m = append(*m, b...)
}
