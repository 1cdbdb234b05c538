// This file reads the events of a file and keeps what the trace needs.

package kineto

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
)

// parser reads a recording.
type parser struct {
	recording
	ctx        context.Context
	watch      par.Watch
	w          window
	l          lexer
	stepName   []string
	e          event
	key        []byte // scratch space
	kinds      []callKind
	classes    []int8       // by name: class of device ops plus 1
	each       func() error // receives the events in place of the recording; nil: none
	completion Completion   // receives the events, too; nil: none
	kept       bool         // operators are kept in any case
	category   struct {
		name []byte
		is   category
	}
}

// event is the parts of an event, in the text of the lexer.
type event struct {
	phase, category, name, process, thread, start, took, args span
}

// eventShare is the part of the limit of memory that one event may take.
const eventShare = 16

// readRecording reads a file.
func readRecording(in *format.Input, o *readOptions) (*recording, error) {
	p := newParser(o.ctx, in)
	p.stepName, p.kept = o.steps, o.keepHost
	if o.events.Reference || o.events.Path {
		p.reference = &Reference{detailed: o.events.Path, exact: !o.events.Reference, only: o.events.Only}
	}
	if err := p.read(); err != nil {
		return nil, err
	}
	p.w = window{}
	if err := p.link(); err != nil {
		return nil, format.InFile(in.Name, err)
	}
	r := p.recording
	if r.reference != nil {
		r.reference.MTIA = r.meta.mtia
		r.reference.finish()
	}
	return &r, nil
}

// read reads the file and its events.
func (p *parser) read() error {
	err := p.file()
	for err == nil && !p.w.final && p.w.err == nil { // the rest may be damaged
		p.w.skip(len(p.w.b))
		p.w.more()
	}
	if p.w.damage != nil {
		if p.damage.cause = p.w.damage; !p.damage.end {
			p.damage.cut = p.w.offset + int64(len(p.w.b))
		}
	}
	if err == nil && p.w.err != nil {
		err = fmt.Errorf("reading: %w", format.Cause(p.w.err))
	}
	if err != nil {
		return format.InFile(p.name, err)
	}
	return nil
}

// see makes the lexer read the window.
func (p *parser) see() { p.l.b, p.l.final = p.w.b, p.w.final }

// next returns the next character that is not blank, 0 at the end.
func (p *parser) next() byte {
	for {
		p.see()
		if n := p.l.blanks(0); n < len(p.w.b) {
			p.w.skip(n)
			p.see()
			return p.w.b[0]
		}
		p.w.skip(len(p.w.b))
		if !p.w.more() {
			return 0
		}
	}
}

// file reads the whole file.
func (p *parser) file() error {
	if p.next() == 0xEF && p.ahead(3) && bytes.HasPrefix(p.w.b, []byte("\xEF\xBB\xBF")) {
		p.w.skip(3)
	}
	switch p.next() {
	case '[':
		return p.events()
	case '{':
		p.w.skip(1)
		return p.members()
	}
	if p.w.err != nil {
		return nil
	}
	return p.syntaxError("an object with the events of a profile, or their list")
}

// ahead reports whether n bytes are in the window, and reads them if they are not.
func (p *parser) ahead(n int) bool {
	for len(p.w.b) < n {
		if !p.w.more() {
			return false
		}
	}
	p.see()
	return true
}

func (p *parser) syntaxError(expected string) error {
	found := "the end of the file"
	if len(p.w.b) > 0 {
		found = fmt.Sprintf("%.20q", p.w.b)
	}
	return &format.SyntaxError{File: p.name, Offset: p.w.offset, Expected: expected, Found: found}
}

// members reads the members of the object.
func (p *parser) members() error {
	found := false
	for {
		switch p.next() {
		case 0:
			if !found && p.w.err == nil {
				return p.syntaxError("a member called traceEvents")
			}
			p.cut()
			return nil
		case '}':
			if !found {
				return p.syntaxError("a member called traceEvents")
			}
			return nil
		case ',':
			p.w.skip(1)
			continue
		}
		name, ok := p.memberName()
		switch {
		case !ok && found:
			p.cut()
			return nil
		case !ok:
			return p.syntaxError("the name of a member")
		case string(name) == "traceEvents" && p.next() == '[':
			found = true
			if err := p.events(); err != nil {
				return err
			}
			if p.damage.end {
				return nil
			}
			continue
		}
		kept := bytes.Clone(name)
		value, ok := p.memberValue()
		if !ok {
			if !found {
				return p.syntaxError("a value")
			}
			p.cut()
			return nil
		}
		p.meta.set(string(kept), value)
		p.w.skip(len(value))
	}
}

// cut notes that the file ends early.
func (p *parser) cut() {
	if !p.damage.end {
		p.damage.end, p.damage.cut = true, p.w.offset
	}
}

