// This file publishes sets of traces.

package traceconv

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/formats/tracefile"
	"github.com/tracedag/tracedag/internal/batch"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/dataset"
	"github.com/tracedag/tracedag/internal/disk"
	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/internal/origin"
	"github.com/tracedag/tracedag/internal/publish"
)

// publishing is the flags of sets.
type publishing struct {
	options  publish.Options
	meta     string // file of metadata
	template bool
	texts    map[string]*[]string // metadata by flag
}

// metadataFlags are the flags of the metadata of a set, with their help. --title is one of them.
var metadataFlags = [...]struct{ name, usage string }{
	{"description", "description of the set, `text`"},
	{"creator", "`name` of a creator of the set; may be repeated"},
	{"license", "SPDX `identifier` of the licence, such as CC-BY-4.0"},
	{"citation", "citation of the set, BibTeX `text`"},
	{"set-version", "version of the set, `MAJOR.MINOR.PATCH`; also --version"},
	{"url", "`URL` of the set"},
	{"date", "date of publication, `YYYY-MM-DD`"},
	{"keyword", "`keyword` of the set; may be repeated"},
}

// register adds the flags, in a topic of their own.
func (s *publishing) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	var added []string
	note := func(names ...string) { added = append(added, names...) }
	o := &s.options
	flags.StringVar(&o.Folder, "publish", "", "add the inputs to the published set in `FOLDER`")
	flags.StringVar(&s.meta, "meta", "", "`file` with metadata of the set, YAML")
	flags.BoolVar(&s.template, "meta-template", false, "print an example of a metadata file")
	note("publish", "meta", "meta-template")
	s.texts = make(map[string]*[]string)
	for _, f := range metadataFlags {
		s.texts[f.name] = flags.StringArray(f.name, nil, f.usage)
		note(f.name)
	}
	flags.StringArrayVar(&o.Tags, "tag", nil, "tag of the added traces, `KEY=VALUE`; may be repeated")
	flags.StringVar(&o.Name, "name", "", "`name` of the only input in the set")
	flags.StringArrayVar(&o.Include, "include", nil,
		"publish files in folders that match the `pattern`; may be repeated")
	flags.StringArrayVar(&o.Exclude, "exclude", nil, "skip files in folders that match the `pattern`; may be repeated")
	flags.StringSliceVar(&o.Partition, "partition", nil,
		"folders of the stores, `keys` out of workload, format, ranks and tags (default workload)")
	flags.BoolVar(&o.Replace, "replace", false, "replace traces of the set by inputs of the same name")
	flags.StringArrayVar(&o.Remove, "remove", nil, "remove the trace called `name` from the set; may be repeated")
	flags.StringVar(&o.Bump, "bump", "", "increase the version if the set changes: auto, major, minor or patch")
	flags.Lookup("bump").NoOptDefVal = "auto"
	flags.BoolVar(&o.AllOrNothing, "all-or-nothing", false, "publish nothing if an input fails")
	flags.BoolVar(&o.NoWait, "no-wait", false, "fail if another process publishes the set")
	flags.StringVar(&o.Croissant, "croissant", "", "`version` of the Croissant description: 1.0 or 1.1 (default 1.0)")
	flags.BoolVar(&o.Frictionless, "frictionless", false, "write datapackage.json")
	flags.StringVar(&o.Kaggle, "kaggle", "", "write dataset-metadata.json for Kaggle's `OWNER/SLUG`")
	note("tag", "name", "include", "exclude", "partition", "replace", "remove", "bump", "all-or-nothing", "no-wait",
		"croissant", "frictionless", "kaggle")
	cli.Aside(flags, added...)
	manual.Topic(cmd, manual.Group{Owner: "publish", Title: "publish a set of traces", Page: publishPage,
		File: "docs/reference/datasets.md"})
}

