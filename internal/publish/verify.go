package publish

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/dataset"
	"github.com/tracedag/tracedag/internal/par"
)

// Finding is a fault of a set. Path is that of a file, relative to the set.
type Finding struct {
	Path string
	What string
}

// VerifyOptions configures [Verify].
type VerifyOptions struct {
	Context  context.Context
	Quick    bool        // check names and sizes only
	Jobs     int         // files checked concurrently
	Progress func(int64) // counts the bytes of files that are checked; nil: discards
}

// Verified is what [Verify] checked.
type Verified struct {
	Findings []Finding // by path
	Files    int
	Bytes    int64
	Identity string // SHA-256 of SHA256SUMS; "" if it is missing
}

// Verify checks a set, which it does not change: every file against SHA256SUMS and the catalogue, every store, and the
// files that describe the set. An error is one that prevents the check, such as a folder that is no set.
func Verify(folder string, o VerifyOptions) (*Verified, error) {
	if o.Progress == nil {
		o.Progress = func(int64) {}
	}
	v := &verification{folder: folder, o: o, inCatalogue: make(map[string]*dataset.Row)}
	if info, err := os.Stat(folder); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s: expected the folder of a set, found a file", folder)
	}
	if _, err := os.Lstat(filepath.Join(folder, stateFolder)); err == nil {
		v.find(stateFolder, "the set is being published, or that was interrupted: run traceconv --publish %s, or "+
			"tracecat --verify --repair %s, to finish", folder, folder)
	}
	if err := v.read(); err != nil {
		return nil, err
	}
	if err := v.files(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(v.findings, func(a, b Finding) int { return cmp.Compare(a.Path, b.Path) })
	return &Verified{Findings: v.findings, Files: len(v.paths), Bytes: v.bytes, Identity: v.identity}, nil
}

type verification struct {
	folder   string
	o        VerifyOptions
	findings []Finding
	identity string
	bytes    int64

	meta        *dataset.Metadata // nil: missing or wrong
	manifest    map[string]dataset.File
	paths       []string // all files of the set, as listed or found
	inCatalogue map[string]*dataset.Row
	described   map[string]resource // files that croissant.json names
}

func (v *verification) find(path, format string, args ...any) {
	v.findings = append(v.findings, Finding{path, fmt.Sprintf(format, args...)})
}

func (v *verification) path(file string) string {
	return filepath.Join(v.folder, filepath.FromSlash(file))
}

// failed records that a file cannot be read. The message omits its name.
func (v *verification) failed(path string, err error) {
	v.find(path, "%s", withoutName(v.path(path), err))
}

// withoutName returns the message of an error without the name of its file at the front.
func withoutName(name string, err error) string {
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) && pathErr.Path == name {
		return pathErr.Err.Error()
	}
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), name+": "), name+":")
}

// read reads the manifest, the catalogue and the descriptions.
func (v *verification) read() error {
	present, err := otherFiles(v.folder)
	if err != nil {
		return err
	}
	v.manifest = make(map[string]dataset.File)
	switch text, err := os.ReadFile(v.path(dataset.ManifestName)); {
	case errors.Is(err, fs.ErrNotExist) && !IsSet(v.folder):
		return fmt.Errorf("%s: expected a published set, found no %s and no %s", v.folder, dataset.ManifestName,
			dataset.CatalogueName)
	case errors.Is(err, fs.ErrNotExist):
		v.find(dataset.ManifestName, "missing")
	case err != nil:
		v.failed(dataset.ManifestName, err)
	default:
		v.identity = hexDigest(text)
		files, err := dataset.ParseManifest(v.path(dataset.ManifestName), text)
		if err != nil {
			v.failed(dataset.ManifestName, err)
			break
		}
		for _, f := range files {
			v.manifest[f.Path] = f
		}
		v.compareNames(files, present)
	}
	v.readCatalogue()
	v.readMetadata()
	v.readCroissant()
	v.paths = present
	return nil
}

// compareNames finds files that are missing or extra.
func (v *verification) compareNames(listed []dataset.File, present []string) {
	there := make(map[string]bool, len(present))
	for _, path := range present {
		if there[path] = true; v.manifest[path].Path == "" {
			v.find(path, "extra: %s does not list it", dataset.ManifestName)
		}
	}
	for _, f := range listed {
		if !there[f.Path] {
			v.find(f.Path, "missing")
		}
	}
	for _, path := range []string{dataset.CatalogueName, dataset.MetadataName, dataset.CroissantName,
		dataset.CardName} {
		if v.manifest[path].Path == "" && !there[path] {
			v.find(path, "missing, also in %s", dataset.ManifestName)
		}
	}
}

