package vef

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/sim/ideal"
)

// line is a record of a random trace, with its own idea of when it starts.
type line struct {
	id         int64
	collective bool
	comm, op   int
	task, dst  int
	send, recv int64
	dep        int
	time       float64 // in ticks, a multiple of 1/4
	ref        int64
}

func (l *line) String() string {
	ref := fmt.Sprint(l.ref)
	if l.dep == depNone {
		ref = "-1"
	} else if l.dep == depCollective {
		ref = "G" + ref
	}
	if l.collective {
		return fmt.Sprintf("G%d %d %d %d %d %d %d %v %s", l.id, l.comm, l.op, l.task, l.send, l.recv, l.dep, l.time, ref)
	}
	return fmt.Sprintf("%d %d %d %d %d %v %s", l.id, l.task, l.dst, l.send, l.dep, l.time, ref)
}

func (l *line) name() string {
	if l.collective {
		return fmt.Sprintf("G%d@%d", l.id, l.task)
	}
	return fmt.Sprint(l.id)
}

// randomText is a random plain trace.
type randomText struct {
	tasks, clock int
	comms        [][]int
	lines        []line // each behind those that it depends on
	groups       map[int64][]int
}

func newRandomText(rng *rand.Rand) *randomText {
	x := &randomText{tasks: 1 + rng.IntN(6), clock: []int{1000, 500, 4, 1_000_000}[rng.IntN(4)], groups: map[int64][]int{}}
	world := make([]int, x.tasks)
	for i := range world {
		world[i] = i
	}
	x.comms = append(x.comms, world)
	for range rng.IntN(3) {
		c := rng.Perm(x.tasks)[:1+rng.IntN(x.tasks)]
		x.comms = append(x.comms, c)
	}
	idStep, groupStep := int64(1+rng.IntN(2)), int64(1+rng.IntN(2))
	messages, groups := int64(0), int64(0)
	for range rng.IntN(30) {
		if rng.IntN(3) > 0 {
			l := line{id: messages * idStep, task: rng.IntN(x.tasks), dst: rng.IntN(x.tasks), send: rng.Int64N(1000)}
			x.depend(rng, &l)
			messages++
			x.lines = append(x.lines, l)
			continue
		}
		g := groups * groupStep
		groups++
		comm := rng.IntN(len(x.comms))
		x.addCollective(rng, g, comm, rng.IntN(numOps))
	}
	return x
}

func (x *randomText) addCollective(rng *rand.Rand, id int64, comm, op int) {
	members := x.comms[comm]
	n := int64(len(members))
	root := members[rng.IntN(len(members))]
	size := rng.Int64N(5) * 100
	own := make([]int64, n)
	sum := int64(0)
	uneven := rng.IntN(2) == 0
	for i := range own {
		own[i] = size
		if uneven {
			own[i] = rng.Int64N(100)
		}
		sum += own[i]
	}
	var lines []line
	for i, task := range members {
		l := line{id: id, collective: true, comm: comm, op: op, task: task}
		isRoot := task == root
		switch op {
		case opBroadcast, opReduce:
			if isRoot == (op == opBroadcast) {
				l.send = size
			} else {
				l.recv = size
			}
			if op == opReduce {
				l.send, l.recv = size, 0
				if isRoot {
					l.send, l.recv = 0, size
				}
			}
		case opAllreduce:
			l.send, l.recv = size+1, size+1
		case opGather:
			l.send = own[i]
			if isRoot {
				l.recv = sum
			}
		case opScatter:
			l.recv = own[i]
			if isRoot {
				l.send = sum
			}
		case opAllgather:
			l.send, l.recv = own[i], sum
		case opAlltoall:
			l.send = size
			if uneven {
				l.send, l.recv = own[i], 1
			}
		}
		x.depend(rng, &l)
		lines = append(lines, l)
	}
	for _, l := range lines {
		x.groups[id] = append(x.groups[id], len(x.lines))
		x.lines = append(x.lines, l)
	}
}

// depend makes a record depend on something that its task has seen.
func (x *randomText) depend(rng *rand.Rand, l *line) {
	l.time = float64(rng.IntN(40))
	if rng.IntN(4) == 0 {
		l.time += float64(rng.IntN(4)) / 4
	}
	if rng.IntN(5) == 0 {
		l.time = 0
	}
	type choice struct {
		dep int
		ref int64
	}
	choices := []choice{{depNone, -1}}
	for i := range x.lines {
		other := &x.lines[i]
		if other.collective {
			if other.task == l.task {
				choices = append(choices, choice{depCollective, other.id})
			}
			continue
		}
		if other.task == l.task {
			choices = append(choices, choice{depSend, other.id})
		}
		if other.dst == l.task {
			choices = append(choices, choice{depRecv, other.id})
		}
	}
	c := choices[rng.IntN(len(choices))]
	if recent := choices[max(0, len(choices)-3):]; rng.IntN(2) == 0 {
		c = recent[rng.IntN(len(recent))]
	}
	l.dep, l.ref = c.dep, c.ref
}

