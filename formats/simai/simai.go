// Package simai reads the workloads of SimAI: texts that describe a training step row by row.
//
// docs/reference/formats/simai.md describes the files and the traces.
package simai

import (
	"bytes"
	"math"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/param"
)

// Format is the workload text of SimAI. [Options] give the number of ranks and passes.
var Format = format.Format{
	Name:   "simai",
	Modes:  format.Modes{Compat: true},
	Title:  "SimAI workload texts and AICB logs",
	Detect: detect,
	Read:   read,
	Options: &format.OptionTable{
		Name: "simai", Title: "SimAI workload texts",
		New: func() format.Options { return new(Options) },
	},
}

// Options are the options of workload texts.
type Options struct {
	Ranks  int  // number of ranks; 0: as the text states
	Passes int  // number of passes over the rows; 0: one
	NoInit bool // a log without its calls before the first epoch
}

// Params returns the parameters of the options.
func (o *Options) Params() param.Set {
	passes := param.Int(&o.Passes, "passes", "number of passes over the workload (default: one)")
	return param.Set{format.RanksParam(&o.Ranks), format.Within(passes, &o.Passes, 0, math.MaxInt32),
		param.Bool(&o.NoInit, "no-init", "skip the calls of an AICB log before its first epoch")}
}

// detect reports whether a text is a log, or its first line begins with a policy of transformers and the second is a
// number.
func detect(head []byte) bool {
	if isLog(head) {
		return true
	}
	first, rest, _ := bytes.Cut(head, []byte("\n"))
	second, _, _ := bytes.Cut(rest, []byte("\n"))
	words, count := bytes.Fields(first), bytes.Fields(second)
	if len(words) == 0 || len(count) != 1 {
		return false
	}
	_, err := strconv.ParseInt(string(count[0]), 10, 64)
	policy := string(words[0])
	return err == nil && (policy == transformer || policy == recomputing)
}

// Limits on a trace, because a few lines and two flags can request any number of ops.
const (
	maxRanks  = 1 << 20
	maxStated = 1 << 16 // ranks that a text can request without --ranks
	maxBytes  = 1 << 62 // of a collective
	maxRows   = 1 << 16
	maxOps    = 1 << 22 // per rank
	maxAllOps = 1 << 28 // over all ranks
)

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a workload of SimAI")
	if err != nil {
		return nil, err
	}
	content, err := memory.ReadContent(o.Context, in.Reader)
	if err != nil {
		return nil, format.FileErrorf(in.Name, "reading: %w", err)
	}
	own := format.Own(o.Own, func() *Options { return new(Options) })
	if isLog(content) {
		return readLog(in, content, own, o)
	}
	w, err := parse(in.Name, content, o.Compat)
	if err != nil {
		return nil, err
	}
	l, err := w.layout(max(own.Ranks, o.Ranks), o.Compat)
	if err != nil {
		return nil, &format.FileError{File: in.Name, Err: err}
	}
	for _, warning := range w.warnings(l) {
		o.Warn("%s: %s", in.Name, warning)
	}
	passes := max(own.Passes, 1)
	perPass := max(w.opsOfPass(), 1)
	if perPass > maxOps/passes || perPass*passes > maxAllOps/l.ranks {
		return nil, format.FileErrorf(in.Name, "%d ranks with %d passes of %d ops: expected at most %d ops per rank, "+
			"%d in total; use fewer --ranks or --passes", l.ranks, passes, perPass, maxOps, maxAllOps)
	}
	if err := memory.CheckRanks(o.Context, int64(l.ranks)); err != nil {
		return nil, &format.FileError{File: in.Name, Err: err}
	}
	r := w.run(l, passes)
	if err := r.ops.Err(); err != nil {
		return nil, &format.FileError{File: in.Name, Err: err}
	}
	return r.trace(o, in.Name)
}

// trace returns the trace: every rank has the ops of the run, with its own communicators.
func (r *run) trace(o format.ReadOptions, file string) (*dag.Trace, error) {
	t := &dag.Trace{Comms: []dag.Comm{dag.World(r.l.ranks)}}
	var used [numGroups]bool
	last := 0 // op after the last collective
	for op, g := range r.groups {
		if g != noGroup {
			used[g], last = true, op+1
		}
	}
	const wide = 4 // bytes of a communicator
	if err := memory.Check(o.Context, "ops", wide, int64(r.l.ranks), int64(last)); err != nil {
		return nil, &format.FileError{File: file, Err: err}
	}
	var comms [numGroups][]int32 // by rank
	for g := range numGroups {
		if used[g] {
			comms[g] = r.l.addComms(t, group(g))
		}
	}
	t.Attrs = r.attrs(r.l).Encode()
	if r.passes > 1 {
		t.Steps = int32(r.passes)
	}
	first := r.ops.Rank()
	shared := first.Keep()
	t.Ranks = dag.NewRanks(r.l.ranks)
	values := make([]int32, last)
	for rank := range t.Ranks {
		for op, g := range r.groups[:last] {
			values[op] = 0
			if g != noGroup {
				values[op] = comms[g][rank]
			}
		}
		own := shared.Keep()
		if len(values) > 0 {
			own.Comm = dag.Narrow{}
			own.Comm.SetRange(0, values)
		}
		t.Ranks[rank] = own
	}
	return t, nil
}
