// This file parses the lines of a rank: the actions and their arguments.

package simgrid

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// verb is what an action does.
type verb uint8

const (
	begin   verb = iota // init
	end                 // finalize
	compute             // also sleep
	note                // an action without an op
	post                // isend, irecv
	message             // send, recv
	exchange
	wait
	waitAll
	collective
)

// action is a parsed line.
type action struct {
	verb     verb
	name     string
	op       dag.Op
	received dag.Op  // of an exchange
	unknown  bool    // the receive takes the size of its message
	flops    float64 // after a collective; of compute
	key      key     // of wait
}

// key identifies requests.
type key struct {
	source, destination int32
	tag                 int64
}

// context is what the meaning of a line depends on.
type context struct {
	rank, ranks int
	double      bool // the default datatype is double instead of byte
}

var collectives = map[string]dag.Subkind{
	"barrier": dag.Barrier, "bcast": dag.Bcast, "reduce": dag.Reduce, "allreduce": dag.Allreduce, "scan": dag.Scan,
	"exscan": dag.Exscan, "gather": dag.Gather, "gatherv": dag.Gatherv, "scatter": dag.Scatter,
	"scatterv": dag.Scatterv, "allgather": dag.Allgather, "allgatherv": dag.Allgatherv, "alltoall": dag.Alltoall,
	"alltoallv": dag.Alltoallv, "reducescatter": dag.ReduceScatter,
}

// parser takes the arguments of a line one by one. After an error its methods return 0.
type parser struct {
	*context
	args []string // those that are left
	err  error
}

// syntax is an error about an argument.
type syntax struct{ expected, found string }

func (s *syntax) Error() string { return "expected " + s.expected + ", found " + s.found }

func (p *parser) fail(expected, found string) {
	if p.err == nil {
		p.err = &syntax{expected, found}
	}
}

// errUnknown reports an action that SimGrid does not have.
var errUnknown = errors.New("unknown action")

// parse parses the words of a line behind the rank.
func (c *context) parse(words []string) (a action, err error) {
	p := parser{context: c, args: words[1:]}
	a.name = words[0]
	kind, isCollective := collectives[a.name]
	switch a.name {
	case "init":
		a.verb, a.op = begin, dag.Op{Kind: dag.Calc, Subkind: dag.Marker}
		p.args = p.args[:0]
	case "finalize":
		a.verb = end
		p.args = p.args[:0]
	case "comm_size", "comm_split", "comm_dup", "location", "test":
		a.verb = note
		p.args = p.args[:0]
	case "compute":
		a.verb, a.flops = compute, p.amount("the flops of the computation")
		a.op.Flops = int64(math.Round(a.flops))
	case "sleep":
		a.verb = compute
		a.op.Duration = p.seconds()
	case "send", "isend":
		a.verb = message
		a.op = dag.Op{Kind: dag.Send, Peer: p.rankArg("the destination"), Tag: p.integer("a tag")}
		a.op.Bytes = p.times(p.count("a count"), p.size())
	case "recv", "irecv":
		a.verb = message
		a.op = dag.Op{Kind: dag.Recv, Peer: p.source(), Tag: p.tag()}
		n := p.countOrUnknown()
		size := p.size()
		if a.unknown = n < 0; !a.unknown {
			a.op.Bytes = p.times(n, size)
		}
	case "sendRecv":
		a.verb, a.unknown = exchange, true
		sent, to := p.count("a count to send"), p.rankArg("the destination")
		most, from := p.countOrUnknown(), p.source()
		a.op = dag.Op{Kind: dag.Send, Peer: to, Bytes: p.times(sent, p.size())}
		a.received = dag.Op{Kind: dag.Recv, Peer: from, Bytes: p.times(max(most, 0), p.size())}
	case "wait":
		a.verb = wait
		a.key.source, a.key.destination = p.rankArg("the source"), p.rankArg("the destination")
		a.key.tag = p.integer("a tag")
		if p.err == nil && int(a.key.source) != c.rank && int(a.key.destination) != c.rank {
			p.fail(fmt.Sprintf("a request of rank %d", c.rank), strconv.Quote(excerpt(strings.Join(words, " "))))
		}
	case "waitall":
		a.verb = waitAll
		p.count("the number of requests")
	default:
		if !isCollective {
			return a, errUnknown
		}
		a.verb = collective
		a.op = dag.Op{Kind: dag.Coll, Subkind: kind}
		p.collective(&a)
	}
	if strings.HasPrefix(a.name, "i") && a.verb == message {
		a.verb = post
	}
	if len(p.args) > 0 {
		p.fail("the end of the line", strconv.Quote(excerpt(p.args[0])))
	}
	return a, p.err
}