// publishPage is the help of publish.
const publishPage = `--publish FOLDER/ converts the inputs to stores in a set that other people can use, and describes the set for data
tools: a catalogue, digests, Croissant, a card for Hugging Face, and the licence.

  traceconv --publish set/ --meta-template > dataset.yaml
  traceconv --publish set/ --meta dataset.yaml raw/
  traceconv --publish set/ more/*.goal
  tracecat set/
  tracecat --verify set/

Inputs are files, folders, which are searched, and patterns. A set grows: a trace that is in it is unchanged, and
another trace of the same name needs --replace. The set has the same bytes whatever the order of the inputs. After a
kill at any moment, the next --publish, or tracecat --verify --repair, restores the old set or completes the new one.

The version of the set changes by --set-version or --bump: MAJOR if traces change or go, MINOR if traces are added,
PATCH if only metadata change.`

// versionOfSet returns the arguments with --set-version for a --version that is followed by MAJOR.MINOR.PATCH, the name
// of this key in metadata files.
func versionOfSet(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		value, joined := strings.CutPrefix(arg, "--version=")
		switch {
		case arg == "--":
			return args
		case joined && setVersion.MatchString(value):
			args[i] = "--set-version=" + value
		case arg == "--version" && i+1 < len(args) && setVersion.MatchString(args[i+1]):
			args[i] = "--set-version"
		}
	}
	return args
}

var setVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)

// asked reports whether the command is about a set.
func (s *publishing) asked(cmd *cobra.Command) (bool, error) {
	if s.template || cmd.Flags().Changed("publish") {
		return true, nil
	}
	var err error
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && manual.TopicOf(f) == "publish" && err == nil {
			err = cli.Usagef("--%s needs --publish", f.Name)
		}
	})
	return false, err
}

// metadata returns the metadata of the file and the flags.
func (c *conversion) metadata(s *publishing, cmd *cobra.Command) (*dataset.Metadata, error) {
	m := &dataset.Metadata{}
	if s.meta != "" {
		text, err := c.p.ReadFile(s.meta, dataset.MaxMetadataSize)
		if err != nil {
			return nil, err
		}
		if m, err = dataset.ParseMetadata(s.meta, text); err != nil {
			return nil, err
		}
	}
	given := &dataset.Metadata{}
	set := func(flag, key, text string) error {
		if err := given.Set(key, text); err != nil {
			return cli.Usagef("--%s: %v", flag, err)
		}
		return nil
	}
	if cmd.Flags().Changed("title") {
		if err := set("title", "title", cmd.Flag("title").Value.String()); err != nil {
			return nil, err
		}
	}
	for _, f := range metadataFlags {
		key := strings.TrimPrefix(f.name, "set-")
		for _, text := range *s.texts[f.name] {
			if err := set(f.name, key, text); err != nil {
				return nil, err
			}
		}
	}
	check := &dataset.Metadata{}
	for _, tag := range s.options.Tags {
		if err := check.Set("tag", tag); err != nil {
			return nil, cli.Usagef("--tag: %v", err)
		}
	}
	s.options.Tags = check.Tags // normal form
	m.Merge(given)
	return m, nil
}

// publish publishes the inputs. c converts them.
func (c *conversion) publish(s *publishing, cmd *cobra.Command, args []string, jobs int) error {
	if s.template {
		return c.printTemplate(s)
	}
	o := &s.options
	if err := s.check(cmd, args); err != nil {
		return err
	}
	var err error
	if o.Metadata, err = c.metadata(s, cmd); err != nil {
		return err
	}
	if o.Today, err = today(os.Getenv("SOURCE_DATE_EPOCH"), time.Now); err != nil {
		return err
	}
	if c.storeFormat, err = c.p.OutputFormat(cli.WriteFlags{To: format.Default}, ""); err != nil {
		return err
	}
	o.Context, o.Formats, o.From, o.Inputs, o.Jobs = c.p.Context(), c.p.Formats, c.read.From, args, jobs
	o.NoSync, o.Strict = c.p.NoSync(), c.write.Strict
	o.SkipExisting, o.DryRun = c.batch.skip, c.batch.dry
	o.Warn, o.Info, o.Explain, o.OnStop = c.p.Warn, c.p.Info, c.p.Explain, c.p.OnStop
	origin.Mark(cmd.Flag("title"), false)
	c.retitle, c.publishing = false, true
	progress := c.p.Progress("publishing", c.p.TotalSize(args), "B")
	by := &converter{conversion: c, progress: progress, done: make(map[string]*converted)}
	o.Converter = by
	result, err := publish.Run(o)
	progress.Close()
	return by.finish(result, err)
}

