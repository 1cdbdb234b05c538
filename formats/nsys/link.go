// This file finds the kernels of events: of CUDA graphs by their nodes, and in exports without the table of host
// calls by the order of kinds. The other kernels were found by their launches when the annotations were read.

package nsys

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/internal/par"
)

// errNoComm reports missing annotations of communicators.
var errNoComm = errors.New("no annotation creates a communicator: expected a profile from the start of a job whose " +
	"NCCL writes annotations, with --trace=cuda,nvtx")

// link assigns kernels to every event, and skips events that justifiably have none.
func (r *report) link() error {
	if len(r.made) == 0 && len(r.kernels) > 0 {
		return fmt.Errorf("%d kernels of NCCL, but %w", len(r.kernels), errNoComm)
	}
	for _, c := range r.incomplete {
		if p := &r.procs[c.proc]; p.window.contains(c.start) {
			err := fmt.Errorf("process %d, call at %d ns: %s", p.pid, c.start, c.missing)
			if err := r.problem("such calls are skipped", err); err != nil {
				return err
			}
		}
	}
	if !r.linked && len(r.kernels) > 0 && len(r.events) > 0 {
		if err := r.linkByOrder(); err != nil {
			return err
		}
	}
	for _, step := range []func() error{r.runGraphs, r.dropWithoutKernels, r.checkKernels} {
		if err := par.Interrupted(r.watch.Context); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// linkByOrder matches the streams in annotations with the streams of the GPU one to one: the kinds of the calls on
// one, in order, must equal the kinds of the kernels on the other. If several match, the stream called first gets
// the stream that began first.
func (r *report) linkByOrder() error {
	calls := make(map[annotationStream][]int32) // events
	for i := range r.events {
		e := &r.events[i]
		if e.graphNode != 0 {
			continue
		}
		s := annotationStream{e.proc, e.annotationStream}
		calls[s] = append(calls[s], int32(i))
	}
	kernels := make([][]int32, len(r.streams))
	for i := range r.kernels {
		if k := &r.kernels[i]; k.graphNode == 0 {
			kernels[k.stream] = append(kernels[k.stream], int32(i))
		}
	}
	var hosts []annotationStream
	for s, list := range calls {
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(r.events[a].host, r.events[b].host) })
		hosts = append(hosts, s)
	}
	slices.SortFunc(hosts, func(a, b annotationStream) int {
		return cmp.Or(cmp.Compare(r.events[calls[a][0]].host, r.events[calls[b][0]].host), cmp.Compare(a.proc, b.proc),
			cmp.Compare(a.address, b.address))
	})
	var streams []int32
	for s, list := range kernels {
		slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(r.kernels[a].start, r.kernels[b].start) })
		if len(list) > 0 {
			streams = append(streams, int32(s))
		}
	}
	slices.SortStableFunc(streams, func(a, b int32) int {
		return cmp.Compare(r.kernels[kernels[a][0]].start, r.kernels[kernels[b][0]].start)
	})
	if len(hosts) > maxStreams || len(streams) > maxStreams {
		return fmt.Errorf("calls on %d streams and kernels on %d cannot be matched without the host's calls (table "+
			"%s, "+
			"or its rows)", len(hosts), len(streams), tableRuntime)
	}
	for _, host := range hosts {
		if err := par.Interrupted(r.watch.Context); err != nil {
			return err
		}
		match := slices.IndexFunc(streams, func(s int32) bool {
			return r.streams[s].proc == host.proc && r.sameKinds(calls[host], kernels[s])
		})
		if match < 0 {
			return r.noMatch(host.proc, calls, kernels)
		}
		list := kernels[streams[match]]
		for _, i := range calls[host] {
			e := &r.events[i]
			if err := r.setKernels(e, list[:e.launches]); err != nil {
				return err
			}
			list = list[e.launches:]
		}
		streams = slices.Delete(streams, match, match+1)
	}
	return nil
}

// maxStreams bounds the time of matching.
const maxStreams = 4096

// annotationStream identifies a stream by its address in annotations.
type annotationStream struct {
	proc    int32
	address uint64
}

// sameKinds reports whether the kernels may be those of the events.
func (r *report) sameKinds(events, kernels []int32) bool {
	for _, i := range events {
		e := &r.events[i]
		if int(e.launches) > len(kernels) {
			return false
		}
		for _, k := range kernels[:e.launches] {
			if !r.mayBe(e, r.kernels[k].kind) {
				return false
			}
		}
		kernels = kernels[e.launches:]
	}
	return len(kernels) == 0
}

// mayBe reports whether a kernel of the kind can execute the event.
func (r *report) mayBe(e *event, kind kernelKind) bool {
	return kind == kernelGeneric || slices.ContainsFunc(r.members[e.first:e.first+e.count], func(m member) bool {
		return m.op.p2p() && kind == kernelSendRecv || kernelKind(m.op) == kind
	})
}

