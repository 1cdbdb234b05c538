// This file selects what HTA counts.

package gpustats

import (
	"errors"
	"slices"
	"sort"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/kineto"
)

// kindOf returns the kind of a row by its name, by the patterns of HTA.
func kindOf(name string) kind {
	begins := func(prefixes ...string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				return true
			}
		}
		return false
	}
	contains := func(part string) bool { return strings.Contains(name, part) }
	switch {
	case begins("nccl", "hip", "hccl") || contains("ncclKernel"):
		return communication
	case begins("Memcpy", "Memset", "dma"):
		return memory
	case contains("Memcpy"), contains("Memset"), contains("dma"), contains("Sync"),
		begins("Stream Wait Event", "runFunction", "job_exe", "packet", "pe_exe", "cpum_exe_subgraph",
			"collective_subgraph_execution"),
		begins("cuda") && contains("LaunchKernel"):
		return other
	}
	return computation
}

// launchCalls are the calls that launch, by HTA.
var launchCalls = map[string]bool{
	"cudaLaunchKernel": true, "cudaLaunchKernelExC": true, "cuLaunchKernel": true, "cuLaunchKernelEx": true,
	"cudaMemcpyAsync": true, "cudaMemsetAsync": true, "hipLaunchKernel": true, "hipExtModuleLaunchKernel": true,
	"hipMemsetAsync": true, "hipMemcpyAsync": true, "hipMemcpyWithStream": true,
	"runFunction - job_prep_and_submit_for_execution": true,
}

// most returns how many copies of its events HTA may make of a file, or edges between them, by the number of events.
// Real traces have two events of the host per correlation at most.
func most(rows int) int { return 64*rows + 1<<20 }

var errTooMany = errors.New("expected a few events per correlation, found too many for --compat; omit it")

// linked is the rows with a correlation.
type linked struct {
	lastHost   int32 // last row of the host; -1: none
	lastDevice int32
	kept       int32 // rows of the host that are kept
	launches   int32 // of them: launches

	first, last int32 // items, of a list; -1: none
	items       int32
}

// links is the rows by correlation.
type links struct {
	index map[int64]int32
	list  []linked
	next  []int32 // by item: the next one with the same correlation; -1: none
}

// of returns the rows with a correlation, nil if there are none.
func (l *links) of(correlation int64) *linked {
	if n, ok := l.index[correlation]; ok {
		return &l.list[n]
	}
	return nil
}

// linksOf returns the rows with a correlation other than -1.
func linksOf(f *kineto.Reference) *links {
	n := 0
	for i := range f.Rows {
		if f.Rows[i].OnDevice {
			n++
		}
	}
	l := &links{index: make(map[int64]int32, n), list: make([]linked, 0, n), next: make([]int32, 0, n)}
	for i := range f.Rows {
		r := &f.Rows[i]
		if r.Correlation == -1 {
			continue
		}
		x := l.of(r.Correlation)
		if x == nil {
			l.index[r.Correlation] = int32(len(l.list))
			l.list = append(l.list, linked{lastHost: -1, lastDevice: -1, first: -1, last: -1})
			x = &l.list[len(l.list)-1]
		}
		if r.OnDevice {
			x.lastDevice = int32(i)
			continue
		}
		x.lastHost = int32(i)
		if r.Start < f.LastStep {
			x.kept++
		}
	}
	return l
}

// add adds the next item, with a correlation.
func (l *links) add(correlation int64) {
	k := int32(len(l.next))
	l.next = append(l.next, -1)
	x := l.of(correlation)
	if x == nil {
		return
	}
	if x.last >= 0 {
		l.next[x.last] = k
	} else {
		x.first = k
	}
	x.last = k
	x.items++
}

// referenceRows returns the rows that HTA keeps, as indices: without those of the last step if there are several.
// A row of a device is kept once for each row of the host with its correlation.
func referenceRows(f *kineto.Reference, steps bool, of *links) ([]int, error) {
	var rows []int
	keeps := func(r *kineto.Row) bool { return !r.OnDevice && r.Start < f.LastStep }
	all := !steps || !f.HasHost
	bare := 0
	if f.FirstBare < f.LastStep {
		bare = 1
	}
	for i := range f.Rows {
		r := &f.Rows[i]
		n := 1
		if !all && r.OnDevice {
			n = bare
			if l := of.of(r.Correlation); l != nil {
				n = int(l.kept)
			}
		} else if !all && !keeps(r) {
			n = 0
		}
		if len(rows)+n > most(len(f.Rows)) {
			return nil, errTooMany
		}
		for range n {
			rows = append(rows, i)
		}
	}
	return rows, nil
}

