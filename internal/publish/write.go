package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/internal/batch"
	"github.com/tracedag/tracedag/internal/dataset"
)

// workFolder is the folder of converted stores in that of the state.
const workFolder = "work"

// MetadataError reports incomplete or wrong metadata of a set.
type MetadataError struct{ Err error }

// Error returns the message.
func (e *MetadataError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *MetadataError) Unwrap() error { return e.Err }

// setMetadata merges the metadata of the set with those given, and checks them.
func (p *publication) setMetadata() error {
	p.meta = &dataset.Metadata{}
	var before *dataset.Metadata
	if p.before != nil {
		before = p.before.Meta
		p.meta.Merge(before)
	}
	p.meta.Merge(p.o.Metadata)
	for _, warning := range p.meta.Complete(before, folderName(p.o.Folder), p.o.Today) {
		p.o.Warn("%s", warning)
	}
	if err := p.meta.Validate(); err != nil {
		return &MetadataError{err}
	}
	return nil
}

// storeColumns returns the columns of stores.
func storeColumns() []dataset.Column {
	var columns []dataset.Column
	for _, c := range store.Columns() {
		columns = append(columns, dataset.Column{Name: c.Name, Type: c.Type, Description: c.Description, List: c.List})
	}
	return columns
}

// write writes the new set, unless it equals the old one.
func (p *publication) write() error {
	if err := p.bump(); err != nil {
		return err
	}
	if err := p.settle(); err != nil {
		return err
	}
	var removed []string
	if err := p.stageStores(&removed); err != nil {
		return err
	}
	files, err := p.describeSet()
	if err != nil {
		return err
	}
	for i := range p.rows {
		r := &p.rows[i]
		files = append(files, dataset.File{Path: r.Path, Bytes: r.Bytes, SHA256: r.SHA256})
	}
	others, err := p.others(files)
	if err != nil {
		return err
	}
	manifest := dataset.AppendManifest(nil, append(files, others...))
	if _, err := p.stageChanged(dataset.ManifestName, manifest); err != nil {
		return err
	}
	p.result.Identity = hexDigest(manifest)
	if !p.result.Changed && len(removed) == 0 {
		return nil
	}
	p.result.Changed = true
	return p.set.commit(removed)
}

// bump increases the version of the set if Options.Bump asks for it and the set changes.
func (p *publication) bump() error {
	if p.before == nil || p.o.Bump == "" {
		return nil
	}
	part := p.o.Bump
	if change := p.change(); change == "" {
		return nil
	} else if part == "auto" {
		part = change
	}
	version, err := dataset.Bump(p.meta.Version, part)
	if err != nil {
		return &MetadataError{fmt.Errorf("--bump: %w", err)}
	}
	p.meta.Version = version
	return nil
}

// change returns the part of the version that Croissant's rules increase: major if stores change or go, minor if stores
// are added, patch if only the metadata change, "" for no change.
func (p *publication) change() string {
	change := ""
	if !reflect.DeepEqual(p.before.Meta, p.meta) {
		change = "patch"
	}
	for _, c := range p.traces {
		switch c.status {
		case batch.Replaced:
			return "major"
		case batch.Added:
			change = "minor"
		}
	}
	if len(p.removed) > 0 {
		return "major"
	}
	return change
}

// suggest reports that the stores of the set changed, but not its version.
func (p *publication) suggest() {
	if p.before == nil || p.before.Meta.Version != p.meta.Version {
		return
	}
	if part := p.change(); part == "minor" || part == "major" {
		if version, err := dataset.Bump(p.meta.Version, part); err == nil {
			p.o.Info("the version of the set is still %s; --bump makes it %s", p.meta.Version, version)
		}
	}
}

// stageStores stages the stores of new traces and of those whose path changes. It adds the paths of files that go.
func (p *publication) stageStores(removed *[]string) error {
	staged := make(map[string]bool)
	for _, c := range p.traces {
		if c.status != batch.Added && c.status != batch.Replaced {
			continue
		}
		if err := moveTo(c.store, p.set.staged(c.row.Path)); err != nil {
			return err
		}
		staged[c.row.Path], p.result.Changed = true, true
	}
	for _, paths := range p.moved() {
		if !staged[paths[1]] { // not replaced
			if err := copyTo(p.before.path(paths[0]), p.set.staged(paths[1])); err != nil {
				return err
			}
		}
		*removed = append(*removed, paths[0])
	}
	for _, name := range p.removed {
		*removed = append(*removed, p.before.row(name).Path)
	}
	kept := make(map[string]bool)
	for i := range p.rows {
		kept[p.rows[i].Path] = true
	}
	*removed = slices.DeleteFunc(*removed, func(path string) bool { return kept[path] })
	return nil
}

