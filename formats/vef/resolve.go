// This file resolves the references between the records of a file, and checks that the records can be executed.

package vef

import (
	"fmt"
	"slices"
	"strings"
)

// resolve replaces the numbers in the references of all records by record indices, and completes the collectives.
func (r *reader) resolve() error {
	byPosition, err := r.completeInstances()
	if err != nil {
		return err
	}
	forward := false
	for i := range r.records {
		rec := &r.records[i]
		if rec.dep == depNone {
			continue
		}
		if rec.dep == depCollective {
			k := r.instanceOf(rec.ref)
			if k < 0 {
				return r.failAt(r.lineOf(int32(i)), inDependency, "the number of a collective",
					fmt.Sprintf("G%d", rec.ref))
			}
			g := &r.instances[k]
			p := r.comms[g.comm].position(rec.task)
			if p < 0 {
				return r.failAt(r.lineOf(int32(i)), inDependency, fmt.Sprintf("a collective of task %d", rec.task),
					fmt.Sprintf("G%d of communicator %d", g.id, g.comm))
			}
			rec.ref = int64(byPosition[g.members+int64(p)])
			forward = forward || g.last >= int32(i)
			continue
		}
		k := r.messageOf(rec.ref)
		if k < 0 {
			return r.failAt(r.lineOf(int32(i)), inDependency, "the number of a message", fmt.Sprint(rec.ref))
		}
		on := r.messages[k]
		m := &r.records[on]
		if rec.dep == depSend && m.task != rec.task {
			return r.failAt(r.lineOf(int32(i)), inDependency, fmt.Sprintf("a message that task %d sends", rec.task),
				fmt.Sprintf("message %d of task %d", rec.ref, m.task))
		}
		if rec.dep == depRecv && m.a != rec.task {
			return r.failAt(r.lineOf(int32(i)), inDependency, fmt.Sprintf("a message to task %d", rec.task),
				fmt.Sprintf("message %d to task %d", rec.ref, m.a))
		}
		rec.ref = int64(on)
		forward = forward || on >= int32(i)
	}
	if forward {
		return r.checkOrder()
	}
	return nil
}

// completeInstances checks that each collective has a record of each member, and sets the roots that no record
// shows. It returns the records of each collective, from instance.members on, by position.
func (r *reader) completeInstances() (byPosition []int32, err error) {
	total := int64(0)
	for k := range r.instances {
		g := &r.instances[k]
		n := len(r.comms[g.comm].tasks)
		if int(g.count) < n {
			return nil, r.failAt(r.lineOf(g.first), inCollective, fmt.Sprintf("a record of G%d for each of the %d "+
				"tasks of communicator %d", g.id, n, g.comm), fmt.Sprint(g.count))
		}
		if g.root < 0 && rooted(g.op) {
			g.root = r.comms[g.comm].tasks[0]
		}
		g.members = total
		total += int64(n)
	}
	byPosition = make([]int32, total)
	for i := range byPosition {
		byPosition[i] = -1
	}
	for i := range r.records {
		rec := &r.records[i]
		if rec.kind != participation {
			continue
		}
		g := &r.instances[rec.a]
		if rec.task == g.root {
			g.rootRecord = int32(i)
		}
		slot := &byPosition[g.members+int64(r.comms[g.comm].position(rec.task))]
		if *slot >= 0 {
			return nil, r.failAt(r.lineOf(int32(i)), inCollective, fmt.Sprintf("one record of G%d for task %d, "+
				"as on line %d", g.id, rec.task, r.lineOf(*slot)), "another")
		}
		*slot = int32(i)
	}
	return byPosition, nil
}

func rooted(op uint8) bool {
	switch op {
	case opBroadcast, opReduce, opGather, opScatter:
		return true
	}
	return false
}

