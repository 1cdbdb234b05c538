// This file reads traces: a list of the files of ranks, or one file of all ranks.

package simgrid

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
)

// attribute is the member of the attributes of an op with the lines of the file that the op alone does not tell.
const attribute = "simgrid"

// lines are the value of the member.
type lines struct {
	Line   string   `json:"line,omitempty"`   // the op's own, without the rank
	Before []string `json:"before,omitempty"` // lines without an op
	After  []string `json:"after,omitempty"`  // those at the end of the rank
}

func (l *lines) encode() string {
	if l.Line == "" && len(l.Before)+len(l.After) == 0 {
		return ""
	}
	return attr.Encode(attribute, l)
}

func linesOf(attrs string) (l lines) {
	if attrs != "" {
		attr.Decode(attrs, attribute, &l)
	}
	return l
}

// trace is a trace that is read.
type trace struct {
	o       format.ReadOptions
	speed   int64
	readers []*rankReader
	stale   staleWaits
}

// staleWaits counts the waits for requests that are over, at which SimGrid ends.
type staleWaits struct {
	count int64
	file  string
	line  int64 // of the first
}

// rankReader reads the actions of one rank.
type rankReader struct {
	*trace
	context
	file string
	line int64
	b    *dag.RankBuilder

	begun, ended bool
	ends, starts []int // the next op waits for these
	requests     requests
	unknown      []int    // receives that take the size of their message
	before       []string // lines without an op since the last op
	attrs        dag.Text
	counts       string // attributes of the last op with the bytes by partner or of an element; "": none
	last         lines  // of the last op
	text         []byte // memory of a line
}

// maxRanks limits the number that one line of a file can claim.
const maxRanks = 1 << 24

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a time-independent trace")
	if err != nil {
		return nil, err
	}
	own := format.Own(o.Own, func() *Options { return new(Options) })
	t := &trace{o: o, speed: own.Speed}
	content, err := memory.ReadContent(o.Context, in.Reader)
	if err != nil {
		return nil, format.FileErrorf(in.Name, "reading: %w", err)
	}
	if first, _ := firstLine(content); len(first) > 0 && isName(first) {
		err = t.readList(in.Name, content)
	} else {
		err = t.readAll(in.Name, content)
	}
	if err != nil {
		return nil, err
	}
	if s := t.stale; s.count > 0 {
		o.Warn("%s:%d: a wait for a request that is over, which does nothing here; SimGrid cannot replay the trace "+
			"(%d such waits)", s.file, s.line, s.count)
	}
	return t.finish()
}