// moveTo renames a file into a folder that it creates.
func moveTo(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// copyTo gives a file a second name, or copies it where the file system has no links.
func copyTo(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// describeSet stages the files that describe the set.
func (p *publication) describeSet() (files []dataset.File, err error) {
	catalogue := dataset.AppendCatalogue(nil, p.rows)
	s := &dataset.Set{Meta: p.meta, Rows: p.rows, StoreColumns: storeColumns(), CroissantVersion: p.o.Croissant,
		Catalogue: dataset.File{Path: dataset.CatalogueName, Bytes: int64(len(catalogue)),
			SHA256: hexDigest(catalogue)}}
	kaggle := p.o.Kaggle
	if p.before != nil {
		if s.CroissantVersion == "" {
			s.CroissantVersion = p.before.croissantVersion()
		}
		if kaggle == "" {
			kaggle = p.before.kaggleID()
		}
	}
	card, err := dataset.Card(s, p.current(dataset.CardName))
	if err != nil {
		return nil, &MetadataError{fmt.Errorf("%s: %w", filepath.Join(p.o.Folder, dataset.CardName), err)}
	}
	type text struct {
		path string
		data []byte
	}
	all := []text{
		{dataset.CatalogueName, catalogue}, {dataset.CroissantName, dataset.Croissant(s)}, {dataset.CardName, card},
		{dataset.MetadataName, p.meta.YAML()},
	}
	if p.o.Frictionless || p.current(dataset.PackageName) != nil {
		all = append(all, text{dataset.PackageName, dataset.DataPackage(s)})
	}
	if kaggle != "" {
		data, err := dataset.Kaggle(s, kaggle)
		if err != nil {
			return nil, &MetadataError{err}
		}
		all = append(all, text{dataset.KaggleName, data})
	}
	if name, data, ok := dataset.License(p.meta); ok && p.licenseIsOurs(name) {
		all = append(all, text{name, data})
	}
	for _, t := range all {
		file, err := p.stageChanged(t.path, t.data)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// current returns the content of a file of the set, nil if there is none.
func (p *publication) current(path string) []byte {
	data, err := os.ReadFile(filepath.Join(p.o.Folder, path))
	if err != nil {
		return nil
	}
	return data
}

// licenseIsOurs reports whether the file of the licence is missing or written by this package; a licence that the user
// put into the set stays.
func (p *publication) licenseIsOurs(name string) bool {
	now := p.current(name)
	if now == nil {
		return true
	}
	if p.before == nil {
		return false
	}
	_, written, _ := dataset.License(p.before.Meta)
	return bytes.Equal(now, written)
}

// stageChanged stages a file unless the set has it with the same content.
func (p *publication) stageChanged(path string, data []byte) (dataset.File, error) {
	file := dataset.File{Path: path, Bytes: int64(len(data)), SHA256: hexDigest(data)}
	now := p.current(path)
	if now != nil && bytes.Equal(now, data) {
		return file, nil
	}
	if now != nil && p.before == nil && path != dataset.LicenseName && !bytes.Contains(now, []byte("<!-- mine -->")) {
		return file, fmt.Errorf("%s: expected a new set, found a file of this name that is not of a set; move it, or "+
			"use another folder", filepath.Join(p.o.Folder, path))
	}
	p.result.Changed = true
	return file, p.set.stage(path, data)
}

// others returns the files in the folder that the set does not consist of, such as a paper: the manifest lists them. A
// file that is in the folder of stores but not in the catalogue is an error.
func (p *publication) others(own []dataset.File) (others []dataset.File, err error) {
	known := make(map[string]bool)
	for _, f := range own {
		known[f.Path] = true
	}
	if p.before != nil {
		for i := range p.before.Rows {
			known[p.before.Rows[i].Path] = true
		}
	}
	paths, err := otherFiles(p.o.Folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, path := range paths {
		full := filepath.Join(p.o.Folder, filepath.FromSlash(path))
		switch {
		case known[path]:
			continue
		case strings.HasPrefix(path, dataset.TracesName+"/"):
			return nil, fmt.Errorf("%s: expected only the stores of the catalogue in this folder; move the file", full)
		case !dataset.SafePath(path):
			return nil, fmt.Errorf("%s: expected a name without control characters, ':' and '\\'; rename the file",
				full)
		}
		size, digest, err := digestFile(full)
		if err != nil {
			return nil, err
		}
		others = append(others, dataset.File{Path: path, Bytes: size, SHA256: digest})
	}
	return others, nil
}
