package timeline

import (
	"bufio"
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/tracedag/tracedag/dag"
)

// chrome writes Chromium's Trace Event Format (JSON object form). Times are in microseconds, exact to the picosecond.
type chrome struct {
	w    *bufio.Writer
	per  uint64 // units per microsecond
	line []byte
	more bool // an event has been written
}

func (c *chrome) begin(unit dag.Time) {
	c.per = uint64(dag.Microsecond / unit)
	c.w.WriteString(`{"displayTimeUnit":"ns","traceEvents":[`)
}

// event begins an event on a track.
func (c *chrome) event(phase string, pid int, tid int64) {
	c.line = c.line[:0]
	if c.more {
		c.line = append(c.line, ',')
	}
	c.more = true
	c.line = append(append(append(c.line, "\n{\"ph\":"...), phase...), `,"pid":`...)
	c.line = append(appendInt(c.line, int64(pid)), `,"tid":`...)
	c.line = appendInt(c.line, tid)
}

// metadata writes an event that describes a process or thread.
func (c *chrome) metadata(kind string, pid int, tid int64, key string, value []byte) {
	c.event(`"M"`, pid, tid)
	c.line = append(append(append(c.line, `,"name":"`...), kind...), `","args":{"`...)
	c.line = append(append(append(c.line, key...), `":`...), value...)
	c.line = append(c.line, `}}`...)
	c.w.Write(c.line)
}

func (c *chrome) process(pid int, name string) {
	c.metadata("process_name", pid, 0, "name", appendQuoted(nil, []byte(name)))
	c.metadata("process_sort_index", pid, 0, "sort_index", appendInt(nil, int64(pid)))
}

func (c *chrome) track(t *track) {
	if t.counter {
		return
	}
	c.metadata("thread_name", t.pid, t.tid, "name", appendQuoted(nil, []byte(t.name)))
	c.metadata("thread_sort_index", t.pid, t.tid, "sort_index", appendInt(nil, int64(t.order)))
}

func (c *chrome) slice(t *track, s *slice) {
	c.event(`"X"`, t.pid, t.tid)
	c.time(`,"ts":`, s.start)
	c.time(`,"dur":`, s.end-s.start)
	c.line = append(append(append(c.line, `,"cat":"`...), categories[s.category]...), `","name":`...)
	c.line = append(appendQuoted(c.line, s.name), `,"args":{`...)
	for i := range s.args[:s.n] {
		if i > 0 {
			c.line = append(c.line, ',')
		}
		c.line = append(append(append(c.line, '"'), arguments[s.args[i].name]...), `":`...)
		c.line = appendInt(c.line, s.args[i].value)
	}
	c.line = append(c.line, `}}`...)
	c.w.Write(c.line)
	if s.flow != noFlow {
		c.event([...]string{flowBegin: `"s"`, flowStep: `"t"`, flowEnd: `"f","bp":"e"`}[s.flow], t.pid, t.tid)
		c.time(`,"ts":`, s.start)
		c.line = append(c.line, `,"name":"message","cat":"message","id":`...)
		c.line = append(appendInt(c.line, int64(s.id)), '}')
		c.w.Write(c.line)
	}
}

func (c *chrome) mark(t *track, at uint64, text string) {
	c.event(`"i","s":"g"`, t.pid, t.tid)
	c.time(`,"ts":`, at)
	c.line = append(appendQuoted(append(c.line, `,"name":`...), []byte(text)), '}')
	c.w.Write(c.line)
}

func (c *chrome) count(t *track, at uint64, value float64) {
	c.event(`"C"`, t.pid, t.tid)
	c.time(`,"ts":`, at)
	c.line = appendQuoted(append(c.line, `,"name":`...), []byte(t.name))
	c.line = appendQuoted(append(c.line, `,"args":{`...), []byte(t.unit))
	c.line = append(strconv.AppendFloat(append(c.line, ':'), value, 'f', -1, 64), `}}`...)
	c.w.Write(c.line)
}

// time appends a time in microseconds.
func (c *chrome) time(key string, t uint64) {
	c.line = strconv.AppendUint(append(c.line, key...), t/c.per, 10)
	if rest := t % c.per; rest != 0 {
		at := len(c.line)
		c.line = strconv.AppendUint(c.line, c.per+rest, 10)
		c.line[at] = '.' // instead of the leading 1
		c.line = bytes.TrimRight(c.line, "0")
	}
}

func (c *chrome) end(about []byte) {
	c.w.WriteString("\n]")
	if about != nil {
		c.w.WriteString(`,"otherData":`)
		c.w.Write(about)
	}
	c.w.WriteString("}\n")
}

func appendInt(b []byte, v int64) []byte {
	return strconv.AppendInt(b, v, 10)
}

// appendQuoted appends a text as a JSON string. It replaces bytes that are not UTF-8.
func appendQuoted(b, text []byte) []byte {
	b = append(b, '"')
	for len(text) > 0 {
		c := text[0]
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			const digits = "0123456789abcdef"
			b = append(b, `\u00`...)
			b = append(b, digits[c>>4], digits[c&15])
		case c < utf8.RuneSelf:
			b = append(b, c)
		default:
			r, size := utf8.DecodeRune(text)
			b = utf8.AppendRune(b, r)
			text = text[size:]
			continue
		}
		text = text[1:]
	}
	return append(b, '"')
}
