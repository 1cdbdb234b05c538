// This file reads the communicators and finds their tasks.

package vef

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// comm is a communicator: tasks in the order of their ranks in it.
type comm struct {
	tasks []int32
	first int64 // number of its first member, counted over all communicators

	// If the tasks are not first, first+1, ...: the tasks ascending, and the position of each.
	sorted    []int32
	positions []int32
}

// readComm reads a line Ci t0 t1 ...
func (r *reader) readComm(fields []string) error {
	if want := "C" + strconv.Itoa(len(r.comms)); fields[0] != want {
		return r.fail(inCommunicator, fmt.Sprintf("%s and its tasks (communicators 0 to %d come first, in order)", want,
			r.header.comms-1), quote(fields[0]))
	}
	if len(fields) == 1 {
		return r.fail(inCommunicator, "the tasks of the communicator", "none")
	}
	tasks := make([]int32, len(fields)-1)
	for i, field := range fields[1:] {
		task, err := strconv.ParseInt(field, 10, 64)
		if err != nil || task < 0 || task >= r.header.tasks {
			return r.fail(inCommunicator, fmt.Sprintf("a task in 0..%d", r.header.tasks-1), quote(field))
		}
		tasks[i] = int32(task)
	}
	c, task, twice := newComm(tasks)
	if twice {
		return r.fail(inCommunicator, "every task at most once", fmt.Sprintf("task %d twice", task))
	}
	c.first = r.members
	r.members += int64(len(tasks))
	r.comms = append(r.comms, c)
	return nil
}

// newComm returns the communicator of one or more tasks. twice reports a duplicate task.
func newComm(tasks []int32) (c comm, task int32, twice bool) {
	c.tasks = tasks
	for i, task := range tasks {
		if int64(task) != int64(tasks[0])+int64(i) {
			task, twice = c.sort()
			return c, task, twice
		}
	}
	return c, 0, false
}

// sort prepares the search for tasks. It returns a duplicate task if there is one.
func (c *comm) sort() (task int32, twice bool) {
	c.positions = make([]int32, len(c.tasks))
	for i := range c.positions {
		c.positions[i] = int32(i)
	}
	slices.SortFunc(c.positions, func(a, b int32) int { return cmp.Compare(c.tasks[a], c.tasks[b]) })
	c.sorted = make([]int32, len(c.tasks))
	for i, p := range c.positions {
		c.sorted[i] = c.tasks[p]
		if i > 0 && c.sorted[i] == c.sorted[i-1] {
			return c.sorted[i], true
		}
	}
	return 0, false
}

// position returns the rank of a task in the communicator, or -1 if it is no member.
func (c *comm) position(task int32) int32 {
	if c.sorted == nil {
		if p := task - c.tasks[0]; uint32(p) < uint32(len(c.tasks)) {
			return p
		}
		return -1
	}
	i, found := slices.BinarySearch(c.sorted, task)
	if !found {
		return -1
	}
	return c.positions[i]
}

// isWorld reports whether the communicator has all tasks in order.
func (c *comm) isWorld(tasks int64) bool {
	return c.sorted == nil && c.tasks[0] == 0 && int64(len(c.tasks)) == tasks
}

// dagComms returns the communicators of the trace, and the difference between the number of a communicator in the
// trace and in the file. Communicator 0 of the trace always has all ranks.
func (r *reader) dagComms() (comms []dag.Comm, shift int32) {
	if len(r.comms) == 0 || !r.comms[0].isWorld(r.header.tasks) {
		comms, shift = append(comms, dag.World(int(r.header.tasks))), 1
	}
	for i := range r.comms {
		comms = append(comms, dag.NewComm("", r.comms[i].tasks))
	}
	return comms, shift
}

func quote(word string) string {
	const most = 40
	if len(word) > most {
		word = strings.ToValidUTF8(word[:most], "") + "..."
	}
	return strconv.Quote(word)
}
