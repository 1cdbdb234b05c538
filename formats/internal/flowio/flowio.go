// Package flowio has the shared parts of the flow-list formats: it converts flows to ops and back.
//
// A flow is a message sent at a given time, whether or not earlier flows have ended. Flow k of a file, from 0,
// becomes a send of its source, released at its start, and a receive of its destination without dependencies, both
// with tag k.
package flowio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
)

// MaxRanks is the maximum number of ranks of a trace. A trace with more than manyRanks ranks needs one flow per
// sparseRanks ranks, so that a short file cannot claim unlimited memory for ranks.
const (
	MaxRanks    = 1 << 20
	manyRanks   = 1 << 16
	sparseRanks = 16
)

// CheckRanks returns an error if there are too many ranks for the number of flows.
func CheckRanks(ranks, flows int) error {
	if ranks > manyRanks && ranks/sparseRanks > flows {
		return fmt.Errorf("%d nodes have only %d flows: expected at most %d nodes, or a flow for every %d nodes",
			ranks, flows, manyRanks, sparseRanks)
	}
	return nil
}

// Flow is one flow of a file.
type Flow struct {
	Source, Destination int32 // ranks
	Bytes               int64
	Start               dag.Time // since the start of the trace
	Name, Attrs         string   // of the send
}

// Op returns the send of flow number k.
func (f *Flow) Op(k int) dag.Op {
	return dag.Op{Kind: dag.Send, Peer: f.Destination, Bytes: f.Bytes, Tag: int64(k), Release: f.Start, Name: f.Name,
		Attrs: f.Attrs}
}

// Trace returns the trace of flows between the given number of ranks, which must fit into the limit of memory of the
// context.
func Trace(ctx context.Context, ranks int, flows []Flow) (*dag.Trace, error) {
	if err := CheckRanks(ranks, len(flows)); err != nil {
		return nil, err
	}
	if err := memory.CheckRanks(ctx, int64(ranks)); err != nil {
		return nil, err
	}
	ops := make([]int, ranks)
	for i := range flows {
		ops[flows[i].Source]++
		ops[flows[i].Destination]++
	}
	b := dag.NewBuilder(ranks)
	for rank, n := range ops {
		if n > 0 {
			b.Rank(rank).Reserve(n, 0)
		}
	}
	for k := range flows {
		f := &flows[k]
		b.Rank(int(f.Source)).Add(f.Op(k))
		b.Rank(int(f.Destination)).Recv(f.Source, f.Bytes, int64(k))
	}
	if err := b.Err(); err != nil {
		return nil, err
	}
	return b.Trace(), nil
}

// Ranks returns the number of ranks of a trace whose flows use nodes below most: at least the number that --ranks
// gives.
func Ranks(most int32, o *format.ReadOptions) int {
	return max(1, int(most), min(OptionsOf(o).Ranks, MaxRanks))
}

// Send is the position of a send in a trace.
type Send struct {
	Rank int32
	Op   int32
}

// Sends returns the sends of the trace, except those for which own, if not nil, returns true: messages that
// represent another element of the file. They are ordered by time, then tag, rank and index. If fileOrder is set
// and the tags are 0, 1, ..., they are ordered by tag alone.
func Sends(t *dag.Trace, fileOrder bool, own func(r *dag.Rank, op int) bool) []Send {
	var sends []Send
	for rank := range t.Ranks {
		r := t.Ranks[rank]
		for op, kind := range r.Kind {
			if kind == dag.Send && (own == nil || !own(r, op)) {
				sends = append(sends, Send{int32(rank), int32(op)})
			}
		}
	}
	tag := func(s Send) int64 { return t.Ranks[s.Rank].Tag.At(int(s.Op)) }
	if fileOrder && numbered(sends, tag) {
		placed := make([]Send, len(sends))
		for _, s := range sends {
			placed[tag(s)] = s
		}
		return placed
	}
	release := func(s Send) dag.Time { return t.Ranks[s.Rank].Release.At(int(s.Op)) }
	slices.SortFunc(sends, func(a, b Send) int {
		return cmp.Or(cmp.Compare(release(a), release(b)), cmp.Compare(tag(a), tag(b)), cmp.Compare(a.Rank, b.Rank),
			cmp.Compare(a.Op, b.Op))
	})
	return sends
}

// numbered reports whether the tags of the sends are 0, 1, ..., each once.
func numbered(sends []Send, tag func(Send) int64) bool {
	seen := make([]bool, len(sends))
	for _, s := range sends {
		k := tag(s)
		if uint64(k) >= uint64(len(sends)) || seen[k] {
			return false
		}
		seen[k] = true
	}
	return true
}

// ErrNone reports a trace without flows.
var ErrNone = errors.New("expected messages (send ops) in the trace, found none")

// Known describes the data that a format keeps besides sources, destinations, sizes and starts. A nil function
// keeps nothing.
type Known struct {
	Own   func(r *dag.Rank, op int) bool // ops that represent another element of the file
	Attrs func(attrs string) bool
	Names bool
	Deps  bool // the format handles dependencies itself
	Nodes int  // number of ranks after reading the file again; 0: as in the trace
}