// memberName reads the name of a member and the colon.
func (p *parser) memberName() ([]byte, bool) {
	for {
		p.see()
		if len(p.w.b) > 0 && p.w.b[0] != '"' {
			return nil, false
		}
		name, at := p.l.text(0)
		if at > 0 {
			if at = p.l.blanks(at); at < len(p.w.b) {
				if p.w.b[at] != ':' {
					return nil, false
				}
				text := p.l.of(name)
				p.w.skip(at + 1)
				return text, true
			}
		}
		if !p.w.more() {
			return nil, false
		}
	}
}

// memberValue returns the value at the position, without passing it.
func (p *parser) memberValue() ([]byte, bool) {
	if p.next() == 0 {
		return nil, false
	}
	for {
		p.see()
		at := p.l.value(0)
		if at > 0 {
			return p.w.b[:at], true
		}
		if at == bad || !p.w.more() {
			return nil, false
		}
	}
}

// events reads the list of events.
func (p *parser) events() error {
	p.w.skip(1)
	for {
		if err := p.watch.Err(); err != nil {
			return err
		}
		switch p.next() {
		case 0:
			p.cut()
			return nil
		case ']':
			p.w.skip(1)
			return nil
		case ',':
			p.w.skip(1)
			continue
		case '{':
			n := p.event(0)
			if n == short && p.w.more() {
				continue // from its begin
			}
			if n > 0 {
				p.damage.read++
				if err := p.keep(); err != nil {
					return err
				}
				p.w.skip(n)
				continue
			}
			if n == bad && p.retry() {
				continue
			}
		}
		if p.w.err != nil {
			return nil
		}
		var other *format.SyntaxError // not a list of events at all
		if p.damage.read == 0 && len(p.w.b) > 0 && p.w.b[0] != '{' {
			other = &format.SyntaxError{File: p.name, Offset: p.w.offset,
				Expected: "an event, which begins with a brace", Found: fmt.Sprintf("%.20q", p.w.b)}
		}
		if p.damage.events == 0 {
			p.damage.offset = p.w.offset
		}
		if !p.resume() {
			if other != nil {
				return other
			}
			p.cut()
			return nil
		}
		p.damage.events++
	}
}

// retry reads the event again, as one whose strings have no escapes. It reports whether that is possible.
func (p *parser) retry() bool {
	p.l.literal = true
	defer func() { p.l.literal = false }()
	for {
		p.see()
		n := p.event(0)
		if n == short && p.ahead(len(p.w.b)+1) && len(p.w.b) < windowSize {
			continue
		}
		if n <= 0 || !p.plausible() {
			return false
		}
		p.damage.read++
		if p.keep() != nil {
			return false
		}
		p.w.skip(n)
		return true
	}
}

// plausible reports whether the parts of an event other than its name can be those of an event, so that only its name
// lacks escapes.
func (p *parser) plausible() bool {
	e := &p.e
	if len(p.content(e.phase)) != 1 || bytes.IndexByte(p.content(e.category), '"') >= 0 {
		return false
	}
	for _, s := range []span{e.start, e.took} {
		if _, ok := parseMicros(p.content(s)); !ok && s.to > 0 {
			return false
		}
	}
	return true
}

// resume passes the rest of a damaged event. It returns false if no other event follows.
func (p *parser) resume() bool {
	for from := 1; ; {
		p.see()
		for {
			n := bytes.IndexByte(p.w.b[min(from, len(p.w.b)):], '}')
			if n < 0 {
				break
			}
			at := from + n
			i := p.l.blanks(at + 1)
			if i < len(p.w.b) && p.w.b[i] == ',' {
				i = p.l.blanks(i + 1)
			}
			if i < len(p.w.b) && p.w.b[i] == '{' {
				if i = p.l.blanks(i + 1); i < len(p.w.b) && p.w.b[i] == '"' {
					p.w.skip(at + 1)
					return true
				}
			}
			if i == len(p.w.b) {
				from = at
				break
			}
			from = at + 1
		}
		keep := len(p.w.b)
		if n := bytes.LastIndexByte(p.w.b, '}'); n >= 0 {
			keep = n
		}
		if keep > windowSize/2 { // do not keep what was searched
			p.w.skip(keep)
			from = 0
		} else if keep < from {
			from = keep
		}
		if !p.w.more() {
			return false
		}
	}
}

