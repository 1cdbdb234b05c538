package htsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
	"github.com/tracedag/tracedag/formats/internal/flowio"
	"github.com/tracedag/tracedag/memory"
)

// reader reads a file line by line.
type reader struct {
	attr.HTSim
	nodes       int64            // -1: not given
	stated      map[string]int64 // announced numbers of connections, triggers and failures
	connections []connection
	triggers    []trigger
	known       map[int64]int // index of each trigger by number
	most        int32         // number of nodes that the flows use
	canonical   []byte
}

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	in, err := format.Single(inputs, "a list of flows")
	if err != nil {
		return nil, err
	}
	r := reader{nodes: -1, stated: map[string]int64{}, known: map[int64]int{}}
	if r.Unit, err = unitOf(&o); err != nil {
		return nil, &format.FileError{File: in.Name, Err: err}
	}
	err = blockio.EachLine(in, &o, func(l *blockio.Line) blockio.Verdict {
		r.line(l)
		return blockio.Taken
	})
	if err != nil {
		return nil, err
	}
	if err := r.check(in.Name, &o); err != nil {
		return nil, &format.FileError{File: in.Name, Err: err}
	}
	nodes := max(int32(r.nodes), r.most)
	t, err := build(o.Context, flowio.Ranks(nodes, &o), r.connections, r.triggers, func(message string, args ...any) {
		o.Warn("%s: "+message, append([]any{in.Name}, args...)...)
	})
	if err != nil {
		return nil, &format.FileError{File: in.Name, Err: err}
	}
	t.Attrs = r.HTSim.Encode()
	return t, nil
}

var counted = []string{"Connections", "Triggers", "Failures"}

func (r *reader) line(l *blockio.Line) {
	const expected = "Nodes, Connections, Triggers, Failures, a flow such as 0->1, trigger or failure"
	tokens := bytes.Fields(l.Text())
	if len(tokens) == 0 { // only blanks that EachLine does not remove
		l.Fail(expected)
		return
	}
	switch word := string(tokens[0]); {
	case word == "Nodes":
		r.nodes = number(l, first(tokens[1:]), "the number of nodes", 1, flowio.MaxRanks)
	case slices.Contains(counted, word):
		r.stated[word] = number(l, first(tokens[1:]), "a number of lines", 0, math.MaxInt32)
	case bytes.Contains(tokens[0], []byte("->")):
		r.connection(l)
	case word == "trigger":
		t := parseTrigger(l)
		if _, again := r.known[t.id]; again {
			l.FailWith("every trigger once", fmt.Sprintf("%d again", t.id))
		}
		if !l.Failed() {
			r.known[t.id] = len(r.triggers)
			r.triggers = append(r.triggers, t)
			r.Triggers = append(r.Triggers, string(l.Text()))
		}
	case word == "failure":
		if parseFailure(l); !l.Failed() {
			r.Failures = append(r.Failures, string(l.Text()))
		}
	default:
		l.Fail(expected)
	}
}

func (r *reader) connection(l *blockio.Line) {
	c := parseConnection(l, r.Unit)
	most := max(c.Source, c.Destination) + 1
	if r.nodes >= 0 && int64(most) > r.nodes {
		l.FailWith(fmt.Sprintf("nodes 0..%d", r.nodes-1), fmt.Sprint(most-1))
	}
	if l.Failed() {
		return
	}
	r.canonical = appendLine(r.canonical[:0], &c.Flow, len(r.connections)+1, r.Unit)
	if !bytes.Equal(r.canonical, l.Text()) {
		c.Attrs = attr.Encode("htsim", lineAttrs{string(l.Text())})
	}
	r.most = max(r.most, most)
	r.connections = append(r.connections, c)
}

// check checks the consistency of the lines.
func (r *reader) check(file string, o *format.ReadOptions) error {
	if r.nodes < 0 && len(r.connections) == 0 {
		return errors.New("expected Nodes or a flow such as 0->1, found neither")
	}
	for i, n := range []int{len(r.connections), len(r.triggers), len(r.Failures)} {
		if stated := r.stated[counted[i]]; stated != int64(n) {
			err := fmt.Errorf("expected %d lines, as announced by %s, found %d", stated, counted[i], n)
			if !o.Lenient {
				return err
			}
			o.Warn("%s: %v", file, err)
		}
	}
	return checkTriggers(r.connections, r.triggers)
}

// checkTriggers returns an error if a flow uses an undefined trigger or waits for one that is never activated.
func checkTriggers(connections []connection, triggers []trigger) error {
	index := make(map[int64]int, len(triggers))
	for i, t := range triggers {
		index[t.id] = i
	}
	activations, flows := make([]int64, len(triggers)), make([]int64, len(triggers))
	for k := range connections {
		c := &connections[k]
		for _, named := range [...]struct {
			id    int64
			count []int64
		}{{c.trigger, flows}, {c.sendDone, activations}, {c.recvDone, activations}} {
			if named.id == 0 {
				continue
			}
			i, ok := index[named.id]
			if !ok {
				return fmt.Errorf("flow %d: expected the number of a defined trigger, found %d",
					k+1, named.id)
			}
			named.count[i]++
		}
	}
	for i, t := range triggers {
		least, most := int64(1), int64(1)
		switch t.shot {
		case multishot:
			least, most = flows[i], math.MaxInt64
		case barrier:
			least, most = t.count, t.count
		}
		if n := activations[i]; flows[i] > 0 && (n < least || n > most) {
			return fmt.Errorf("trigger %d: expected %s that activate it, found %d", t.id, atLeast(least, most), n)
		}
	}
	return nil
}

