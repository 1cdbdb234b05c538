// This file reads several traces as the jobs of one, and places them on nodes. docs/jobs.md describes it for users.

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/units"
)

// JobFlags are the flags of a program that takes several traces as jobs that run at the same time.
type JobFlags struct {
	traces   []string
	mappings []string
	nodes    int
	cores    int
	flags    *pflag.FlagSet
}

// Register adds the flags to the command.
func (f *JobFlags) Register(cmd *cobra.Command) {
	f.flags = cmd.Flags()
	f.flags.StringArrayVar(&f.traces, "trace", nil,
		"`FILE[@START]` of another trace, a job of its own that starts at START, such as 5ms; may be repeated")
	f.flags.StringArrayVar(&f.mappings, "mapping", nil,
		"`law` that places tasks on nodes: linear, rr, random:SEED, or file:PATH with the node of each task on a line; "+
			"given once for all jobs or once for each, in order")
	f.flags.IntVar(&f.nodes, "nodes", 0, "how many nodes there are (default: as many as are needed)")
	f.flags.IntVar(&f.cores, "cores-per-node", 1, "how many tasks a node takes")
}

// Jobs are traces to be read as the jobs of one.
type Jobs struct {
	inputs   []jobInput
	mappings []jobMapping // one for each job; none: the traces say where their ranks run
	machine  compose.Machine
}

type jobInput struct {
	name  string // "-" for standard input
	start dag.Time
}

type jobMapping struct {
	compose.Mapping
	path string // of the file that it is from
}

// Job is a job as it is in the trace of all.
type Job struct {
	Name             string
	FirstRank, Ranks int
	Start            dag.Time
}

// Jobs returns what the flags ask for. The trace that the argument names comes first and starts at 0; without argument
// and --trace it is standard input.
func (f *JobFlags) Jobs(p *Program, args []string) (*Jobs, error) {
	j := &Jobs{machine: compose.Machine{Nodes: f.nodes, Cores: f.cores}}
	for _, name := range args {
		j.inputs = append(j.inputs, jobInput{name: name})
	}
	for _, text := range f.traces {
		in, err := parseJobInput("--trace", text)
		if err != nil {
			return nil, err
		}
		j.inputs = append(j.inputs, in)
	}
	names, err := p.InputNames(j.names())
	if err != nil {
		return nil, err
	}
	if len(j.inputs) == 0 {
		j.inputs = []jobInput{{name: names[0]}}
	}
	if err := f.checkCount("nodes", f.nodes); err != nil {
		return nil, err
	}
	if err := f.checkCount("cores-per-node", f.cores); err != nil {
		return nil, err
	}
	j.mappings, err = f.parseMappings(len(j.inputs))
	return j, err
}

// parseJobInput reads FILE[@START], the value of a flag.
func parseJobInput(flag, text string) (jobInput, error) {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return jobInput{name: text}, nil
	}
	if _, err := os.Stat(text); !errors.Is(err, fs.ErrNotExist) {
		return jobInput{name: text}, nil
	}
	start, err := units.ParseTime(text[at+1:], 0)
	if err != nil {
		return jobInput{}, Usagef("%s %s: no such file, nor a file and a start: %v", flag, text, err)
	}
	return jobInput{text[:at], start}, nil
}

func (f *JobFlags) checkCount(flag string, n int) error {
	if f.flags.Changed(flag) && (n < 1 || n > math.MaxInt32) {
		return Usagef("--%s: expected 1 to %d, found %d", flag, math.MaxInt32, n)
	}
	return nil
}

// parseMappings returns a mapping for each of the jobs, or none.
func (f *JobFlags) parseMappings(jobs int) ([]jobMapping, error) {
	texts := f.mappings
	if len(texts) == 0 && (f.flags.Changed("nodes") || f.flags.Changed("cores-per-node")) {
		texts = []string{"linear"}
	}
	if len(texts) > 1 && len(texts) != jobs {
		return nil, Usagef("--mapping: expected one, or one for each of the %d jobs, found %d", jobs, len(texts))
	}
	var mappings []jobMapping
	for _, text := range texts {
		m, err := f.parseMapping(text)
		if err != nil {
			return nil, err
		}
		mappings = append(mappings, m)
	}
	if len(mappings) == 1 {
		mappings = slices.Repeat(mappings, jobs)
	}
	return mappings, nil
}