// text returns the file, its body in the given order.
func (x *randomText) text(order []int) []byte {
	messages, records := 0, 0
	for i := range x.lines {
		if x.lines[i].collective {
			records++
		} else {
			messages++
		}
	}
	b := fmt.Appendf(nil, "VEF3 %d %d %d %d %d FALSE %d\n", x.tasks, messages, len(x.comms), len(x.groups), records, x.clock)
	for i, c := range x.comms {
		b = fmt.Appendf(b, "C%d %s\n", i, strings.Trim(fmt.Sprint(c), "[]"))
	}
	for _, i := range order {
		b = fmt.Appendln(b, x.lines[i].String())
	}
	return b
}

// starts works out when each record starts, by the words of the format: an oracle that knows no ops.
func (x *randomText) starts() map[string]dag.Time {
	start := make([]dag.Time, len(x.lines))
	byID := map[int64]int{}
	for i := range x.lines {
		if !x.lines[i].collective {
			byID[x.lines[i].id] = i
		}
	}
	// Times only grow towards the solution; as the lines are in order, a few rounds would do.
	for range len(x.lines) + 1 {
		for i := range x.lines {
			l := &x.lines[i]
			event := dag.Time(0)
			switch l.dep {
			case depSend, depRecv:
				event = start[byID[l.ref]]
			case depCollective:
				event = x.done(start, l.ref, l.task)
			}
			start[i] = event + dag.Time(l.time*float64(x.clock)+0.5)
		}
	}
	named := map[string]dag.Time{}
	for i := range x.lines {
		named[x.lines[i].name()] = start[i]
	}
	return named
}

func (x *randomText) done(start []dag.Time, id int64, task int) dag.Time {
	latest, own, root := dag.Time(0), dag.Time(0), dag.Time(0)
	rootTask := x.comms[x.lines[x.groups[id][0]].comm][0]
	op := x.lines[x.groups[id][0]].op
	for _, i := range x.groups[id] {
		l := &x.lines[i]
		if (op == opBroadcast || op == opScatter) && l.send > 0 || (op == opReduce || op == opGather) && l.recv > 0 {
			rootTask = l.task
		}
	}
	for _, i := range x.groups[id] {
		latest = max(latest, start[i])
		if x.lines[i].task == task {
			own = start[i]
		}
		if x.lines[i].task == rootTask {
			root = start[i]
		}
	}
	switch op {
	case opBroadcast, opScatter:
		return max(own, root)
	case opReduce, opGather:
		if task == rootTask {
			return latest
		}
		return own
	}
	return latest
}

// TestRandomTraces holds what is read against an oracle, whatever the order of the lines, and what is written against what
// was read.
func TestRandomTraces(t *testing.T) {
	seeds := uint64(1500)
	if testing.Short() {
		seeds = 150
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 1))
		x := newRandomText(rng)
		want := x.starts()
		order := make([]int, len(x.lines))
		for i := range order {
			order[i] = i
		}
		for range 2 {
			text := x.text(order)
			name := fmt.Sprintf("seed %d", seed)
			trace := mustRead(t, name, text)
			got, makespan := starts(t, trace)
			for id, start := range want {
				if got[id] != start {
					t.Fatalf("%s: record %s starts at %v, expected %v\n%s", name, id, got[id], start, text)
				}
			}
			if len(got) != len(want) {
				t.Fatalf("%s: %d records, expected %d\n%s", name, len(got), len(want), text)
			}
			if lost := losses(trace); len(lost) > 0 && !hidden(lost) {
				t.Fatalf("%s: losses %v\n%s", name, lost, text)
			}
			written := mustWrite(t, trace)
			again := mustRead(t, name, written)
			after, makespanAfter := starts(t, again)
			if makespan != makespanAfter || !slices.Equal(times(got), times(after)) {
				t.Fatalf("%s: other times once written:\n%s\n%s", name, text, written)
			}
			if w, g := records(text, x.clock), records(written, 0); !slices.Equal(w, g) {
				t.Fatalf("%s: other records once written:\n%s\n%s\n%q\n%q", name, text, written, w, g)
			}
			rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
	}
}

// hidden reports whether the only loss is that of roots that VEF cannot show.
func hidden(lost []format.Loss) bool {
	return len(lost) == 1 && strings.HasPrefix(lost[0].Kind, "roots of collectives without content")
}

func times(start map[string]dag.Time) []dag.Time {
	var all []dag.Time
	for _, t := range start {
		all = append(all, t)
	}
	slices.Sort(all)
	return all
}

