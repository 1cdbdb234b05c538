package compose

import (
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/internal/units"
)

// Plan describes a trace merged from the traces of jobs. [ReadPlan] reads it from a file, [NewPlan] from settings.
type Plan struct {
	Jobs  []PlanJob
	Title string   // title of the merged trace; "": that of Merge
	Scale *big.Rat // factor for the durations of the calcs of all jobs, multiplied by that of the job; nil: 1

	Placed    bool // place jobs by Machine and the placements; otherwise as [Merge] does
	Machine   Machine
	Placement Placement // of jobs without their own; a Given one lists the nodes of all jobs in order
	Lists     [][]int32 // nodes of each job, including copies; nil: none
	Seed      *int64    // of Random placements without their own seed; nil: 1

	PerNode       *bool // join the ranks of each node; nil: if every node has one rank and there are no collectives
	NoNodes       bool  // join the ranks of nodes that jobs share unless PerNode forbids it: the target has no nodes
	OwnNICs       bool  // jobs have NICs of their own on a node that they share; only with Machine.Shared
	UniqueNIC     bool  // joined ranks keep separate NICs
	SharedStreams bool  // joined ranks share streams of equal numbers
	Bandwidth     int64 // bandwidth of messages inside a node with joined ranks, in bytes per second
	StartCalc     bool  // represent release times, with them the starts of jobs, by calcs of clocks (package clock)
}

// PlanJob is a job of a plan, or several copies of it.
type PlanJob struct {
	File      string // file of the trace, for Env.Open
	From      string // format of the trace; "": any
	Name      string // "": the base name of File
	Start     dag.Time
	Count     int        // number of copies, 1 or more
	Nodes     Ranges     // nodes of the job, in the order of its own nodes; nil: by Placement
	Placement *Placement // nil: the placement of the plan
	Edits     Edits
}

// MaxPlanSize is the maximum size of a plan's file in bytes.
const MaxPlanSize = 4 << 20

// Limits of plans.
const (
	maxCopies    = 1 << 20
	maxPlanRanks = 1 << 22 // of all jobs, if any has copies
)

// defaultBandwidth is the bandwidth inside the nodes of the validation of ATLAHS, in bytes per second.
const defaultBandwidth = 150e9

// Setting is a key of a plan or of a job with its value. docs/reference/compose.md lists the keys.
type Setting struct{ Key, Value string }

// NewPlan returns a plan of jobs with the given settings. Errors are [*param.Error] with the key as name, "job: "
// before keys of jobs.
func NewPlan(settings []Setting, jobs [][]Setting) (*Plan, error) {
	tree := conf.Node{Kind: conf.Map, Members: members(settings)}
	list := conf.Node{Kind: conf.List}
	for _, job := range jobs {
		list.List = append(list.List, conf.Node{Kind: conf.Map, Members: members(job)})
	}
	tree.Members = append(tree.Members, conf.Member{Key: "jobs", Value: list})
	return decodePlan(&tree, &decoder{})
}

// NewEdits returns the edits of the settings. Errors are [*param.Error] with the key as name.
func NewEdits(settings []Setting) (e Edits, err error) {
	d := &decoder{}
	err = d.mapping(&conf.Node{Members: members(settings)}, d.editKeys(&e))
	return e, err
}

func members(settings []Setting) (members []conf.Member) {
	for _, s := range settings {
		members = append(members, conf.Member{Key: s.Key, Value: conf.Node{Kind: conf.Word, Text: s.Value}})
	}
	return members
}

// ParseJob parses FILE[@START][,KEY=VALUE...] into the settings of a job; the last one is "file". A part after a
// comma without "=" belongs to the previous value. If the whole text is the name of an existing file, it is that
// file.
func ParseJob(text string) ([]Setting, error) {
	if _, err := os.Stat(text); err == nil {
		return []Setting{{"file", text}}, nil
	}
	parts := strings.Split(text, ",")
	file, settings := parts[0], []Setting{}
	for _, part := range parts[1:] {
		key, value, isKey := strings.Cut(part, "=")
		switch {
		case isKey:
			settings = append(settings, Setting{key, value})
		case len(settings) > 0:
			settings[len(settings)-1].Value += "," + part
		default:
			file += "," + part
		}
	}
	at := strings.LastIndexByte(file, '@')
	if _, err := os.Stat(file); at < 0 || !errors.Is(err, fs.ErrNotExist) {
		return append(settings, Setting{"file", file}), nil
	}
	start, err := units.ParseTime(file[at+1:], 0)
	if err != nil {
		return nil, fmt.Errorf("%s: no such file, nor a file and a start: %w", file, err)
	}
	if start != 0 {
		settings = append(settings, Setting{"start", start.String()})
	}
	return append(settings, Setting{"file", file[:at]}), nil
}

// Files returns the files of the plan in order, without repetitions.
func (p *Plan) Files() (files []string) {
	seen := make(map[string]bool)
	for i := range p.Jobs {
		if name := p.Jobs[i].File; !seen[name] {
			seen[name] = true
			files = append(files, name)
		}
	}
	return files
}

// Name returns the name of the merged trace for messages: the files with " + " between them.
func (p *Plan) Name() string {
	return strings.Join(p.Files(), " + ")
}

// Single returns the file of a plan with a single trace that the plan does not change.
func (p *Plan) Single() (file string, ok bool) {
	j := &p.Jobs[0]
	changed := len(p.Jobs) > 1 || j.Count > 1 || j.Start != 0 || !j.Edits.None() || p.Scale != nil || p.Placed ||
		p.Title != ""
	return j.File, !changed
}

// jobName returns the name of a job, by default the base name of its file.
func (j *PlanJob) jobName() string {
	switch {
	case j.Name != "":
		return j.Name
	case j.File == "-":
		return "stdin"
	}
	return filepath.Base(j.File)
}
