package tracedag

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/golden"
)

// Samples are the rows of testdata/README.md. Columns of the table, from 1:
const (
	columnPath = iota + 1
	columnFormat
	columnFlags
	columnContent
	columnOrigin
	columnTitle
	columnRanks
	columnOps
	columnMakespan
	columns
)

// The lines before and after the rows of the samples.
const (
	sampleTable    = "| --- | --- | --- | --- | --- | --- | ---: | ---: | ---: |\n"
	sampleTableEnd = "<!-- end of samples -->"
)

// sampleRoofline gives durations to calcs that have none.
const sampleRoofline = "roofline:peak-flops=1TFLOPS,mem-bw=1TB/s"

// sample is a trace of testdata.
type sample struct {
	path, format string
	flags        []string
	cells        []string // of its row
}

// args returns the arguments of a command that reads the sample.
func (s *sample) args(more ...string) []string {
	return slices.Concat(s.flags, []string{filepath.Join("testdata", s.path)}, more)
}

func readSamples(t *testing.T) []sample {
	text, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), sampleTable)
	table, _, _ = strings.Cut(table, sampleTableEnd)
	if !found {
		t.Fatalf("testdata/README.md: expected a table with %d columns", columns-1)
	}
	var samples []sample
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != columns+1 {
			t.Fatalf("testdata/README.md: expected %d columns, found %d in %q", columns-1, len(cells)-2, line)
		}
		code := func(column int) string { return strings.Trim(cells[column], " `") }
		samples = append(samples, sample{path: code(columnPath), format: code(columnFormat),
			flags: strings.Fields(code(columnFlags)), cells: cells})
	}
	return samples
}

// runProgram runs a program of the suite in this process.
func runProgram(t *testing.T, name string, args ...string) clitest.Result {
	t.Helper()
	for _, p := range programs {
		if p.name == name {
			return clitest.Run(p.make(&Extensions{}), args...)
		}
	}
	t.Fatalf("no program %s", name)
	return clitest.Result{}
}

// TestSamples opens every sample and compares its table row with what the programs say.
func TestSamples(t *testing.T) {
	samples := readSamples(t)
	covered := map[string]bool{}
	var rows strings.Builder
	for i := range samples {
		s := &samples[i]
		covered[s.format] = true
		t.Run(s.path, func(t *testing.T) {
			check := runProgram(t, "tracecat", s.args("--check")...)
			if check.Status != cli.ExitOK {
				t.Errorf("tracecat --check: exit status %d\n%s%s", check.Status, check.Stdout, check.Stderr)
			}
			warns := strings.Contains(check.Stderr, "warning")
			if explained := strings.Contains(s.cells[columnContent], "warning"); warns != explained {
				t.Errorf("warns: %t, explained in README.md: %t\n%s", warns, explained, check.Stderr)
			}
			summary := runProgram(t, "tracecat", s.args("--json")...)
			var trace struct {
				Format, Title string
				Stats         struct{ Ranks, Ops int }
			}
			if err := json.Unmarshal([]byte(summary.Stdout), &trace); err != nil {
				t.Fatalf("tracecat --json: %v\n%s", err, summary.Stderr)
			}
			if trace.Format != s.format {
				t.Errorf("format %q, in README.md %q", trace.Format, s.format)
			}
			ideal := runProgram(t, "simulate", s.args("--backend", "ideal", "--json", "--lower", sampleRoofline)...)
			var result struct {
				Makespan dag.Time `json:"makespan_ps"`
			}
			if err := json.Unmarshal([]byte(ideal.Stdout), &result); err != nil {
				t.Fatalf("simulate --backend ideal: %v\n%s", err, ideal.Stderr)
			}
			for column, text := range map[int]string{
				columnTitle: trace.Title, columnRanks: fmt.Sprint(trace.Stats.Ranks), columnOps: fmt.Sprint(trace.Stats.Ops),
				columnMakespan: result.Makespan.String(),
			} {
				s.cells[column] = strings.TrimRight(" "+text, " ") + " "
			}
		})
		rows.WriteString(strings.Join(s.cells, "|") + "\n")
	}
	golden.Section(t, "testdata/README.md", sampleTable, sampleTableEnd, rows.String())
	for i := range formats.All {
		if name := formats.All[i].Name; !covered[name] {
			t.Errorf("testdata has no sample of %s", name)
		}
	}
}

// finishes runs a sample on a backend and returns the ends of its ranks in picoseconds.
func (s *sample) finishes(t *testing.T, backend, lower string) []int64 {
	t.Helper()
	run := runProgram(t, "simulate", s.args("--backend", backend, "--json", "--lower", lower)...)
	var result struct {
		Complete bool    `json:"complete"`
		Finish   []int64 `json:"finish_ps"`
	}
	if err := json.Unmarshal([]byte(run.Stdout), &result); err != nil || !result.Complete {
		t.Fatalf("simulate --backend %s: complete %t, %v\n%s", backend, result.Complete, err, run.Stderr)
	}
	return result.Finish
}