// readCatalogue reads the catalogue and compares it with the manifest.
func (v *verification) readCatalogue() {
	rows, err := Catalogue(v.folder)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			v.failed(dataset.CatalogueName, err)
		}
		return
	}
	for i := range rows {
		r := &rows[i]
		if v.inCatalogue[r.Path] = r; v.manifest[r.Path].Path == "" && len(v.manifest) > 0 {
			v.find(dataset.CatalogueName, "trace %s: %s is not in %s", r.Trace, r.Path, dataset.ManifestName)
		}
		if want := storePath(partitionOf(r.Path), r); r.Path != want {
			v.find(dataset.CatalogueName, "trace %s: expected the path %s, found %s", r.Trace, want, r.Path)
		}
	}
	for path := range v.manifest {
		if strings.HasPrefix(path, dataset.TracesName+"/") && v.inCatalogue[path] == nil {
			v.find(path, "no row of %s has it", dataset.CatalogueName)
		}
	}
}

// readMetadata reads dataset.yaml.
func (v *verification) readMetadata() {
	text, err := os.ReadFile(v.path(dataset.MetadataName))
	if err != nil {
		return // missing, or not in the manifest
	}
	meta, err := dataset.ParseMetadata(v.path(dataset.MetadataName), text)
	if err == nil {
		if err = meta.Validate(); err != nil {
			err = withoutExample(err)
		}
	}
	if err != nil {
		v.failed(dataset.MetadataName, err)
		return
	}
	v.meta = meta
}

// withoutExample returns an error of [dataset.Metadata.Validate] on one line, without the example of a file.
func withoutExample(err error) error {
	text, _, _ := strings.Cut(err.Error(), "\nWrite them")
	return errors.New(strings.Join(strings.Fields(text), " "))
}

// resource is a file that croissant.json describes.
type resource struct {
	Size   string `json:"contentSize"`
	SHA256 string `json:"sha256"`
	URL    string `json:"contentUrl"`
	Type   string `json:"@type"`
	ID     string `json:"@id"`
}

// readCroissant checks the files and the columns that croissant.json names.
func (v *verification) readCroissant() {
	v.described = make(map[string]resource)
	text, err := os.ReadFile(v.path(dataset.CroissantName))
	if err != nil {
		return
	}
	var c struct {
		Distribution []resource
		RecordSet    []struct {
			ID    string `json:"@id"`
			Field []struct {
				Source struct{ Extract struct{ Column string } }
			}
		}
	}
	if err := json.Unmarshal(text, &c); err != nil {
		v.find(dataset.CroissantName, "expected JSON of Croissant: %v", err)
		return
	}
	for _, d := range c.Distribution {
		if d.Type != "cr:FileObject" {
			continue
		}
		f, listed := v.manifest[d.URL]
		switch {
		case !listed:
			v.find(dataset.CroissantName, "names %q, which %s does not list", d.URL, dataset.ManifestName)
		case d.SHA256 != f.SHA256:
			v.find(dataset.CroissantName, "digest of %s: expected %s as in %s, found %.80s", d.URL, f.SHA256,
				dataset.ManifestName, d.SHA256)
		default:
			v.described[d.URL] = d
		}
	}
	columns := map[string][]string{"catalogue": names(dataset.CatalogueColumns()), "ops": names(storeColumns())}
	for _, set := range c.RecordSet {
		for _, f := range set.Field {
			if known := columns[set.ID]; !slices.Contains(known, f.Source.Extract.Column) {
				v.find(dataset.CroissantName, "record set %q: column %q is not in the files", set.ID,
					f.Source.Extract.Column)
			}
		}
		delete(columns, set.ID)
	}
	for id := range columns {
		v.find(dataset.CroissantName, "expected a record set %q, found none", id)
	}
}

func names(columns []dataset.Column) (all []string) {
	for _, c := range columns {
		all = append(all, c.Name)
	}
	return all
}

// files checks all files, several at a time.
func (v *verification) files() error {
	found := make([][]Finding, len(v.paths))
	sizes := make([]int64, len(v.paths))
	err := par.EachOn(v.o.Jobs, len(v.paths), func(i int) error {
		if err := par.Interrupted(v.o.Context); err != nil {
			return err
		}
		one := &fileCheck{v: v, path: v.paths[i]}
		one.check()
		found[i], sizes[i] = one.findings, one.size
		v.o.Progress(one.size)
		return nil
	})
	for i := range found {
		v.findings = append(v.findings, found[i]...)
		v.bytes += sizes[i]
	}
	return err
}