// noMatch returns the error that no kernels match the events of a stream, with the kinds of both.
func (r *report) noMatch(proc int32, calls map[annotationStream][]int32, kernels [][]int32) error {
	var have, want []string
	for s, list := range calls {
		if s.proc == proc {
			n := 0
			for _, i := range list {
				n += int(r.events[i].launches)
			}
			want = append(want, fmt.Sprintf("%#x: %d", s.address, n))
		}
	}
	for s, list := range kernels {
		if r.streams[s].proc == proc && len(list) > 0 {
			have = append(have, fmt.Sprintf("%d: %d", r.streams[s].stream, len(list)))
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	return fmt.Errorf("process %d: the launches in annotations (by stream address, %s) do not match the kernels of "+
		"NCCL (by stream, %s), and the host's calls (table %s, or its rows) are missing",
		r.procs[proc].pid,
		strings.Join(want, ", "), strings.Join(have, ", "), tableRuntime)
}

// runGraphs creates an event for every run of a graph's node from the event that was captured when the graph was
// created.
func (r *report) runGraphs() error {
	captured := make(map[nodeKey]int32) // events
	for i := range r.events {
		if e := &r.events[i]; e.graphNode != 0 {
			captured[nodeKey{r.procs[e.proc].key, e.graphNode}] = int32(i)
		}
	}
	if len(captured) == 0 {
		return nil
	}
	ran := 0
	for i := range r.kernels {
		if err := r.watch.Err(); err != nil {
			return err
		}
		k := &r.kernels[i]
		if k.graphNode == 0 || k.used {
			continue
		}
		proc := r.procs[r.streams[k.stream].proc].key
		node := nodeKey{proc, k.graphNode}
		at, ok := captured[node]
		for range 16 { // graphs may be created from graphs, repeatedly
			if origin := r.graphOrigin[node]; !ok && origin != 0 {
				node.node = origin
				at, ok = captured[node]
			}
		}
		if !ok {
			continue
		}
		e := r.events[at]
		e.start, e.end, e.stream, e.graphNode = k.start, k.end, k.stream, 0
		e.host = k.start
		if host, ok := r.graphLaunches[correlationKey{proc, k.correlation}]; ok {
			e.host = host
		}
		e.at, e.call, e.done = e.host, e.host, e.host
		members := r.members[e.first : e.first+e.count]
		e.first = int32(len(r.members))
		r.members = append(r.members, members...)
		r.events = append(r.events, e)
		k.used = true
		ran++
	}
	if ran == 0 && r.graphRuns > 0 {
		return fmt.Errorf("%d NCCL calls were captured in CUDA graphs, which ran %d times, "+
			"and the export lacks the times of their kernels: profile with --cuda-graph-trace=node", len(captured),
			r.graphRuns)
	}
	r.events = slices.DeleteFunc(r.events, func(e event) bool { return e.graphNode != 0 })
	return nil
}

// dropWithoutKernels drops the events without kernels because the profile ends before: those after which no other
// event of their stream has a kernel.
func (r *report) dropWithoutKernels() error {
	last := make(map[annotationStream]int64) // launch time of the last event with a kernel
	has := make([]bool, len(r.procs))
	for i := range r.kernels {
		has[r.streams[r.kernels[i].stream].proc] = true
	}
	for i := range r.events {
		if e := &r.events[i]; e.start != unknownTime {
			s := annotationStream{e.proc, e.annotationStream}
			if host, ok := last[s]; !ok || e.host > host {
				last[s] = e.host
			}
		}
	}
	missing := make([]int64, len(r.procs))
	first := make([]int64, len(r.procs))
	r.events = slices.DeleteFunc(r.events, func(e event) bool {
		if e.start != unknownTime {
			return false
		}
		host, ok := last[annotationStream{e.proc, e.annotationStream}]
		switch {
		case !r.procs[e.proc].window.contains(e.at):
		case ok && e.host <= host || !has[e.proc]:
			if missing[e.proc]++; missing[e.proc] == 1 {
				first[e.proc] = e.host
			}
		default:
			r.cut++
		}
		return true
	})
	for p, n := range missing {
		if n == 0 {
			continue
		}
		err := fmt.Errorf("process %d: %d NCCL calls have no kernel, the first at %d ns", r.procs[p].pid, n, first[p])
		if !has[p] {
			err = fmt.Errorf("process %d: %d NCCL calls, but no kernel of NCCL (table %s): "+
				"profile with --trace=cuda,nvtx", r.procs[p].pid, n, tableKernel)
		}
		if err := r.problem("such calls are skipped", err); err != nil {
			return err
		}
	}
	return nil
}

// checkKernels returns an error if there are kernels that no annotation describes.
func (r *report) checkKernels() error {
	count := make([]int64, len(r.streams))
	total := int64(0)
	for i := range r.kernels {
		k := &r.kernels[i]
		s := &r.streams[k.stream]
		w := &r.procs[s.proc].window
		if k.used || k.end < w.start || k.start > w.stop {
			continue
		}
		count[k.stream]++
		total++
	}
	if total == 0 {
		return nil
	}
	var list []string
	for s, n := range count {
		if n > 0 {
			list = append(list, fmt.Sprintf("process %d, stream %d: %d", r.procs[r.streams[s].proc].pid,
				r.streams[s].stream, n))
		}
	}
	return r.problem("they are skipped", fmt.Errorf("%d kernels of NCCL belong to no call in the annotations (%s)",
		total, strings.Join(list, "; ")))
}
