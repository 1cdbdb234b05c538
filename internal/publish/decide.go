package publish

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/internal/batch"
	"github.com/tracedag/tracedag/internal/dataset"
)

// decide gives the converted traces their names, and decides what becomes of them. The result does not depend on the
// order of the inputs.
func (p *publication) decide() error {
	p.removed = slices.Compact(slices.Sorted(slices.Values(p.o.Remove)))
	var found []*candidate
	for _, c := range p.traces {
		if c.status == "" {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.base, b.base), cmp.Compare(a.digest, b.digest),
			cmp.Compare(a.input.Path, b.input.Path))
	})
	published := make(map[string][]*dataset.Row) // by content
	if p.before != nil {
		for i := range p.before.Rows {
			if r := &p.before.Rows[i]; !p.isRemoved(r.Trace) {
				published[r.ContentSHA256] = append(published[r.ContentSHA256], r)
			}
		}
	}
	fresh := make(map[string][]*candidate) // by content
	var left []*candidate
	for _, c := range found {
		same, err := p.published(c, published[c.row.ContentSHA256])
		if err != nil {
			return err
		}
		if same != nil {
			p.known(c, same)
			continue
		}
		if err := p.duplicate(c, fresh[c.row.ContentSHA256]); err != nil {
			return err
		}
		if c.status == "" {
			fresh[c.row.ContentSHA256] = append(fresh[c.row.ContentSHA256], c)
			left = append(left, c)
		}
	}
	p.name(left)
	return nil
}

func (p *publication) isRemoved(name string) bool {
	_, removed := slices.BinarySearch(p.removed, name)
	return removed
}

// published returns the trace of the set that equals the candidate, nil if there is none. rows have the same ops.
func (p *publication) published(c *candidate, rows []*dataset.Row) (same *dataset.Row, err error) {
	for _, r := range rows {
		equal, err := sameTrace(c.store, p.before.path(r.Path))
		if err != nil {
			return nil, err
		}
		if equal && (same == nil || isOf(r.Trace, c.base)) {
			same = r
		}
	}
	return same, nil
}

// known decides on a candidate whose trace is in the set.
func (p *publication) known(c *candidate, same *dataset.Row) {
	switch {
	case isOf(same.Trace, c.base):
		c.row, c.status = *same, batch.Unchanged
	case p.o.SkipExisting:
		c.row, c.status = *same, batch.Skipped
	default:
		c.fail(fmt.Errorf("%s: the set has the same trace as %s; omit it, or use --skip-existing", c.input.Path,
			same.Trace))
	}
}

// duplicate decides on a candidate that equals one of the others.
func (p *publication) duplicate(c *candidate, others []*candidate) error {
	for _, other := range others {
		equal, err := sameTrace(c.store, other.store)
		if err != nil {
			return err
		}
		if !equal {
			continue
		}
		if c.status = batch.Skipped; !p.o.SkipExisting {
			c.fail(fmt.Errorf("%s: the same trace as %s; omit one of them, or use --skip-existing", c.input.Path,
				other.input.Path))
		}
		return nil
	}
	return nil
}

// name names new traces, which are sorted by base name and digest. Traces with the same base name are numbered in the
// order of their digests.
func (p *publication) name(fresh []*candidate) {
	taken := make(map[string]bool)
	if p.before != nil {
		for i := range p.before.Rows {
			taken[p.before.Rows[i].Trace] = !p.isRemoved(p.before.Rows[i].Trace)
		}
	}
	sharing := make(map[string]int) // new traces by base name
	for _, c := range fresh {
		sharing[c.base]++
	}
	var later []*candidate // all but the first of each base name
	for i, c := range fresh {
		switch {
		case taken[c.base] && p.o.Replace && sharing[c.base] == 1:
			c.row.Trace, c.status = c.base, batch.Replaced
		case taken[c.base]:
			c.fail(fmt.Errorf("%s: the set has another trace called %s; replace it with --replace, or name this one "+
				"with --name", c.input.Path, c.base))
		case i > 0 && fresh[i-1].base == c.base:
			later = append(later, c)
		default:
			c.row.Trace, c.status = c.base, batch.Added
		}
	}
	for _, c := range fresh {
		taken[c.row.Trace] = taken[c.row.Trace] || c.status == batch.Added
	}
	for _, c := range later {
		n := 2
		for taken[numbered(c.base, n)] {
			n++
		}
		c.row.Trace, c.status = numbered(c.base, n), batch.Added
		taken[c.row.Trace] = true
	}
}

