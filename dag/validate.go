package dag

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/internal/par"
)

// Class is the class of a [Problem].
type Class string

// The classes of problems that [Validate] finds.
const (
	BadTrace Class = "trace"        // metadata or columns that do not match the ranks and ops
	BadKind  Class = "kind"         // unknown kind, or a subkind of another kind
	BadField Class = "field"        // a value outside the range of its field
	BadPeer  Class = "peer"         // a partner or root that is no rank of the trace
	BadComm  Class = "communicator" // a communicator that does not exist or is malformed
	// a dependency on an op that does not exist, or a wrong order of dependents
	BadReference  Class = "reference"
	Cycle         Class = "cycle"             // ops that wait for each other
	BadCollective Class = "collective"        // members of a communicator that disagree about its collectives
	UnmatchedSend Class = "unmatched-send"    // message that no receive matches
	UnmatchedRecv Class = "unmatched-receive" // receive that no message matches
)

// Problem is one reason why a trace cannot complete.
type Problem struct {
	Class   Class  `json:"class"`
	Rank    int    `json:"rank"` // -1: whole trace
	Op      int    `json:"op"`   // -1: whole rank
	Message string `json:"message"`
}

// String returns the problem with its location, such as "rank 3, op 17: send to rank 9, expected 0..7".
func (p Problem) String() string {
	switch {
	case p.Rank < 0:
		return "trace: " + p.Message
	case p.Op < 0:
		return fmt.Sprintf("rank %d: %s", p.Rank, p.Message)
	}
	return fmt.Sprintf("rank %d, op %d: %s", p.Rank, p.Op, p.Message)
}

// Validate returns all problems of a trace, by rank and op. It accepts any trace, however broken. It runs on all
// processors, in time nearly linear in the size of the trace.
//
// Each strongly connected component of dependencies (of both kinds) is reported once, at its lowest op.
//
// Sends and receives match by destination, source, tag and communicator, as in MPI; their sizes may differ. AnySource
// matches every source, and AnyTag every tag except those below it (see [CollectiveTag]). If wildcards allow several
// matchings, Validate uses one with the most matches. Which of several equal candidates it then reports as unmatched
// is arbitrary but deterministic.
//
// The k-th collective of each member of a communicator belong together. A member whose sequence of subkinds and roots
// differs from that of the majority is reported at the first difference.
func Validate(t *Trace) []Problem {
	problems, _ := ValidateLimit(t, math.MaxInt)
	return problems
}

// ValidateLimit is [Validate], but returns only the first limit problems, and the number of all problems.
func ValidateLimit(t *Trace, limit int) ([]Problem, int) {
	v := validation{trace: t, cycles: make([][][]int32, len(t.Ranks)), comms: make([]bool, len(t.Comms))}
	v.checkTrace()
	v.checkRanks()
	v.checkMessages()
	v.checkCollectives()
	slices.SortFunc(v.findings, compareFindings)
	problems := make([]Problem, 0, min(max(0, limit), len(v.findings)))
	for _, f := range v.findings[:cap(problems)] {
		problems = append(problems, Problem{
			Class: ruleClass[f.rule], Rank: int(f.rank), Op: int(f.op), Message: v.message(f),
		})
	}
	return problems, len(v.findings)
}

// validation is the state of one call of Validate.
type validation struct {
	trace    *Trace
	comms    []bool      // by communicator: it is well-formed
	cycles   [][][]int32 // cycles found, by rank
	findings []finding
}

// finding is a problem without its text. Only findings that are reported get one.
type finding struct {
	rank, op int32
	rule     rule
	a, b     int64 // values for the message of the rule
}

