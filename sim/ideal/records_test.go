package ideal

import (
	"fmt"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// record is a record of a VEF trace: a message, or one task's part in a collective, a delay after an event on its task.
type record struct {
	name  string // of a message its number, of a collective one that all parts have
	task  int
	to    int         // of a message
	kind  dag.Subkind // of a collective; NoSubkind: it is a message
	comm  int32
	root  int32
	after string // "" the start of the trace, "sent 0", "rcvd 0", "done G0"
	delay dag.Time
	start dag.Time // expected, in ns as the delay
}

// message returns the record of a message, part that of one task in a collective.
func message(name string, from, to int, after string, delay, start dag.Time) record {
	return record{name: name, task: from, to: to, after: after, delay: delay, start: start}
}

func part(name string, kind dag.Subkind, comm, root int32, task int, after string,
	delay, start dag.Time) record {
	return record{name: name, task: task, kind: kind, comm: comm, root: root, after: after, delay: delay, start: start}
}

// recordTrace turns records into a trace, and returns the op of each.
func recordTrace(tasks int, comms []dag.Comm, records []record) (*dag.Trace, []int) {
	b := dag.NewBuilder(tasks)
	for _, c := range comms {
		b.AddComm(c)
	}
	events := make(map[string]int) // the ops that end with them
	event := func(task int, what, name string) string { return fmt.Sprintf("%d %s %s", task, what, name) }
	ops := make([]int, len(records))
	for i, r := range records {
		rank := b.Rank(r.task)
		var deps []int
		if r.after != "" {
			on, known := events[fmt.Sprintf("%d %s", r.task, r.after)]
			if !known {
				panic("no event " + r.after)
			}
			deps = []int{on}
		}
		if r.delay > 0 {
			deps = []int{rank.Calc(r.delay*dag.Nanosecond, deps...)}
		}
		if r.kind != dag.NoSubkind {
			ops[i] = rank.Add(dag.Op{Kind: dag.Coll, Subkind: r.kind, Comm: r.comm, Peer: r.root}, deps...)
			events[event(r.task, "done", r.name)] = ops[i]
			continue
		}
		ops[i] = rank.Send(int32(r.to), 8, int64(i), deps...)
		events[event(r.task, "sent", r.name)] = ops[i]
		events[event(r.to, "rcvd", r.name)] = b.Rank(r.to).Recv(int32(r.task), 8, int64(i))
	}
	return b.Trace(), ops
}

// TestRecords checks traces with every kind of dependency and every collective of VEF, with starts computed by its
// rules.
func TestRecords(t *testing.T) {
	for _, c := range []struct {
		name     string
		tasks    int
		comms    []dag.Comm
		makespan dag.Time // in ns
		records  []record
	}{
		{"collectives and messages depend on each other", 4, nil, 421, []record{
			message("0", 0, 1, "", 100, 100),
			part("G0", dag.Barrier, 0, 0, 0, "sent 0", 50, 150),
			part("G0", dag.Barrier, 0, 0, 1, "rcvd 0", 25, 125),
			part("G0", dag.Barrier, 0, 0, 2, "", 400, 400),
			part("G0", dag.Barrier, 0, 0, 3, "", 0, 0),
			message("1", 2, 3, "done G0", 10, 410),
			part("G1", dag.Allreduce, 0, 0, 0, "done G0", 1, 401),
			part("G1", dag.Allreduce, 0, 0, 1, "done G0", 2, 402),
			part("G1", dag.Allreduce, 0, 0, 2, "sent 1", 3, 413),
			part("G1", dag.Allreduce, 0, 0, 3, "rcvd 1", 4, 414),
			message("2", 1, 0, "done G1", 7, 421),
		}},
		{"everything", 4, []dag.Comm{dag.NewComm("", []int32{2, 3})}, 185, []record{
			message("0", 0, 1, "", 0, 0),
			message("1", 0, 2, "sent 0", 10, 10),
			message("2", 1, 3, "rcvd 0", 20, 20),
			message("3", 2, 0, "rcvd 1", 30, 40),
			part("G0", dag.Allreduce, 0, 0, 0, "rcvd 3", 40, 80),
			part("G0", dag.Allreduce, 0, 0, 1, "sent 2", 5, 25),
			part("G0", dag.Allreduce, 0, 0, 2, "sent 3", 15, 55),
			part("G0", dag.Allreduce, 0, 0, 3, "rcvd 2", 25, 45),
			part("G1", dag.Bcast, 1, 2, 2, "done G0", 100, 180),
			part("G1", dag.Bcast, 1, 2, 3, "done G0", 1, 81),
			message("4", 3, 1, "done G1", 2, 182),
			message("5", 1, 0, "rcvd 4", 3, 185),
			message("6", 0, 1, "done G0", 50, 130),
			part("G2", dag.Barrier, 0, 0, 0, "rcvd 5", 0, 185),
			part("G2", dag.Barrier, 0, 0, 1, "rcvd 6", 0, 130),
			part("G2", dag.Barrier, 0, 0, 2, "done G1", 0, 180),
			part("G2", dag.Barrier, 0, 0, 3, "sent 4", 0, 182),
		}},
		{"communicators", 6, []dag.Comm{dag.NewComm("", []int32{0, 2, 4}), dag.NewComm("", []int32{1, 3, 5})}, 30, []record{
			part("G0", dag.Allreduce, 1, 0, 0, "", 10, 10),
			part("G0", dag.Allreduce, 1, 0, 2, "", 20, 20),
			part("G0", dag.Allreduce, 1, 0, 4, "", 30, 30),
			part("G1", dag.Bcast, 2, 5, 5, "", 15, 15),
			part("G1", dag.Bcast, 2, 5, 1, "", 5, 5),
			part("G1", dag.Bcast, 2, 5, 3, "", 25, 25),
			part("G2", dag.Barrier, 0, 0, 0, "done G0", 0, 30),
			part("G2", dag.Barrier, 0, 0, 1, "done G1", 0, 15),
			part("G2", dag.Barrier, 0, 0, 2, "done G0", 0, 30),
			part("G2", dag.Barrier, 0, 0, 3, "done G1", 0, 25),
			part("G2", dag.Barrier, 0, 0, 4, "done G0", 0, 30),
			part("G2", dag.Barrier, 0, 0, 5, "done G1", 5, 20),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace, ops := recordTrace(c.tasks, c.comms, c.records)
			timeline := mustRun(t, trace)
			if !timeline.Result.Complete || timeline.Makespan() != c.makespan*dag.Nanosecond {
				t.Errorf("complete: %v, makespan %v, expected %dns", timeline.Result.Complete, timeline.Makespan(), c.makespan)
			}
			for i, r := range c.records {
				if got := timeline.Start(r.task, ops[i]); got != r.start*dag.Nanosecond {
					t.Errorf("%s at task %d starts at %v, expected %dns", r.name, r.task, got, r.start)
				}
			}
			checkPath(t, timeline)
		})
	}
}
