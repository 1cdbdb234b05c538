// This file reads profiles that execution traces of PyTorch complete.

package kineto

import (
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
)

// Completion completes a profile with what it lacks.
type Completion interface {
	// Event receives each event with a time, in the order of the file. Its texts are valid until Event returns.
	Event(e *Event) error
	// Groups returns the process groups of the rank, -1 if it is unknown. It comes after all events and before the
	// other calls.
	Groups(rank int64) ([]Group, error)
	// Comm returns the communication that the call or annotation at a time on a thread states, nil if it is unknown.
	// The thread is the process, a slash and the thread of the event.
	Comm(thread string, start dag.Time, name string) *Comm
	// Device returns the floating-point operations and the attributes of a device op by its [Event.Ordinal]: a member
	// of a JSON object, or none.
	Device(ordinal int32) (flops int64, attrs string)
}

// Group is a process group. An empty list of ranks is all ranks.
type Group struct {
	Name, About string
	Ranks       []int32
}

// Comm is a communication.
type Comm struct {
	Call    string // such as all_reduce
	In, Out int64  // bytes of the tensors in and out; 0: unknown
	Group   string // name; "": unknown
	Seq     int64  // number on its group; -1: unknown
	Peer    int64  // rank in the job of the partner or root; -1: unknown

	Start, Stride, Size int64 // of the ranks of the group; Size 0: unknown
}

// ReadCompleted reads the profiles of a job, as [Format] does, with a completion each. Ranks without a file are left
// out of process groups.
func ReadCompleted(inputs []*format.Input, completions []Completion, o format.ReadOptions) (*dag.Trace, error) {
	own := newOptions()
	own.OnlyPresent = true
	options := &readOptions{ctx: o.Context, lenient: o.Lenient, warn: o.Warn, own: own, steps: []string{stepName}}
	recordings := make([]*recording, len(inputs))
	err := par.Each(len(inputs), func(i int) (err error) {
		recordings[i], err = readCompleted(inputs[i], options, completions[i], len(inputs) == 1)
		return err
	})
	if err != nil {
		return nil, err
	}
	return traceOf(recordings, options)
}

// readCompleted reads a file.
func readCompleted(in *format.Input, o *readOptions, by Completion, single bool) (*recording, error) {
	p := newParser(o.ctx, in)
	p.stepName, p.completion = o.steps, by
	if err := p.read(); err != nil {
		return nil, err
	}
	p.w = window{}
	if p.meta.rank < 0 {
		if n, ok := parseRank(in.Name); ok {
			p.meta.rank = n
		} else if single {
			p.meta.rank = 0
		}
	}
	groups, err := by.Groups(p.meta.rank)
	if err != nil {
		return nil, err
	}
	if len(p.meta.groups) == 0 {
		for _, g := range groups {
			p.meta.groups = append(p.meta.groups, processGroup{name: g.Name, about: g.About, ranks: g.Ranks,
				size: int64(len(g.Ranks)), all: len(g.Ranks) == 0})
		}
	}
	p.complete(by)
	if err := p.link(); err != nil {
		return nil, format.InFile(in.Name, err)
	}
	r := p.recording
	return &r, nil
}

// pass passes the event on.
func (p *parser) pass() error {
	dropped := p.dropped
	start, took, ok := p.times()
	p.dropped = dropped // they count when the event is kept
	if !ok {
		return nil
	}
	e := Event{p: p, Category: p.content(p.e.category), Name: plain(p.content(p.e.name)),
		Process: p.content(p.e.process), Thread: p.content(p.e.thread), Start: start, Took: took,
		Ordinal: int32(len(p.ops))}
	return p.completion.Event(&e)
}

// complete completes the arguments of calls and annotations.
func (p *parser) complete(by Completion) {
	for k := range p.marks {
		m := &p.marks[k]
		c := by.Comm(p.threads.text(m.thread), m.start, p.texts.text(m.name))
		if c == nil {
			continue
		}
		if m.args < 0 {
			m.args = int32(len(p.args))
			p.args = append(p.args, commArgs{})
		}
		a := &p.args[m.args]
		a.complete(&p.texts, c)
		if m.op <= opNone {
			m.op = operationOf([]byte(p.texts.text(a.call)))
		}
	}
	for i := range p.ops {
		o := &p.ops[i]
		flops, attrs := by.Device(o.ordinal)
		if o.ordinal = -1; flops > 0 || attrs != "" {
			o.ordinal = int32(len(p.notes))
			p.notes = append(p.notes, note{flops, attrs})
		}
	}
}

// note is what a completion states about a device op.
type note struct {
	flops int64
	attrs string
}

// complete sets what the arguments lack.
func (a *commArgs) complete(t *texts, c *Comm) {
	if !a.present {
		a.present, a.call = true, t.number([]byte(c.Call))
		if !a.sized {
			a.element = 0
		}
	}
	if a.element == 0 || a.in == 0 && a.out == 0 {
		a.in, a.out, a.element = min(c.In, mostBytes), min(c.Out, mostBytes), 0
		if a.in > 0 || a.out > 0 {
			a.element = 1
		}
	}
	if !a.hasSeq {
		if a.seq = -1; c.Seq >= 0 {
			a.seq, a.hasSeq = c.Seq, true
		}
	}
	if !a.hasPeer {
		a.source, a.target = -1, -1
		if c.Peer >= 0 && c.Peer <= math.MaxInt32 {
			a.source, a.target, a.hasPeer = c.Peer, c.Peer, true
		}
	}
	if a.group == 0 && a.about == 0 && a.ranks == 0 && a.size == 0 {
		a.group = t.number([]byte(c.Group))
		a.start, a.stride, a.size = c.Start, c.Stride, c.Size
	}
	if c.Peer >= 0 && c.Peer <= math.MaxInt32 {
		a.root, a.hasRoot = int32(c.Peer), true
	}
}