func (f *JobFlags) parseMapping(text string) (m jobMapping, err error) {
	law, of, _ := strings.Cut(text, ":")
	switch {
	case text == "linear":
		m.Law = compose.Linear
		return m, nil
	case text == "rr":
		m.Law = compose.RoundRobin
		return m, nil
	case law == "random":
		m.Law = compose.Random
		if m.Seed, err = strconv.ParseInt(of, 10, 64); err != nil {
			return m, Usagef("--mapping: expected random:SEED, where SEED is a whole number, found %q", text)
		}
		return m, nil
	case law == "file" && of != "":
		m.Law, m.path = compose.Given, of
		m.Nodes, err = readNodes(of, f.nodes)
		return m, err
	}
	return m, Usagef("--mapping: expected linear, rr, random:SEED or file:PATH, found %q", text)
}

// readNodes reads a file of nodes of which there are so many, 0 for any number.
func readNodes(path string, nodes int) ([]int32, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return parseNodes(file, path, nodes)
}

// parseNodes reads the content of such a file: a node on each line.
func parseNodes(r io.Reader, path string, count int) ([]int32, error) {
	last := math.MaxInt32
	if count > 0 {
		last = count - 1
	}
	nodes := []int32{}
	wrong := func(found string) error {
		return &format.SyntaxError{File: path, Line: int64(len(nodes)) + 1, Found: found,
			Expected: fmt.Sprintf("the number of a node, 0..%d", last)}
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		node, err := strconv.ParseUint(line, 10, 31)
		if err != nil || node > uint64(last) {
			return nil, wrong(fmt.Sprintf("%.40q", line))
		}
		nodes = append(nodes, int32(node))
	}
	switch err := lines.Err(); err {
	case nil:
		return nodes, nil
	case bufio.ErrTooLong:
		return nil, wrong("a very long line")
	default:
		return nil, fmt.Errorf("%s: reading: %w", path, format.Cause(err))
	}
}

func (j *Jobs) names() []string {
	var names []string
	for i := range j.inputs {
		names = append(names, j.inputs[i].name)
	}
	return names
}

// Single returns the name of the input, if there is one whose trace is to be taken as it is.
func (j *Jobs) Single() (name string, ok bool) {
	in := &j.inputs[0]
	return in.name, len(j.inputs) == 1 && in.start == 0 && len(j.mappings) == 0
}

// Read reads all traces into one, and returns its name for messages and where it has which job.
func (j *Jobs) Read(p *Program, f ReadFlags) (merged *dag.Trace, name string, jobs []Job, err error) {
	parts := make([]compose.Job, len(j.inputs))
	var inputs []string // as messages name them
	for i, in := range j.inputs {
		read, err := p.ReadTrace(in.name, f, ReadOptions{})
		if err != nil {
			return nil, "", nil, err
		}
		parts[i] = compose.Job{Trace: read.Trace, Start: in.start}
		inputs = append(inputs, read.Name)
	}
	ranks := 0
	for i, unique := range compose.UniqueNames(j.jobNames()) {
		parts[i].Name = unique
		n := len(parts[i].Trace.Ranks)
		jobs = append(jobs, Job{Name: unique, FirstRank: ranks, Ranks: n, Start: parts[i].Start})
		ranks += n
	}
	name = strings.Join(inputs, " + ")
	if merged, err = compose.Merge(parts); err != nil {
		return nil, "", nil, format.InFile(name, err)
	}
	if len(j.mappings) == 0 {
		return merged, name, jobs, nil
	}
	placed := *merged
	if placed.Nodes, err = j.place(parts); err != nil {
		return nil, "", nil, format.InFile(name, err)
	}
	return &placed, name, jobs, nil
}

// jobNames returns the names of the files without their folders.
func (j *Jobs) jobNames() []string {
	names := j.names()
	for i, name := range names {
		if names[i] = filepath.Base(name); name == "-" {
			names[i] = "stdin"
		}
	}
	return names
}

// place returns the node of each rank.
func (j *Jobs) place(parts []compose.Job) ([]int32, error) {
	mappings := make([]compose.Mapping, len(parts))
	for i := range parts {
		m, tasks := &j.mappings[i], len(parts[i].Trace.Ranks)
		if m.Law == compose.Given && len(m.Nodes) != tasks {
			return nil, &format.SyntaxError{File: m.path, Line: int64(min(len(m.Nodes), tasks)) + 1,
				Expected: fmt.Sprintf("%d lines, one for each task of job %s", tasks, parts[i].Name),
				Found:    strconv.Itoa(len(m.Nodes))}
		}
		mappings[i] = m.Mapping
	}
	return compose.Place(parts, mappings, j.machine)
}
