package store

// Reading of single row groups, column by column.

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// Outline returns the header without Kinds. It reads nothing.
func (f *File) Outline() *dag.Header {
	return &dag.Header{Meta: f.descr.Meta, Comms: f.descr.comms, Ranks: f.descr.ranks, Ops: f.numOps(),
		Batches: f.batches()}
}

// Sections returns the row groups. It returns none of a file without a digest, whose statistics may differ from its
// values.
func (f *File) Sections() []dag.Section {
	if f.unverified != "" {
		return nil
	}
	sections := make([]dag.Section, len(f.groups))
	for i := range f.groups {
		g := &f.groups[i]
		sections[i] = dag.Section{First: int(g.first), Last: int(g.last) + 1, Ops: g.rows}
	}
	return sections
}

// Bounds returns the bounds of a field in a row group, from the statistics in the footer.
func (f *File) Bounds(section int, id dag.FieldID) dag.Bounds {
	g, column := &f.groups[section], fieldColumn+int(id)
	c, l := &g.chunks[column], f.leaves[column]
	if l.Index < 0 {
		return dag.Bounds{Known: true, None: true}
	}
	b := dag.Bounds{}
	ordered := l.Integers && !l.Unsigned && len(c.Min) == l.Type.Width() && len(c.Max) == l.Type.Width()
	if ordered {
		b.Min, b.Max = dag.Time(statistic(c.Min)), dag.Time(statistic(c.Max))
	}
	switch columns[column].shape {
	case int32s, int64s:
		b.Known = ordered && c.Nulls <= 0
		b.None, b.All = b.Min == 0 && b.Max == 0, b.Min > 0 || b.Max < 0
	case optInt64s:
		b.None, b.All = c.Nulls == int64(g.rows), c.Nulls == 0
		b.Known = c.Nulls >= 0 && (ordered || b.None)
	case optText:
		b.Known, b.None, b.All = c.Nulls >= 0, c.Nulls == int64(g.rows), c.Nulls == 0
	}
	return b
}

// NewSectionReader returns a reader of row groups, which decodes into memory that it reuses.
func (f *File) NewSectionReader() dag.SectionReader {
	r := &sectionReader{file: f, decoder: newDecoder(), startIn: -1}
	r.block.columns = &newColumnSets(f, dag.All, 1)[0]
	return r
}

// sectionReader reads row groups one after the other.
type sectionReader struct {
	file       *File
	decoder    *decoder
	block      block
	section    int
	kinds      kindSet
	read       [dag.NumFields]bool // the fields of the current section that were read
	runs       []dag.Run
	ranks      []dag.Rank
	references dag.ReferenceChecker

	startIn, start int // result of the latest call of startOf
}

// Open checks that the row group has pages for all its rows, before memory is allocated for them.
func (r *sectionReader) Open(section, first, last int) (runs []dag.Run, err error) {
	err = guard(func() error { return r.open(section, first, last) })
	if err != nil {
		return nil, r.file.wrap(err)
	}
	return r.runs, nil
}

func (r *sectionReader) open(section, first, last int) error {
	g := &r.file.groups[section]
	r.section, r.kinds, r.read = section, kindSet{}, [dag.NumFields]bool{}
	if err := r.file.addKinds(&r.kinds, r.decoder, g); err != nil {
		return inColumn("kind", err)
	}
	start, err := r.startOf(section)
	if err != nil {
		return err
	}
	r.block.groups = r.file.groups[section : section+1]
	if err := r.block.findRows(r.file, r.decoder, first, last); err != nil {
		return err
	}
	r.ranks, r.runs = make([]dag.Rank, len(r.block.ranks)), r.runs[:0]
	for k := range r.block.ranks {
		rank := &r.block.ranks[k]
		if rank.number == int(g.first) {
			rank.start = start
		}
		r.runs = append(r.runs, dag.Run{Rank: rank.number, First: rank.start, Ops: &r.ranks[k]})
	}
	return nil
}

// startOf returns the number of the first op of a row group within its rank.
func (r *sectionReader) startOf(section int) (start int, err error) {
	groups := r.file.groups
	rank := groups[section].first
	for i := section - 1; i >= 0 && groups[i].last == rank; i-- {
		if groups[i].first < rank {
			runs, err := r.file.rankRuns(r.decoder, &groups[i])
			if err != nil {
				return 0, err
			}
			start += runs[len(runs)-1].rows
			break
		}
		start += groups[i].rows
		if i == r.startIn {
			start += r.start
			break
		}
	}
	r.startIn, r.start = section, start
	return start, nil
}

func (r *sectionReader) Kinds() []dag.Kind {
	return dag.KindsOf(func(kind dag.Kind) bool { return r.kinds[kind] })
}

func (r *sectionReader) Read(id dag.FieldID) error {
	if r.read[id] {
		return nil
	}
	r.read[id] = true
	err := guard(func() error { return r.block.read(r.decoder, fieldColumn+int(id)) })
	if err != nil {
		return r.file.wrap(err)
	}
	if reader := r.block.columns.readers[fieldColumn+int(id)]; reader != nil {
		for k := range r.ranks {
			reader.deliver(dag.Fields[id].Of(&r.ranks[k]), k, r.block.ranks[k].rows)
		}
	}
	return nil
}

func (r *sectionReader) Check() error {
	for id, read := range r.read {
		reader := r.block.columns.readers[fieldColumn+id]
		if !read || reader == nil || !reader.outOfRange() {
			continue
		}
		name, limit := columns[fieldColumn+id].name, dag.Fields[id].Limit(len(r.file.descr.comms), &r.file.descr.Meta)
		for _, run := range r.runs {
			if err := checkRange(dag.Fields[id].Of(run.Ops), run.First, name, limit); err != nil {
				return r.file.wrap(fmt.Errorf("rank %d: %w", run.Rank, err))
			}
		}
	}
	for _, run := range r.runs {
		if !r.whole(run) {
			continue // the ops that it refers to may be in other row groups
		}
		if err := r.references.Check(run.Ops); err != nil {
			return r.file.wrap(fmt.Errorf("rank %d: %w", run.Rank, err))
		}
	}
	return nil
}

// whole reports whether a run is all ops of its rank and its dependencies were read.
func (r *sectionReader) whole(run dag.Run) bool {
	groups := r.file.groups
	continues := r.section+1 < len(groups) && int(groups[r.section+1].first) == run.Rank
	return run.First == 0 && !continues && r.read[dag.FieldDeps] && r.read[dag.FieldStartDeps] &&
		r.read[dag.FieldOrder] && r.read[dag.FieldStartOrder]
}

var _ dag.Sectioned = (*File)(nil)
