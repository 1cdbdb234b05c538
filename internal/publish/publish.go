// Package publish makes and checks published sets: folders with one store per trace, a catalogue, digests, and
// descriptions for other programs. A set is complete in itself: nothing in it refers to a file outside of it.
package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/batch"
	"github.com/tracedag/tracedag/internal/dataset"
	"github.com/tracedag/tracedag/internal/par"
)

// Options configures [Run].
type Options struct {
	Context context.Context
	Folder  string // of the set; created if it is missing
	Formats format.List
	From    string // name of the format of all inputs; "": detected

	Inputs           []string // files, folders and patterns
	Include, Exclude []string // patterns of files in folders
	Name             string   // of the only input; "": derived from the name of its file
	Tags             []string // KEY=VALUE, of the traces that are added

	Metadata     *dataset.Metadata // of the set; wins over that of the set as published
	Bump         string            // part of the version to increase if the set changes: major, minor, patch, or ""
	Partition    []string          // keys of the folders before that of a trace; nil: as in the set, else workload
	Croissant    string            // version; "": as in the set, else 1.0
	Frictionless bool              // write datapackage.json, also if the set has none
	Kaggle       string            // OWNER/SLUG: write dataset-metadata.json, also if the set has none
	Today        string            // date of a first publication, YYYY-MM-DD

	Remove  []string // names of traces to remove
	Replace bool     // replace traces of the same name with other content
	// skip inputs whose digest is that of a trace in the set, and traces in the set by other names
	SkipExisting bool
	AllOrNothing bool // publish nothing if an input fails
	Strict       bool // fail if a file in a folder is no trace
	DryRun       bool // change nothing
	NoWait       bool // fail if another process publishes the set
	NoSync       bool // do not flush files to the disk
	Jobs         int  // inputs converted concurrently

	Converter
	// has a signal that ends the process call a function before; nil: none; may be nil
	OnStop              func(do func())
	Warn, Info, Explain func(message string, args ...any)
}

// Converter converts inputs to stores. Its methods may be called concurrently.
type Converter interface {
	// Detect returns the name of the format of an input, "" if it is no trace.
	Detect(name string) (string, error)
	// Digest returns the digest of the files of an input; see [origin.Digest].
	Digest(name string) (string, error)
	// Convert writes the trace of an input to a store, and returns the digest of the files of the input.
	Convert(name, store string) (digest string, err error)
	// Progress counts bytes of inputs that are done without Convert.
	Progress(n int64)
}

// NoTrace is the status of a file in a folder that is in no known format. The trace of a skipped input is in the set
// under another name.
const NoTrace batch.Status = "no trace"

// Outcome is the outcome for an input.
type Outcome struct {
	Input  string
	SHA256 string // of the input
	Status batch.Status
	Path   string // of its store in the set
	Size   int64  // of the files of the input in bytes
	Stored int64  // of the store in bytes; 0 if there is none
	Err    error
}

// Result is the outcome of [Run].
type Result struct {
	Outcomes []Outcome // by input, in the order of their paths
	Removed  []string  // names of traces that were removed
	Changed  bool      // the set changed, or would change without Options.DryRun
	Traces   int       // in the set
	Bytes    int64     // of the stores in the set
	Identity string    // SHA-256 of SHA256SUMS; "" after DryRun of a new set
}

// ErrFailed is wrapped by the error of Run if inputs failed; Result.Outcomes has their errors.
var ErrFailed = errors.New("inputs failed")

// Run adds traces to a set, which it creates if it is missing, removes traces, and updates the set's metadata. A
// process that is killed at any moment leaves the old or the new set, once Run or [Repair] was called again. Equal sets
// have equal bytes, whatever the order in which their traces were added.
func Run(o *Options) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.DryRun {
		return (&publication{o: o, set: &lockedSet{folder: o.Folder}}).plan()
	}
	set, err := lockSet(o.Folder, !o.NoWait, !o.NoSync)
	if err != nil {
		return nil, err
	}
	if o.OnStop != nil {
		o.OnStop(set.stop)
		defer o.OnStop(nil)
	}
	p := &publication{o: o, set: set}
	result, err := p.run()
	if err == nil && result.Changed {
		set.unlock()
	} else {
		set.discard()
		set.unlockUnchanged()
	}
	return result, errors.Join(err, p.failed())
}

// check checks the options that need no set.
func (o *Options) check() error {
	if o.Name != "" {
		if err := CheckName(o.Name); err != nil {
			return err
		}
	}
	for _, name := range o.Remove {
		if err := CheckName(name); err != nil {
			return err
		}
	}
	return checkPartition(o.Partition, storeColumns())
}

// publication is a run.
type publication struct {
	o   *Options
	set *lockedSet

	before  *Published // the set as published; nil if it is new
	meta    *dataset.Metadata
	keys    []string     // of the partition
	traces  []*candidate // by input
	rows    []dataset.Row
	removed []string // names of traces
	result  Result
}

// candidate is an input on its path into the set.
type candidate struct {
	input  Input
	base   string // the name that it would have alone
	format string
	size   int64  // of its files in bytes
	digest string // of its files
	store  string // the converted trace; "": not converted
	row    dataset.Row
	status batch.Status
	err    error
}

func (c *candidate) fail(err error) { c.status, c.err = batch.Failed, err }

// run changes the set, which is locked.
func (p *publication) run() (*Result, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	if err := p.convert(); err != nil {
		return nil, err
	}
	if err := p.decide(); err != nil {
		return nil, err
	}
	if p.o.AllOrNothing && p.failed() != nil {
		for _, c := range p.traces {
			if c.status == batch.Added || c.status == batch.Replaced {
				c.status = batch.Skipped
			}
		}
		p.report()
		return &p.result, nil
	}
	if err := p.write(); err != nil {
		return nil, err
	}
	p.suggest()
	p.report()
	return &p.result, nil
}