func compareFindings(x, y finding) int {
	if x.rank != y.rank {
		return cmp.Compare(x.rank, y.rank)
	}
	if x.op != y.op {
		return cmp.Compare(x.op, y.op)
	}
	return cmp.Or(cmp.Compare(x.rule, y.rule), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
}

// rule is a rule that a trace can violate.
type rule uint8

const (
	ruleNodes rule = iota // a: number of nodes
	ruleNode              // a: the node
	ruleNoComms
	ruleWorld
	ruleComm   // a: the communicator
	ruleColumn // a: the FieldID
	ruleShape  // a: index of the edges in edgeColumns
	ruleKind
	ruleSubkind
	ruleNegative // a: the FieldID, b: the value
	ruleJob
	ruleStep
	rulePeer
	ruleTag
	ruleCommNumber
	ruleReference // a: index of the edges, b: the op referred to
	ruleOrder     // a: index of the edges
	ruleCycle     // a: index of the cycle among the rank's, b: ops of its component
	ruleMember    // a: the communicator
	ruleAbsent    // a: the communicator, b: members without a collective
	ruleRoot
	ruleDiffers // a: the op of the member compared with, b: that member
	ruleTooFew  // a: the communicator, b: the member compared with
	ruleTooMany // b: the member compared with
	ruleUnmatchedSend
	ruleUnmatchedReceive
)

var ruleClass = [...]Class{
	ruleNodes: BadTrace, ruleNode: BadTrace, ruleNoComms: BadComm, ruleWorld: BadComm, ruleComm: BadComm,
	ruleColumn: BadTrace, ruleShape: BadReference, ruleKind: BadKind, ruleSubkind: BadKind, ruleNegative: BadField,
	ruleStep: BadField,
	ruleJob:  BadField, rulePeer: BadPeer, ruleTag: BadField, ruleCommNumber: BadComm, ruleReference: BadReference,
	ruleOrder: BadReference, ruleCycle: Cycle, ruleMember: BadCollective, ruleAbsent: BadCollective,
	ruleRoot: BadCollective, ruleDiffers: BadCollective, ruleTooFew: BadCollective, ruleTooMany: BadCollective,
	ruleUnmatchedSend: UnmatchedSend, ruleUnmatchedReceive: UnmatchedRecv,
}

// message returns the text of a finding.
func (v *validation) message(f finding) string {
	t, ranks := v.trace, len(v.trace.Ranks)
	var r *Rank
	var op Op
	if f.rank >= 0 {
		if r = t.Ranks[f.rank]; f.op >= 0 {
			op = r.Op(int(f.op))
		}
	}
	switch f.rule {
	case ruleNodes:
		return fmt.Sprintf("nodes of %d ranks, expected %d", f.a, ranks)
	case ruleNode:
		return fmt.Sprintf("runs on node %d, expected 0 or more", f.a)
	case ruleNoComms:
		return "no communicators, expected communicator 0 of all ranks"
	case ruleWorld:
		return "communicator 0 is not all ranks in ascending order"
	case ruleComm:
		return fmt.Sprintf("communicator %d: %v", f.a, t.Comms[f.a].Check(ranks))
	case ruleColumn:
		return fmt.Sprintf("%d %s for %d ops", r.storedLength(FieldID(f.a)), Fields[f.a].Plural, r.Len())
	case ruleShape:
		e := r.edgeColumns()[f.a]
		_, err := e.edges.checkShape(r.Len())
		return fmt.Sprintf("%s: %v", e.name, err)
	case ruleKind:
		return fmt.Sprintf("%v, expected 0..%d", op.Kind, int(NumKinds)-1)
	case ruleSubkind:
		return fmt.Sprintf("%v with subkind %q, expected %s", op.Kind, op.Subkind, subkindsOf(op.Kind))
	case ruleNegative:
		return fmt.Sprintf("%s is %d, expected 0 or more", Fields[f.a].Name, f.b)
	case ruleJob:
		return fmt.Sprintf("job %d, expected 0..%d", op.Job, t.jobs()-1)
	case ruleStep:
		return fmt.Sprintf("step %d, expected 0..%d", op.Step, t.Steps)
	case rulePeer:
		return v.peerMessage(op)
	case ruleTag:
		return "send with tag -1 (any tag), which only a receive may have"
	case ruleCommNumber:
		return fmt.Sprintf("communicator %d, expected 0..%d", op.Comm, len(t.Comms)-1)
	case ruleReference:
		return fmt.Sprintf("%s on op %d, expected 0..%d", r.edgeColumns()[f.a].name, f.b, r.Len()-1)
	case ruleOrder:
		e := r.edgeColumns()[f.a]
		_, err := new(ReferenceChecker).checkOrder(e.edges, r.Len(), e.order)
		return fmt.Sprintf("%s: %v", e.name, err)
	case ruleCycle:
		return cycleMessage(v.cycles[f.rank][f.a], f.b)
	case ruleMember:
		return fmt.Sprintf("%v on communicator %d, which does not contain the rank", op.Subkind, op.Comm)
	case ruleAbsent:
		return fmt.Sprintf("no collective on communicator %d, unlike other members (%d of %d members have none)",
			f.a, f.b, t.Comms[f.a].Size())
	case ruleRoot:
		return fmt.Sprintf("%v with root %d, which is not a member of communicator %d", op.Subkind, op.Peer, op.Comm)
	case ruleDiffers:
		return fmt.Sprintf("%s on communicator %d, expected %s as in op %d of rank %d", collective(op), op.Comm,
			collective(t.Ranks[f.b].Op(int(f.a))), f.a, f.b)
	case ruleTooFew:
		return fmt.Sprintf("fewer collectives on communicator %d than on rank %d", f.a, f.b)
	case ruleTooMany:
		return fmt.Sprintf("%s on communicator %d, but rank %d has no more collectives on it",
			collective(op), op.Comm, f.b)
	case ruleUnmatchedSend:
		return fmt.Sprintf("no receive matches the send of %d bytes to rank %d with tag %d on communicator %d",
			op.Bytes, op.Peer, op.Tag, op.Comm)
	case ruleUnmatchedReceive:
		from, tag := fmt.Sprintf("rank %d", op.Peer), fmt.Sprintf("tag %d", op.Tag)
		if op.Peer == AnySource {
			from = "any rank"
		}
		if op.Tag == AnyTag {
			tag = "any tag"
		}
		return fmt.Sprintf("no send matches the receive of %d bytes from %s with %s on communicator %d", op.Bytes, from,
			tag, op.Comm)
	}
	panic(fmt.Sprintf("unreachable: no message for rule %d", f.rule))
}

func (v *validation) peerMessage(op Op) string {
	last := len(v.trace.Ranks) - 1
	switch op.Kind {
	case Send:
		return fmt.Sprintf("send to rank %d, expected 0..%d", op.Peer, last)
	case Recv:
		return fmt.Sprintf("receive from rank %d, expected 0..%d or -1 (any source)", op.Peer, last)
	}
	return fmt.Sprintf("%v with root %d, expected 0..%d", op.Subkind, op.Peer, last)
}

// subkindsOf describes the subkinds that an op of kind k may have.
func subkindsOf(k Kind) string {
	switch k {
	case Calc:
		return `"" or "marker"`
	case Coll:
		return "a collective such as allreduce"
	case Mem:
		return "load or store"
	case IO:
		return "read or write"
	}
	return `""`
}

// collective returns the properties of a collective that all members must share.
func collective(op Op) string {
	if op.Subkind.Rooted() {
		return fmt.Sprintf("%v with root %d", op.Subkind, op.Peer)
	}
	return op.Subkind.String()
}

// namedOfCycle is the maximum number of ops of a cycle that a message lists.
const namedOfCycle = 16

func cycleMessage(cycle []int32, component int64) string {
	if len(cycle) == 1 && component == 1 {
		return "waits for itself"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "cycle of %d ops: ", len(cycle))
	for _, op := range cycle[:min(len(cycle), namedOfCycle)] {
		fmt.Fprintf(&b, "%d waits for ", op)
	}
	if len(cycle) > namedOfCycle {
		fmt.Fprintf(&b, "... %d waits for ", cycle[len(cycle)-1])
	}
	fmt.Fprintf(&b, "%d", cycle[0])
	if component > int64(len(cycle)) {
		fmt.Fprintf(&b, " (%d ops wait for each other in total)", component)
	}
	return b.String()
}

// jobs returns the number of jobs of the trace.
func (t *Trace) jobs() int {
	return max(1, len(t.Jobs))
}

func (v *validation) add(f finding) {
	v.findings = append(v.findings, f)
}

// checkTrace checks metadata and communicators.
func (v *validation) checkTrace() {
	t, n := v.trace, len(v.trace.Ranks)
	if t.Nodes != nil && len(t.Nodes) != n {
		v.add(finding{rank: -1, op: -1, rule: ruleNodes, a: int64(len(t.Nodes))})
	}
	for i, node := range t.Nodes[:min(n, len(t.Nodes))] {
		if node < 0 {
			v.add(finding{rank: int32(i), op: -1, rule: ruleNode, a: int64(node)})
		}
	}
	if len(t.Comms) == 0 {
		v.add(finding{rank: -1, op: -1, rule: ruleNoComms})
	}
	for i := range t.Comms {
		if v.comms[i] = t.Comms[i].Check(n) == nil; !v.comms[i] {
			v.add(finding{rank: -1, op: -1, rule: ruleComm, a: int64(i)})
		} else if i == 0 && !t.Comms[0].isWorld(n) {
			v.add(finding{rank: -1, op: -1, rule: ruleWorld})
		}
	}
}

// checkRanks checks each rank separately.
func (v *validation) checkRanks() {
	found := make([][]finding, len(v.trace.Ranks))
	par.ForWith(len(found), func() *rankCheck { return &rankCheck{trace: v.trace} }, func(c *rankCheck, i int) {
		c.rank, c.id, c.findings, c.cycles = v.trace.Ranks[i], int32(i), nil, nil
		c.checkColumns()
		c.checkOps()
		c.checkEdges()
		found[i], v.cycles[i] = c.findings, c.cycles
	})
	v.findings = append(v.findings, slices.Concat(found...)...)
}

// rankCheck checks one rank at a time.
type rankCheck struct {
	trace      *Trace
	rank       *Rank
	id         int32
	findings   []finding
	cycles     [][]int32
	components components
}

func (c *rankCheck) add(op int, rule rule, a, b int64) {
	c.findings = append(c.findings, finding{rank: c.id, op: int32(op), rule: rule, a: a, b: b})
}

// storedLength returns the number of stored values of a field. Measured_start includes measured_end.
func (r *Rank) storedLength(id FieldID) int {
	n := Fields[id].Of(r).Len()
	if id == FieldMeasuredStart {
		n = max(n, len(r.MeasuredEnd))
	}
	return n
}

func (c *rankCheck) checkColumns() {
	for id := range Fields {
		if Fields[id].Plural != "" && c.rank.storedLength(FieldID(id)) > c.rank.Len() {
			c.add(-1, ruleColumn, int64(id), 0)
		}
	}
}

func (c *rankCheck) checkOps() {
	r := c.rank
	for i, kind := range r.Kind {
		if kind >= NumKinds {
			c.add(i, ruleKind, 0, 0)
		} else if !r.Subkind.At(i).Of(kind) {
			c.add(i, ruleSubkind, 0, 0)
		}
	}
	for id := range Fields {
		if Fields[id].Range != AnyValue {
			c.checkRange(FieldID(id))
		}
	}
	c.checkPeers()
}

// checkRange checks the values of a field with a restricted range.
func (c *rankCheck) checkRange(id FieldID) {
	limit := Fields[id].Limit(len(c.trace.Comms), &c.trace.Meta)
	switch column := Fields[id].Of(c.rank).(type) {
	case *Column[int64]:
		findNegative(c, id, *column)
	case *Column[Time]:
		findNegative(c, id, *column)
	case *Narrow:
		switch Fields[id].Range {
		case NotNegative:
			c.eachOutside(column, math.MaxInt, func(i int, value int32) {
				c.add(i, ruleNegative, int64(id), int64(value))
			})
		case JobIndex:
			c.eachOutside(column, int(limit), func(i int, _ int32) { c.add(i, ruleJob, 0, 0) })
		case StepNumber:
			c.eachOutside(column, int(limit), func(i int, _ int32) { c.add(i, ruleStep, 0, 0) })
		case CommIndex:
			if len(c.trace.Comms) > 0 {
				c.eachOutside(column, int(limit), func(i int, _ int32) { c.add(i, ruleCommNumber, 0, 0) })
			}
		}
	}
}

// findNegative checks a field that must not be negative.
func findNegative[T int64 | Time](c *rankCheck, id FieldID, column Column[T]) {
	for i, value := range column[:min(c.rank.Len(), len(column))] {
		if value < 0 {
			c.add(i, ruleNegative, int64(id), int64(value))
		}
	}
}

// eachOutside calls found for each op of the rank whose value is outside 0..limit-1.
func (c *rankCheck) eachOutside(column *Narrow, limit int, found func(i int, value int32)) {
	for i := range min(c.rank.Len(), column.Len()) {
		if value := column.At(i); !inRange(value, limit) {
			found(i, value)
		}
	}
}

func (c *rankCheck) checkPeers() {
	r, ranks := c.rank, len(c.trace.Ranks)
	for i, kind := range r.Kind {
		switch kind {
		case Send:
			if !inRange(r.Peer.At(i), ranks) {
				c.add(i, rulePeer, 0, 0)
			}
			if r.Tag.At(i) == AnyTag {
				c.add(i, ruleTag, 0, 0)
			}
		case Recv:
			if peer := r.Peer.At(i); peer != AnySource && !inRange(peer, ranks) {
				c.add(i, rulePeer, 0, 0)
			}
		case Coll:
			if root := r.Peer.At(i); r.Subkind.At(i).Rooted() && root != UnknownRoot && !inRange(root, ranks) {
				c.add(i, rulePeer, 0, 0)
			}
		}
	}
}

func inRange(rank int32, ranks int) bool {
	return rank >= 0 && int(rank) < ranks
}

type edgeColumn struct {
	name         string
	edges, order *Edges
}

func (r *Rank) edgeColumns() [2]edgeColumn {
	return [...]edgeColumn{{"deps", &r.Deps, &r.Order}, {"start_deps", &r.StartDeps, &r.StartOrder}}
}

func (c *rankCheck) checkEdges() {
	n := c.rank.Len()
	for k, column := range c.rank.edgeColumns() {
		if op, err := column.edges.checkShape(n); err != nil {
			c.add(op, ruleShape, int64(k), 0)
			continue
		}
		if !c.checkTargets(k, column.edges) {
			continue
		}
		if op, err := new(ReferenceChecker).checkOrder(column.edges, n, column.order); err != nil {
			c.add(op, ruleOrder, int64(k), 0)
		}
	}
	g := c.rank.graph()
	if g.indexOrdered() {
		return
	}
	c.components.find(&g, func(ops []int32) {
		if c.components.cyclic(&g, ops) {
			cycle := c.components.cycle(&g, ops)
			c.add(int(cycle[0]), ruleCycle, int64(len(c.cycles)), int64(len(ops)))
			c.cycles = append(c.cycles, cycle)
		}
	})
}

// checkTargets reports whether all dependencies refer to ops of the rank.
func (c *rankCheck) checkTargets(column int, edges *Edges) bool {
	n, start, good := c.rank.Len(), uint32(0), true
	for i, end := range edges.End {
		for _, off := range edges.Off[start:end] {
			if p := i - int(off); uint(p) >= uint(n) {
				c.add(i, ruleReference, int64(column), int64(p))
				good = false
			}
		}
		start = end
	}
	return good
}
