package formats

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/tracefile"
)

// The experiment of flipped bits: each bit of small files of a format is flipped, and the files are read as by the
// programs. The pages of the formats have the counts that TRACEDAG_FLIPS=all reports.

// flips counts the outcomes of flipped bits.
type flips struct {
	all     int
	refused int // errors
	warned  int // another trace with a warning that the whole file does not cause
	checked int // another trace in which tracecat --check finds a problem that the whole one does not have
	same    int // the same trace
	silent  int // another trace
}

func (f flips) String() string {
	share := func(n int) string { return fmt.Sprintf("%d (%.1f %%)", n, 100*float64(n)/float64(max(1, f.all))) }
	return fmt.Sprintf("%d flips: %s errors, %s warnings, %s found by tracecat --check, %s without effect, %s silent", f.all,
		share(f.refused), share(f.warned), share(f.checked), share(f.same), share(f.silent))
}

// mostSilent is the largest share of silent changes by format, in percent. The store has none; package store tests it.
var mostSilent = map[string]float64{
	"goalbin": 9, "goal": 5, "vef": 8, "nsys": 1, "mpi": 7, "chakra": 12, "chakrajson": 2, "astratext": 26, "simai": 31,
	"pytorch": 8, "stg": 16, "workloadgraph": 17, "kineto": 30, "spc": 22, "msr": 24, "blkparse": 9, "fio": 30, "disksim": 25,
	"mqsim": 31, "blktracer": 17, "trafpy": 20, "trafpycsv": 27, "htsim": 9, "hpcc": 38,
}

const (
	mostFlipped  = 100   // bits of each sample in an ordinary test
	mostFlipsAll = 6_000 // bits of each sample with TRACEDAG_FLIPS=all
)

func TestFlips(t *testing.T) {
	most, sampling := mostFlipped, 9.0 // percentage points by which the share of a small sample may be higher
	if os.Getenv("TRACEDAG_FLIPS") == "all" {
		most, sampling = mostFlipsAll, 0
	}
	for _, s := range subjects() {
		if s.format == "store" {
			continue
		}
		t.Run(s.format, func(t *testing.T) {
			c := &conformance{T: t, subject: s, format: All.Named(s.format), shown: map[string]bool{}, from: s.format}
			var total flips
			for i := range s.samples {
				c.sample(&c.samples[i])
				if s.samples[i].model {
					continue // any number in its range is another model
				}
				c.flip(c.samples[i].files, most, &total)
			}
			t.Log(total)
			if share := 100 * float64(total.silent) / float64(total.all); share > mostSilent[s.format]+sampling {
				t.Errorf("%.2f %% of flips change the trace silently, expected at most %v %%", share,
					mostSilent[s.format]+sampling)
			}
		})
	}
}

// flip flips at most so many bits of the files of a trace, evenly, and counts the outcomes.
func (c *conformance) flip(files []file, most int, total *flips) {
	folder := c.TempDir()
	paths := make([]string, len(files))
	bits := 0
	for i, f := range files {
		paths[i] = filepath.Join(folder, f.name)
		c.store(paths[i], []byte(f.text))
		bits += 8 * len(f.text)
	}
	want, known, err := c.readWarned(paths)
	if err != nil {
		c.Fatal(err)
	}
	problems := problemsOf(want)
	step := float64(bits) / float64(min(bits, most))
	for i, next := 0, 0.0; i < len(files); i++ {
		content := []byte(files[i].text)
		size := float64(8 * len(content))
		for ; next < size; next += step {
			bit := int(math.Floor(next))
			content[bit/8] ^= 1 << (bit % 8)
			c.store(paths[i], content)
			got, warnings, err := c.readWarned(paths)
			content[bit/8] ^= 1 << (bit % 8)
			total.all++
			switch {
			case err != nil:
				total.refused++
			case sameTrace(want, got):
				total.same++
			case slices.ContainsFunc(warnings, func(w string) bool { return !slices.Contains(known, w) }):
				total.warned++
			case slices.ContainsFunc(problemsOf(got), func(p string) bool { return !slices.Contains(problems, p) }):
				total.checked++
			default:
				if total.silent++; testing.Verbose() && total.silent%97 == 1 {
					line := 1 + bytes.Count(content[:bit/8], []byte("\n"))
					from, to := max(0, bit/8-20), min(len(content), bit/8+20)
					c.Logf("silent: %s:%d byte %d bit %d %q", files[i].name, line, bit/8, bit%8, content[from:to])
				}
			}
		}
		next -= size
		c.store(paths[i], content)
	}
}

// readWarned reads a trace and returns its warnings.
func (c *conformance) readWarned(paths []string) (*dag.Trace, []string, error) {
	var warnings []string
	t, err := tracefile.Open(All, paths, tracefile.Options{From: c.from, Warn: func(message string, args ...any) {
		warnings = append(warnings, fmt.Sprintf(message, args...))
	}})
	if err != nil {
		return nil, nil, err
	}
	defer t.Close()
	trace, err := t.Read()
	return trace, warnings, err
}

// problemsOf returns the problems of a trace.
func problemsOf(t *dag.Trace) []string {
	var problems []string
	for _, p := range dag.Validate(t) {
		problems = append(problems, p.String())
	}
	return problems
}

// sameTrace reports whether two traces are equal in everything but the form of their columns.
func sameTrace(a, b *dag.Trace) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	if differences(a, b, false) != nil || len(a.Comms) != len(b.Comms) {
		return false
	}
	for i := range a.Comms {
		if a.Comms[i].Name != b.Comms[i].Name {
			return false
		}
	}
	return a.Title == b.Title && strings.TrimSpace(a.Attrs) == strings.TrimSpace(b.Attrs) && slices.Equal(a.Jobs, b.Jobs)
}