// plan returns what run would do, as far as digests of inputs show.
func (p *publication) plan() (*Result, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	err := p.each(func(c *candidate) {
		if c.status == "" {
			p.knownInput(c)
		}
		if c.status == "" {
			c.status = batch.Added
		}
	})
	if err != nil {
		return nil, err
	}
	p.removed = p.o.Remove
	p.result.Changed = len(p.removed) > 0 ||
		slices.ContainsFunc(p.traces, func(c *candidate) bool { return c.status == batch.Added })
	p.report()
	return &p.result, p.failed()
}

// open reads the set and its metadata, and finds the inputs.
func (p *publication) open() (err error) {
	if p.before, err = open(p.o.Folder); err != nil {
		return err
	}
	if err := p.setMetadata(); err != nil {
		return err
	}
	p.keys = []string{"workload"}
	switch {
	case p.o.Partition != nil:
		p.keys = p.o.Partition
	case p.before != nil && len(p.before.Rows) > 0:
		p.keys = partitionOf(p.before.Rows[0].Path)
	}
	inputs, err := p.o.find()
	if err != nil {
		return err
	}
	if p.o.Name != "" && len(inputs) != 1 {
		return fmt.Errorf("--name is for one input, found %d", len(inputs))
	}
	for _, in := range inputs {
		c := &candidate{input: in, base: p.o.Name}
		if c.base == "" {
			c.base = NameOf(baseName(p.o.Formats, in.Path))
		}
		p.traces = append(p.traces, c)
	}
	for _, name := range p.o.Remove {
		if p.before == nil || p.before.row(name) == nil {
			return fmt.Errorf("--remove %s: the set has no such trace", name)
		}
	}
	return nil
}

// each calls do with the inputs, up to Options.Jobs of them concurrently. It finds those that are no traces.
func (p *publication) each(do func(c *candidate)) error {
	return par.EachOn(p.o.Jobs, len(p.traces), func(i int) error {
		if err := par.Interrupted(p.o.Context); err != nil {
			return err
		}
		c := p.traces[i]
		c.size = sizeOf(c.input.Path)
		switch name, err := p.o.Detect(c.input.Path); {
		case err != nil:
			c.fail(err)
		case name != "":
			c.format = name
		case c.input.Given:
			c.fail(format.FileErrorf(c.input.Path, "unknown format; name the format with --from, one of %v",
				p.o.Formats.Readable().Names()))
		case p.o.Strict:
			c.fail(format.FileErrorf(c.input.Path,
				"the file is no trace in a known format; omit --strict, or --exclude it"))
		default:
			c.status = NoTrace
			p.o.Explain("%s: no trace in a known format", c.input.Path)
		}
		if do(c); c.store == "" {
			p.o.Progress(c.size)
		}
		return nil
	})
}

// convert converts the inputs to stores.
func (p *publication) convert() error {
	work := p.set.state(workFolder)
	if err := os.MkdirAll(work, 0o777); err != nil {
		return err
	}
	var number atomic.Int64
	return p.each(func(c *candidate) {
		if c.status != "" {
			return
		}
		if p.o.SkipExisting {
			if p.knownInput(c); c.status != "" {
				return
			}
		}
		// numbers, as inputs may have long names
		c.store = filepath.Join(work, fmt.Sprintf("%06d.parquet", number.Add(1)))
		var err error
		if c.digest, err = p.o.Convert(c.input.Path, c.store); err != nil {
			c.fail(err)
			return
		}
		row, err := describe(c.store)
		if err != nil {
			c.fail(err)
			return
		}
		c.row = row.Row
		if c.row.SourceFormat = c.format; c.format == format.Default {
			c.row.SourceFormat = row.source(p.o.Formats)
		}
		c.row.Workload = cmp.Or(row.generator, c.row.SourceFormat)
	})
}

// knownInput marks an input as unchanged if the set has a trace that was made from a file of the same digest, or if the
// input is the store of such a trace.
func (p *publication) knownInput(c *candidate) {
	if p.before == nil {
		return
	}
	var err error
	if c.digest, err = p.o.Digest(c.input.Path); err != nil {
		c.fail(err)
		return
	}
	if row := p.before.madeFrom(c.digest, c.base); row != nil {
		c.row, c.status = *row, batch.Unchanged
	}
}

// failed returns an error if inputs failed.
func (p *publication) failed() error {
	n := 0
	for _, c := range p.traces {
		if c.status == batch.Failed {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d %w", n, len(p.traces), ErrFailed)
}

// report sets the outcomes.
func (p *publication) report() {
	for _, c := range p.traces {
		outcome := Outcome{Input: c.input.Path, SHA256: c.digest, Status: c.status, Size: c.size, Err: c.err}
		if c.status != batch.Failed && c.status != NoTrace {
			outcome.Path, outcome.Stored = c.row.Path, c.row.Bytes
		}
		p.result.Outcomes = append(p.result.Outcomes, outcome)
	}
	p.result.Removed = p.removed
	if p.rows == nil && p.before != nil {
		p.rows = p.before.Rows
		p.result.Identity = p.before.Identity
	}
	p.result.Traces = len(p.rows)
	for i := range p.rows {
		p.result.Bytes += p.rows[i].Bytes
	}
}

// sizeOf returns the size of the files of an input in bytes.
func sizeOf(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	if !info.IsDir() {
		return info.Size()
	}
	total := int64(0)
	entries, _ := os.ReadDir(name)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
	}
	return total
}
