package study

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/provenance"
	"github.com/tracedag/tracedag/internal/results"
	"github.com/tracedag/tracedag/internal/tables"
)

// mergeTables writes the tables of the folder.
func (f *Flags) mergeTables(p *cli.Program, plan *Plan, o Outputs) error {
	folder := results.Folder(f.folder)
	store, err := folder.Open()
	if err == nil && f.wait {
		err = f.await(p, plan, store)
	}
	if err != nil {
		return err
	}
	axes := make(map[string]bool)
	for i := range plan.Runs {
		for name := range plan.Runs[i].About.Factors {
			axes[name] = true
		}
	}
	t := tables.New(slices.Sorted(maps.Keys(axes)), provenance.Replicas(plan.Abouts()))
	t.Measure(plan.Study.Measure)
	if f.compareTo != "" {
		axis, value, _ := strings.Cut(f.compareTo, "=")
		known := func(a *provenance.Run) bool { return a.Factors[axis] == value && axes[axis] }
		if !slices.ContainsFunc(plan.Abouts(), known) {
			return cli.Usagef("--compare-to: expected AXIS=VALUE with an axis out of %s and one of its values, found "+
				"%q", strings.Join(slices.Sorted(maps.Keys(axes)), ", "), f.compareTo)
		}
		t.CompareTo(tables.Reference{Axis: axis, Value: value})
	}
	defer t.Close()
	for _, table := range tables.Names {
		name := o.Tables[table]
		if name == "" {
			name = filepath.Join(f.folder, table+map[bool]string{true: ".csv", false: ".parquet"}[table == "summary"])
		}
		file, err := p.Create(name, false)
		if err != nil {
			return err
		}
		t.WriteFile(table, strings.EqualFold(filepath.Ext(name), ".parquet"), file)
	}
	var missing []string
	versions := make(map[string]string) // a run by version
	failed := 0
	type merged struct {
		kept     *results.Kept
		line     []byte
		version  string
		document tables.Document
	}
	read := func(run int, k *results.Kept) (m merged, err error) {
		if m.kept = k; k == nil {
			return m, nil
		}
		a := plan.Runs[run].About
		if m.line, m.version, err = place(k.Line, a); err == nil {
			m.document, err = tables.Parse(bytes.NewReader(m.line))
		}
		if err == nil {
			err = differ(store, a)
		}
		if err != nil {
			err = fmt.Errorf("%s: run %s: %w", folder, a.ID, err)
		}
		return m, err
	}
	err = eachOf(store, plan, read, func(run int, m merged) error {
		a := plan.Runs[run].About
		if m.kept == nil {
			missing = append(missing, fmt.Sprintf("%s (%s seed=%d)", a.ID, strings.Join(factors(a), " "), a.Seed))
			return nil
		}
		if m.kept.Error() != "" {
			failed++
		}
		if versions[m.version] == "" {
			versions[m.version] = a.ID
		}
		if o.Page != nil {
			if err := o.Page(func(w io.Writer) error { _, err := w.Write(m.line); return err }); err != nil {
				return err
			}
		}
		return t.AddParsed(m.document)
	})
	if err != nil {
		return err
	}
	if err := f.checkMerge(p, missing, versions); err != nil {
		return err
	}
	if err := t.Commit(); err != nil {
		return err
	}
	if f.Timing {
		if err := f.mergeTimes(p, plan); err != nil {
			return err
		}
	}
	folder.Clean()
	if o.Commit != nil {
		if err := o.Commit(); err != nil {
			return err
		}
	}
	p.Info("%s: merged %d runs, %d of them failed", f.File, len(plan.Runs)-len(missing), failed)
	return nil
}

// await waits until all runs are there.
func (f *Flags) await(p *cli.Program, plan *Plan, store *results.Store) error {
	for {
		states, err := plan.states(store)
		if err != nil || !slices.ContainsFunc(states, func(s state) bool { return !s.there }) {
			return err
		}
		select {
		case <-time.After(5 * time.Second):
		case <-p.Context().Done():
			return context.Cause(p.Context())
		}
		if err := store.Refresh(); err != nil {
			return err
		}
	}
}

// differ returns an error if two files have different results of a run. Descriptions may differ by the version of the
// program.
func differ(store *results.Store, a *provenance.Run) error {
	kept, names, err := store.Twice(a.ID)
	if len(kept) == 0 || err != nil {
		return err
	}
	_, first, err := description(kept[0].Line)
	if err != nil {
		return err
	}
	for i, k := range kept[1:] {
		_, other, err := description(k.Line)
		if err != nil {
			return err
		}
		if !bytes.Equal(first, other) {
			return fmt.Errorf("%s and %s have different results: expected equal ones; a program has changed its "+
				"numbers, or a file is of another study: delete one of the files", names[0], names[i+1])
		}
	}
	return nil
}

// mergeTimes writes the table of wall-clock times.
func (f *Flags) mergeTimes(p *cli.Program, plan *Plan) error {
	times, err := results.Folder(f.folder).Timings()
	if err != nil {
		return err
	}
	file, err := p.Create(filepath.Join(f.folder, "timing.csv"), false)
	if err != nil {
		return err
	}
	defer file.Close()
	w := csv.NewWriter(file)
	w.Write([]string{"study", "point", "run", "seed", "wall_s"})
	for i := range plan.Runs {
		a := plan.Runs[i].About
		if seconds, known := times[a.ID]; known {
			w.Write([]string{plan.Study.Name, a.Point, a.ID, strconv.FormatInt(a.Seed, 10), seconds})
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	return file.Commit()
}

// checkMerge reports missing runs and different versions.
func (f *Flags) checkMerge(p *cli.Program, missing []string, versions map[string]string) error {
	if len(versions) > 1 {
		var list []string
		for _, version := range slices.Sorted(maps.Keys(versions)) {
			list = append(list, version+", such as run "+versions[version])
		}
		text := fmt.Sprintf("the runs are of %d versions of the program: %s", len(list), strings.Join(list, "; "))
		if f.strict {
			return errors.New(text)
		}
		p.Warn("%s", text)
	}
	if len(missing) == 0 {
		return nil
	}
	for _, run := range missing[:min(len(missing), 10)] {
		p.Error("missing: %s", run)
	}
	if !f.partial {
		return fmt.Errorf("%d runs are missing: run them, or merge with --partial", len(missing))
	}
	p.Info("%d runs are missing", len(missing))
	return nil
}
