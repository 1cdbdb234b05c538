// This file measures simulate as a whole process, which reads a store, simulates it and prints the result.
// BENCHMARKS.md has the commands and the figures.
//
// TRACEDAG_LOGGOPSIM is the path of LogGOPSim, to compare with; without it there is no comparison. TRACEDAG_SCHEDULES
// is a folder to keep the schedules in. With TRACEDAG_100M set, the series of sizes goes up to 100 million ops. With
// -short everything is so small that its figures mean nothing.

package simulate

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

func BenchmarkSimulate(b *testing.B) {
	p := programs{folder: b.TempDir(), reference: os.Getenv("TRACEDAG_LOGGOPSIM")}
	build := exec.Command("go", "build", "-o", p.folder, "github.com/tracedag/tracedag/cmd/simulate",
		"github.com/tracedag/tracedag/cmd/tracegen")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %v\n%s", build, err, out)
	}
	b.Run("schedule", p.schedules)
	b.Run("ops", p.scaleOps)
	b.Run("ranks", p.scaleRanks)
	b.Run("start", p.start)
}

// programs are the measured programs.
type programs struct {
	folder    string // of simulate and tracegen
	reference string // path of LogGOPSim, "" if there is none
}

// reference is the name of LogGOPSim in figures; those of simulate are strict and loggopsim, for its models.
const reference = "reference"

// schedules measures both models and the reference on every schedule, and checks that loggopsim computes the results of
// the reference. The programs alternate, so that other load of the machine affects them equally.
func (p *programs) schedules(b *testing.B) {
	if p.reference == "" {
		fmt.Println("TRACEDAG_LOGGOPSIM is not set: no comparison with LogGOPSim")
	}
	folder := os.Getenv("TRACEDAG_SCHEDULES")
	if folder == "" {
		folder = b.TempDir()
	}
	var results table
	for _, s := range schedules {
		var files stored
		b.Run(s.name, func(b *testing.B) {
			if files.ops == 0 {
				var err error
				if files, err = s.write(folder, testing.Short()); err != nil {
					b.Fatal(err)
				}
				forgetPeak()
			}
			m := measurement{name: s.name, ops: files.ops}
			for b.Loop() {
				p.simulate(b, &m, "strict", files.store)
				ours := p.simulate(b, &m, "loggopsim", files.store)
				if p.reference != "" {
					ours.check(b, m.run(b, reference, p.reference, "-f", files.goal, "-b"))
				}
			}
			results.report(b, &m)
		})
	}
	results.print()
}

// size is that of a dissemination pattern.
type size struct {
	name              string
	ranks, iterations int
}

// scaleOps measures how time and memory grow with the number of ops.
func (p *programs) scaleOps(b *testing.B) {
	sizes := []size{{"1M", 16384, 2}, {"10M", 16384, 21}}
	if os.Getenv("TRACEDAG_100M") != "" {
		sizes = append(sizes, size{"100M", 16384, 211})
	}
	p.scale(b, sizes, "strict")
}

// scaleRanks measures how time and memory grow with the number of ranks, on about 4 million ops.
func (p *programs) scaleRanks(b *testing.B) {
	p.scale(b, []size{
		{"16", 16, 27_778}, {"256", 256, 919}, {"4096", 4096, 39}, {"16384", 16384, 8}, {"65536", 65536, 2},
	}, "strict", "loggopsim")
}

// scale measures how long it takes to generate and store a pattern, and to simulate it in the given models.
func (p *programs) scale(b *testing.B, sizes []size, models ...string) {
	path := filepath.Join(b.TempDir(), "scale.parquet")
	var results table
	for _, s := range sizes {
		if testing.Short() {
			s.ranks, s.iterations = max(s.ranks/64, 16), max(s.iterations/64, 1)
		}
		b.Run(s.name, func(b *testing.B) {
			m := measurement{name: s.name}
			for b.Loop() {
				p.generate(b, &m, "dissemination", s.ranks, s.iterations, path)
				for _, model := range models {
					m.ops = p.simulate(b, &m, model, path).Ops
				}
			}
			results.report(b, &m)
		})
	}
	results.print()
}

// start measures a trace of a thousand ops.
func (p *programs) start(b *testing.B) {
	path := filepath.Join(b.TempDir(), "small.parquet")
	var m measurement
	p.generate(b, &m, "stencil2d", 16, 7, path)
	for b.Loop() {
		p.simulate(b, &m, "strict", path)
	}
}

func (p *programs) generate(b *testing.B, m *measurement, pattern string, ranks, iterations int, path string) {
	b.Helper()
	m.run(b, "generate", filepath.Join(p.folder, "tracegen"), "pattern", pattern, "--ranks", strconv.Itoa(ranks),
		"--iterations", strconv.Itoa(iterations), "--bytes", "4KiB", "-o", path)
}

// outcome is the result of a simulation.
type outcome struct {
	Ops, Events int64
	Complete    bool
	Makespan    int64   `json:"makespan_ps"`
	Finish      []int64 `json:"finish_ps"`
}

func (p *programs) simulate(b *testing.B, m *measurement, model, path string) outcome {
	b.Helper()
	out := m.run(b, model, filepath.Join(p.folder, "simulate"), "--model", model, "--json", path)
	var o outcome
	if err := json.Unmarshal(out, &o); err != nil {
		b.Fatalf("simulate --model %s %s: %v", model, path, err)
	}
	if !o.Complete {
		b.Fatalf("simulate --model %s %s: not complete", model, path)
	}
	return o
}

var (
	referenceEvents = regexp.MustCompile(`Events: (\d+)`)
	referenceFinish = regexp.MustCompile(`Maximum finishing time at host (\d+): (\d+)`)
)

// check compares the outcome with LogGOPSim's output: the number of events, the rank that finishes last, and when,
// in nanoseconds.
func (o *outcome) check(b *testing.B, printed []byte) {
	b.Helper()
	events, finish := referenceEvents.FindSubmatch(printed), referenceFinish.FindSubmatch(printed)
	if events == nil || finish == nil {
		b.Fatalf("LogGOPSim printed %q", printed)
	}
	theirs := []string{string(events[1]), string(finish[1]), string(finish[2]) + "000"}
	ours := []string{
		strconv.FormatInt(o.Events, 10), strconv.Itoa(slices.Index(o.Finish, o.Makespan)),
		strconv.FormatInt(o.Makespan, 10),
	}
	if !slices.Equal(ours, theirs) {
		b.Fatalf("events, last rank, makespan in ps: simulate found %v, LogGOPSim %v", ours, theirs)
	}
}
