// Package kineto reads traces of torch.profiler, as its library Kineto writes them: one JSON file per process, with the
// kernels and copies of devices, the calls that launched them, and the communication of PyTorch's process groups.
// docs/reference/formats/kineto.md describes the events and the mapping.
package kineto

import (
	"bytes"
	"context"
	"regexp"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
)

// Format is the traces of torch.profiler.
var Format = format.Format{
	Name:       "kineto",
	Modes:      format.Modes{Compat: true, Lenient: true},
	Title:      "torch.profiler (Kineto) traces of GPU jobs, one JSON file per rank",
	Extensions: []string{".json"},
	Detect:     detect,
	Files:      files,
	Read:       read,
	Options:    table,
	Survives:   true,
}

// firstEvent matches a list of events, or an object that begins with them.
var firstEvent = regexp.MustCompile(`^\[\s*\{[^{}\[\]]*"(ph|cat|ts|dur|tid)"\s*:`)

// members are members of the object that no other format has.
var members = regexp.MustCompile(`"(traceEvents|distributedInfo|deviceProperties|baseTimeNanoseconds)"\s*:\s*[\[{0-9]`)

func detect(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\uFEFF")), " \t\r\n")
	if len(head) == 0 {
		return false
	}
	if head[0] == '[' {
		return firstEvent.Match(head)
	}
	return head[0] == '{' && members.Match(head)
}

// readOptions are the options of reading one file.
type readOptions struct {
	ctx      context.Context
	lenient  bool
	warn     func(string, ...any)
	own      *Options
	steps    []string
	keepHost bool

	events Events
}

// read reads a trace. It processes files in parallel.
func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	own := format.Own(o.Own, func() *Options { return newOptions() })
	options := &readOptions{ctx: o.Context, lenient: o.Lenient, warn: o.Warn, own: own, steps: []string{stepName},
		keepHost: own.KeepHost}
	if err := own.Check(); err != nil {
		return nil, err
	}
	recordings := make([]*recording, len(inputs))
	err := par.Each(len(inputs), func(i int) (err error) {
		recordings[i], err = readRecording(inputs[i], options)
		return err
	})
	if err != nil {
		return nil, err
	}
	return traceOf(recordings, options)
}

// traceOf returns the trace of a job.
func traceOf(recordings []*recording, options *readOptions) (*dag.Trace, error) {
	j, err := newJob(recordings, options)
	if err != nil {
		return nil, err
	}
	j.setComms()
	if err := j.match(); err != nil {
		return nil, err
	}
	if options.own.AlignClocks {
		j.alignClocks()
	}
	j.report()
	return j.trace()
}