// event reads an event at a position of the lexer's text.
func (p *parser) event(i int) int {
	l := &p.l
	p.e = event{}
	e := &p.e
	for i++; ; i++ {
		i = l.blanks(i)
		if i < len(l.b) && l.b[i] == '}' {
			return i + 1
		}
		var name, value span
		if name, value, i = l.member(i); i < 0 {
			return i
		}
		switch string(l.of(name)) {
		case "ph":
			e.phase = value
		case "cat":
			e.category = value
		case "name":
			e.name = value
		case "pid":
			e.process = value
		case "tid":
			e.thread = value
		case "ts":
			e.start = value
		case "dur":
			e.took = value
		case "args":
			e.args = value
		}
		if l.b[i] == '}' {
			return i + 1
		}
	}
}

// content returns the content of a string, or the text of another value.
func (p *parser) content(s span) []byte { return unquote(p.l.of(s)) }

// keep keeps what the trace needs of the event.
func (p *parser) keep() error {
	if p.reference != nil {
		if err := p.row(); err != nil || p.reference.only {
			return err
		}
	}
	e := &p.e
	if phase := p.content(e.phase); len(phase) != 1 || phase[0] != 'X' {
		return nil
	}
	if p.each != nil {
		return p.each()
	}
	if p.completion != nil {
		if err := p.pass(); err != nil {
			return err
		}
	}
	name := p.content(e.category)
	if !bytes.Equal(name, p.category.name) {
		p.category.name = append(p.category.name[:0], name...)
		p.category.is = categoryOf(name)
	}
	c := p.category.is
	if c == catOther {
		return nil
	}
	if c == catOperator || c == catAnnotate || c == catUndefined {
		return p.host(c)
	}
	start, took, ok := p.times()
	if !ok {
		return nil
	}
	switch c {
	case catKernel, catCopy, catMTIA:
		return p.device(c, start, took)
	case catRuntime:
		return p.runtime(start, took)
	}
	p.sync()
	return nil
}

// longest is the longest duration of an event in microseconds, a week. Longer ones are errors of the profiler.
const longest = 7 * 24 * 3600 * 1_000_000

// mostMicros is the largest distance of an event to the first one in microseconds.
const mostMicros = math.MaxInt64 / 1_000_000 / 4

// times returns the times of the event; ok is false if it has none that can be used.
func (p *parser) times() (start, took dag.Time, ok bool) {
	at, ok := parseMicros(p.content(p.e.start))
	if !ok {
		p.dropped.timeless++
		return 0, 0, false
	}
	if !p.hasOrigin {
		if at.us == 0 && at.ps == 0 {
			p.dropped.far++ // clipped by the writer
			return 0, 0, false
		}
		p.origin, p.hasOrigin = at.us, true
	}
	d, ok := parseMicros(p.content(p.e.took))
	if !ok && p.e.took.to > 0 {
		p.dropped.instant++
	}
	if !ok || d.us < 0 {
		d = micros{}
	}
	if d.us > longest {
		p.dropped.endless++
		return 0, 0, false
	}
	from := at.us - p.origin
	if from > mostMicros || from < -mostMicros {
		p.dropped.far++
		return 0, 0, false
	}
	return dag.Time(from*1_000_000 + at.ps), dag.Time(d.us*1_000_000 + d.ps), true
}

// text returns the number of the event's name.
func (p *parser) nameNumber() int32 { return p.texts.number(plain(p.content(p.e.name))) }

// threadNumber returns the number of the event's thread.
func (p *parser) threadNumber() int32 {
	p.key = append(append(append(p.key[:0], p.content(p.e.process)...), '/'), p.content(p.e.thread)...)
	return p.threads.number(p.key)
}

// tooMany reports more events of a kind than numbers can count.
func tooMany(n int) error {
	if n < math.MaxInt32 {
		return nil
	}
	return fmt.Errorf("expected at most %d events of a kind, found more", math.MaxInt32)
}

// device keeps an op of a device.
func (p *parser) device(c category, start, took dag.Time) error {
	if !p.runsOps {
		p.runsOps = true
		if !p.kept {
			p.operators = nil
		}
	}
	o := deviceOp{start: start, took: took, correlation: -1, args: -1, name: p.nameNumber(), ordinal: int32(len(p.ops))}
	for int(o.name) >= len(p.classes) {
		p.classes = append(p.classes, 0)
	}
	if p.classes[o.name] == 0 {
		p.classes[o.name] = int8(classOf(c, p.texts.text(o.name))) + 1
	}
	o.class = class(p.classes[o.name] - 1)
	s := deviceStream{-1, math.MinInt64}
	var a commArgs
	p.l.each(p.e.args, func(name, value []byte) bool {
		switch string(name) {
		case "stream":
			if v, ok := parseInt(unquote(value)); ok {
				s.stream = v
			}
		case "device":
			if v, ok := parseInt(unquote(value)); ok {
				s.device = v
			}
		case "correlation":
			if v, ok := parseInt(unquote(value)); ok {
				o.correlation = v
			}
		case "bytes", "size":
			if v, ok := parseInt(unquote(value)); ok && o.class == copies {
				o.bytes = max(v, 0)
			}
		case "graph id":
			if v := unquote(value); len(v) > 0 && string(v) != "0" {
				o.graph = p.texts.number(v)
			}
		default:
			if o.class == communicates {
				a.set(&p.texts, name, value)
			}
		}
		return true
	})
	if s.stream == math.MinInt64 {
		if v, ok := parseInt(p.content(p.e.thread)); ok {
			s.stream = v
		}
	}
	if s.device == -1 {
		if v, ok := parseInt(p.content(p.e.process)); ok {
			s.device = v
		}
	}
	n, ok := p.streamOf[s]
	if !ok {
		n = int32(len(p.streams))
		p.streams = append(p.streams, s)
		p.streamOf[s] = n
	}
	o.stream = n
	if a.present {
		o.args = int32(len(p.args))
		p.args = append(p.args, a)
	}
	p.ops = append(p.ops, o)
	return tooMany(len(p.ops))
}

