// This file converts many inputs into a folder.

package traceconv

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/tracefile"
	"github.com/tracedag/tracedag/internal/batch"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/par"
)

// isFolder reports whether output is a folder: it ends with a slash, or is an existing folder.
func isFolder(output string) bool {
	if output == "" || output == "-" {
		return false
	}
	if os.IsPathSeparator(output[len(output)-1]) {
		return true
	}
	info, err := os.Stat(output)
	return err == nil && info.IsDir()
}

// namedOutput returns the output, or "" for a folder, whose name does not choose a format.
func namedOutput(output string) string {
	if isFolder(output) {
		return ""
	}
	return output
}

// convertAll converts each input of the shard into the folder write.Output, up to jobs inputs concurrently. The files
// of one trace are one input. Other shards may convert theirs at the same time.
func (c *conversion) convertAll(names []string, write cli.WriteFlags, jobs int) error {
	names = c.p.DistinctTraces(names, c.read.From)
	targets, err := c.targets(names, write)
	if err != nil {
		return err
	}
	names, targets = c.ofShard(names, targets)
	if err := c.checkBatch(); err != nil {
		return err
	}
	folder := write.Output
	_, missing := os.Stat(folder)
	if !c.batch.dry {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return err
		}
	}
	entries, statuses := c.convertParallel(names, targets, jobs)
	var failed []string
	var report batch.Report
	for i, status := range statuses {
		if report.Add(entries[i]); status != cli.ExitOK {
			failed = append(failed, names[i])
		}
	}
	if len(failed) > 0 {
		if missing != nil && c.shard.Count == 1 { // another shard may be about to write to it
			os.Remove(folder) // if it is empty
		}
		if len(names) > 1 {
			c.p.Error("%d of %d inputs were not converted: %s", len(failed), len(names), strings.Join(failed, ", "))
		}
	}
	if c.batch.dry {
		if err := c.listDry(entries); err != nil {
			return err
		}
	}
	if err := c.batch.write(c.p, &report, ""); err != nil || len(failed) == 0 {
		return err
	}
	if slices.Contains(statuses, cli.ExitFailed) {
		return cli.Reported(cli.ExitFailed)
	}
	return cli.Reported(slices.Max(statuses))
}

// checkBatch returns the errors of the flags of batches that precede long work.
func (c *conversion) checkBatch() error {
	if c.batch.skip {
		output, err := c.p.OutputFormat(*c.write, "")
		if err == nil && output.Name != format.Default {
			err = cli.Usagef("--skip-existing needs the provenance in stores, but the output is in %s", output.Name)
		}
		if err != nil {
			return err
		}
	}
	if c.batch.report == "" {
		return nil
	}
	return c.p.CheckOutput(c.batch.report, false)
}

// ofShard returns the inputs of the shard, and their outputs: each n-th of the inputs sorted by name.
func (c *conversion) ofShard(names []string, targets []*cli.Target) (own []string, to []*cli.Target) {
	if c.shard.Count == 1 {
		return names, targets
	}
	sorted := slices.Sorted(slices.Values(names))
	for i, name := range names {
		if place, _ := slices.BinarySearch(sorted, name); c.shard.Has(place) {
			own, to = append(own, name), append(to, targets[i])
		}
	}
	return own, to
}

// convertParallel converts the inputs and returns what became of them and the exit status of each conversion.
func (c *conversion) convertParallel(names []string, targets []*cli.Target, jobs int) ([]batch.Entry, []int) {
	progress := c.p.Progress("converting", c.p.TotalSize(names), "B")
	defer progress.Close()
	warnings := c.collect(names)
	entries, statuses := make([]batch.Entry, len(names)), make([]int, len(names))
	par.EachOn(jobs, len(names), func(i int) error {
		entries[i], statuses[i] = c.convertOne(names[i], targets[i], &warnings[i], progress)
		return nil
	})
	return entries, statuses
}

// targets returns the output of each input.
func (c *conversion) targets(names []string, write cli.WriteFlags) ([]*cli.Target, error) {
	output, err := c.p.OutputFormat(write, "")
	if err != nil {
		return nil, err
	}
	targets := make([]*cli.Target, len(names))
	from := map[string]string{}
	for i, name := range names {
		if name == "-" {
			return nil, cli.Usagef("standard input has no name for an output in %s", write.Output)
		}
		path := filepath.Join(write.Output, tracefile.BaseName(c.p.Formats, name)+output.Extensions[0])
		if other, twice := from[path]; twice {
			return nil, cli.Usagef("both %s and %s have the output %s", other, name, path)
		}
		from[path] = name
		if targets[i], err = c.p.TargetIn(path, output, write); err != nil {
			return nil, err
		}
	}
	return targets, nil
}
