package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/formats/tracefile"
	"github.com/tracedag/tracedag/internal/batch"
	"github.com/tracedag/tracedag/internal/dataset"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// readWrite is a converter that reads and writes.
type readWrite struct{}

func (readWrite) Detect(name string) (string, error) {
	f, err := tracefile.Identify(formats.All, name, tracefile.Options{})
	if f == nil || err != nil {
		return "", err
	}
	return f.Name, nil
}

func (readWrite) Digest(name string) (string, error) {
	_, sum, err := digestFile(name)
	return sum, err
}

func (c readWrite) Convert(name, path string) (digest string, err error) {
	if digest, err = c.Digest(name); err != nil {
		return "", err
	}
	t, err := formats.Read(name, formats.Options{})
	if err != nil {
		return "", err
	}
	t.Provenance = append(t.Provenance, dag.Provenance{Program: "test", Version: "1",
		Inputs: []dag.Input{{Name: filepath.Base(name), SHA256: digest}}, Command: []string{"test",
			filepath.Base(name)}})
	out, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return digest, errors.Join(store.Write(out, t), out.Close())
}

func (readWrite) Progress(int64) {}

// writeTrace writes a trace of one rank with a calc of n picoseconds in GOAL.
func writeTrace(t *testing.T, name string, n int) string {
	t.Helper()
	writeFile(t, name, fmt.Sprintf("num_ranks 1\nrank 0 {\nl0: calc %d\n}\n", n))
	return name
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// options returns the options to add inputs to a set.
func options(t *testing.T, folder string, inputs ...string) *Options {
	m := &dataset.Metadata{}
	for key, text := range map[string]string{
		"title": "Test traces", "description": "Traces of a test.", "license": "CC0-1.0", "creator": "Somebody",
		"url": "https://example.org/set",
	} {
		if err := m.Set(key, text); err != nil {
			t.Fatal(err)
		}
	}
	return &Options{Context: t.Context(), Folder: folder, Formats: formats.All, Inputs: inputs, Metadata: m,
		NoSync: true,
		Today:  "2026-11-01", Jobs: 2, Converter: readWrite{}, Warn: t.Logf, Info: t.Logf, Explain: t.Logf}
}

// mustRun publishes without an error.
func mustRun(t *testing.T, o *Options) *Result {
	t.Helper()
	r, err := Run(o)
	if err != nil {
		if r != nil {
			for _, o := range r.Outcomes {
				t.Log(o)
			}
		}
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(o.Folder, stateFolder)); err == nil {
		t.Errorf("%s remains", stateFolder)
	}
	return r
}

// content returns the files of a folder and their content.
func content(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		relative, _ := filepath.Rel(folder, name)
		files[filepath.ToSlash(relative)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// sameContent checks that two sets have the same bytes.
func sameContent(t *testing.T, label, a, b string) {
	t.Helper()
	x, y := content(t, a), content(t, b)
	for name := range x {
		if x[name] != y[name] {
			t.Errorf("%s: %s differs:\n%.600q\n%.600q", label, name, x[name], y[name])
		}
	}
	if len(x) != len(y) {
		t.Errorf("%s: %d files and %d", label, len(x), len(y))
	}
}

// mustVerify checks that a set has no findings.
func mustVerify(t *testing.T, folder string) {
	t.Helper()
	if found := findings(t, folder); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

func findings(t *testing.T, folder string) []Finding {
	t.Helper()
	v, err := Verify(folder, VerifyOptions{Context: t.Context(), Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	return v.Findings
}

func traceNames(rows []dataset.Row) (names []string) {
	for i := range rows {
		names = append(names, rows[i].Trace)
	}
	return names
}

func catalogueOf(t *testing.T, folder string) []dataset.Row {
	t.Helper()
	rows, err := Catalogue(folder)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestOrder checks that a set has the same bytes whatever the order and the company of its traces.
func TestOrder(t *testing.T) {
	dir := t.TempDir()
	var inputs []string
	for i, name := range []string{"b/x.goal", "a/x.goal", "c/x-2.goal", "y.goal", "Z Z.goal", "9.goal"} {
		inputs = append(inputs, writeTrace(t, filepath.Join(dir, name), i+1))
	}
	whole := filepath.Join(dir, "1", "set")
	mustRun(t, options(t, whole, inputs...))
	mustVerify(t, whole)
	if got := traceNames(catalogueOf(t, whole)); !slices.Equal(got, []string{"t-9", "x", "x-2", "x-3", "y", "z-z"}) {
		t.Errorf("names %v", got)
	}
	backward := filepath.Join(dir, "2", "set")
	slices.Reverse(inputs)
	o := options(t, backward, inputs...)
	o.Jobs = 8
	mustRun(t, o)
	sameContent(t, "backward", whole, backward)
	slices.Reverse(inputs)
	parts := filepath.Join(dir, "3", "set")
	for _, part := range [][]string{inputs[5:], inputs[:3], inputs[3:5]} {
		mustRun(t, options(t, parts, part...))
	}
	sameContent(t, "in parts", whole, parts)
}

// TestIdempotent checks that adding traces of the set changes no file.
func TestIdempotent(t *testing.T) {
	dir := t.TempDir()
	a, b := writeTrace(t, filepath.Join(dir, "a.goal"), 1), writeTrace(t, filepath.Join(dir, "b.goal"), 2)
	set := filepath.Join(dir, "set")
	first := mustRun(t, options(t, set, a, b))
	if !first.Changed || first.Traces != 2 {
		t.Errorf("first: %+v", first)
	}
	times := func() map[string]fs.FileInfo {
		infos := make(map[string]fs.FileInfo)
		filepath.WalkDir(set, func(name string, e fs.DirEntry, err error) error {
			infos[name], _ = e.Info()
			return err
		})
		return infos
	}
	before := times()
	for _, inputs := range [][]string{{a, b}, {b}, {dir}, {filepath.Join(dir, "*.goal")}, {}} {
		for _, skip := range []bool{false, true} {
			o := options(t, set, inputs...)
			o.SkipExisting = skip
			again := mustRun(t, o)
			if again.Changed || again.Identity != first.Identity {
				t.Errorf("%v: changed the set", inputs)
			}
			for _, outcome := range again.Outcomes {
				if outcome.Status != batch.Unchanged {
					t.Errorf("%v: %v", inputs, outcome)
				}
			}
		}
	}
	for name, info := range times() {
		if was := before[name]; was == nil || !was.ModTime().Equal(info.ModTime()) || !os.SameFile(was, info) {
			t.Errorf("%s was written again", name)
		}
	}
	if err := os.Remove(filepath.Join(set, dataset.ManifestName)); err != nil {
		t.Fatal(err)
	}
	if again := mustRun(t, options(t, set)); !again.Changed || again.Identity != first.Identity {
		t.Errorf("a missing manifest: %+v", again)
	}
	store := filepath.Join(set, "traces/workload=goal/trace=a/a.parquet")
	o := options(t, set, store)
	o.SkipExisting = true
	if r := mustRun(t, o); r.Changed || r.Outcomes[0].Status != batch.Unchanged {
		t.Errorf("a store of the set: %+v", r)
	}
}

func TestReplaceAndRemove(t *testing.T) {
	dir := t.TempDir()
	a, b := writeTrace(t, filepath.Join(dir, "a.goal"), 1), writeTrace(t, filepath.Join(dir, "b.goal"), 2)
	set := filepath.Join(dir, "set")
	mustRun(t, options(t, set, a, b))
	writeTrace(t, a, 3)
	before := content(t, set)
	r, err := Run(options(t, set, a))
	if !errors.Is(err, ErrFailed) || r.Outcomes[0].Err == nil || !strings.Contains(r.Outcomes[0].Err.Error(),
		"--replace") {
		t.Errorf("another trace of the same name: %v, %+v", err, r)
	}
	if !reflect.DeepEqual(before, content(t, set)) {
		t.Error("a failed input changed the set")
	}
	o := options(t, set, a)
	o.Replace, o.Bump = true, "auto"
	if r := mustRun(t, o); r.Outcomes[0].Status != batch.Replaced {
		t.Errorf("replaced: %+v", r)
	}
	mustVerify(t, set)
	if rows := catalogueOf(t, set); *rows[0].CalcPS != 3000 || rows[0].AddedVersion != "2.0.0" ||
		rows[1].AddedVersion != "1.0.0" {
		t.Errorf("rows %+v", rows)
	}
	o = options(t, set)
	o.Remove = []string{"a"}
	mustRun(t, o)
	mustVerify(t, set)
	if got := traceNames(catalogueOf(t, set)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("names %v", got)
	}
	if _, err := os.Stat(filepath.Join(set, "traces/workload=goal/trace=a")); err == nil {
		t.Error("the folder of a removed trace remains")
	}
	if _, err := Run(o); err == nil || !strings.Contains(err.Error(), "no such trace") {
		t.Errorf("removed twice: %v", err)
	}
}

func TestDuplicates(t *testing.T) {
	dir := t.TempDir()
	a := writeTrace(t, filepath.Join(dir, "a.goal"), 1)
	copied := writeTrace(t, filepath.Join(dir, "sub/copy.goal"), 1)
	set := filepath.Join(dir, "set")
	r, err := Run(options(t, set, copied, a))
	if !errors.Is(err, ErrFailed) || r.Traces != 1 || r.Outcomes[1].Status != batch.Failed {
		t.Errorf("two inputs with one trace: %v, %+v", err, r)
	}
	mustVerify(t, set)
	o := options(t, set, copied)
	if r, err := Run(o); !errors.Is(err, ErrFailed) || r.Changed {
		t.Errorf("a trace of the set by another name: %v, %+v", err, r)
	}
	o.SkipExisting = true
	if r := mustRun(t, o); r.Outcomes[0].Status != batch.Skipped {
		t.Errorf("skipped: %+v", r)
	}
}

func TestFailures(t *testing.T) {
	dir := t.TempDir()
	a := writeTrace(t, filepath.Join(dir, "raw/a.goal"), 1)
	writeFile(t, filepath.Join(dir, "raw/bad.goal"), "num_ranks 1\nrank 0 {\nnonsense\n}\n")
	writeFile(t, filepath.Join(dir, "raw/notes.txt"), "not a trace\n")
	set := filepath.Join(dir, "set")
	o := options(t, set, filepath.Join(dir, "raw"))
	o.AllOrNothing = true
	if r, err := Run(o); !errors.Is(err, ErrFailed) || r.Changed {
		t.Errorf("all or nothing: %v, %+v", err, r)
	}
	if _, err := os.Stat(set); err == nil {
		t.Error("a set that was not published exists")
	}
	o.AllOrNothing = false
	r, err := Run(o)
	if !errors.Is(err, ErrFailed) || r.Traces != 1 {
		t.Errorf("one bad input: %v, %+v", err, r)
	}
	want := []batch.Status{batch.Added, batch.Failed, NoTrace}
	for i, outcome := range r.Outcomes {
		if outcome.Status != want[i] {
			t.Errorf("%s: found %s, expected %s", outcome.Input, outcome.Status, want[i])
		}
	}
	mustVerify(t, set)
	o = options(t, set, filepath.Join(dir, "raw"))
	o.Exclude, o.Strict = []string{"bad*"}, true
	if r, err := Run(o); !errors.Is(err, ErrFailed) || r.Outcomes[1].Status != batch.Failed {
		t.Errorf("strict: %v, %+v", err, r)
	}
	o.Exclude = []string{"bad*", "*.txt"}
	mustRun(t, o)
	o = options(t, set, a)
	o.Metadata = &dataset.Metadata{License: "CC-BY-4"}
	var wrong *MetadataError
	if _, err := Run(o); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "CC-BY-4.0") {
		t.Errorf("wrong licence: %v", err)
	}
	mustVerify(t, set)
	foreign := filepath.Join(dir, "foreign")
	writeFile(t, filepath.Join(foreign, "README.md"), "# Mine\n")
	if _, err := Run(options(t, foreign, a)); err == nil || !strings.Contains(err.Error(), "README.md") {
		t.Errorf("a README.md of the user: %v", err)
	}
	if got := content(t, foreign); len(got) != 1 || got["README.md"] != "# Mine\n" {
		t.Errorf("the folder of the user has %v", got)
	}
}

// TestOptions checks tags, partitions, descriptions and files of the user.
func TestOptions(t *testing.T) {
	dir := t.TempDir()
	a, b := writeTrace(t, filepath.Join(dir, "a.goal"), 1), writeTrace(t, filepath.Join(dir, "b.goal"), 2)
	set := filepath.Join(dir, "set")
	o := options(t, set, a)
	o.Tags, o.Name, o.Croissant, o.Frictionless, o.Kaggle = []string{"site=North", "workload=my app"}, "first", "1.1",
		true,
		"owner/test-traces"
	o.Partition = []string{"ranks", "workload", "site"}
	mustRun(t, o)
	mustRun(t, options(t, set, b))
	mustVerify(t, set)
	rows := catalogueOf(t, set)
	want := []string{"traces/ranks=r00001/workload=goal/site=none/trace=b/b.parquet",
		"traces/ranks=r00001/workload=my-app/site=north/trace=first/first.parquet"}
	for i := range rows {
		if rows[i].Path != want[i] {
			t.Errorf("path %s, expected %s", rows[i].Path, want[i])
		}
	}
	files := content(t, set)
	if !strings.Contains(files["croissant.json"], "croissant/1.1") || files["datapackage.json"] == "" ||
		!strings.Contains(files["dataset-metadata.json"], "owner/test-traces") {
		t.Error("a second publication lost options of the first")
	}
	writeFile(t, filepath.Join(set, "paper/paper.txt"), "text")
	if found := findings(t, set); len(found) != 1 || found[0].Path != "paper/paper.txt" {
		t.Errorf("an extra file: %v", found)
	}
	o = options(t, set)
	o.Partition = []string{"format"}
	mustRun(t, o)
	mustVerify(t, set)
	if got := catalogueOf(t, set)[0].Path; got != "traces/format=goal/trace=b/b.parquet" {
		t.Errorf("path %s", got)
	}
	if entries, _ := os.ReadDir(filepath.Join(set, "traces")); len(entries) != 1 {
		t.Errorf("old folders remain: %v", entries)
	}
	writeFile(t, filepath.Join(set, "traces/stray.parquet"), "text")
	if _, err := Run(options(t, set, a)); err == nil || !strings.Contains(err.Error(), "stray.parquet") {
		t.Errorf("a stray store: %v", err)
	}
}

// TestVerify checks that every damage is found and named.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	a, b := writeTrace(t, filepath.Join(dir, "a.goal"), 1), writeTrace(t, filepath.Join(dir, "b.goal"), 2)
	set := filepath.Join(dir, "set")
	mustRun(t, options(t, set, a, b))
	mustVerify(t, set)
	for path, text := range content(t, set) {
		name := filepath.Join(set, filepath.FromSlash(path))
		check := func(damage string, want string) {
			t.Helper()
			found := findings(t, set)
			if !slices.ContainsFunc(found, func(f Finding) bool { return f.Path == want }) {
				t.Errorf("%s of %s: found %v", damage, path, found)
			}
		}
		step := max(1, len(text)/40)
		for i := 0; i < len(text); i += step {
			flipped := []byte(text)
			flipped[i] ^= 1 << (i % 8)
			os.WriteFile(name, flipped, 0o666)
			if path == dataset.ManifestName { // names the file whose line is damaged, or itself
				if len(findings(t, set)) == 0 {
					t.Errorf("flip at %d of %s is not found", i, path)
				}
				continue
			}
			check(fmt.Sprintf("flip at %d", i), path)
		}
		os.WriteFile(name, []byte(text[:len(text)-1]), 0o666)
		if path != dataset.ManifestName {
			check("cut", path)
		}
		os.Remove(name)
		check("removal", path)
		if path != dataset.ManifestName {
			os.WriteFile(name+"x", []byte(text), 0o666)
			check("new name", path+"x")
			os.Remove(name + "x")
		}
		os.WriteFile(name, []byte(text), 0o666)
	}
	mustVerify(t, set)
}

// TestVerifyConsistent checks that descriptions with right digests but wrong content are found.
func TestVerifyConsistent(t *testing.T) {
	dir := t.TempDir()
	set := filepath.Join(dir, "set")
	mustRun(t, options(t, set, writeTrace(t, filepath.Join(dir, "a.goal"), 1)))
	files := content(t, set)
	// rewrite writes a file and the manifest with its digest.
	rewrite := func(path string, data []byte) {
		writeFile(t, filepath.Join(set, path), string(data))
		listed, err := dataset.ParseManifest("", []byte(files[dataset.ManifestName]))
		if err != nil {
			t.Fatal(err)
		}
		for i := range listed {
			if listed[i].Path == path {
				listed[i].SHA256 = hexDigest(data)
			}
		}
		writeFile(t, filepath.Join(set, dataset.ManifestName), string(dataset.AppendManifest(nil, listed)))
	}
	rows := catalogueOf(t, set)
	for _, change := range []func(r *dataset.Row){
		func(r *dataset.Row) { r.Ops++ }, func(r *dataset.Row) { *r.CalcPS++ },
		func(r *dataset.Row) { r.License = "MIT" },
		func(r *dataset.Row) { r.Title = "x" }, func(r *dataset.Row) { r.Command = "rm" },
		func(r *dataset.Row) { r.Bytes++ },
		func(r *dataset.Row) { r.Measured = true }, func(r *dataset.Row) { r.Tags = []string{"a=b"} },
		func(r *dataset.Row) { r.Workload = "other" }, func(r *dataset.Row) { r.BytesSent = nil },
	} {
		changed := slices.Clone(rows)
		calc := *rows[0].CalcPS
		change(&changed[0])
		rewrite(dataset.CatalogueName, dataset.AppendCatalogue(nil, changed))
		*rows[0].CalcPS = calc
		if len(findings(t, set)) == 0 {
			t.Errorf("a wrong row is not found: %+v", changed[0])
		}
	}
	writeFile(t, filepath.Join(set, dataset.CatalogueName), files[dataset.CatalogueName])
	croissant := files[dataset.CroissantName]
	for old, changed := range map[string]string{
		`"column": "ops"`: `"column": "opus"`, hexDigest([]byte(files[dataset.CatalogueName])): strings.Repeat("0", 64),
		`"contentUrl": "catalogue.parquet"`: `"contentUrl": "other.parquet"`,
	} {
		if !strings.Contains(croissant, old) {
			t.Fatalf("croissant.json has no %s", old)
		}
		rewrite(dataset.CroissantName, []byte(strings.ReplaceAll(croissant, old, changed)))
		if found := findings(t, set); !slices.ContainsFunc(found, func(f Finding) bool {
			return f.Path == dataset.CroissantName
		}) {
			t.Errorf("%s: found %v", changed, found)
		}
	}
}

// TestRecovery checks that a change that stops at any step is undone or finished.
func TestRecovery(t *testing.T) {
	dir := t.TempDir()
	a, b := writeTrace(t, filepath.Join(dir, "a.goal"), 1), writeTrace(t, filepath.Join(dir, "b.goal"), 2)
	old, fresh := filepath.Join(dir, "old", "set"), filepath.Join(dir, "new", "set")
	mustRun(t, options(t, old, a))
	mustRun(t, options(t, fresh, a))
	o := options(t, fresh, b)
	o.Remove = []string{"a"}
	mustRun(t, o)
	after := content(t, fresh)
	before := content(t, old)
	var paths []string
	for path := range after {
		if after[path] != before[path] {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	gone := "traces/workload=goal/trace=a/a.parquet"
	for placed := -1; placed <= len(paths); placed++ { // -1: not committed
		set := filepath.Join(dir, fmt.Sprint("cut", placed), "set")
		for path, text := range before {
			writeFile(t, filepath.Join(set, path), text)
		}
		state := filepath.Join(set, stateFolder)
		for i, path := range paths {
			if name := filepath.Join(set, path); i >= placed {
				name = filepath.Join(state, newFolder, path)
				writeFile(t, name, after[path])
			} else {
				writeFile(t, name, after[path])
			}
		}
		writeFile(t, filepath.Join(state, removedName), gone+"\n")
		writeFile(t, filepath.Join(state, workFolder, "000001.parquet"), "unfinished")
		want := before
		if placed >= 0 {
			writeFile(t, filepath.Join(state, commitName), "")
			want = after
		}
		if found := findings(t, set); !slices.ContainsFunc(found,
			func(f Finding) bool { return f.Path == stateFolder }) {
			t.Errorf("%d files placed: an interrupted change is not found: %v", placed, found)
		}
		if repaired, err := Repair(set); !repaired || err != nil {
			t.Errorf("repair: %v, %v", repaired, err)
		}
		if got := content(t, set); !reflect.DeepEqual(got, want) {
			t.Errorf("%d files placed: the set has %d files, expected %d", placed, len(got), len(want))
		}
	}
}

// TestStop checks that a process that is about to exit undoes its change.
func TestStop(t *testing.T) {
	dir := t.TempDir()
	set := filepath.Join(dir, "set")
	mustRun(t, options(t, set, writeTrace(t, filepath.Join(dir, "a.goal"), 1)))
	before := content(t, set)
	for _, folder := range []string{set, filepath.Join(dir, "none")} {
		locked, err := lockSet(folder, true, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := locked.stage("traces/new.parquet", []byte("text")); err != nil {
			t.Fatal(err)
		}
		locked.stop()
	}
	if !reflect.DeepEqual(content(t, set), before) {
		t.Error("the set changed")
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a set that was not published exists")
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	set := filepath.Join(dir, "set")
	first, err := lockSet(set, true, false)
	if err != nil {
		t.Fatal(err)
	}
	var locked *LockedError
	if _, err := lockSet(set, false, false); !errors.As(err, &locked) {
		t.Errorf("a locked set: %v", err)
	}
	got := make(chan error)
	go func() {
		second, err := lockSet(set, true, false)
		if err == nil {
			second.unlock()
		}
		got <- err
	}()
	first.unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestNameOf(t *testing.T) {
	for text, want := range map[string]string{
		"": "t", "abc": "abc", "A B": "a-b", "64": "t-64", "1e5": "t-1e5", "2026-11-22": "t-2026-11-22", "a..b": "a.b",
		"x.": "x", "..": "t", "é": "t", "a/b": "a-b", "_x": "t-x", "-": "t", "a---b": "a---b", "ring (4)": "ring-4",
		strings.Repeat("a", 200): strings.Repeat("a", 100),
	} {
		got := NameOf(text)
		if got != want || CheckName(got) != nil {
			t.Errorf("%q became %q, expected %q", text, got, want)
		}
	}
}

// FuzzNameOf checks that every name is valid, and that a name stays.
func FuzzNameOf(f *testing.F) {
	f.Add("a b", 2)
	f.Fuzz(func(t *testing.T, text string, n int) {
		name := NameOf(text)
		valid := func(name string) {
			if CheckName(name) != nil || len(name) > maxName || name == "" || name[0] < 'a' || name[0] > 'z' ||
				strings.Contains(name, "..") || strings.HasSuffix(name, ".") || bytes.ContainsAny([]byte(name),
				"/\\=% ") {
				t.Errorf("%q became %q", text, name)
			}
		}
		valid(name)
		if n > 1 {
			second := numbered(name, n)
			if valid(second); !isOf(second, name) {
				t.Errorf("%q is not a number of %q", second, name)
			}
		}
	})
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	join := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for _, name := range []string{"raw/a.goal", "raw/.hidden.goal", "raw/.git/b.goal", "raw/sub/c.goal",
		"raw/sub/d.txt",
		"raw/ranks/e.0.et", "raw/ranks/e.1.et", "raw/mixed/f.0.et", "raw/mixed/f.1.et", "raw/mixed/g.goal",
		"outside.goal"} {
		writeFile(t, join(name), "num_ranks 1\n")
	}
	set := join("raw/set")
	writeFile(t, filepath.Join(set, "h.goal"), "x")
	os.Symlink(join("outside.goal"), join("raw/link.goal"))
	os.Symlink(join("raw/.git/b.goal"), join("raw/inside.goal"))
	os.Symlink(join("raw"), join("raw/sub/loop"))
	os.Symlink(join("missing"), join("raw/dangling.goal"))
	found := func(o *Options) (names []string) {
		t.Helper()
		inputs, err := o.find()
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range inputs {
			name, _ := filepath.Rel(dir, in.Path)
			names = append(names, filepath.ToSlash(name))
		}
		return names
	}
	all := []string{"raw/a.goal", "raw/inside.goal", "raw/mixed/f.0.et", "raw/mixed/g.goal", "raw/ranks",
		"raw/sub/c.goal",
		"raw/sub/d.txt"}
	if got := found(options(t, set, join("raw"))); !slices.Equal(got, all) {
		t.Errorf("found %v, expected %v", got, all)
	}
	if got := found(options(t, set, join("raw"), join("raw/a.goal"), join("raw/link.goal"),
		join("raw/*.goal"))); !slices.Equal(got,
		slices.Sorted(slices.Values(append([]string{"raw/link.goal", "raw/dangling.goal"}, all...)))) {
		t.Errorf("found %v", got)
	}
	o := options(t, set, join("raw"))
	o.Include, o.Exclude = []string{"*.goal", "ranks/*"}, []string{"sub/*"}
	if got := found(o); !slices.Equal(got, []string{"raw/a.goal", "raw/inside.goal", "raw/mixed/g.goal", "raw/ranks"}) {
		t.Errorf("found %v", got)
	}
	if _, err := options(t, set, set).find(); err == nil {
		t.Error("the set as an input: no error")
	}
	if _, err := options(t, set, join("none*")).find(); err == nil {
		t.Error("a pattern without files: no error")
	}
}