// check returns an error if the flags do not fit.
func (s *publishing) check(cmd *cobra.Command, args []string) error {
	o := &s.options
	for _, name := range []string{"output", "to", "shard", "shards", "lowered"} {
		if cmd.Flags().Changed(name) {
			return cli.Usagef("--%s does not fit --publish, which writes stores into the set", name)
		}
	}
	switch {
	case o.Folder == "":
		return cli.Usagef("--publish: expected the folder of the set, found an empty name")
	case o.Croissant != "" && o.Croissant != "1.0" && o.Croissant != "1.1":
		return cli.Usagef("--croissant: expected 1.0 or 1.1, found %q", o.Croissant)
	case !slices.Contains([]string{"", "auto", "major", "minor", "patch"}, o.Bump):
		return cli.Usagef("--bump: expected auto, major, minor or patch, found %q", o.Bump)
	case slices.Contains(args, "-"):
		return cli.Usagef("standard input has no name for a trace of the set; name a file")
	case slices.Contains(args, ""):
		return cli.Usagef("an input has an empty name")
	case len(args) == 0 && !publish.IsSet(o.Folder):
		return cli.Usagef("--publish: no input: name the traces of the new set, as in --publish %s raw/", o.Folder)
	}
	return nil
}

// printTemplate prints an example of a metadata file.
func (c *conversion) printTemplate(s *publishing) error {
	out, err := c.p.Create("-", false)
	if err != nil {
		return err
	}
	defer out.Close()
	name := s.options.Folder
	if absolute, err := filepath.Abs(name); err == nil && name != "" {
		name = filepath.Base(absolute)
	}
	if _, err := io.WriteString(out, dataset.Template(name)); err != nil {
		return err
	}
	return out.Commit()
}

// today returns the date of a first publication: that of SOURCE_DATE_EPOCH, in seconds since 1970, if it is set.
func today(epoch string, now func() time.Time) (string, error) {
	at := now()
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil || seconds < 0 || seconds > 253402300799 {
			return "", cli.Usagef("SOURCE_DATE_EPOCH: expected seconds since 1970, found %q", epoch)
		}
		at = time.Unix(seconds, 0)
	}
	return at.UTC().Format(time.DateOnly), nil
}

// finish prints the outcome.
func (c *converter) finish(r *publish.Result, err error) error {
	var metadata *publish.MetadataError
	if errors.As(err, &metadata) {
		fmt.Fprintln(c.p.Stderr, metadata.Error())
		return cli.Reported(cli.ExitUsage)
	}
	if r == nil {
		return err
	}
	for _, o := range r.Outcomes {
		if o.Err != nil {
			c.p.Try(func() error { return o.Err })
		}
	}
	if err != nil && !errors.Is(err, publish.ErrFailed) {
		return err
	}
	var report batch.Report
	var entries []batch.Entry
	for _, o := range r.Outcomes {
		entries = append(entries, c.entryOf(&o))
		report.Add(entries[len(entries)-1])
	}
	if c.batch.dry {
		if err := c.listDry(entries); err != nil {
			return err
		}
	}
	more := ""
	switch others := countStatus(entries, publish.NoTrace); {
	case others == 1:
		more = "; 1 other file is no trace"
	case others > 1:
		more = fmt.Sprintf("; %d other files are no traces", others)
	}
	if r.Identity != "" {
		more += "; set " + r.Identity
	}
	if len(entries) == 0 { // other changes of the set
		c.p.Info("%d traces%s", r.Traces, more)
	} else if failed := c.batch.write(c.p, &report, more); failed != nil {
		return failed
	}
	if err != nil {
		return cli.Reported(cli.ExitFailed)
	}
	return nil
}