// readList reads the files that a list names.
func (t *trace) readList(list string, content []byte) error {
	var names []string
	for line, rest := firstLine(content); line != nil; line, rest = firstLine(rest) {
		names = append(names, string(line))
	}
	if t.o.OpenFile == nil {
		return format.FileErrorf(list, "expected the actions of all ranks in one file, found a list of %d files",
			len(names))
	}
	if len(names) == 1 { // a file of all ranks
		in := t.o.OpenFile(beside(list, names[0]))
		content, err := memory.ReadContent(t.o.Context, in.Reader)
		if err != nil {
			return format.FileErrorf(in.Name, "%w (named in %s)", err, list)
		}
		return t.readAll(in.Name, content)
	}
	if err := t.begin(int64(len(names))); err != nil {
		return format.InFile(list, err)
	}
	for rank, name := range names {
		if !isName([]byte(name)) {
			return format.FileErrorf(list, "expected one name of a file per line, found %q", excerpt(name))
		}
		r := t.readers[rank]
		in := t.o.OpenFile(beside(list, name))
		r.file = in.Name
		err := format.EachLines(t.o.Context, in.Reader, func(text []byte) error {
			for len(text) > 0 {
				var line []byte
				line, text, _ = bytes.Cut(text, []byte("\n"))
				r.line++
				if err := t.add(r, line, rank); err != nil {
					return err
				}
			}
			return nil
		})
		var syntax *format.SyntaxError
		if err != nil && !errors.As(err, &syntax) {
			return format.FileErrorf(r.file, "%w (named in %s)", err, list)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// readAll reads a file with the actions of all ranks.
func (t *trace) readAll(name string, content []byte) error {
	ranks, number := int64(0), int64(0)
	for text := content; len(text) > 0; {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		number++
		word, _, _ := bytes.Cut(bytes.TrimLeft(line, " \t"), []byte(" "))
		if n, err := strconv.ParseUint(string(bytes.TrimSpace(word)), 10, 63); err == nil {
			if n >= maxRanks {
				return &format.SyntaxError{File: name, Line: number, Expected: fmt.Sprintf("a rank in 0..%d",
					maxRanks-1),
					Found: strconv.FormatUint(n, 10)}
			}
			ranks = max(ranks, int64(n)+1)
		}
	}
	if most := int64(bytes.Count(content, []byte("\n"))) + 1; ranks > most {
		return format.FileErrorf(name, "expected actions of every rank, found %d ranks in %d lines", ranks, most)
	}
	if err := t.begin(max(ranks, 1)); err != nil {
		return format.InFile(name, err)
	}
	number = 0
	for _, r := range t.readers {
		r.file = name
	}
	for text := content; len(text) > 0; {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		number++
		rank := 0
		word, _, _ := strings.Cut(strings.TrimLeft(string(line), " \t"), " ")
		if n, err := strconv.Atoi(strings.TrimSpace(word)); err == nil && n >= 0 && n < len(t.readers) {
			rank = n
		}
		r := t.readers[rank]
		r.line = number
		if err := t.add(r, line, rank); err != nil {
			return err
		}
	}
	return nil
}

// begin makes the readers of the ranks.
func (t *trace) begin(ranks int64) error {
	if err := memory.CheckRanks(t.o.Context, ranks); err != nil {
		return err
	}
	b := dag.NewBuilder(int(ranks))
	for rank := range int(ranks) {
		t.readers = append(t.readers, &rankReader{trace: t, context: context{rank: rank, ranks: int(ranks)},
			b: b.Rank(rank)})
	}
	return nil
}

// add adds a line to a rank.
func (t *trace) add(r *rankReader, line []byte, rank int) error {
	words := strings.Fields(string(line))
	if len(words) == 0 || words[0][0] == '#' {
		return nil
	}
	err := r.action(words)
	var s *syntax
	switch {
	case err == nil:
		return nil
	case err == errUnknown:
		s = &syntax{"an action of SimGrid, such as send, allreduce or compute", strconv.Quote(excerpt(words[1]))}
	case !errors.As(err, &s):
		return r.syntaxError(err.Error(), "more")
	}
	if t.o.Lenient && r.begun {
		t.o.Warn("%s:%d: expected %s, found %s: the line is skipped", r.file, r.line, s.expected, s.found)
		return nil
	}
	return r.syntaxError(s.expected, s.found)
}

func (r *rankReader) syntaxError(expected, found string) error {
	return &format.SyntaxError{File: r.file, Line: r.line, Expected: expected, Found: found}
}

// action adds a line of words to the rank.
func (r *rankReader) action(words []string) error {
	if words[0] != strconv.Itoa(r.rank) {
		return &syntax{fmt.Sprintf("rank %d", r.rank), strconv.Quote(excerpt(words[0]))}
	}
	if len(words) < 2 {
		return &syntax{"an action", "the end of the line"}
	}
	words = words[1:]
	if !r.begun && words[0] != "init" {
		return &syntax{"init, the first action of a rank", strconv.Quote(excerpt(words[0]))}
	}
	if r.ended {
		return &syntax{"nothing after finalize", strconv.Quote(excerpt(words[0]))}
	}
	if r.begun && words[0] == "init" {
		return &syntax{"one init per rank", "another one"}
	}
	a, err := r.parse(words)
	if err != nil {
		return err
	}
	r.apply(&a, strings.Join(words, " "))
	return r.b.Err()
}

// apply adds the ops of an action. text is its line.
func (r *rankReader) apply(a *action, text string) {
	switch a.verb {
	case begin:
		r.begun, r.double = true, text != "init"
		r.block(r.add(a.op, text))
	case end:
		r.ended = true
	case note:
		r.before = append(r.before, text)
	case compute:
		if a.op.Flops > 0 && r.speed > 0 {
			a.op.Duration = dag.AtRate(a.op.Flops, r.speed)
		}
		if a.name == "compute" && a.flops == float64(a.op.Flops) {
			text = "" // the op tells it
		}
		r.block(r.add(a.op, text))
	case post:
		i := r.add(a.op, text)
		r.ends, r.starts = r.ends[:0], append(r.starts[:0], i)
		k := key{a.op.Peer, int32(r.rank), a.op.Tag}
		if a.op.Kind == dag.Send {
			k.source, k.destination = k.destination, k.source
		}
		r.requests.add(k, i)
		r.expect(a, i)
	case message:
		if r.text = appendPlain(r.text[:0], &a.op); text == string(r.text) {
			text = ""
		}
		i := r.add(a.op, text)
		r.block(i)
		r.expect(a, i)
	case exchange:
		i := r.add(a.op, text)
		k := r.add(a.received, "")
		r.block(i, k)
		r.expect(a, k)
	case wait:
		_, own, found := r.requests.oldest(a.key, r.rank)
		if !found {
			r.before = append(r.before, text)
			if s := &r.stale; s.count == 0 {
				s.file, s.line = r.file, r.line
			}
			r.stale.count++
			return
		}
		i := r.add(a.op, text)
		r.b.Requires(i, r.requests.removeFirst(own))
		r.block(i)
	case waitAll:
		i := r.add(a.op, text)
		for op := range r.requests.ops {
			r.b.Requires(i, op)
		}
		r.requests.clear()
		r.block(i)
	case collective:
		if a.flops == 0 && text == plainCollective(&a.op, r.ranks) {
			text = ""
		}
		r.block(r.add(a.op, text))
		if a.flops > 0 {
			after := dag.Op{Kind: dag.Calc, Flops: int64(math.Round(a.flops))}
			if r.speed > 0 {
				after.Duration = dag.AtRate(after.Flops, r.speed)
			}
			r.block(r.add(after, ""))
		}
	}
}

// expect notes a receive that takes the size of its message.
func (r *rankReader) expect(a *action, i int) {
	if a.unknown {
		r.unknown = append(r.unknown, i)
	}
}

// add adds an op that waits for the ops before it, and returns its number.
func (r *rankReader) add(op dag.Op, text string) int {
	r.keepLines()
	r.counts, op.Attrs = op.Attrs, ""
	i := r.b.Add(op, r.ends...)
	for _, s := range r.starts {
		r.b.RequiresStart(i, s)
	}
	r.last = lines{Line: text, Before: r.before}
	r.before = nil
	return i
}

// keepLines sets the attributes of the last op.
func (r *rankReader) keepLines() {
	text := r.last.encode()
	switch {
	case text == "":
		text = r.counts
	case r.counts != "":
		text = text[:len(text)-1] + "," + r.counts[1:]
	}
	if text != "" {
		r.attrs.Append(r.b.Len()-1, text)
	}
	r.last, r.counts = lines{}, ""
}

// block makes the next op wait for the ends of ops.
func (r *rankReader) block(ops ...int) {
	r.ends, r.starts = append(r.ends[:0], ops...), r.starts[:0]
}

// finish returns the trace.
func (t *trace) finish() (*dag.Trace, error) {
	out := &dag.Trace{Comms: []dag.Comm{dag.World(len(t.readers))}}
	for _, r := range t.readers {
		if !r.begun {
			return nil, format.FileErrorf(r.file, "expected actions of rank %d, the first of them init, found none",
				r.rank)
		}
		if !r.ended {
			t.o.Warn("%s: rank %d has no finalize: the file may be incomplete", r.file, r.rank)
		}
		r.last.After, r.before = r.before, nil
		r.keepLines()
		rank := r.b.Rank()
		rank.Attrs = r.attrs
		out.Ranks = append(out.Ranks, rank.Keep())
	}
	t.matchSizes(out)
	return out, nil
}

// pair is a sender and a receiver.
type pair struct{ source, destination int32 }

// sent is a message that no receive has met yet.
type sent struct {
	tag, bytes int64
	taken      bool
}

// matchSizes gives the receives without a size that of their messages: those of a pair of ranks match in order.
func (t *trace) matchSizes(out *dag.Trace) {
	some := false
	for _, r := range t.readers {
		some = some || len(r.unknown) > 0
	}
	if !some {
		return
	}
	messages := map[pair][]sent{}
	for rank, r := range out.Ranks {
		for i, kind := range r.Kind {
			if kind == dag.Send {
				p := pair{int32(rank), r.Peer.At(i)}
				messages[p] = append(messages[p], sent{tag: r.Tag.At(i), bytes: r.Bytes.At(i)})
			}
		}
	}
	for rank, r := range out.Ranks {
		unknown, open := t.readers[rank].unknown, 0
		for i, kind := range r.Kind {
			wanted := open < len(unknown) && unknown[open] == i
			if wanted {
				open++
			}
			if kind != dag.Recv || r.Peer.At(i) == dag.AnySource {
				continue
			}
			if m := take(messages, pair{r.Peer.At(i), int32(rank)}, r.Tag.At(i)); m != nil && wanted {
				r.Bytes.Set(i, m.bytes)
			}
		}
	}
}

// take takes the first message of a pair with a tag, or nil.
func take(messages map[pair][]sent, p pair, tag int64) *sent {
	queue := messages[p]
	for len(queue) > 0 && queue[0].taken {
		queue = queue[1:]
	}
	messages[p] = queue
	const most = 1 << 12 // messages that are overtaken, so that a file cannot take quadratic time
	for i := range queue[:min(len(queue), most)] {
		if m := &queue[i]; !m.taken && (tag == dag.AnyTag || m.tag == tag) {
			m.taken = true
			return m
		}
	}
	return nil
}
