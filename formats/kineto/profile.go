// This file gives statistics the ops of devices as the profiler recorded them.

package kineto

import (
	"cmp"
	"math"
	"slices"

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
	Kind    string // of the collective, "send", "recv", or "" if unknown
	Group   string // name of the process group, "" if unknown
	Size    int    // members of the group
	In, Out int64  // bytes that the rank gives and gets, if Sized
	Sized   bool
	Own     int64 // part of an uneven alltoall that stays on the rank; -1: unknown

	// Comm and Instance are equal on all members of a collective that waits for all of them. Comm is -1 for other
	// calls, and if the calls of the ranks do not fit.
	Comm, Instance int32
}

// Events are the events that statistics need beyond the ops of devices, for Profile.Reference.
type Events struct {
	Reference bool // those that HolisticTraceAnalysis counts, with its times; else with exact times
	Only      bool // omit the ops of devices, Profile.Ops
	Path      bool // all events, with details
}

// ProfileOptions returns the options of the format that have an effect on [ReadProfiles] of these events.
func ProfileOptions(events Events) []string {
	if events.Only {
		return nil
	}
	return []string{alignClocks}
}

// ReadProfiles reads the files of a job for statistics, by rank. It needs no file of other ranks. Errors name the file.
func ReadProfiles(inputs []*format.Input, o format.ReadOptions, events Events) ([]*Profile, error) {
	own := *format.Own(o.Own, func() *Options { return newOptions() })
	own.OnlyPresent, own.Replicate = true, false
	options := &readOptions{ctx: o.Context, lenient: o.Lenient, warn: o.Warn, own: &own, steps: []string{stepName},
		events: events}
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
	if events.Only {
		return referenceProfiles(all, o.Warn)
	}
	j, err := newJob(all, options)
	if err != nil {
		return nil, err
	}
	j.setComms()
	matched := true
	if err := j.match(); err != nil {
		o.Warn("%v; there are no stragglers", err)
		matched = false
	} else if own.AlignClocks {
		j.alignClocks()
	}
	profiles := make([]*Profile, len(j.ranks))
	par.For(len(profiles), func(i int) { profiles[i] = j.ranks[i].profile(j.world, matched) })
	setShifts(profiles)
	return profiles, nil
}

// referenceProfiles returns profiles without ops of devices, by rank.
func referenceProfiles(all []*recording, warn func(string, ...any)) ([]*Profile, error) {
	if err := setRanks(all); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b *recording) int { return cmp.Compare(a.meta.rank, b.meta.rank) })
	profiles := make([]*Profile, len(all))
	for i, r := range all {
		r.warnDamage(warn)
		profiles[i] = &Profile{File: r.name, Rank: int32(r.meta.rank), Reference: r.reference}
	}
	setShifts(profiles)
	return profiles, nil
}

// profile returns the profile of a rank of a job whose collectives are matched or not.
func (r *rank) profile(world int, matched bool) *Profile {
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
		call := Call{Kind: c.op.kind(), Group: cmp.Or(g.name, g.about), Size: cmp.Or(len(g.members), world),
			In: c.bytes, Out: cmp.Or(c.recv, c.bytes), Sized: c.sized, Comm: -1,
			Own: -1}
		if s, _ := c.op.subkind(); s == dag.Alltoallv {
			call.Own = c.own
		}
		if s, ok := c.op.subkind(); ok && matched && !s.Rooted() && !c.unrelated {
			call.Comm, call.Instance = g.comm, c.instance
		}
		op.Calls = append(op.Calls, call)
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
