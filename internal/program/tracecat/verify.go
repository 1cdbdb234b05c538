// This file computes digests of traces and checks stores.

package tracecat

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/publish"
	"github.com/tracedag/tracedag/internal/units"
)

// printDigests prints the digest of the contents of each trace, in the form of sha256sum.
func (v *view) printDigests(p *cli.Program, names []string, flags cli.ReadFlags) error {
	out, err := p.Create("-", false)
	if err != nil {
		return err
	}
	defer out.Close()
	worst := cli.ExitOK
	for _, name := range p.DistinctTraces(names, flags.From) {
		worst = max(worst, p.Try(func() error {
			s, err := open(p, name, flags)
			if err != nil {
				return err
			}
			defer s.Close()
			digest, err := store.ContentSHA256(s)
			if err == nil {
				_, err = fmt.Fprintf(out, "%s  %s\n", digest, plain(name))
			}
			return err
		}))
	}
	if err := out.Commit(); err != nil || worst == cli.ExitOK {
		return err
	}
	return cli.Reported(worst)
}

// verify checks stores and prints a line per finding.
func (v *view) verify(p *cli.Program, names []string, flags cli.ReadFlags) error {
	out, err := p.Create("-", false)
	if err != nil {
		return err
	}
	defer out.Close()
	findings := 0
	for _, name := range names {
		n, err := v.verifyInput(p, out.Writer, name, flags)
		if err != nil {
			return err
		}
		if findings += n; n == 0 {
			p.Explain("%s: no findings", name)
		}
	}
	if err := out.Commit(); err != nil || findings == 0 {
		return err
	}
	return cli.Reported(cli.ExitFailed)
}

// verifyInput checks an input and returns the number of findings.
func (v *view) verifyInput(p *cli.Program, out *bufio.Writer, name string, flags cli.ReadFlags) (int, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return v.verifySet(p, out, name)
	}
	if v.quick || v.repair {
		return 0, cli.Usagef("--quick and --repair are for published sets, %s is a file", name)
	}
	findings, err := verifyStore(p, name, flags, v.limit(mostFindings))
	if err != nil {
		return 0, err
	}
	for _, finding := range findings {
		if _, err := fmt.Fprintf(out, "%s: %s\n", plain(name), plain(finding)); err != nil {
			return 0, err
		}
	}
	return len(findings), nil
}

// mostFindings is the largest number of invalid ops that --verify prints per store, unless --head names another.
const mostFindings = 1000

// verifyStore returns what is wrong with a store: damage, or else the first errors in its ops.
func verifyStore(p *cli.Program, name string, flags cli.ReadFlags, most int) (findings []string, err error) {
	flags.From = format.Default
	r, err := p.ReadTrace(name, flags, cli.ReadOptions{})
	switch {
	case err != nil && cli.IsUsage(err):
		return nil, err
	case err != nil:
		return []string{strings.TrimPrefix(withoutName(err, name), "<stdin>: ")}, nil
	case r.Unverified != "":
		findings = append(findings, r.Unverified)
	}
	problems, total := dag.ValidateLimit(r.Trace, most)
	for _, problem := range problems {
		findings = append(findings, problem.String())
	}
	if more := total - len(problems); more > 0 {
		findings = append(findings, fmt.Sprintf("%d more errors; --check lists all", more))
	}
	return findings, nil
}

// verifySet checks a published set and returns the number of findings.
func (v *view) verifySet(p *cli.Program, out *bufio.Writer, folder string) (int, error) {
	if v.repair {
		repaired, err := publish.Repair(folder)
		if err != nil {
			return 0, err
		}
		if repaired {
			p.Info("%s: finished or undid the interrupted publication", folder)
		}
	}
	progress := p.Progress("verifying", -1, "B")
	checked, err := publish.Verify(folder, publish.VerifyOptions{
		Context: p.Context(), Quick: v.quick, Jobs: runtime.GOMAXPROCS(0), Progress: progress.Add,
	})
	progress.Close()
	if err != nil {
		return 0, err
	}
	for _, f := range checked.Findings[:v.limit(len(checked.Findings))] {
		path := filepath.Join(folder, filepath.FromSlash(f.Path))
		if _, err := fmt.Fprintf(out, "%s: %s\n", plain(path), plain(f.What)); err != nil {
			return 0, err
		}
	}
	findings := "no findings"
	if n := len(checked.Findings); n == 1 {
		findings = "1 finding"
	} else if n > 1 {
		findings = fmt.Sprintf("%d findings", n)
	}
	p.Info("%s: %d files, %s, %s; set %s", folder, checked.Files, units.FormatSize(checked.Bytes), findings,
		cmp.Or(checked.Identity, "unknown"))
	return len(checked.Findings), nil
}