func atLeast(least, most int64) string {
	switch {
	case least != most:
		return fmt.Sprintf("%d flows or more", least)
	case least == 1:
		return "1 flow"
	}
	return fmt.Sprintf("%d flows", least)
}

// build builds the trace from flows and triggers.
func build(ctx context.Context, ranks int, connections []connection, triggers []trigger,
	warn func(string, ...any)) (*dag.Trace, error) {
	if err := flowio.CheckRanks(ranks, len(connections)); err != nil {
		return nil, err
	}
	if err := memory.CheckRanks(ctx, int64(ranks)); err != nil {
		return nil, err
	}
	b := builder{Builder: dag.NewBuilder(ranks), connections: connections}
	b.sends, b.recvs = make([]int, len(connections)), make([]int, len(connections))
	for k := range connections {
		f := &connections[k].Flow
		b.sends[k] = b.Rank(int(f.Source)).Add(f.Op(k))
		b.recvs[k] = b.Rank(int(f.Destination)).Recv(f.Source, f.Bytes, int64(k))
	}
	b.tag = int64(len(connections))
	b.wire(triggers)
	if b.notices > 0 {
		warn("flows without an end at the source of the next flow send a message of 0 bytes to that source "+
			"(%d in all)", b.notices)
	}
	if b.guessed > 0 {
		warn("multishot triggers start their flows in the order of the activating flows in the file (%d "+
			"triggers)", b.guessed)
	}
	if err := b.Err(); err != nil {
		return nil, err
	}
	return b.Trace(), nil
}

// builder converts triggers to dependencies.
type builder struct {
	*dag.Builder
	connections  []connection
	sends, recvs []int // index of the send and receive of each flow
	tag          int64 // tag of the next notice
	notices      int64
	guessed      int64 // multishot triggers whose order of flows is an assumption
}

// event is the end of an op.
type event struct {
	rank int32
	op   int
}

// end is the end of a flow at its sender or receiver.
type end struct {
	flow     int
	received bool
}

// wire makes the flows that triggers start depend on the flows that activate them.
func (b *builder) wire(triggers []trigger) {
	activated, started := map[int64][]end{}, map[int64][]int{}
	for k := range b.connections {
		c := &b.connections[k]
		if c.sendDone != 0 {
			activated[c.sendDone] = append(activated[c.sendDone], end{k, false})
		}
		if c.recvDone != 0 {
			activated[c.recvDone] = append(activated[c.recvDone], end{k, true})
		}
		if c.trigger != 0 {
			started[c.trigger] = append(started[c.trigger], k)
		}
	}
	for _, t := range triggers {
		by, flows := activated[t.id], started[t.id]
		switch {
		case len(flows) == 0:
		case t.shot == multishot:
			if !oneByOne(by, flows) {
				b.guessed++
			}
			for i := range flows {
				b.start(t.id, flows[i:i+1], by[i:i+1])
			}
		default:
			b.start(t.id, flows, by)
		}
	}
}

// oneByOne reports whether each activation except the first comes from the flow that the previous one started. The
// order is then unique.
func oneByOne(by []end, flows []int) bool {
	for i := 1; i < len(flows); i++ {
		if by[i].flow != flows[i-1] {
			return false
		}
	}
	return true
}

// start makes flows wait for all given ends.
func (b *builder) start(id int64, flows []int, by []end) {
	at := map[int32]int{} // op to wait for, by rank that has been notified
	var from event        // rank that notifies the others
	if len(by) == 1 {
		from = b.recv(by[0])
		at[from.rank] = from.op
		if send := b.send(by[0]); !by[0].received {
			at[send.rank] = send.op
		}
	} else {
		home := b.connections[flows[0]].Source
		join := b.Rank(int(home))
		from = event{home, join.Add(dag.Op{Subkind: dag.Marker, Attrs: noticeAttrs(id)})}
		at[home] = from.op
		for _, e := range by {
			join.Requires(from.op, b.arrival(id, e, home))
		}
	}
	for _, k := range flows {
		rank := b.connections[k].Source
		op, ok := at[rank]
		if !ok {
			op = b.notice(id, from, rank)
			at[rank] = op
		}
		b.Rank(int(rank)).Requires(b.sends[k], op)
	}
}

func (b *builder) send(e end) event { return event{b.connections[e.flow].Source, b.sends[e.flow]} }
func (b *builder) recv(e end) event { return event{b.connections[e.flow].Destination, b.recvs[e.flow]} }

// arrival returns the op whose end on a rank implies that a flow has ended.
func (b *builder) arrival(id int64, e end, rank int32) int {
	if send := b.send(e); !e.received && send.rank == rank {
		return send.op
	}
	if recv := b.recv(e); recv.rank == rank {
		return recv.op
	}
	return b.notice(id, b.recv(e), rank)
}

// notice notifies a rank of an event on another rank with a message of 0 bytes. It returns the receive.
func (b *builder) notice(id int64, from event, to int32) int {
	b.notices++
	tag := b.tag
	b.tag++
	b.Rank(int(from.rank)).Add(dag.Op{Kind: dag.Send, Peer: to, Tag: tag, Attrs: noticeAttrs(id)}, from.op)
	return b.Rank(int(to)).Add(dag.Op{Kind: dag.Recv, Peer: from.rank, Tag: tag, Attrs: noticeAttrs(id)})
}
