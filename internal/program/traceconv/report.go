// This file reports on batches and finds the inputs that need no conversion.

package traceconv

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/internal/batch"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/manual"
)

// batchFlags are the flags of conversions of many inputs.
type batchFlags struct {
	report string // file; "": none
	skip   bool   // inputs whose output is up to date
	dry    bool   // convert nothing
}

func (b *batchFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	cli.OutputVar(flags, &b.report, "report", "write a line of JSON per input to `FILE`")
	flags.BoolVar(&b.skip, "skip-existing", false, "skip inputs whose output is up to date")
	flags.BoolVar(&b.dry, "dry-run", false, "list what would be written, and write nothing")
	cli.Aside(flags, "report", "skip-existing", "dry-run")
	manual.Topic(cmd, manual.Group{Owner: "batches", Title: "conversion of many inputs", Page: batchPage,
		File: "docs/reference/cli.md"})
}

// batchPage is the help of batches.
const batchPage = `-o FOLDER/ and --publish FOLDER/ convert each input on its own, several at a time. A failed input does not stop the
others. The last line on standard error, unless -q is set, counts the inputs and their bytes before and after.

  traceconv -o out/ --skip-existing --report out.jsonl *.goal

--skip-existing compares the digests of an input and the flags with the provenance in its output, and does not convert
it again if they are equal. Each line of --report has input, sha256, status (added, replaced, unchanged, failed),
output, warnings, error and wall_s, the time in seconds.`

// single returns an error if the command line has one of the flags without a folder. --report is the former name of
// --lowered, which it still is for a single trace that is lowered.
func (b *batchFlags) single(lowering *cli.LowerFlags) error {
	if b.report != "" && lowering.Asked() && !lowering.Reports() {
		lowering.Counts, b.report = b.report, ""
	}
	if b.report != "" || b.skip || b.dry {
		return cli.Usagef("--report, --skip-existing and --dry-run are for many inputs: name a folder, as in -o out/")
	}
	return nil
}

// write writes the report, if it was asked for, and prints the summary, followed by more text.
func (b *batchFlags) write(p *cli.Program, r *batch.Report, more string) error {
	if b.report != "" {
		out, err := p.Create(b.report, false)
		if err != nil {
			return err
		}
		defer out.Close()
		if err := r.Write(out); err != nil {
			return out.Failed(err)
		}
		if err := out.Commit(); err != nil {
			return err
		}
	}
	dry := ""
	if b.dry {
		dry = "dry run: "
	}
	p.Info("%s%s%s", dry, r.Summary(), more)
	return nil
}

// messages are the warnings about one input.
type messages struct {
	lock sync.Mutex
	all  []string
}

func (m *messages) add(message string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.all = append(m.all, message)
}

// collect makes the warnings that c.p prints about inputs, such as those of passes, warnings of the inputs.
func (c *conversion) collect(names []string) []messages {
	all := make([]messages, len(names))
	c.p.Warned = func(message string) {
		about := -1
		for i, name := range names {
			if strings.HasPrefix(message, name+": ") && (about < 0 || len(name) > len(names[about])) {
				about = i
			}
		}
		if about >= 0 {
			all[about].add(message)
		}
	}
	return all
}

// convertOne converts an input of a batch. It returns the exit status of the conversion.
func (c *conversion) convertOne(name string, to *cli.Target, warnings *messages, progress *cli.Progress) (
	e batch.Entry, status int) {
	e = batch.Entry{Input: name, Output: to.Path, Status: batch.Added}
	if _, err := os.Stat(to.Path); err == nil {
		e.Status = batch.Replaced
	}
	own := *c
	own.p, own.entry = c.p.For(name, warnings.add), &e
	start := time.Now()
	status = own.p.Try(func() (err error) {
		defer func() {
			if err != nil {
				e.Error = err.Error()
			}
		}()
		switch {
		case c.batch.skip && own.isUpToDate(name, to, progress):
			e.Status = batch.Unchanged
			return nil
		case c.batch.dry:
			in, err := own.p.OpenFiles([]string{name}, own.read, cli.ReadOptions{Progress: progress})
			if err == nil {
				in.Close()
			}
			return err
		}
		if err := own.convert([]string{name}, to, progress); err != nil {
			return err
		}
		e.Written = to.Written
		return nil
	})
	e.Seconds = time.Since(start).Seconds()
	e.Warnings = warnings.all
	if status != cli.ExitOK {
		e.Status, e.Output, e.Error = batch.Failed, "", cmp.Or(e.Error, fmt.Sprintf("exit status %d", status))
	}
	return e, status
}

// isUpToDate reports whether the output is the store that a conversion of the input would write: the last entry of its
// provenance has the digests of the input and the flags. The version of the program may differ.
func (c *conversion) isUpToDate(name string, to *cli.Target, progress *cli.Progress) bool {
	last, size := lastStep(to.Path)
	if last == nil || len(last.Inputs) == 0 {
		return false
	}
	in, err := c.p.OpenFiles([]string{name}, c.read, cli.ReadOptions{Digest: true, Progress: progress})
	if err != nil {
		return false // the conversion reports it
	}
	defer in.Close()
	inputs, err := in.Inputs()
	if err != nil {
		return false
	}
	made := c.made(in, inputs)
	made.Version = last.Version
	c.note(in, inputs)
	c.entry.Written = size
	return reflect.DeepEqual(made, *last)
}

// lastStep returns the last entry of the provenance of a store and the size of the file; nil if there is none.
func lastStep(name string) (*dag.Provenance, int64) {
	file, err := os.Open(name)
	if err != nil {
		return nil, 0
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0
	}
	s, err := store.Open(file, info.Size(), name)
	if err != nil {
		return nil, 0
	}
	defer s.Close()
	h, err := s.Header()
	if err != nil || len(h.Provenance) == 0 {
		return nil, 0
	}
	return &h.Provenance[len(h.Provenance)-1], info.Size()
}

// listDry prints what a batch would write.
func (c *conversion) listDry(entries []batch.Entry) error {
	out, err := c.p.Create("-", false)
	if err != nil {
		return err
	}
	defer out.Close()
	for _, e := range entries {
		text := e.Input
		if e.Output != "" {
			text += " -> " + e.Output
		}
		if _, err := fmt.Fprintf(out, "%-9s  %s\n", e.Status, text); err != nil {
			return err
		}
	}
	return out.Commit()
}
