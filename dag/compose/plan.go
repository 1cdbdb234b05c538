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

// Plan describes how a trace is made of the traces of jobs. [ReadPlan] reads it from a file, [NewPlan] from settings.
type Plan struct {
	Jobs  []PlanJob
	Title string   // of the merged trace; "": that of Merge
	Scale *big.Rat // factor for the durations of the calcs of all jobs, times that of the job; nil: 1

	Placed    bool // jobs are placed as Machine and the placements say; otherwise as [Merge] does
	Machine   Machine
	Placement Placement // of jobs without one of their own; a Given one has the nodes of all jobs in order
	Lists     [][]int32 // nodes of each job, copies included; nil: none
	Seed      *int64    // of Random placements without a seed of their own; nil: 1

	PerNode       *bool // makes the ranks of a node one; nil: if every node has one rank and there are no collectives
	ShareNIC      bool  // jobs share the NICs of a node; only with Machine.Shared
	UniqueNIC     bool  // when ranks become one, each keeps its NICs
	SharedStreams bool  // when ranks become one, streams of equal numbers become one
	Bandwidth     int64 // of messages inside a node when its ranks become one, in bytes per second
	StartCalc     bool  // the start of a job is a calc, not release times ([Postpone])
}

// PlanJob is a job of a plan, or several copies of it.
type PlanJob struct {
	File      string // of the trace, for Env.Open
	From      string // format of the trace; "": any
	Name      string // "": that of File without its folder
	Start     dag.Time
	Count     int        // of copies, 1 or more
	Nodes     Ranges     // nodes that it is placed on, in the order of its own; nil: as Placement says
	Placement *Placement // nil: that of the plan
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

// Setting is a key of a plan or of a job and its value. docs/reference/compose.md lists the keys.
type Setting struct{ Key, Value string }

// NewPlan returns a plan of jobs with the given settings. Errors are [*param.Error] named after keys, those of a job
// after "job: " and the key.
func NewPlan(settings []Setting, jobs [][]Setting) (*Plan, error) {
	tree := conf.Node{Kind: conf.Map, Members: members(settings)}
	list := conf.Node{Kind: conf.List}
	for _, job := range jobs {
		list.List = append(list.List, conf.Node{Kind: conf.Map, Members: members(job)})
	}
	tree.Members = append(tree.Members, conf.Member{Key: "jobs", Value: list})
	return decodePlan(&tree, &decoder{})
}

// NewEdits returns the changes that the settings ask for. Errors are [*param.Error] named after keys.
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

// ParseJob parses FILE[@START][,KEY=VALUE...] into the settings of a job, the last of which is "file". A part after a
// comma without "=" belongs to the value before it. A text that is the name of a file is that file.
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

// Files returns the files of the plan, each once, in order.
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

// Single returns the file of a plan that leaves its only trace as it is.
func (p *Plan) Single() (file string, ok bool) {
	j := &p.Jobs[0]
	changed := len(p.Jobs) > 1 || j.Count > 1 || j.Start != 0 || !j.Edits.None() || p.Scale != nil || p.Placed ||
		p.Title != ""
	return j.File, !changed
}

// jobName returns the name of a job: its own, or that of its file without the folder.
func (j *PlanJob) jobName() string {
	switch {
	case j.Name != "":
		return j.Name
	case j.File == "-":
		return "stdin"
	}
	return filepath.Base(j.File)
}
