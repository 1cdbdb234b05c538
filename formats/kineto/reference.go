// This file reads the events that HolisticTraceAnalysis counts.

package kineto

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/tracedag/tracedag/dag"
)

// Reference is the events of a file that HolisticTraceAnalysis (HTA) counts, with its times: if any event of the file
// starts at a decimal number of microseconds, starts are rounded up and ends down to microseconds, so that a duration
// may be -1 us.
type Reference struct {
	Rows    []Row    // those of a stream or with a correlation, and event 0, in the order of the file
	Details []Detail // of Rows, which then are all events; nil if they are not needed
	MTIA    bool     // devices are MTIA

	// Memory is the copies and sets without a stream. Their stream is the thread.
	Memory []Row

	Steps      []string    // names of steps, each once
	StepRanges []StepRange // by start
	Shift      dag.Time    // to add to times for those since the first event of the first file
	LastStep   dag.Time    // start of the last step, or of the first event of the host if there is no step
	FirstBare  dag.Time    // start of the first event of the host without correlation, math.MaxInt64: none
	HasHost    bool        // there are events of the host

	detailed, exact  bool
	only             bool
	launchers        launchers
	origin           int64 // microseconds
	decimal          bool  // of times
	host, step, bare reducedTime
	stepOf           map[string]bool
}

// Row is an event. Times are relative to some event of its file.
type Row struct {
	Start, End  dag.Time
	Stream      int64  // -1: none
	Correlation int64  // -1: none
	Index       int64  // number of the event in the file
	Name        string // whole
	OnDevice    bool   // it has a stream and a correlation, or is the wait of a host for an event or a context
	Runs        bool   // kernel, copy or set by its category
	OnHost      bool   // operator, annotation or call of a runtime by its category

	off rounding
}

// Detail is the part of an event that only the critical path needs.
type Detail struct {
	Process, Thread string
	Kind            EventKind
	Source          int64 // stream whose event a stream or the host waits for; -1: unknown
	Record          int64 // correlation of the recording of that event; -1: unknown
}

// EventKind is the kind of an event by its category.
type EventKind uint8

// Kinds of events.
const (
	OtherEvent EventKind = iota
	OperatorEvent
	AnnotationEvent // of the program, on the host
	RuntimeEvent    // call of the runtime or driver of CUDA or ROCm
	SyncEvent       // wait of a stream or the host, recorded by the device
)

// kindOf returns the kind of a category: of those that HTA knows, or with exact times of all.
func (f *Reference) kindOf(category []byte) EventKind {
	if f.exact {
		return eventKinds[categoryOf(category)]
	}
	switch string(category) {
	case "cpu_op":
		return OperatorEvent
	case "user_annotation":
		return AnnotationEvent
	case "cuda_runtime", "cuda_driver":
		return RuntimeEvent
	case "cuda_sync":
		return SyncEvent
	}
	return OtherEvent
}

// eventKinds are the kinds of categories.
var eventKinds = [catUndefined + 1]EventKind{catOperator: OperatorEvent, catAnnotate: AnnotationEvent,
	catRuntime: RuntimeEvent, catSync: SyncEvent}

// StepRange is an annotation of a step.
type StepRange struct {
	Start, End dag.Time
	Number     int32

	off rounding
}

// rounding is the differences of the rounded start and end of an event to whole microseconds below the exact ones.
type rounding struct{ start, end int8 }

// round returns rounded times.
func (r rounding) round(start, end dag.Time) (from, to dag.Time) {
	us := func(t dag.Time, off int8) dag.Time { return (floorMicros(t) + dag.Time(off)) * dag.Microsecond }
	return us(start, r.start), us(end, r.end)
}

// floorMicros returns a time in microseconds, rounded down.
func floorMicros(t dag.Time) dag.Time {
	if t < 0 {
		return -((-t + dag.Microsecond - 1) / dag.Microsecond)
	}
	return t / dag.Microsecond
}

// StepAt returns the number of the step at a time.
func (f *Reference) StepAt(at dag.Time) (number int32, ok bool) {
	n := sort.Search(len(f.StepRanges), func(i int) bool { return f.StepRanges[i].Start > at })
	if n == 0 || at >= f.StepRanges[n-1].End {
		return 0, false
	}
	return f.StepRanges[n-1].Number, true
}