// runtime keeps a call.
func (p *parser) runtime(start, took dag.Time) error {
	name := p.nameNumber()
	for int(name) >= len(p.kinds) {
		p.kinds = append(p.kinds, math.MaxUint8)
	}
	if p.kinds[name] == math.MaxUint8 {
		p.kinds[name] = callKindOf(p.texts.text(name))
	}
	if p.kinds[name] == callUseless {
		return nil
	}
	c := call{start: start, took: took, correlation: -1, thread: p.threadNumber(), kind: p.kinds[name]}
	p.l.each(p.e.args, func(name, value []byte) bool {
		if string(name) != "correlation" {
			return true
		}
		if v, ok := parseInt(unquote(value)); ok {
			c.correlation = v
		}
		return true
	})
	p.calls = append(p.calls, c)
	return tooMany(len(p.calls))
}

// unknownStream is the number of a stream that the profiler does not know, as unsigned number.
const unknownStream = math.MaxUint32

// sync keeps a wait.
func (p *parser) sync() {
	s := deviceSync{correlation: -1, device: -1, stream: -1, source: -1, record: -1}
	switch string(p.content(p.e.name)) {
	case "Stream Wait Event":
		s.kind = syncWait
	case "Stream Sync", "Stream Synchronize":
		s.kind = syncStream
	case "Context Sync", "Context Synchronize":
		s.kind = syncContext
	case "Event Sync", "Event Synchronize":
		s.kind = syncEvent
	default:
		return
	}
	if v, ok := parseInt(p.content(p.e.process)); ok {
		s.device = v
	}
	p.l.each(p.e.args, func(name, value []byte) bool {
		v, ok := parseInt(unquote(value))
		if !ok {
			return true
		}
		switch string(name) {
		case "correlation":
			s.correlation = v
		case "device":
			s.device = v
		case "stream":
			s.stream = v
		case "wait_on_stream":
			s.source = v
		case "wait_on_cuda_event_record_corr_id":
			s.record = v
		}
		return true
	})
	if s.stream == unknownStream {
		s.stream = -1
	}
	if s.source == unknownStream {
		s.source = -1
	}
	p.syncs = append(p.syncs, s)
}

var recordName = []byte("record_param_comms")

// host keeps an event of the host if it is a step, communicates, or is an operator that may be needed.
func (p *parser) host(c category) error {
	name := p.content(p.e.name)
	if number, ok := stepNumber(name, p.stepName); ok {
		if start, took, ok := p.times(); ok {
			p.steps = append(p.steps, stepRange{start, start + took, number})
		}
		return nil
	}
	record := bytes.Equal(name, recordName)
	called, communicates := communicationOf(name)
	if !record && !communicates {
		if p.runsOps && !p.kept || c == catAnnotate {
			return nil
		}
		start, took, ok := p.times()
		if ok {
			p.operators = append(p.operators, operator{start, start + took, p.threadNumber(), p.nameNumber()})
		}
		return tooMany(len(p.operators))
	}
	start, took, ok := p.times()
	if !ok {
		return nil
	}
	m := mark{start: start, end: start + took, thread: p.threadNumber(), args: -1, record: record}
	var a commArgs
	p.l.each(p.e.args, func(name, value []byte) bool {
		a.set(&p.texts, name, value)
		return true
	})
	if record {
		called = []byte(p.texts.text(a.call))
		m.wait = a.present && string(called) == "wait"
	}
	m.op = operationOf(called)
	m.group = bytes.HasPrefix(called, []byte("coalesc"))
	m.name = p.nameNumber()
	if a.present || a.sized {
		m.args = int32(len(p.args))
		p.args = append(p.args, a)
	}
	p.marks = append(p.marks, m)
	return tooMany(len(p.marks))
}