// fileCheck checks a file.
type fileCheck struct {
	v        *verification
	path     string
	size     int64
	findings []Finding
}

func (c *fileCheck) find(format string, args ...any) {
	c.findings = append(c.findings, Finding{c.path, fmt.Sprintf(format, args...)})
}

func (c *fileCheck) check() {
	name := c.v.path(c.path)
	info, err := os.Lstat(name)
	switch {
	case err != nil:
		c.find("%s", withoutName(name, err))
		return
	case info.Mode()&fs.ModeSymlink != 0:
		if info, err = os.Stat(name); err != nil {
			c.find("%s", withoutName(name, err))
			return
		}
	}
	if !info.Mode().IsRegular() {
		c.find("expected a regular file")
		return
	}
	c.size = info.Size()
	c.checkSize()
	row := c.v.inCatalogue[c.path]
	if c.v.o.Quick {
		return
	}
	listed := c.v.manifest[c.path]
	if row == nil {
		_, digest, err := digestFile(name)
		c.checkDigest(listed, digest, err)
		return
	}
	d, err := describe(name)
	if err != nil {
		if _, digest, digestErr := digestFile(name); digestErr == nil {
			c.checkDigest(listed, digest, nil)
		}
		c.find("%s", withoutName(name, err))
		return
	}
	c.checkDigest(listed, d.SHA256, nil)
	c.checkRow(d, row)
	if d.count > 0 {
		c.find("the trace cannot complete: %v; tracecat --check lists %s", d.problems[0], count(d.count, "error"))
	}
}

// checkSize compares the size with that in the catalogue and in croissant.json.
func (c *fileCheck) checkSize() {
	if row := c.v.inCatalogue[c.path]; row != nil && row.Bytes != c.size {
		c.find("expected %d bytes as in %s, found %d", row.Bytes, dataset.CatalogueName, c.size)
	}
	if d, described := c.v.described[c.path]; described && d.Size != strconv.FormatInt(c.size, 10)+" B" {
		c.find("expected %s as in %s, found %d B", d.Size, dataset.CroissantName, c.size)
	}
}

// checkDigest compares the digest with that in the manifest.
func (c *fileCheck) checkDigest(listed dataset.File, digest string, err error) {
	switch {
	case err != nil:
		c.find("%s", withoutName(c.v.path(c.path), err))
	case listed.Path != "" && listed.SHA256 != digest:
		c.find("expected the SHA-256 %s as in %s, found %s", listed.SHA256, dataset.ManifestName, digest)
	}
}

// checkRow compares a row of the catalogue with the store and the metadata.
func (c *fileCheck) checkRow(d *described, row *dataset.Row) {
	want := d.Row
	want.Trace, want.SourceFormat, want.AddedVersion = row.Trace, row.SourceFormat, row.AddedVersion
	want.Workload = cmp.Or(d.generator, row.SourceFormat)
	if c.v.meta != nil {
		complete(&want, c.v.meta, partitionOf(row.Path))
	} else {
		want.License, want.Creator, want.Source, want.Citation = row.License, row.Creator, row.Source, row.Citation
		want.Title, want.Workload, want.Tags = row.Title, row.Workload, row.Tags
	}
	want.Path = row.Path
	expected, found := want.Values(), row.Values()
	for i := range expected {
		if !reflect.DeepEqual(expected[i].Value, found[i].Value) {
			c.find("column %s of %s: expected %s, found %s", expected[i].Name, dataset.CatalogueName,
				shown(expected[i].Value), shown(found[i].Value))
		}
	}
}

// shown formats a value of a row.
func shown(value any) string {
	if value == nil {
		return "NULL"
	}
	return fmt.Sprintf("%.100q", fmt.Sprint(value))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Repair finishes a change of a set that was interrupted after its point of no return, and undoes one that was
// interrupted before it. It reports whether there was one. It waits for a process that publishes the set.
func Repair(folder string) (bool, error) {
	if _, err := os.Lstat(filepath.Join(folder, stateFolder)); err != nil {
		return false, nil
	}
	set, err := lockSet(folder, true, true)
	if err != nil {
		return false, err
	}
	set.unlock()
	return true, nil
}