// reducedTime is the least or greatest start of some events.
type reducedTime struct {
	exact   dag.Time
	rounded dag.Time
	some    bool
}

func (t *reducedTime) least(r *Row) {
	if !t.some || r.Start < t.exact {
		t.exact = r.Start
	}
	if from, _ := r.off.round(r.Start, r.End); !t.some || from < t.rounded {
		t.rounded = from
	}
	t.some = true
}

func (t *reducedTime) greatest(r *Row) {
	if !t.some || r.Start > t.exact {
		t.exact = r.Start
	}
	if from, _ := r.off.round(r.Start, r.End); !t.some || from > t.rounded {
		t.rounded = from
	}
	t.some = true
}

// at returns the time that counts, def if there is none.
func (t *reducedTime) at(decimal bool, def dag.Time) dag.Time {
	switch {
	case !t.some:
		return def
	case decimal:
		return t.rounded
	}
	return t.exact
}

// stepNames begin the annotations of steps.
var stepNames = []string{stepName}

var null = []byte("null")

// row keeps an event of any phase for the reference.
func (p *parser) row() error {
	f, e := p.reference, &p.e
	start, took := p.content(e.start), p.content(e.took)
	if len(start) == 0 || bytes.ContainsAny(start, ".eE") || bytes.Equal(start, null) {
		f.decimal = true
	}
	category := p.content(e.category)
	if len(took) == 0 || bytes.Equal(took, null) || e.category.to == 0 || bytes.Equal(category, null) ||
		string(category) == "Trace" {
		return nil
	}
	r := Row{Stream: -1, Correlation: -1, Index: p.damage.read - 1}
	if !f.times(&r, start, took) {
		return nil
	}
	d := Detail{Source: -1, Record: -1}
	if string(category) != "python_function" {
		p.l.each(e.args, func(name, value []byte) bool {
			switch string(name) {
			case "stream":
				if v, ok := parseDecimal(unquote(value)); ok {
					r.Stream = v
				}
			case "correlation":
				if v, ok := parseDecimal(unquote(value)); ok {
					r.Correlation = v
				}
			case "wait_on_stream":
				if v, ok := parseDecimal(unquote(value)); ok && f.detailed {
					d.Source = v
				}
			case "wait_on_cuda_event_record_corr_id":
				if v, ok := parseDecimal(unquote(value)); ok && f.detailed {
					d.Record = v
				}
			}
			return true
		})
	}
	name := p.content(e.name)
	r.OnDevice = r.Stream >= 0 && r.Correlation >= 0 || string(name) == "Event Sync" || string(name) == "Context Sync"
	step := bytes.HasPrefix(name, []byte("ProfilerStep"))
	if step && !f.stepOf[string(name)] {
		text := string(plain(name))
		if !f.stepOf[text] {
			f.Steps = append(f.Steps, text)
		}
		f.stepOf[text], f.stepOf[string(name)] = true, true
	}
	if step {
		if number, ok := stepNumber(plain(name), stepNames); ok {
			f.StepRanges = append(f.StepRanges, StepRange{r.Start, r.End, number, r.off})
		}
	}
	if !r.OnDevice {
		f.HasHost = true
		f.host.least(&r)
		if step {
			f.step.greatest(&r)
		}
		if r.Correlation == -1 {
			f.bare.least(&r)
		}
	}
	if r.Stream == -1 && isMemory(name) {
		if thread, ok := parseDecimal(p.content(e.thread)); ok {
			m := r
			m.Stream, m.Name, m.Runs = thread, p.texts.text(p.nameNumber()), true
			f.Memory = append(f.Memory, m)
		}
	}
	if r.Stream == -1 && r.Correlation == -1 && r.Index > 0 && !f.detailed {
		return nil
	}
	if f.detailed {
		d.Process = p.threads.text(p.threads.number(p.content(e.process)))
		d.Thread = p.threads.text(p.threads.number(p.content(e.thread)))
		d.Kind = f.kindOf(category)
		f.Details = append(f.Details, d)
	}
	r.Name = p.texts.text(p.nameNumber())
	switch string(category) {
	case "kernel", "Kernel", "gpu_memset", "Memset", "gpu_memcpy", "Memcpy", "mtia_ccp_events":
		r.Runs = true
	default:
		r.OnHost = string(category) == "user_annotation" || bytes.HasPrefix(category, []byte("cpu_op")) ||
			bytes.Index(category, []byte("_runtime")) > 0
	}
	f.launchers.see(r.Name)
	f.Rows = append(f.Rows, r)
	return tooMany(len(f.Rows))
}

