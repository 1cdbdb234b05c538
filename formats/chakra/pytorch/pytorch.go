// Package pytorch reads the execution traces of PyTorch: the host traces of its ExecutionTraceObserver, and traces
// to which Chakra's linker added the GPU ops. It converts them as Chakra's converter does, node for node.
//
// docs/reference/formats/pytorch.md describes the files and the rules.
package pytorch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/formats/chakra/nodejson"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/kineto"
	"github.com/tracedag/tracedag/internal/par"
)

// Format is PyTorch's execution trace format, one file per rank.
var Format = format.Format{
	Name:    "pytorch",
	Modes:   format.Modes{Compat: true, Lenient: true},
	Title:   "PyTorch execution traces (JSON), one file per rank",
	Detect:  beginning.Match,
	Files:   nodejson.Files,
	Read:    read,
	Options: chakra.Table,

	Survives: true,
}

// beginning matches the beginning of a file from PyTorch.
var beginning = regexp.MustCompile(`^\s*\{\s*"schema"\s*:\s*"`)

// schemas are the schemas that are read. The nodes of 1.0.1 are flat, those of all others are the same.
var schemas = map[string]bool{
	"1.0.1":              true,
	"1.0.2-chakra.0.0.4": true,
	"1.0.3-chakra.0.0.4": true,
	"1.0.4-chakra.0.0.4": true,
	"1.1.0-chakra.0.0.4": true,
	"1.1.1-chakra.0.0.4": true,
	"1.1.1-chakra.1.0.0": true,
}

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	var profiles []*format.Input
	if !alike(inputs) {
		inputs, profiles = separate(inputs)
	}
	if !o.Compat && len(inputs) > 0 && len(profiles) >= len(inputs) {
		return readProfiles(inputs, profiles, o)
	}
	pairs, err := pairsOf(inputs, profiles, o)
	if err != nil {
		return nil, err
	}
	compat := o.Compat
	o.Compat = false // the converter makes files that the simulator refuses, with missing threads
	traces := make([]*trace, len(inputs))
	result, err := nodejson.ReadRanks(inputs, o, func(rank int, in *format.Input) (chakra.File, error) {
		t := &trace{file: in.Name, compat: compat, pair: pairs[int64(rank)]}
		traces[rank] = t
		return t.read(o.Context, in)
	})
	if err == nil {
		warn(traces, compat, o)
	}
	return result, err
}

var digits = regexp.MustCompile(`[0-9]+`)

// alike reports whether the names of all files differ in numbers only, so that all are execution traces.
func alike(inputs []*format.Input) bool {
	plain := func(in *format.Input) string { return digits.ReplaceAllString(filepath.Base(in.Name), "0") }
	return !slices.ContainsFunc(inputs, func(in *format.Input) bool { return plain(in) != plain(inputs[0]) })
}

// withHead returns the input with its head, which files behind the first of a trace lack.
func withHead(in *format.Input) *format.Input {
	if len(in.Head) > 0 {
		return in
	}
	r := bufio.NewReaderSize(in.Reader, format.DetectBytes)
	with := *in
	with.Reader = r
	with.Head, _ = r.Peek(format.DetectBytes) // an error comes back with the content
	with.Head = bytes.Clone(with.Head)
	return &with
}

// separate separates execution traces from profiles.
func separate(inputs []*format.Input) (traces, profiles []*format.Input) {
	for _, in := range inputs {
		in = withHead(in)
		if kineto.Format.Detect(in.Head) && !beginning.Match(in.Head) {
			profiles = append(profiles, in)
		} else {
			traces = append(traces, in)
		}
	}
	return traces, profiles
}

// pairsOf reads the profile of each rank.
func pairsOf(traces, others []*format.Input, o format.ReadOptions) (map[int64]*profile, error) {
	if len(others) == 0 {
		return nil, nil
	}
	if len(traces) == 0 {
		return nil, format.FileErrorf(others[0].Name, "expected execution traces beside profiles, found none: "+
			"read profiles alone with --from kineto")
	}
	profiles := make([]*profile, len(others))
	err := par.Each(len(others), func(i int) (err error) {
		profiles[i], err = readProfile(o.Context, others[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	pairs := make(map[int64]*profile)
	for _, p := range profiles {
		if len(traces) == 1 && len(profiles) == 1 {
			p.rank = 0
		}
		switch other := pairs[p.rank]; {
		case p.rank < 0:
			return nil, format.FileErrorf(p.file, "expected the rank in distributedInfo or in the file's name, "+
				"as in kineto_3.json, found neither")
		case p.rank >= int64(len(traces)):
			return nil, format.FileErrorf(p.file, "expected an execution trace of rank %d beside its profile, "+
				"found %d execution traces", p.rank, len(traces))
		case other != nil:
			return nil, format.FileErrorf(p.file, "expected one profile per rank, found rank %d also in %s",
				p.rank, other.file)
		}
		pairs[p.rank] = p
	}
	return pairs, nil
}

// warn reports what the traces lack.
func warn(traces []*trace, compat bool, o format.ReadOptions) {
	syncs, untimed := int64(0), 0
	for _, t := range traces {
		syncs += t.syncs
		if t.cut > 0 {
			o.Warn("%s: the file ends early; its %d whole nodes were read", t.file, t.cut)
		}
		if t.pair != nil {
			for _, w := range t.pair.warnings {
				w(o.Warn)
			}
			t.links.warn(t, o.Warn)
		}
		if !t.linked {
			untimed++
		}
	}
	first := traces[0].file
	if syncs > 0 {
		o.Warn("%s: sync_dep of %d nodes is ignored, as by Chakra's converter", first, syncs)
	}
	if untimed > 0 && !compat {
		o.Warn("%s: the execution traces of %d ranks have no times and no kernels: computation takes no time", first,
			untimed)
	}
}

// read reads the file.
func (t *trace) read(ctx context.Context, in *format.Input) (f chakra.File, err error) {
	var cut *nodejson.CutError
	err = nodejson.Read(ctx, in, "nodes", t)
	if errors.As(err, &cut) {
		t.cut, err = cut.Elements, nil
		t.adopt()
	}
	if err != nil {
		return f, err
	}
	if f.Metadata, err = t.metadata(); err != nil {
		return f, err
	}
	if t.pair != nil {
		if t.linked {
			return f, format.FileErrorf(in.Name, "expected an execution trace without times beside the profile %s, "+
				"found a linked one: read it alone", t.pair.file)
		}
		if err := t.link(ctx, t.pair); err != nil {
			return f, err
		}
	}
	if !t.linked && !t.compat {
		t.communicate()
	}
	if !t.linked && !t.compat {
		t.addFlops()
	}
	f.Nodes, err = t.convert()
	return f, err
}
