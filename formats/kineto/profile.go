// This file gives statistics the ops of devices as the profiler recorded them.

package kineto

import (
	"cmp"
	"math"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
)

// Profile is a file: the ops of the devices of a rank, whether or not they fit those of other ranks.
type Profile struct {
	File      string
	Rank      int32
	Ops       []Op       // by start, on the clock of the job
	Reference *Reference // if it was requested
}

// Op is an op of a device.
type Op struct {
	Start, End             dag.Time
	LaunchStart, LaunchEnd dag.Time // of its call, if Launched
	Launched               bool     // the call is in the file
	Class                  Class
	Device, Stream         int64
	Call                   int64  // number of its call; -1: none
	Bytes                  int64  // of a copy or set; 0: unknown
	Name                   string // of the kernel
	Step                   int32  // number of its step; -1: none
	Calls                  []Call // of communication
}

// Class is the purpose of an op.
type Class uint8

// Classes. Communication is by NCCL, RCCL, HCCL and oneCCL; kernels of other libraries compute.
const (
	Computation Class = iota
	Communication
	Memory
)

// Call is a collective, send or receive. A kernel executes several if they are a group.
type Call struct {
	Kind     string // of the collective, "send", "recv", or "" if unknown
	Group    string // name of the process group, "" if unknown
	Size     int    // members of the group; 0: all ranks, or unknown
	In, Out  int64  // bytes that the rank gives and gets, if Sized
	Sized    bool
	Sequence int64 // number on its group; -1: unknown
}

// ReadProfiles reads the files of a job for statistics, by rank. It needs no file of other ranks. With reference, it
// also reads what HolisticTraceAnalysis counts. Errors name the file.
func ReadProfiles(inputs []*format.Input, o format.ReadOptions, reference bool) ([]*Profile, error) {
	own := *format.Own(o.Own, func() *Options { return newOptions() })
	own.OnlyPresent, own.Replicate = true, false
	options := &readOptions{ctx: o.Context, lenient: o.Lenient, warn: o.Warn, own: &own, steps: []string{stepName},
		reference: reference}
	if err := own.Check(); err != nil {
		return nil, err
	}
	all := make([]*recording, len(inputs))
	err := par.Each(len(inputs), func(i int) (err error) {
		all[i], err = readRecording(inputs[i], options)
		return err
	})
	if err != nil {
		return nil, err
	}
	j, err := newJob(all, options)
	if err != nil {
		return nil, err
	}
	profiles := make([]*Profile, len(j.ranks))
	par.For(len(profiles), func(i int) { profiles[i] = j.ranks[i].profile() })
	return profiles, nil
}

// profile returns the profile of a rank.
func (r *rank) profile() *Profile {
	p := &Profile{File: r.name, Rank: r.global, Reference: r.reference}
	if !r.runsOps {
		return p
	}
	p.Ops = make([]Op, len(r.ops))
	for i := range r.ops {
		o := &r.ops[i]
		s := r.streams[o.stream]
		op := Op{Start: o.start + r.offset, End: o.end() + r.offset, Device: s.device, Stream: s.stream,
			Call: o.correlation, Bytes: o.bytes, Name: r.texts.text(o.name), Step: -1}
		if s.stream == math.MinInt64 {
			op.Stream = -1
		}
		switch o.class {
		case communicates:
			op.Class = Communication
		case copies:
			op.Class = Memory
		}
		if o.correlation >= 0 {
			c := &r.calls[o.correlation]
			op.Launched, op.LaunchStart, op.LaunchEnd = true, c.start+r.offset, c.end()+r.offset
			op.Step = r.stepAt(c.start, 1) - 1
		}
		p.Ops[i] = op
	}
	for i := range r.talk.list {
		c := &r.talk.list[i]
		g := &r.talk.groups[c.group]
		op := &p.Ops[c.at]
		op.Calls = append(op.Calls, Call{Kind: c.op.kind(), Group: cmp.Or(g.name, g.about), Size: len(g.members),
			In: c.bytes, Out: cmp.Or(c.recv, c.bytes), Sized: c.sized, Sequence: c.seq})
	}
	return p
}

// kind returns the name of the operation, "" if it is unknown.
func (o operation) kind() string {
	switch s, ok := o.subkind(); {
	case ok:
		return s.String()
	case o == opSend:
		return "send"
	case o == opRecv:
		return "recv"
	}
	return ""
}