// settle returns the rows of the new set, complete. It adds the tags of the traces to the metadata first.
func (p *publication) settle() error {
	given := &dataset.Metadata{}
	own := make(map[string]*candidate) // by trace
	for _, c := range p.traces {
		switch c.status {
		case batch.Added, batch.Replaced:
			own[c.row.Trace] = c
		case batch.Unchanged:
		default:
			continue
		}
		if len(p.o.Tags) > 0 {
			given.Traces = append(given.Traces, dataset.TraceMetadata{Name: c.row.Trace, Tags: p.o.Tags})
		}
	}
	slices.SortFunc(given.Traces, func(a, b dataset.TraceMetadata) int { return cmp.Compare(a.Name, b.Name) })
	p.meta.Merge(given)
	for _, c := range own {
		c.row.AddedVersion = p.meta.Version
		p.rows = append(p.rows, c.row)
	}
	if p.before != nil {
		for _, r := range p.before.Rows {
			if own[r.Trace] != nil || p.isRemoved(r.Trace) {
				continue
			}
			if err := p.reset(&r); err != nil {
				return err
			}
			p.rows = append(p.rows, r)
		}
	}
	slices.SortFunc(p.rows, func(a, b dataset.Row) int { return cmp.Compare(a.Trace, b.Trace) })
	for i := range p.rows {
		complete(&p.rows[i], p.meta, p.keys)
	}
	for _, c := range own {
		c.row = *(&Published{Rows: p.rows}).row(c.row.Trace)
	}
	return nil
}

// reset restores title and workload of a trace in the set, if the metadata stated them before and state them no more.
func (p *publication) reset(r *dataset.Row) error {
	before, now := p.before.Meta.Trace(r.Trace), p.meta.Trace(r.Trace)
	title := before.Title != "" && now.Title == ""
	workload := workloadTag(before.Tags) != "" && workloadTag(now.Tags) == ""
	if !title && !workload {
		return nil
	}
	h, err := readHeader(p.before.path(r.Path))
	if err != nil {
		return err
	}
	var d described
	if d.header(h); title {
		r.Title = d.Title
	}
	if workload {
		r.Workload = cmp.Or(d.generator, r.SourceFormat)
	}
	return nil
}

// complete sets what the metadata state about a trace, and its path.
func complete(r *dataset.Row, m *dataset.Metadata, keys []string) {
	t := m.Trace(r.Trace)
	r.License, r.Creator, r.Tags = t.License, t.Creator(), t.Tags
	r.Source, r.Citation = optional(t.Source), optional(t.Citation)
	r.Title = cmp.Or(t.Title, r.Title)
	r.Workload = cmp.Or(workloadTag(t.Tags), r.Workload)
	r.Path = storePath(keys, r)
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// workloadTag returns the value of the tag workload, "" without it.
func workloadTag(tags []string) string {
	for _, tag := range tags {
		if value, found := strings.CutPrefix(tag, "workload="); found {
			return value
		}
	}
	return ""
}

// moved returns the old and the new path of each trace that stays in the set and changes its path.
func (p *publication) moved() (paths [][2]string) {
	for i := range p.rows {
		if before := p.beforeRow(p.rows[i].Trace); before != nil && before.Path != p.rows[i].Path {
			paths = append(paths, [2]string{before.Path, p.rows[i].Path})
		}
	}
	return paths
}

func (p *publication) beforeRow(name string) *dataset.Row {
	if p.before == nil {
		return nil
	}
	return p.before.row(name)
}

// folderName returns the base name of the set's folder.
func folderName(folder string) string {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return filepath.Base(folder)
	}
	return filepath.Base(absolute)
}