// TestSamplesOnPeer runs every sample on the reference peer: no rank ends earlier than on a network that takes no time.
// Horovod also runs on the peer in Python, with equal times.
func TestSamplesOnPeer(t *testing.T) {
	peer := filepath.Join(t.TempDir(), "exec-peer")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", peer, "./docs/examples/exec-peer")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	samples := readSamples(t)
	for i := range samples {
		s := &samples[i]
		t.Run(s.path, func(t *testing.T) {
			lower := sampleRoofline
			refused := runProgram(t, "simulate", s.args("--backend", "exec:"+peer)...).Stderr
			switch {
			case strings.Contains(refused, "is of kind mem, which this backend does not run"):
				return // no network has remote memory
			case strings.Contains(refused, "--lower directdrive"):
				lower = "directdrive"
			}
			got, ideal := s.finishes(t, "exec:"+peer, lower), s.finishes(t, "ideal", lower)
			if len(got) != len(ideal) {
				t.Fatalf("%d ranks, on the ideal network %d", len(got), len(ideal))
			}
			for rank := range got {
				if got[rank] < ideal[rank] {
					t.Errorf("rank %d ends at %d ps, on the ideal network at %d ps", rank, got[rank], ideal[rank])
				}
			}
			python := os.Getenv("TRACEDAG_VECTORS")
			if s.path != "store/horovod.parquet" || python == "" {
				return
			}
			other := s.finishes(t, "exec:python3 "+filepath.Join(python, "exec", "peer.py")+" --serial", lower)
			if serial := s.finishes(t, "exec:"+peer+" --serial", lower); !slices.Equal(serial, other) {
				t.Errorf("the ranks end at %v, with the peer in Python at %v", serial, other)
			}
		})
	}
}

// TestSampleFilesAreSmall keeps testdata small enough for every clone.
func TestSampleFilesAreSmall(t *testing.T) {
	const maxFile, maxAll = 64 << 10, 4 << 20
	var all int64
	err := filepath.WalkDir("testdata", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if all += info.Size(); info.Size() > maxFile {
			t.Errorf("%s has %d bytes, limit %d", path, info.Size(), maxFile)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if all > maxAll {
		t.Errorf("testdata has %d bytes, limit %d", all, maxAll)
	}
}

// conversion is the attempt to convert a sample to a format.
type conversion struct {
	mark     string   // of the table
	messages []string // of traceconv, without the name of the file
}

// Marks of conversions.
const (
	markWhole   = "whole"
	markLoses   = "loses"
	markLowered = "lowered"
	markNone    = "-"
)

// convert converts a sample, with --lower needed if there is no other way, and reads the result.
func (s *sample) convert(t *testing.T, to *format.Format) conversion {
	t.Helper()
	folder := t.TempDir()
	target := filepath.Join(folder, "x")
	run := func(more ...string) (clitest.Result, conversion) {
		r := runProgram(t, "traceconv", s.args(append([]string{"--to", to.Name, "-o", target}, more...)...)...)
		c := conversion{mark: markWhole}
		for line := range strings.Lines(r.Stderr) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "traceconv: ")
			if strings.Contains(line, "no start time of its session") {
				continue // about the input
			}
			for _, name := range []string{target, filepath.Join("testdata", s.path)} {
				line = strings.ReplaceAll(line, name+": ", "")
			}
			if c.messages = append(c.messages, line); strings.HasPrefix(line, "lost") {
				c.mark = markLoses
			}
		}
		return r, c
	}
	r, c := run()
	if r.Status != cli.ExitOK {
		refused := c
		if r, c = run("--lower", "needed"); r.Status != cli.ExitOK {
			refused.mark = markNone
			return refused
		}
		c.mark = markLowered
	}
	args := []string{"--check", "--from", to.Name, target}
	if to.WriteFiles != nil {
		files, err := filepath.Glob(target + ".0.*")
		if err != nil || len(files) != 1 {
			t.Fatalf("files of rank 0: %q, %v", files, err)
		}
		args[len(args)-1] = files[0]
	}
	if check := runProgram(t, "tracecat", args...); check.Status != cli.ExitOK {
		t.Errorf("tracecat --check of the result: exit status %d\n%s%s", check.Status, check.Stdout, check.Stderr)
	}
	return c
}

// TestConversions converts every sample to every format, reads the results, and compares the losses with
// docs/conversions.md.
func TestConversions(t *testing.T) {
	var targets []*format.Format
	var table, list strings.Builder
	table.WriteString("| from \\ to |")
	for i := range formats.All {
		if f := &formats.All[i]; f.Write != nil || f.WriteFiles != nil {
			targets = append(targets, f)
			table.WriteString(" " + f.Name + " |")
		}
	}
	table.WriteString("\n| --- |" + strings.Repeat(" --- |", len(targets)) + "\n")
	for _, s := range readSamples(t) {
		fmt.Fprintf(&table, "| %s |", s.path)
		fmt.Fprintf(&list, "### %s\n\n| to | messages |\n| --- | --- |\n", s.path)
		var order []string // messages, in the order of the first target
		to := map[string][]string{}
		for _, target := range targets {
			t.Run(s.path+"/"+target.Name, func(t *testing.T) {
				c := s.convert(t, target)
				table.WriteString(" " + c.mark + " |")
				text := strings.Join(c.messages, "; ")
				if c.mark == markLowered {
					text = strings.Join(append([]string{"with `--lower needed`"}, c.messages...), "; ")
				}
				if text == "" {
					return
				}
				if to[text] == nil {
					order = append(order, text)
				}
				to[text] = append(to[text], target.Name)
			})
		}
		table.WriteString("\n")
		for _, text := range order {
			fmt.Fprintf(&list, "| %s | %s |\n", strings.Join(to[text], ", "), strings.ReplaceAll(text, "|", "\\|"))
		}
		list.WriteString("\n")
	}
	const page = "docs/conversions.md"
	golden.Section(t, page, "<!-- matrix of conversions -->\n", "<!-- end of matrix -->\n", table.String())
	golden.Section(t, page, "<!-- losses of conversions -->\n\n", "<!-- end of losses -->\n", list.String())
}