// records returns the records of a text without numbers, and times in picoseconds, sorted.
func records(text []byte, clock int) []string {
	var all []string
	for i, l := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		fields := strings.Fields(l)
		if i == 0 {
			if clock == 0 {
				fmt.Sscan(fields[7], &clock)
			}
			continue
		}
		if fields[0][0] != 'C' {
			n := len(fields)
			var ticks float64
			fmt.Sscan(fields[n-2], &ticks)
			fields[n-2] = fmt.Sprint(int64(ticks*float64(clock) + 0.5))
			fields[n-1] = ""
			if fields[0][0] == 'G' {
				fields[0] = "G"
			} else {
				fields[0] = ""
			}
		}
		all = append(all, strings.Join(fields, " "))
	}
	slices.Sort(all)
	return all
}

// randomTrace returns a random trace of sends, receives, calcs and collectives that runs to its end: the ops of all ranks
// are made in an order in which they can run.
func randomTrace(rng *rand.Rand) *dag.Trace {
	ranks := 1 + rng.IntN(5)
	b := dag.NewBuilder(ranks)
	if ranks > 2 {
		b.AddComm(dag.NewComm("", []int32{2, 0}))
	}
	wait := func(rank, op int) {
		r := b.Rank(rank)
		for range rng.IntN(3) {
			if op > 0 {
				on := op - 1 - rng.IntN(min(op, 4))
				if rng.IntN(5) == 0 {
					r.RequiresStart(op, on)
				} else {
					r.Requires(op, on)
				}
			}
		}
	}
	kinds := []dag.Subkind{dag.Bcast, dag.Reduce, dag.Allreduce, dag.Gatherv, dag.Scatterv, dag.Allgatherv, dag.Barrier,
		dag.Alltoall, dag.ReduceScatter, dag.Scan}
	for range rng.IntN(25) {
		rank := rng.IntN(ranks)
		r := b.Rank(rank)
		release := dag.Time(0)
		if rng.IntN(6) == 0 {
			release = dag.Time(rng.IntN(3_000_000))
		}
		switch rng.IntN(5) {
		case 0, 1:
			op := r.Add(dag.Op{Kind: dag.Calc, Duration: dag.Time(rng.IntN(1_000_000)), Release: release})
			wait(rank, op)
		case 2, 3:
			to, bytes, tag := rng.IntN(ranks), rng.Int64N(100), rng.Int64N(3)
			op := r.Add(dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: bytes, Tag: tag, Release: release})
			wait(rank, op)
			from := int32(rank)
			if rng.IntN(8) == 0 {
				from = dag.AnySource
			}
			op = b.Rank(to).Recv(from, bytes, tag)
			if rng.IntN(2) == 0 {
				wait(to, op)
			}
		case 4:
			kind := kinds[rng.IntN(len(kinds))]
			comm, members := int32(0), []int{}
			for i := range ranks {
				members = append(members, i)
			}
			if ranks > 2 && rng.IntN(2) == 0 {
				comm, members = 1, []int{2, 0}
			}
			root := int32(0)
			if kind.Rooted() {
				root = int32(members[rng.IntN(len(members))])
			}
			for _, m := range members {
				o := dag.Op{Kind: dag.Coll, Subkind: kind, Comm: comm, Peer: root, Bytes: 600}
				switch {
				case kind == dag.Bcast && m != int(root):
					o.Bytes, o.RecvBytes = 0, 600
				case kind == dag.Scatterv && m != int(root):
					o.Bytes, o.RecvBytes = 0, 600/int64(len(members))
				case kind == dag.Scatterv:
					o.RecvBytes = 600 / int64(len(members))
				}
				wait(m, b.Rank(m).Add(o))
			}
		}
	}
	return b.Trace()
}

// TestRandomDAGs: every written trace has the ideal timeline of the original.
func TestRandomDAGs(t *testing.T) {
	written := 0
	seeds := uint64(3000)
	if testing.Short() {
		seeds = 300
	}
	for seed := range seeds {
		trace := randomTrace(rand.New(rand.NewPCG(seed, 2)))
		lowered, err := lowered(trace)
		if err != nil {
			t.Fatal(err)
		}
		timeline, err := ideal.Run(lowered)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = write(&out, trace, format.WriteOptions{Warn: t.Logf})
		if !timeline.Result.Complete {
			// Wildcards may take what others wait for.
			if err == nil && len(losses(trace)) == 0 {
				t.Fatalf("seed %d: written though it does not run to its end", seed)
			}
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		written++
		again := mustRead(t, fmt.Sprintf("seed %d", seed), out.Bytes())
		after, _ := starts(t, again)
		var want []dag.Time
		for rank := range lowered.Ranks {
			r := lowered.Ranks[rank]
			for op := range r.Len() {
				if recorded(r, op) {
					want = append(want, timeline.Start(rank, op))
				}
			}
		}
		slices.Sort(want)
		if got := times(after); !slices.Equal(got, want) {
			t.Fatalf("seed %d: starts %v, expected %v\n%s", seed, got, want, out.Bytes())
		}
	}
	if written < int(seeds)*2/3 {
		t.Errorf("only %d traces were written", written)
	}
}