// countStatus returns the number of entries with a status.
func countStatus(entries []batch.Entry, status batch.Status) (n int) {
	for _, e := range entries {
		if e.Status == status {
			n++
		}
	}
	return n
}

// converter converts inputs of a set.
type converter struct {
	*conversion
	progress *cli.Progress

	lock sync.Mutex
	done map[string]*converted // by input
}

// converted is the conversion of an input.
type converted struct {
	messages
	seconds float64
}

// begin returns the record of the conversion of an input.
func (c *converter) begin(name string) *converted {
	c.lock.Lock()
	defer c.lock.Unlock()
	record := new(converted)
	c.done[name] = record
	return record
}

// entryOf returns the entry of an input in the report.
func (c *converter) entryOf(o *publish.Outcome) batch.Entry {
	e := batch.Entry{Input: o.Input, SHA256: o.SHA256, Status: o.Status, Output: o.Path, Read: o.Size,
		Written: o.Stored}
	if record := c.done[o.Input]; record != nil {
		e.Warnings, e.Seconds = record.all, record.seconds
	}
	if o.Err != nil {
		e.Error = o.Err.Error()
	}
	return e
}

// Detect returns the name of the format of an input, "" if it is no trace.
func (c *converter) Detect(name string) (string, error) {
	f, err := tracefile.Identify(c.p.Formats, name, tracefile.Options{From: c.read.From, Context: c.p.Context()})
	if f == nil || err != nil {
		return "", err
	}
	return f.Name, nil
}

// Digest returns the digest of the files of an input.
func (c *converter) Digest(name string) (string, error) {
	in, err := tracefile.Open(c.p.Formats, []string{name}, tracefile.Options{From: c.read.From, Context: c.p.Context(),
		Digest: true})
	if err != nil {
		return "", err
	}
	defer in.Close()
	inputs, err := in.Inputs()
	return origin.Digest(c.p.Named(inputs...)), err
}

// Convert writes the trace of an input to a store. It copies a store in the newest version whose provenance depends on
// its trace alone.
func (c *converter) Convert(name, path string) (digest string, err error) {
	start, record := time.Now(), c.begin(name)
	defer func() { record.seconds = time.Since(start).Seconds() }()
	if digest, err = c.copyStore(name, path); err != nil || digest != "" {
		return digest, err
	}
	to, err := c.p.TargetIn(path, c.storeFormat, *c.write)
	if err != nil {
		return "", err
	}
	var e batch.Entry
	own := *c.conversion
	own.p, own.entry = c.p.For(name, record.add), &e
	err = own.convert([]string{name}, to, c.progress)
	return e.SHA256, err
}

// copyStore copies the input if it is a store that need not be written again, and returns its digest, otherwise "".
func (c *converter) copyStore(name, path string) (digest string, err error) {
	if c.edit != nil || c.lowers || c.read.Lenient {
		return "", nil
	}
	from, err := os.Open(name)
	if err != nil {
		return "", nil // a trace of many files, perhaps
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil || !info.Mode().IsRegular() || !isNormal(from, info.Size(), name) {
		return "", nil
	}
	to, err := os.Create(path)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, sum), from)
	if err == nil && !c.p.NoSync() {
		err = disk.Supported(to.Sync())
	}
	c.progress.Add(info.Size())
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, to.Close())
}

// isNormal reports whether a file is an intact store in the newest version with provenance in the form of this version.
func isNormal(from io.ReaderAt, size int64, name string) bool {
	f, err := store.Open(from, size, name)
	if err != nil {
		return false
	}
	defer f.Close()
	h, err := f.Header()
	if err != nil || f.Version() != store.Version {
		return false
	}
	for _, step := range h.Provenance {
		if !reflect.DeepEqual(origin.Normalize(step), step) {
			return false
		}
	}
	return true
}

// Progress counts bytes of inputs that need no conversion.
func (c *converter) Progress(n int64) { c.progress.Add(n) }