// isMemory reports whether HTA takes an op by its name for a copy or set.
func isMemory(name []byte) bool {
	for _, prefix := range []string{"Memcpy", "Memset", "hipMemcpy", "hipMemset", "dma"} {
		if bytes.HasPrefix(name, []byte(prefix)) {
			return true
		}
	}
	return false
}

// launchers is the calls by which HTA recognizes devices.
type launchers struct{ gpu, mtia bool }

func (l *launchers) see(name string) {
	switch name {
	case "cudaLaunchKernel", "hipLaunchKernel":
		l.gpu = true
	case "runFunction - job_prep_and_submit_for_execution":
		l.mtia = true
	}
}

// parseDecimal parses a whole number, as parseInt without hexadecimal ones.
func parseDecimal(text []byte) (int64, bool) {
	if len(text) == 0 || bytes.HasPrefix(text, []byte("0x")) {
		return 0, false
	}
	return parseInt(text)
}

// times sets the times of an event: exact ones, and rounded ones by the arithmetic of doubles.
func (f *Reference) times(r *Row, start, took []byte) bool {
	at, ok := parseMicros(start)
	d, ok2 := parseMicros(took)
	if !ok || !ok2 {
		return false
	}
	if f.stepOf == nil {
		f.stepOf, f.origin = make(map[string]bool), at.us
	}
	from := at.us - f.origin
	if max(from, -from, d.us, -d.us) > mostMicros {
		return false
	}
	r.Start = dag.Time(from*1_000_000 + at.ps)
	r.End = r.Start + dag.Time(d.us*1_000_000+d.ps)
	ts, err := strconv.ParseFloat(string(start), 64)
	dur, err2 := strconv.ParseFloat(string(took), 64)
	if err != nil || err2 != nil {
		return false
	}
	small := func(n float64, t dag.Time) int8 {
		return int8(max(math.MinInt8, min(math.MaxInt8, int64(n)-f.origin-int64(floorMicros(t)))))
	}
	r.off = rounding{small(math.Ceil(ts), r.Start), small(math.Floor(ts+dur), r.End)}
	return true
}

// setShifts sets the shifts of the files of a job. HTA ignores the base times of files.
func setShifts(all []*Profile) {
	for _, p := range all {
		if f := p.Reference; f != nil {
			if us := f.origin - all[0].Reference.origin; us < mostMicros && us > -mostMicros {
				f.Shift = dag.Time(us) * dag.Microsecond
			}
		}
	}
}

// finish chooses the times that count.
func (f *Reference) finish() {
	rounded := f.decimal && !f.exact
	for i := range f.Rows {
		if r := &f.Rows[i]; rounded {
			r.Start, r.End = r.off.round(r.Start, r.End)
		}
	}
	for i := range f.Memory {
		if r := &f.Memory[i]; rounded {
			r.Start, r.End = r.off.round(r.Start, r.End)
		}
	}
	f.MTIA = f.MTIA || f.launchers.mtia && !f.launchers.gpu
	for i := range f.StepRanges {
		if s := &f.StepRanges[i]; rounded {
			s.Start, s.End = s.off.round(s.Start, s.End)
		}
	}
	slices.SortStableFunc(f.StepRanges, func(a, b StepRange) int { return cmp.Compare(a.Start, b.Start) })
	f.LastStep = f.step.at(rounded, f.host.at(rounded, 0))
	f.FirstBare = f.bare.at(rounded, math.MaxInt64)
	f.stepOf = nil
}
