// This file runs and measures processes for the benchmark, and prints tables of the figures.

package simulate

import (
	"bytes"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// measurement is how long programs took with one trace, and how much memory.
type measurement struct {
	name     string // of the trace
	ops      int64
	programs []*programRuns
}

// programRuns are the runs of a program.
type programRuns struct {
	program string
	seconds []float64
	cpu     []float64 // processor time in seconds, user and system
	bytes   []float64 // most memory that was resident, where that is known
}

// of returns the runs of a program.
func (m *measurement) of(program string) *programRuns {
	i := slices.IndexFunc(m.programs, func(r *programRuns) bool { return r.program == program })
	if i < 0 {
		i = len(m.programs)
		m.programs = append(m.programs, &programRuns{program: program})
	}
	return m.programs[i]
}

// run runs a program once and returns its output.
func (m *measurement) run(b *testing.B, program, path string, args ...string) []byte {
	b.Helper()
	cmd := exec.Command(path, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start)
	if err != nil {
		b.Fatalf("%v: %v\n%s", cmd, err, &stderr)
	}
	r := m.of(program)
	r.seconds = append(r.seconds, took.Seconds())
	r.cpu = append(r.cpu, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	if peak := peakMemory(cmd.ProcessState); peak > 0 {
		r.bytes = append(r.bytes, float64(peak))
	}
	return stdout.Bytes()
}

// figure is a value with its unit; 0 is unknown.
type figure struct {
	value float64
	unit  string
}

// figures returns medians, and how many times longer than each other program the reference took, if it ran.
func (m *measurement) figures() []figure {
	ops := float64(m.ops)
	all := []figure{{ops / 1e6, "Mops"}}
	for _, r := range m.programs {
		seconds, peak := median(r.seconds), median(r.bytes)
		all = append(all, figure{seconds, r.program + "-s"}, figure{ops / seconds / 1e6, r.program + "-Mops/s"},
			figure{median(r.cpu), r.program + "-cpu-s"}, figure{peak / ops, r.program + "-B/op"})
	}
	if last := m.programs[len(m.programs)-1]; last.program == reference {
		for _, r := range m.programs[:len(m.programs)-1] {
			all = append(all, figure{median(last.seconds) / median(r.seconds), r.program + "-ratio"},
				figure{median(last.cpu) / median(r.cpu), r.program + "-cpu-ratio"})
		}
	}
	return all
}

// median returns 0 where there are no values.
func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// table collects measurements, over all -count runs of a benchmark.
type table []*measurement

// report reports a measurement as the result of the running benchmark.
func (t *table) report(b *testing.B, m *measurement) {
	b.ReportMetric(0, "ns/op") // hides the time of all programs together
	for _, f := range m.figures() {
		if f.value != 0 {
			b.ReportMetric(f.value, f.unit)
		}
	}
	i := slices.IndexFunc(*t, func(other *measurement) bool { return other.name == m.name })
	if i < 0 {
		*t = append(*t, m)
		return
	}
	for _, r := range m.programs {
		all := (*t)[i].of(r.program)
		all.seconds, all.cpu = append(all.seconds, r.seconds...), append(all.cpu, r.cpu...)
		all.bytes = append(all.bytes, r.bytes...)
	}
}

// print prints the figures in Markdown.
func (t *table) print() {
	for i, m := range *t {
		var units, values []string
		for _, f := range m.figures() {
			value := ""
			if f.value != 0 {
				value = strconv.FormatFloat(f.value, 'g', 3, 64)
			}
			units, values = append(units, f.unit), append(values, value)
		}
		if i == 0 {
			fmt.Printf("\n| | %s |\n|%s\n", strings.Join(units, " | "), strings.Repeat(" --- |", len(units)+1))
		}
		fmt.Printf("| %s | %s |\n", m.name, strings.Join(values, " | "))
	}
}
