// This file builds one trace from the files of its ranks.

package chakra

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

func read(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	return readFiles(inputs, o, (*source).take)
}

func readJSON(inputs []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
	return readFiles(inputs, o, func(s *source, _ format.ReadOptions) error { return s.takeJSON() })
}

func readFiles(inputs []*format.Input, o format.ReadOptions, take func(*source, format.ReadOptions) error) (
	*dag.Trace, error) {
	inputs, groups := cutGroups(inputs)
	inputs, err := byRank(inputs)
	if err != nil {
		return nil, err
	}
	if named := GroupsFile(&o); named != nil {
		groups = named
	}
	return build(len(inputs), o, groups, func(rank int, s *source) error {
		in := inputs[rank]
		data, err := readAll(o.Context, in, s.data)
		*s = source{name: in.Name, data: data, nodes: s.nodes[:0]}
		if err != nil {
			return &format.FileError{File: in.Name, Err: err}
		}
		return take(s, o)
	})
}

// Build builds a trace from the files of its ranks, in order. Messages contain names.
func Build(files []File, o format.ReadOptions, names []string) (*dag.Trace, error) {
	return build(len(files), o, GroupsFile(&o), func(rank int, s *source) error {
		*s = source{name: names[rank], made: true, data: s.data[:0], nodes: s.nodes[:0], meta: files[rank].Metadata}
		for i := range files[rank].Nodes {
			n := &files[rank].Nodes[i]
			start := len(s.data)
			s.data = n.append(s.data)
			s.nodes = append(s.nodes, frame{id: n.ID, start: start, end: len(s.data)})
		}
		return nil
	})
}

// readAll returns the content of a file, in the memory of buffer if that suffices.
func readAll(ctx context.Context, in *format.Input, buffer []byte) ([]byte, error) {
	if in.At != nil {
		if int64(cap(buffer)) < in.Size {
			if err := memory.Check(ctx, "bytes of a file that is read as a whole", 1, in.Size); err != nil {
				return nil, err
			}
			buffer = make([]byte, in.Size)
		}
		buffer = buffer[:in.Size]
		_, err := io.ReadFull(io.NewSectionReader(in.At, 0, in.Size), buffer)
		return buffer, err
	}
	return memory.ReadContentInto(ctx, buffer, in.Reader)
}

// build builds a trace from the files of its ranks, which take opens. The file of communicators may be nil.
func build(files int, o format.ReadOptions, groupsFile *format.Input,
	take func(rank int, s *source) error) (*dag.Trace, error) {
	if files == 0 {
		return nil, errors.New("expected at least one file of a Chakra trace, found none")
	}
	var defined []group
	if groupsFile != nil {
		var err error
		if defined, err = readGroups(o.Context, groupsFile); err != nil {
			return nil, err
		}
	}
	shared := o.Ranks > 0
	if shared {
		files = 1
	}
	if err := memory.CheckRanks(o.Context, int64(max(files, o.Ranks))); err != nil {
		return nil, err
	}
	b := building{
		o: &o, defined: defined, take: take, trace: &dag.Trace{Ranks: dag.NewRanks(max(files, o.Ranks))},
		groups: make([]*groups, files), notices: make([]notices, files), metadata: make([]Metadata, files),
		names: make([]string, files), schemas: make([]string, files), cut: make([]string, files),
	}
	readers, err := b.readRanks()
	if err != nil {
		return nil, err
	}
	return b.finish(readers, shared)
}

// building is an incomplete trace.
type building struct {
	o       *format.ReadOptions
	defined []group // by a file of groups
	take    func(rank int, s *source) error
	trace   *dag.Trace

	// by file
	names    []string
	groups   []*groups
	notices  []notices
	metadata []Metadata
	schemas  []string
	cut      []string
}

// readRanks reads all files, several at the same time. It returns the readers, or the error of the lowest rank.
func (b *building) readRanks() ([]*rankReader, error) {
	type worker struct {
		r *rankReader
		s source
	}
	start := func() *worker { return &worker{r: &rankReader{o: b.o, layouts: make(map[string]*layout)}} }
	workers, err := par.EachWith(len(b.groups), start, func(w *worker, i int) error { return b.readRank(w.r, &w.s, i) })
	if err != nil {
		return nil, err
	}
	readers := make([]*rankReader, len(workers))
	for i, w := range workers {
		readers[i] = w.r
	}
	return readers, nil
}

func (b *building) readRank(r *rankReader, s *source, rank int) error {
	if err := b.take(rank, s); err != nil {
		return err
	}
	b.names[rank] = s.name
	r.groups, r.notices = newGroups(b.defined), &b.notices[rank]
	ops, err := r.read(s)
	b.trace.Ranks[rank] = ops.Keep()
	b.groups[rank], b.metadata[rank], b.schemas[rank], b.cut[rank] = r.groups, s.meta, s.schema, s.cut
	return err
}

// finish builds the trace from its ranks.
func (b *building) finish(readers []*rankReader, shared bool) (*dag.Trace, error) {
	undefined, err := communicators(b.trace, b.defined, b.groups, shared, b.o)
	if err != nil {
		return nil, err
	}
	known := knowledge{ChakraGroups: attr.ChakraGroups{Undefined: undefined}}
	for rank := range b.metadata {
		known.addMetadata(&b.metadata[rank])
	}
	for _, r := range readers {
		if err := known.addLayouts(r.layouts); err != nil {
			return nil, err
		}
	}
	if b.trace.Attrs, err = known.text(); err != nil {
		return nil, fmt.Errorf("the attributes of the trace: %w", err)
	}
	b.warn(undefined)
	return b.trace, nil
}

// warn reports the anomalies of the trace.
func (b *building) warn(undefined []string) {
	for _, cut := range b.cut {
		if cut != "" {
			b.o.Warn("%s", cut)
		}
	}
	all := &b.notices[0]
	for i := range b.notices[1:] {
		all.merge(&b.notices[i+1])
	}
	all.warn(b.o)
	for rank, schema := range b.schemas {
		if schema != "" {
			b.o.Warn("%s: the file has the old schema of Chakra %s, which is converted", b.names[rank], schema)
			break
		}
	}
	if len(undefined) > 0 && !b.o.CheckedComms {
		b.o.Warn("%s: communicator %q is undefined; its members are assumed to be the ranks that use it "+
			"(%d undefined communicators in all)", b.names[0], undefined[0], len(undefined))
	}
	ranks := len(b.trace.Ranks)
	strays, first := 0, ""
	for rank := range b.groups {
		r := b.trace.Ranks[rank]
		for i, kind := range r.Kind {
			if (kind == dag.Send || kind == dag.Recv) && int(r.Peer.At(i)) >= ranks {
				if strays++; strays == 1 {
					first = fmt.Sprintf("%s: node %d is a %v with rank %d", b.names[min(rank, len(b.names)-1)],
						r.ID(i), kind, r.Peer.At(i))
				}
			}
		}
	}
	if strays > 0 {
		b.o.Warn("%s, but the trace has %d ranks (%d such nodes in all)", first, ranks, strays)
	}
}