// collective parses the arguments of a collective and sets the sizes as defined in docs/reference/lowering.md.
func (p *parser) collective(a *action) {
	op, n := &a.op, int64(p.ranks)
	switch op.Subkind {
	case dag.Barrier:
		p.args = p.args[:0]
	case dag.Bcast:
		count := p.count("a count")
		if root := p.root(op); root {
			op.Bytes = p.times(count, p.size())
		} else {
			op.RecvBytes = p.times(count, p.size())
		}
	case dag.Reduce:
		count := p.count("a count")
		a.flops = p.amount("the flops of the reduction")
		root := p.root(op)
		size := p.size()
		op.Bytes, op.Attrs = p.times(count, size), elementAttrs(size)
		if root {
			op.RecvBytes = op.Bytes
		}
	case dag.Allreduce, dag.Scan, dag.Exscan:
		count := p.count("a count")
		a.flops = p.amount("the flops of the reduction")
		size := p.size()
		if op.Bytes = p.times(count, size); op.Subkind == dag.Allreduce {
			op.Attrs = elementAttrs(size)
		}
	case dag.Gather:
		sent, received := p.count("a count to send"), p.count("a count to receive")
		root := p.root(op)
		op.Bytes = p.times(sent, p.size())
		if block := p.times(received, p.size()); root {
			op.RecvBytes = p.times(block, n)
		}
	case dag.Gatherv:
		sent := p.count("a count to send")
		all, _ := p.counts(nil)
		root := p.root(op)
		op.Bytes = p.times(sent, p.size())
		if total := p.times(all, p.size()); root {
			op.RecvBytes = total
		}
	case dag.Scatter:
		sent, received := p.count("a count to send"), p.count("a count to receive")
		root := p.root(op)
		if block := p.times(sent, p.size()); root {
			op.Bytes = p.times(block, n)
		}
		op.RecvBytes = p.times(received, p.size())
	case dag.Scatterv:
		all, _ := p.counts(nil)
		received := p.count("a count to receive")
		root := p.root(op)
		if total := p.times(all, p.size()); root {
			op.Bytes = total
		}
		op.RecvBytes = p.times(received, p.size())
	case dag.Allgather, dag.Alltoall:
		sent, received := p.count("a count to send"), p.count("a count to receive")
		op.Bytes = p.times(sent, p.size())
		op.RecvBytes = p.times(p.times(received, p.size()), n)
		if op.Subkind == dag.Alltoall {
			op.Bytes = p.times(op.Bytes, n)
		}
	case dag.Allgatherv:
		sent := p.count("a count to send")
		all, _ := p.counts(nil)
		if len(p.args) >= p.ranks && len(p.args) > 2 { // displacements precede the datatypes
			p.args = p.args[p.ranks:]
		}
		op.Bytes = p.times(sent, p.size())
		size := p.size()
		op.RecvBytes, op.Attrs = p.times(all, size), elementAttrs(size)
	case dag.Alltoallv:
		p.count("the size of the send buffer")
		c := attr.Counts{Send: make([]int64, 0, p.ranks), Recv: make([]int64, 0, p.ranks)}
		sent, _ := p.counts(&c.Send)
		p.count("the size of the receive buffer")
		received, _ := p.counts(&c.Recv)
		sends, receives := p.size(), p.size()
		op.Bytes = p.times(sent, sends)
		op.RecvBytes = p.times(received, receives)
		for i := range c.Send {
			c.Send[i] *= sends
		}
		for i := range c.Recv {
			c.Recv[i] *= receives
		}
		if p.err == nil && !c.Even() {
			op.Attrs = attr.WithCounts("", &c)
		}
	case dag.ReduceScatter:
		all, own := p.counts(nil)
		a.flops = p.amount("the flops of the reduction")
		size := p.size()
		op.Bytes, op.RecvBytes, op.Attrs = p.times(all, size), p.times(own, size), elementAttrs(size)
	}
}

// elementAttrs returns the attributes with the size of an element, which is 8 bytes without them.
func elementAttrs(size int64) string {
	if size == sizes[typeDouble] {
		return ""
	}
	return attr.WithElement("", size)
}

// next takes an argument.
func (p *parser) next(expected string) string {
	if p.err != nil {
		return ""
	}
	if len(p.args) == 0 {
		p.fail(expected, "the end of the line")
		return ""
	}
	word := p.args[0]
	p.args = p.args[1:]
	return word
}

// number parses a decimal number, with an exponent or not.
func (p *parser) number(expected string) float64 {
	word := p.next(expected)
	if p.err != nil {
		return 0
	}
	f, ok := parseNumber(word)
	if !ok {
		p.fail(expected, strconv.Quote(excerpt(word)))
	}
	return f
}

