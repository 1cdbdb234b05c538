// This file passes the events of a file on, for traces that a profile completes.

package kineto

import (
	"context"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// Event is an event with a duration. Its texts are valid until the function that received it returns.
type Event struct {
	Category, Name  []byte
	Process, Thread []byte
	Start, Took     dag.Time // Start is relative to the whole microsecond of the first event
	Ordinal         int32    // for a [Completion]: number of kernels, copies and other device ops before the event

	p *parser
}

// Args calls do with the name and the text of each argument until it returns false.
func (e *Event) Args(do func(name, value []byte) bool) {
	e.p.l.each(e.p.e.args, func(name, value []byte) bool { return do(name, plain(unquote(value))) })
}

// Each calls do with each event of a profile that has a time, in the order of the file. It returns the rank in the file
// or its name, -1 if neither states it. The context may be nil. Damaged parts are skipped and reported by warn.
func Each(ctx context.Context, in *format.Input, warn func(string, ...any), do func(*Event) error) (rank int64,
	err error) {
	p := newParser(ctx, in)
	e := &Event{p: p}
	p.each = func() error {
		start, took, ok := p.times()
		if !ok {
			return nil
		}
		e.Category, e.Name = p.content(p.e.category), plain(p.content(p.e.name))
		e.Process, e.Thread = p.content(p.e.process), p.content(p.e.thread)
		e.Start, e.Took = start, took
		return do(e)
	}
	if err := p.read(); err != nil {
		return -1, err
	}
	p.warnDamage(warn)
	if rank = p.meta.rank; rank < 0 {
		if n, ok := parseRank(in.Name); ok {
			rank = n
		}
	}
	return rank, nil
}

// newParser returns a parser of a file.
func newParser(ctx context.Context, in *format.Input) *parser {
	p := &parser{ctx: ctx, watch: par.Watch{Context: ctx}}
	p.name = in.Name
	p.meta = metadata{rank: -1, world: -1}
	p.category.is = catUndefined
	p.streamOf = make(map[deviceStream]int32)
	p.w = window{r: in.Reader, most: int(min(64<<20, max(windowSize, memory.Limit(ctx)/eventShare)))}
	return p
}
