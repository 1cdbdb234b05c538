// This file reads the profile of a rank: the host ops, launches and device ops that complete its execution trace.

package pytorch

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/kineto"
)

// profile is a file of Kineto.
type profile struct {
	file     string
	rank     int64 // -1: unknown
	host     []hostOp
	launches map[int64]launch // by correlation
	devices  []deviceOp
	numbered bool // host ops have numbers of record functions
	warnings []func(warn func(string, ...any))
	names    map[string]string
}

// hostOp is an operator or annotation of the host.
type hostOp struct {
	start, took dag.Time
	name        string
	process     string
	thread      string
	rf          int64 // number of the record function; 0: unknown
	external    int64 // -1: unknown
	order       int64 // of the start on its thread; -1: unknown
	exclusive   dag.Time
	dep         int32 // op of another thread for which it waits; -1: none
	op          int   // of the execution trace; none: unknown
}

func (o *hostOp) end() dag.Time { return o.start + o.took }

// launch is a call that launched a device op.
type launch struct {
	start  dag.Time
	thread string
	twice  bool
}

// deviceOp is a kernel or a copy.
type deviceOp struct {
	start, took           dag.Time
	name                  string
	correlation, external int64
	stream                int64
	hasStream             bool
	group                 string
	ordinal               int32 // among the device ops of the file
}

// launchCalls are the calls that launch kernels and copies.
var launchCalls = map[string]bool{
	"cuLaunchKernel": true, "cuLaunchKernelEx": true, "cudaLaunchKernel": true, "cudaLaunchKernelExC": true,
	"cudaLaunchCooperativeKernel": true, "cudaMemcpy": true, "cudaMemcpyAsync": true, "cudaMemcpyFromSymbol": true,
	"cudaMemcpyToSymbol": true, "hipLaunchKernel": true, "hipExtLaunchKernel": true, "hipModuleLaunchKernel": true,
	"hipExtModuleLaunchKernel": true, "hipMemcpyWithStream": true, "hipMemcpyAsync": true,
}

// readProfile reads a file of Kineto.
func readProfile(ctx context.Context, in *format.Input) (*profile, error) {
	p := newProfile(in.Name)
	warn := func(text string, args ...any) {
		p.warnings = append(p.warnings, func(warn func(string, ...any)) { warn(text, args...) })
	}
	var err error
	p.rank, err = kineto.Each(ctx, in, warn, p.add)
	if err != nil {
		return nil, err
	}
	p.sort()
	return p, nil
}

func newProfile(file string) *profile {
	return &profile{file: file, launches: make(map[int64]launch), names: make(map[string]string)}
}

// intern returns a text, which is stored once.
func (p *profile) intern(text []byte) string {
	s, ok := p.names[string(text)]
	if !ok {
		s = string(text)
		p.names[s] = s
	}
	return s
}

// add adds an event of the file.
func (p *profile) add(e *kineto.Event) error {
	switch string(e.Category) {
	case "cpu_op", "user_annotation", "Operator", "":
		if !strings.Contains(string(e.Name), "ProfilerStep") {
			p.addHost(e, p.intern)
		}
	case "cuda_runtime", "cuda_driver", "Runtime":
		if launchCalls[string(e.Name)] {
			p.addLaunch(e, p.intern)
		}
	case "kernel", "gpu_memcpy", "Kernel", "Memcpy":
		p.addDevice(e, p.intern)
	}
	return nil
}

// sort sorts ops by their starts.
func (p *profile) sort() {
	slices.SortStableFunc(p.host, func(a, b hostOp) int { return cmp.Compare(a.start, b.start) })
	slices.SortStableFunc(p.devices, func(a, b deviceOp) int { return cmp.Compare(a.start, b.start) })
}

func number(value []byte, to *int64) {
	if v, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		*to = v
	}
}

func (p *profile) addHost(e *kineto.Event, intern func([]byte) string) {
	o := hostOp{start: e.Start, took: e.Took, name: intern(e.Name), process: intern(e.Process),
		thread: intern(e.Thread), external: -1, order: -1, dep: -1, op: none}
	e.Args(func(name, value []byte) bool {
		switch string(name) {
		case "Record function id":
			number(value, &o.rf)
		case "External id":
			number(value, &o.external)
		case "Ev Idx":
			number(value, &o.order)
		}
		return true
	})
	p.numbered = p.numbered || o.rf > 0
	p.host = append(p.host, o)
}

func (p *profile) addLaunch(e *kineto.Event, intern func([]byte) string) {
	correlation := int64(-1)
	e.Args(func(name, value []byte) bool {
		if string(name) == "correlation" {
			number(value, &correlation)
		}
		return true
	})
	_, twice := p.launches[correlation]
	p.launches[correlation] = launch{e.Start, intern(e.Thread), twice}
}

func (p *profile) addDevice(e *kineto.Event, intern func([]byte) string) {
	o := deviceOp{start: e.Start, took: e.Took, name: intern(e.Name), correlation: -1, external: -1,
		ordinal: e.Ordinal}
	e.Args(func(name, value []byte) bool {
		switch string(name) {
		case "correlation":
			number(value, &o.correlation)
		case "External id":
			number(value, &o.external)
		case "stream":
			o.hasStream = true
			number(value, &o.stream)
		case "Process Group Name":
			o.group = intern(value)
		}
		return true
	})
	p.devices = append(p.devices, o)
}
