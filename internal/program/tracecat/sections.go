// This file lists ops of a trace with sections, such as a store, and reads only the sections that have some.

package tracecat

import (
	"errors"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// scan reads the sections of a trace that may have selected ops.
type scan struct {
	dag.Sectioned
	sections []dag.Section
	selected *selection
	named    func(error) error // adds the name of the input

	own []dag.Run // result of the latest call of runs
}

// runs opens a section and returns the runs of selected ranks.
func (s *scan) runs(read dag.SectionReader, i int) ([]dag.Run, error) {
	own := s.ranks(i)
	opened, err := read.Open(i, own[0], own[len(own)-1]+1)
	if err != nil {
		return nil, err
	}
	s.own = s.own[:0]
	for _, r := range opened {
		if _, found := slices.BinarySearch(own, r.Rank); found {
			s.own = append(s.own, r)
		}
	}
	return s.own, nil
}

// ranks returns the selected ranks of a section.
func (s *scan) ranks(i int) []int {
	return within(s.selected.ranks, dag.Batch{First: s.sections[i].First, Last: s.sections[i].Last})
}

// usedFields is usedFields for the sections. It takes from the bounds what they tell, and reads single columns for the
// rest.
func (s *scan) usedFields() (used [dag.NumFields]bool, err error) {
	read := s.NewSectionReader()
	for i, section := range s.sections {
		own := s.ranks(i)
		if len(own) == 0 {
			continue
		}
		var runs []dag.Run
		for _, id := range rareFields {
			bounds := s.Bounds(i, id)
			if used[id] || bounds.Known && bounds.None {
				continue
			}
			if bounds.Known && (bounds.All || len(own) == section.Last-section.First) {
				used[id] = true
				continue
			}
			if runs == nil {
				if runs, err = s.runs(read, i); err == nil {
					err = read.Read(dag.FieldKind)
				}
			}
			if err == nil {
				err = read.Read(id)
			}
			if err != nil {
				return used, s.named(err)
			}
			used[id] = slices.ContainsFunc(runs, func(r dag.Run) bool { return isUsed(r.Ops, id) })
		}
	}
	measured := used[dag.FieldMeasuredStart] || used[dag.FieldMeasuredEnd]
	used[dag.FieldMeasuredStart], used[dag.FieldMeasuredEnd] = measured, measured
	return used, nil
}

// list prints the selected ops.
func (s *scan) list(l *lister) error {
	read := s.NewSectionReader()
	for i := range s.sections {
		if l.left == 0 {
			break
		}
		if len(s.ranks(i)) == 0 || !s.selected.mayBeIn(s, i) {
			continue
		}
		if err := s.listSection(l, read, i); err != nil {
			return errors.Join(s.named(err), l.flush())
		}
	}
	return l.flush()
}

// listSection prints the selected ops of a section. It reads the fields of the filter first, and the others only if
// the filter selects an op.
func (s *scan) listSection(l *lister, read dag.SectionReader, i int) error {
	runs, err := s.runs(read, i)
	if err != nil || !s.selected.hasKinds(read.Kinds()) {
		return err
	}
	if !s.selected.all {
		for _, id := range s.selected.fields() {
			if err := read.Read(id); err != nil {
				return err
			}
		}
		if !slices.ContainsFunc(runs, s.selected.selectsAny) {
			return read.Check()
		}
	}
	for id := range dag.NumFields {
		if err := read.Read(id); err != nil {
			return err
		}
	}
	if err := read.Check(); err != nil {
		return err
	}
	for _, r := range runs {
		if err := l.list(r.Rank, r.First, r.Ops); err != nil {
			return err
		}
	}
	return nil
}

// fields returns the fields that the filter compares.
func (s *selection) fields() []dag.FieldID {
	fields := []dag.FieldID{dag.FieldKind}
	if s.kinds.set {
		fields = append(fields, dag.FieldSubkind)
	}
	if s.times.IsSet() {
		fields = append(fields, dag.FieldMeasuredStart, dag.FieldMeasuredEnd, dag.FieldRelease)
	}
	if s.jobs != nil {
		fields = append(fields, dag.FieldJob)
	}
	if s.name.text != "" {
		fields = append(fields, dag.FieldName)
	}
	return fields
}

// selectsAny reports whether the filter selects an op of a run.
func (s *selection) selectsAny(r dag.Run) bool {
	for i := range r.Ops.Len() {
		if s.selects(r.Ops, i) {
			return true
		}
	}
	return false
}

// hasKinds reports whether the filter may select ops of the kinds.
func (s *selection) hasKinds(kinds []dag.Kind) bool {
	return !s.kinds.set || slices.ContainsFunc(kinds, func(k dag.Kind) bool {
		for sub, selected := range s.kinds.subkinds {
			if selected && dag.Subkind(sub).Of(k) {
				return true
			}
		}
		return s.kinds.kinds[k]
	})
}

// mayBeIn reports whether the filter may select an op of a section, judging by bounds of fields.
func (s *selection) mayBeIn(in dag.Sectioned, i int) bool {
	if job := in.Bounds(i, dag.FieldJob); s.jobs != nil && job.Known {
		inBounds := func(n int32) bool { return dag.Time(n) >= job.Min && dag.Time(n) <= job.Max }
		if !slices.ContainsFunc(s.jobs, inBounds) {
			return false
		}
	}
	if in.Bounds(i, dag.FieldName).None && !s.name.matches("") {
		return false
	}
	return !s.times.IsSet() || s.overlaps(in, i)
}

// overlaps reports whether an op of a section may be in the window of time.
func (s *selection) overlaps(in dag.Sectioned, i int) bool {
	start, end := in.Bounds(i, dag.FieldMeasuredStart), in.Bounds(i, dag.FieldMeasuredEnd)
	release := in.Bounds(i, dag.FieldRelease)
	switch {
	case !start.Known || !end.Known || !release.Known:
		return true
	case !start.All && !end.All && s.times.Overlaps(release.Min, release.Max):
		return true
	case start.None && end.None:
		return false
	case start.None:
		start = end
	case end.None:
		end = start
	}
	return s.times.Overlaps(min(start.Min, end.Min), max(start.Max, end.Max))
}
