package dag

import (
	"fmt"

	"github.com/tracedag/tracedag/dag/attr"
)

// AnySource and AnyTag are the wildcards of a receive's Peer and Tag.
const (
	AnySource = -1
	AnyTag    = -1
)

// UnknownRoot is the Peer of a rooted collective whose root the trace does not state.
const UnknownRoot = -1

// CollectiveTag is the highest tag of messages of lowered collectives; the others are below it. All are below AnyTag.
// A receive with AnyTag does not match them, as in MPI, where collectives have a separate context.
const CollectiveTag = -2

// Trace is a workload: one DAG of ops per rank.
type Trace struct {
	Meta
	Comms []Comm  // Comms[0] is all ranks
	Ranks []*Rank // never nil; ranks without ops may be one rank in common, see NewRanks
}

// Meta describes a trace and its origin.
type Meta struct {
	Title      string
	Provenance []Provenance // oldest first: one entry per program that made or rewrote the trace
	Nodes      []int32      // node of each rank; nil: rank i on node i
	Jobs       []string     // names of the jobs of a merged trace, by job number; nil if it is a single job
	Steps      int32        // highest number of a step; 0 if the trace has no steps
	Attrs      string       // format-specific data about the whole trace: a JSON object or ""
}

// Provenance records one program that made or rewrote a trace.
type Provenance struct {
	Program string   `json:"program"`           // such as "traceconv"
	Version string   `json:"version"`           // the program's version
	Command []string `json:"command,omitempty"` // its arguments, the program's name first
	Seed    *int64   `json:"seed,omitempty"`    // of all random choices; nil if there were none
	Inputs  []Input  `json:"inputs,omitempty"`  // files that it read
}

// Input identifies a file that a program read, by name and content.
type Input struct {
	Name   string `json:"name"`   // as given on the command line
	SHA256 string `json:"sha256"` // of the file's bytes as stored, in hex
}

// Measured returns the measured start and end of op i, Unmeasured if the tracer did not record them.
func (r *Rank) Measured(i int) (start, end Time) {
	start, end = Unmeasured, Unmeasured
	if i < len(r.MeasuredStart) {
		start = r.MeasuredStart[i]
	}
	if i < len(r.MeasuredEnd) {
		end = r.MeasuredEnd[i]
	}
	return start, end
}

// ID returns the number of op i in the trace's own format. It is the member "id" of the op's attributes. Without one,
// IDs continue from the nearest earlier op with an "id", and equal the index before the first such op.
func (r *Rank) ID(i int) uint64 {
	for k := min(i, r.Attrs.Len()-1); k >= 0; k-- {
		if id, ok := r.statedID(k); ok {
			return id + uint64(i-k)
		}
	}
	return uint64(i)
}

// IDs returns the ID of all ops.
func (r *Rank) IDs() []uint64 {
	ids := make([]uint64, r.Len())
	next := uint64(0)
	for i := range ids {
		if id, ok := r.statedID(i); ok {
			next = id
		}
		ids[i] = next
		next++
	}
	return ids
}

// statedID returns the number of op i in its own attributes.
func (r *Rank) statedID(i int) (id uint64, ok bool) {
	known, ok := attr.ParseNodeID(r.Attrs.At(i))
	return uint64(known), ok
}

// Dependents returns the ops that wait for the end of each op, in order.
func (r *Rank) Dependents() Dependents {
	return r.Deps.Dependents(r.Len(), &r.Order)
}

// StartDependents returns the ops that wait for the start of each op, in order.
func (r *Rank) StartDependents() Dependents {
	return r.StartDeps.Dependents(r.Len(), &r.StartOrder)
}

// CalcTime returns the time that a calc takes: its duration, but 0 for a Marker, whose duration only backends use
// that replay recorded durations.
func (r *Rank) CalcTime(i int) Time {
	if r.Subkind.At(i) == Marker {
		return 0
	}
	return r.Duration.At(i)
}

// CheckReferences returns an error if a list of dependencies is malformed, a dependency leaves the rank, or an
// explicit order of dependents is not a permutation of them. Readers call it on their input, because the other
// methods rely on it.
func (r *Rank) CheckReferences() error {
	return new(ReferenceChecker).Check(r)
}

// ReferenceChecker checks ranks one after the other and reuses its memory. The zero value is ready for use.
type ReferenceChecker struct {
	dependents Dependents
	seen       []int32
}

// Check checks a rank as [Rank.CheckReferences] does.
func (c *ReferenceChecker) Check(r *Rank) error {
	if err := c.check(&r.Deps, r.Len(), &r.Order); err != nil {
		return fmt.Errorf("deps: %w", err)
	}
	if err := c.check(&r.StartDeps, r.Len(), &r.StartOrder); err != nil {
		return fmt.Errorf("start_deps: %w", err)
	}
	return nil
}

func (c *ReferenceChecker) check(e *Edges, n int, order *Edges) error {
	if _, err := e.checkShape(n); err != nil {
		return err
	}
	// An op whose index is at least the largest offset cannot depend on an op before the first. If no offset is below
	// zero, as usual, it cannot depend on an op after the last either. The bitwise OR of all offsets is an upper
	// bound of the largest.
	suspects := e.End
	if all := allBits(e.Off); all >= 0 {
		suspects = suspects[:min(len(suspects), int(all))]
	}
	start := uint32(0)
	for i, end := range suspects {
		for _, off := range e.Off[start:end] {
			if p := i - int(off); uint(p) >= uint(n) {
				return fmt.Errorf("op %d depends on op %d, expected 0..%d", i, p, n-1)
			}
		}
		start = end
	}
	_, err := c.checkOrder(e, n, order)
	return err
}

// allBits returns the bitwise OR of the values.
func allBits(values []int32) int32 {
	var a, b, c, d int32
	for ; len(values) >= 4; values = values[4:] {
		a |= values[0]
		b |= values[1]
		c |= values[2]
		d |= values[3]
	}
	for _, v := range values {
		a |= v
	}
	return a | b | c | d
}

// checkOrder returns an error, and the first wrong op (-1 if no single op is wrong), unless each list of order is a
// permutation of the op's dependents by e. The references of e must be in range.
func (c *ReferenceChecker) checkOrder(e *Edges, n int, order *Edges) (int, error) {
	if op, err := order.checkShape(n); err != nil {
		return op, fmt.Errorf("order of dependents: %w", err)
	}
	if len(order.Off) == 0 {
		return -1, nil
	}
	canonical := &c.dependents
	canonical.set(e, n, &Edges{})
	c.seen = zeroed(c.seen, n)
	seen := c.seen // occurrences of the op in the current list, minus those expected
	for i := range order.End {
		given, want := order.Of(i), canonical.Of(i)
		if len(given) == 0 {
			continue
		}
		if len(given) != len(want) {
			return i, fmt.Errorf("op %d has %d dependents, their order lists %d", i, len(want), len(given))
		}
		for _, d := range want {
			seen[d]--
		}
		for _, off := range given {
			d := i + int(off)
			if uint(d) >= uint(n) {
				return i, fmt.Errorf("the order of op %d's dependents lists op %d, expected 0..%d", i, d, n-1)
			}
			seen[d]++
		}
		for _, d := range want {
			if seen[d] != 0 {
				return i, fmt.Errorf("the order of op %d's dependents does not list op %d once for each time it "+
					"depends on it", i, d)
			}
		}
	}
	return -1, nil
}

// Ops returns the number of ops of the trace.
func (t *Trace) Ops() int64 {
	n := int64(0)
	for i := range t.Ranks {
		n += int64(t.Ranks[i].Len())
	}
	return n
}