// checkOrder returns an error if there is a cycle of dependencies.
//
// A record waits for another record or, if that is a part in a collective that cannot end before others have
// entered it, for all those parts. A collective of n members has a node of its own behind its records, so that it
// needs n edges, not n*n.
func (r *reader) checkOrder() error {
	g := r.newOrderGraph()
	if done := g.sort(); done == len(g.waits) {
		return nil
	}
	circle := g.circle()
	var lines []int64
	for _, node := range circle {
		if node < int32(len(r.records)) {
			lines = append(lines, r.lineOf(node))
		}
	}
	slices.Sort(lines)
	const most = 10
	var names []string
	for _, line := range lines[:min(len(lines), most)] {
		names = append(names, fmt.Sprint(line))
	}
	if len(lines) > most {
		names = append(names, fmt.Sprintf("and %d more", len(lines)-most))
	}
	return r.failAt(lines[0], inDependency, "records without cyclic dependencies",
		"a cycle of dependencies through lines "+strings.Join(names, ", "))
}

// orderGraph has a node for each record, then one for each collective.
type orderGraph struct {
	end   []int32 // end of each node's list of dependents in after
	after []int32
	waits []int32 // number of dependencies of each node
}

func (r *reader) newOrderGraph() *orderGraph {
	n := len(r.records) + len(r.instances)
	g := &orderGraph{end: make([]int32, n+1), waits: make([]int32, n)}
	edges := 0
	r.eachEdge(func(from, to int32) {
		g.end[from]++
		g.waits[to]++
		edges++
	})
	sum := int32(0)
	for i, count := range g.end { // from counts to starts; filling turns the starts into ends
		g.end[i] = sum
		sum += count
	}
	g.after = make([]int32, edges)
	r.eachEdge(func(from, to int32) {
		g.after[g.end[from]] = to
		g.end[from]++
	})
	return g
}

// eachEdge calls do for each dependency between nodes.
func (r *reader) eachEdge(do func(from, to int32)) {
	records := int32(len(r.records))
	for i := range records {
		rec := &r.records[i]
		if rec.kind == participation {
			do(i, records+rec.a)
		}
		if rec.dep == depNone {
			continue
		}
		on := int32(rec.ref)
		if rec.dep != depCollective {
			do(on, i)
			continue
		}
		k := r.records[on].a
		switch g := &r.instances[k]; g.op {
		case opBroadcast, opScatter:
			do(on, i)
			if rec.task != g.root {
				do(g.rootRecord, i)
			}
		case opReduce, opGather:
			if rec.task != g.root {
				do(on, i)
				continue
			}
			do(records+k, i)
		default:
			do(records+k, i)
		}
	}
}

func (g *orderGraph) of(node int32) []int32 {
	start := int32(0)
	if node > 0 {
		start = g.end[node-1]
	}
	return g.after[start:g.end[node]]
}

// sort repeatedly removes the nodes without dependencies, and returns their number.
func (g *orderGraph) sort() int {
	var ready []int32
	for i, n := range g.waits {
		if n == 0 {
			ready = append(ready, int32(i))
		}
	}
	done := 0
	for len(ready) > 0 {
		node := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		done++
		for _, next := range g.of(node) {
			if g.waits[next]--; g.waits[next] == 0 {
				ready = append(ready, next)
			}
		}
	}
	return done
}

// circle returns a cycle of the nodes that sort has not removed.
func (g *orderGraph) circle() []int32 {
	before := make([]int32, len(g.waits)) // per remaining node, a remaining node that it waits for
	for i := range before {
		before[i] = -1
	}
	start := int32(-1)
	for i := int32(len(g.waits)) - 1; i >= 0; i-- {
		if g.waits[i] == 0 {
			continue
		}
		start = i
		for _, next := range g.of(i) {
			before[next] = i
		}
	}
	seen := make(map[int32]int)
	var path []int32
	for node := start; ; node = before[node] {
		if k, again := seen[node]; again {
			return path[k:]
		}
		seen[node] = len(path)
		path = append(path, node)
	}
}
