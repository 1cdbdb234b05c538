package collective

import "github.com/tracedag/tracedag/dag"

// Names are the names of the collectives of a trace, for the messages of its lowered form.
type Names struct {
	firstTag int64
	names    []string          // by number of the collective; see [Lower]
	kept     map[int32][]int64 // by communicator: numbers of the collectives that remain in the trace, in order
}

// NamesOf returns the names of the collectives of a trace that [LowerNeeded] or [LowerSource] lowered, nil if it
// lowered none.
func NamesOf(lowered dag.Source) (*Names, error) {
	s, ok := lowered.(*loweredSource)
	if !ok {
		return nil, nil
	}
	n := &Names{firstTag: s.in.firstTag, names: make([]string, s.in.count), kept: map[int32][]int64{}}
	for id, c := range s.in.comms {
		if c == nil {
			continue
		}
		for k := range c.instances {
			if !s.in.lowers(&c.instances[k]) {
				n.kept[int32(id)] = append(n.kept[int32(id)], c.first+int64(k))
			}
		}
	}
	err := s.in.eachFirst(dag.All, func(m *member) error {
		name := m.r.Name.At(m.op)
		if name == "" {
			name = m.r.Subkind.At(m.op).String()
		}
		n.names[m.comm.first+int64(m.k)] = name
		return nil
	})
	return n, err
}

// Of returns name and number of the collective of a message with the given tag. The name is the kind if the trace has
// none; the number is as in [Lower]. ok is false if the message belongs to no collective of n.
func (n *Names) Of(tag int64) (name string, number int64, ok bool) {
	if n == nil || tag > n.firstTag {
		return "", 0, false
	}
	lane := int64(len(n.names))
	if number = n.firstTag - tag; number < 0 || number >= lanes*lane {
		return "", 0, false
	}
	number %= lane
	return n.names[number], number, true
}

// Kept returns the number in the trace before its lowering of collective k of a communicator in the lowered trace,
// counted from 0; ok is false if there is none.
func (n *Names) Kept(comm int32, k int64) (number int64, ok bool) {
	if kept := n.kept[comm]; k >= 0 && k < int64(len(kept)) {
		return kept[k], true
	}
	return 0, false
}

// NamesIn returns a function that returns the name of an op of the lowered trace and, for a message of a lowered
// collective, name and number of the collective, otherwise the number -1. n and t may be nil.
func (n *Names) NamesIn(t *dag.Trace) func(rank, op int) (name string, number int64) {
	if t == nil {
		return nil
	}
	return func(rank, op int) (string, int64) {
		r := t.Ranks[rank]
		if kind := r.Kind[op]; kind == dag.Send || kind == dag.Recv {
			if name, number, ok := n.Of(r.Tag.At(op)); ok {
				return name, number
			}
		}
		return r.Name.At(op), -1
	}
}