// mtiaRows returns the rows that HTA keeps of several steps with MTIA: the events of the host within the steps, what
// they launched, and the copies and sets that start in a step.
func mtiaRows(f *kineto.Reference) (rows []int) {
	first, last := dag.MaxTime, -dag.MaxTime
	for _, s := range f.StepRanges {
		first, last = min(first, s.Start), max(last, s.End)
	}
	within := func(r *kineto.Row) bool { return r.OnHost && r.Start >= first && r.End <= last }
	launched := make(map[int64]bool)
	for i := range f.Rows {
		if r := &f.Rows[i]; r.Correlation != -1 && within(r) {
			launched[r.Correlation] = true
		}
	}
	for i := range f.Rows {
		r := &f.Rows[i]
		if within(r) || r.Runs && launched[r.Correlation] || kindOf(r.Name) == memory && inStep(f, r) {
			rows = append(rows, i)
		}
	}
	return rows
}

// inStep reports whether a row starts in a step, or at its end.
func inStep(f *kineto.Reference, r *kineto.Row) bool {
	n := sort.Search(len(f.StepRanges), func(i int) bool { return f.StepRanges[i].Start > r.Start })
	return n > 0 && r.Start <= f.StepRanges[n-1].End
}

// referenceItems returns the rows of a file that count as ops, the changes of queues and the launches.
func referenceItems(f *kineto.Reference, steps, mtia bool) (items []item, changes []change, launches []launch,
	err error) {
	if steps && mtia && len(f.Memory) > 0 {
		with := *f
		with.Rows = slices.Clip(f.Rows)
		for i := range f.Memory {
			if inStep(f, &f.Memory[i]) {
				with.Rows = append(with.Rows, f.Memory[i])
			}
		}
		f = &with
	}
	of := linksOf(f)
	items, changes = make([]item, 0, len(of.list)), make([]change, 0, 2*len(of.list))
	launches = make([]launch, 0, len(of.list))
	var rows []int
	if steps && mtia {
		rows = mtiaRows(f)
	} else if rows, err = referenceRows(f, steps, of); err != nil {
		return nil, nil, nil, err
	}
	kept := make([]bool, len(f.Rows))
	for _, i := range rows {
		kept[i] = true
	}
	first := int32(-1) // event 0
	if len(f.Rows) > 0 && f.Rows[0].Index == 0 && kept[0] {
		first = 0
	}
	for _, i := range rows {
		r := &f.Rows[i]
		if r.Stream == -1 {
			continue
		}
		x := item{start: r.Start, end: r.End, place: place{0, r.Stream}, kind: kindOf(r.Name), idles: r.Runs,
			name: r.Name}
		x.launch, x.launched = launchOf(f, r, of.of(r.Correlation), kept, first)
		items = append(items, x)
		of.add(r.Correlation)
	}
	for _, i := range rows {
		r := &f.Rows[i]
		if r.Correlation < 0 || !launchCalls[r.Name] {
			continue
		}
		l := of.of(r.Correlation)
		l.launches++
		if len(changes)+int(l.items) > most(len(f.Rows)) {
			return nil, nil, nil, errTooMany
		}
		for k := l.first; k >= 0; k = of.next[k] {
			x := &items[k]
			changes = append(changes, change{r.Start, 1, x.place})
			launches = append(launches, launch{r.End - r.Start, x.end - x.start, max(0, x.start-r.End)})
		}
	}
	for _, i := range rows {
		r := &f.Rows[i]
		if l := of.of(r.Correlation); r.Stream != -1 && l != nil && l.launches > 0 {
			changes = append(changes, change{r.Start, -1, place{0, r.Stream}})
		}
	}
	return items, changes, launches, nil
}

// launchOf returns when a row was launched: the start of the last row of the host with its correlation, of event 0 if
// there is none.
func launchOf(f *kineto.Reference, r *kineto.Row, l *linked, kept []bool, first int32) (at dag.Time, ok bool) {
	i := int32(-1)
	switch {
	case l == nil:
	case r.OnDevice && l.lastHost >= 0:
		i = l.lastHost
	case !r.OnDevice && l.lastDevice >= 0:
		i = l.lastDevice
	case r.Correlation >= 0:
		i = first
	}
	if i < 0 || !kept[i] {
		return 0, false
	}
	return f.Rows[i].Start, true
}