func parseNumber(word string) (float64, bool) {
	if strings.Trim(word, "0123456789+-.eE") != "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(word, 64)
	return f, err == nil
}

// integer parses a number and cuts it to a whole one.
func (p *parser) integer(expected string) int64 {
	f := math.Trunc(p.number(expected))
	if f < math.MinInt32 || f > 1<<53 {
		p.fail(fmt.Sprintf("%s in %d..%d", expected, math.MinInt32, int64(1)<<53), strconv.FormatFloat(f, 'g', -1, 64))
		return 0
	}
	return int64(f)
}

// count parses a number of elements.
func (p *parser) count(expected string) int64 {
	n := p.integer(expected)
	if n < 0 {
		p.fail(expected+" of 0 or more", strconv.FormatInt(n, 10))
	}
	return max(n, 0)
}

// countOrUnknown parses a number of elements; a negative one is unknown.
func (p *parser) countOrUnknown() int64 {
	n := p.integer("a count, or -1")
	if n < -1 {
		p.fail("a count of -1 or more", strconv.FormatInt(n, 10))
	}
	return n
}

// amount parses an amount of work.
func (p *parser) amount(expected string) float64 {
	f := p.number(expected)
	if f < 0 || f >= math.MaxInt64 {
		p.fail(expected+", 0 or more and below 9.2e18", strconv.FormatFloat(f, 'g', -1, 64))
		return 0
	}
	return f
}

// seconds parses a time.
func (p *parser) seconds() dag.Time {
	f := p.number("seconds")
	ps := math.Round(f * 1e12)
	if f < 0 || ps >= math.MaxInt64 {
		p.fail("seconds of 0 or more and below 9.2e6", strconv.FormatFloat(f, 'g', -1, 64))
		return 0
	}
	return dag.Time(ps)
}

// rankArg parses a rank.
func (p *parser) rankArg(what string) int32 {
	n := p.integer(what)
	if p.err == nil && (n < 0 || n >= int64(p.ranks)) {
		p.fail(fmt.Sprintf("%s in 0..%d", what, p.ranks-1), strconv.FormatInt(n, 10))
	}
	return int32(n)
}

// source parses the source of a receive; a negative one is any source.
func (p *parser) source() int32 {
	n := p.integer("the source")
	if p.err == nil && n >= int64(p.ranks) {
		p.fail(fmt.Sprintf("the source in 0..%d, or %d for any", p.ranks-1, anySource), strconv.FormatInt(n, 10))
	}
	return fromPeer(n)
}

// tag parses the tag of a receive; a negative one is any tag.
func (p *parser) tag() int64 {
	if n := p.integer("a tag"); n >= 0 {
		return n
	}
	return dag.AnyTag
}

// root parses the root, rank 0 if it is missing, and reports whether it is this rank.
func (p *parser) root(op *dag.Op) bool {
	if len(p.args) > 0 {
		op.Peer = p.rankArg("the root")
	}
	return int(op.Peer) == p.rank
}

// size parses a datatype and returns its size.
func (p *parser) size() int64 {
	byDefault := int64(1)
	if p.double {
		byDefault = 8
	}
	if len(p.args) == 0 {
		return byDefault
	}
	id := p.integer("a datatype")
	switch {
	case p.err != nil || id == -1:
		return byDefault
	case id < 0 || id >= int64(len(sizes)) || sizes[id] == 0:
		p.fail("the number of a datatype, 0..54 or 57..59, or -1", strconv.FormatInt(id, 10))
		return byDefault
	}
	return sizes[id]
}

// counts parses one count for each rank, and appends them to list unless that is nil. It returns their sum, and that of
// this rank.
func (p *parser) counts(list *[]int64) (all, own int64) {
	for rank := range p.ranks {
		n := p.count("a count for each rank")
		if p.err != nil {
			return 0, 0
		}
		if all += n; all > 1<<53 {
			p.fail("counts with a sum of 2^53 or less", strconv.FormatInt(all, 10))
			return 0, 0
		}
		if rank == p.rank {
			own = n
		}
		if list != nil {
			*list = append(*list, n)
		}
	}
	return all, own
}

// times returns a product of sizes.
func (p *parser) times(a, b int64) int64 {
	if p.err != nil || a == 0 || b == 0 {
		return 0
	}
	if a > math.MaxInt64/b/int64(p.ranks) {
		p.fail("less than 2^63 bytes on all ranks", fmt.Sprintf("%d times %d", a, b))
		return 0
	}
	return a * b
}

// excerpt returns a word for a message, shortened if it is long.
func excerpt(word string) string {
	const most = 40
	if len(word) > most {
		return word[:most] + "..."
	}
	return word
}