// Losses returns the losses of a flow list.
func Losses(t *dag.Trace, sends []Send, k Known) format.Losses {
	own := k.Own
	if own == nil {
		own = func(*dag.Rank, int) bool { return false }
	}
	var others, deps, recvReleases, names, attrs, tags int64
	for i := range t.Ranks {
		r := t.Ranks[i]
		for op, kind := range r.Kind {
			switch {
			case own(r, op):
				continue
			case kind != dag.Send && kind != dag.Recv:
				others++
				continue
			case kind == dag.Recv && r.Release.At(op) != 0:
				recvReleases++
			}
			if !k.Deps && (r.Deps.Count(op) > 0 || r.StartDeps.Count(op) > 0) {
				deps++
			}
			if text := r.Attrs.At(op); text != "" && (k.Attrs == nil || !k.Attrs(text)) {
				attrs++
			}
			if r.Name.At(op) != "" && (!k.Names || kind == dag.Recv) {
				names++
			}
		}
	}
	for i, s := range sends {
		if t.Ranks[s.Rank].Tag.At(int(s.Op)) != int64(i) {
			tags++
		}
	}
	var l format.Losses
	l.Add("that they are no messages, and are skipped", others)
	l.Add("dependencies", deps)
	l.Add("release times of receives", recvReleases)
	l.AddFields(t)
	l.Add("names", names)
	l.Add("attributes", attrs)
	l.Add("tags, which become flow numbers of the file", tags)
	l.AddRareFields(t)
	l.AddNodes(t)
	if k.Nodes > 0 && k.Nodes != len(t.Ranks) {
		l.Add("ranks without messages, whose number changes when the file is read again", int64(len(t.Ranks)-k.Nodes))
	}
	return l
}

// Highest returns one more than the highest rank that sends or receives a flow.
func Highest(t *dag.Trace, sends []Send) int {
	most := int32(0)
	for _, s := range sends {
		most = max(most, s.Rank, t.Ranks[s.Rank].Peer.At(int(s.Op)))
	}
	return int(most) + 1
}

// Check returns an error if there are no flows, or some that no flow list can represent.
func Check(t *dag.Trace, sends []Send) error {
	if len(sends) == 0 {
		return ErrNone
	}
	for _, s := range sends {
		r, op := t.Ranks[s.Rank], int(s.Op)
		peer := r.Peer.At(op)
		switch {
		case uint64(peer) >= uint64(len(t.Ranks)):
			return fmt.Errorf("rank %d, op %d: expected a send to a rank 0..%d, found %d", s.Rank, op,
				len(t.Ranks)-1, peer)
		case r.Bytes.At(op) < 0:
			return fmt.Errorf("rank %d, op %d: expected a size of 0 or more, found %d", s.Rank, op, r.Bytes.At(op))
		case r.Release.At(op) < 0:
			return fmt.Errorf("rank %d, op %d: expected a release time of 0 or more, found %v", s.Rank, op,
				r.Release.At(op))
		}
	}
	return nil
}

// Of returns the flow of a send.
func Of(t *dag.Trace, s Send) Flow {
	r, op := t.Ranks[s.Rank], int(s.Op)
	return Flow{Source: s.Rank, Destination: r.Peer.At(op), Bytes: r.Bytes.At(op), Start: r.Release.At(op),
		Name: r.Name.At(op), Attrs: r.Attrs.At(op)}
}

var powers = [...]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12}

// AppendDecimal appends a nonnegative time in units of 10^exp picoseconds (exp 0 to 12), with at least the given
// number of decimals and as many more as it needs. With none, it omits the point.
func AppendDecimal(text []byte, t dag.Time, exp, decimals int) []byte {
	unit := powers[exp]
	whole, part := int64(t)/unit, int64(t)%unit
	digits := exp
	for digits > decimals && part%10 == 0 {
		part /= 10
		digits--
	}
	text = strconv.AppendInt(text, whole, 10)
	if max(digits, decimals) == 0 {
		return text
	}
	text = append(text, '.')
	if digits > 0 {
		point := len(text)
		text = strconv.AppendInt(text, powers[digits]+part, 10)
		text = append(text[:point], text[point+1:]...) // remove the leading 1, which keeps the zeros
	}
	for ; digits < decimals; digits++ {
		text = append(text, '0')
	}
	return text
}

// MaxUnit is the exponent of the largest unit of time, a second.
const MaxUnit = 12

// Unit returns 10^exp picoseconds, for exp from 0 to MaxUnit.
func Unit(exp int) dag.Time {
	return dag.Time(powers[exp])
}

// Exponent is the inverse of Unit. ok is false if the time is no such power of ten.
func Exponent(unit dag.Time) (exp int, ok bool) {
	exp = slices.Index(powers[:], int64(unit))
	return exp, exp >= 0
}
