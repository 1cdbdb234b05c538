package compose

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
)

// ReadPlan reads a plan from the text of a YAML or JSON file, or of a configuration of the ATLAHS generator's
// merge_goals. Its paths are relative to the folder of the file.
func ReadPlan(text []byte, name string) (*Plan, error) {
	if len(text) > MaxPlanSize {
		return nil, fmt.Errorf("%s: a plan of more than %d bytes", name, MaxPlanSize)
	}
	tree, err := conf.Read(text, name)
	if err == nil && tree.Kind == conf.Null {
		err = &conf.Error{File: name, Line: tree.Line, Expected: "a mapping", Found: "nothing"}
	}
	if err != nil {
		return nil, err
	}
	return decodePlan(&tree, &decoder{file: name})
}

// decoder reads the keys of a plan.
type decoder struct {
	file string // "": the plan is the command line
	in   string // prefix of the keys in messages, such as "job: "
}

// folder returns a path of the plan relative to the working folder.
func (d *decoder) folder(path string) string {
	if d.file == "" || path == "" || path == "-" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(d.file), path)
}

// wrong returns an error about a value.
func (d *decoder) wrong(n *conf.Node, key, expected string) error {
	return d.fail(n.Line, key, expected, n.Found())
}

func (d *decoder) fail(line int64, key, expected, found string) error {
	if d.file == "" {
		return param.Errorf(d.in+key, "expected %s, found %s", expected, found)
	}
	return &conf.Error{File: d.file, Line: line, Key: d.in + key, Expected: expected, Found: found}
}

// planKey reads the value of a key.
type planKey struct {
	name string
	read func(n *conf.Node, key string) error
}

// mapping reads a mapping. It returns an error for keys that are not in the list.
func (d *decoder) mapping(n *conf.Node, keys []planKey) error {
	seen := make(map[string]bool)
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	for i := range n.Members {
		m := &n.Members[i]
		k := slices.Index(names, m.Key)
		switch {
		case k < 0:
			return d.fail(m.Line, "key", "one of "+strings.Join(names, ", "), fmt.Sprintf("%.60q", m.Key))
		case seen[m.Key]:
			return d.fail(m.Line, m.Key, "the key once", "it again")
		}
		seen[m.Key] = true
		if err := keys[k].read(&m.Value, m.Key); err != nil {
			return err
		}
	}
	return nil
}

// text returns a reader of strings.
func (d *decoder) text(to *string) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		if n.Kind != conf.Text && n.Kind != conf.Word || n.Text == "" {
			return d.wrong(n, key, "a text")
		}
		*to = n.Text
		return nil
	}
}

func (d *decoder) boolean(to *bool) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		value := strings.ToLower(n.Text)
		if n.Kind != conf.Bool && n.Kind != conf.Word || value != "true" && value != "false" {
			return d.wrong(n, key, "true or false")
		}
		*to = value == "true"
		return nil
	}
}

// whole returns a reader of whole numbers in a range.
func (d *decoder) whole(to *int, least, most int) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		v, err := strconv.Atoi(n.Text)
		if n.Kind != conf.Number && n.Kind != conf.Word || err != nil || v < least || v > most {
			return d.wrong(n, key, fmt.Sprintf("a whole number from %d to %d", least, most))
		}
		*to = v
		return nil
	}
}

// parsed returns a reader of numbers or strings with a syntax of their own.
func (d *decoder) parsed(parse func(string) error) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		if n.Kind != conf.Text && n.Kind != conf.Number && n.Kind != conf.Word {
			return d.wrong(n, key, "a number or a text")
		}
		if err := parse(n.Text); err != nil {
			if d.file == "" {
				return &param.Error{Name: d.in + key, Err: err}
			}
			return fmt.Errorf("%s:%d: %s%s: %w", d.file, n.Line, d.in, key, err)
		}
		return nil
	}
}

func parseInto[T any](to *T, parse func(string) (T, error)) func(string) error {
	return func(text string) (err error) {
		*to, err = parse(text)
		return err
	}
}

// numbers returns a reader of a string such as 0-7,12, or of a list of numbers and such strings.
func (d *decoder) numbers(to *Ranges) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		elements := n.List
		if n.Kind != conf.List {
			elements = []conf.Node{*n}
		}
		if len(elements) == 0 {
			return d.wrong(n, key, "at least one number")
		}
		set := Ranges{}
		for i := range elements {
			var part Ranges
			if err := d.parsed(parseInto(&part, units.ParseNumbers))(&elements[i], key); err != nil {
				return err
			}
			set = append(set, part...)
		}
		*to = set
		return nil
	}
}

// editKeys are the keys of the edits of a trace.
func (d *decoder) editKeys(e *Edits) []planKey {
	return []planKey{
		{"window", d.parsed(parseInto(&e.Window, parseSpan))},
		{"only-ranks", d.numbers(&e.Only)},
		{"repeat", d.whole(&e.Repeat, 1, math.MaxInt32)},
		{"scale-compute", d.parsed(parseInto(&e.Scale, parseFactor))},
	}
}

// job reads a job.
func (d *decoder) job(n *conf.Node) (PlanJob, error) {
	j := PlanJob{Count: 1}
	keys := []planKey{
		{"file", d.text(&j.File)},
		{"name", d.text(&j.Name)},
		{"from", d.text(&j.From)},
		{"start", d.parsed(parseInto(&j.Start, func(s string) (dag.Time, error) { return units.ParseTime(s, 0) }))},
		{"count", d.whole(&j.Count, 1, maxCopies)},
		{"nodes", d.numbers(&j.Nodes)},
		{"placement", d.ownPlacement(&j)},
	}
	if err := d.mapping(n, append(keys, d.editKeys(&j.Edits)...)); err != nil {
		return j, err
	}
	if j.File == "" {
		return j, d.fail(n.Line, "file", "the name of a trace", "none")
	}
	j.File = d.folder(j.File)
	return j, nil
}

// ownPlacement reads the placement of a job.
func (d *decoder) ownPlacement(j *PlanJob) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		j.Placement = &Placement{}
		return d.placement(j.Placement)(n, key)
	}
}

// jobs reads the list of jobs.
func (d *decoder) jobs(to *[]PlanJob) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		if n.Kind != conf.List || len(n.List) == 0 {
			return d.wrong(n, key, "a list of jobs")
		}
		in := *d
		if in.in = "jobs: "; d.file == "" {
			in.in = "job: "
		}
		for i := range n.List {
			if n.List[i].Kind != conf.Map {
				return d.wrong(&n.List[i], key, "a mapping")
			}
			j, err := in.job(&n.List[i])
			if err != nil {
				return err
			}
			*to = append(*to, j)
		}
		return nil
	}
}

// modes are the values of the key mode; true: jobs share nodes.
var modes = map[string]bool{"multi-job": false, "multi-tenant": true}

func (p *Plan) readMode(d *decoder) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		shared, ok := modes[n.Text]
		if !ok || n.Kind != conf.Text && n.Kind != conf.Word {
			return d.wrong(n, key, "multi-job or multi-tenant")
		}
		p.Machine.Shared, p.Placed = shared, true
		return nil
	}
}

// readPlacement reads the key placement, named pattern by the ATLAHS generator.
func (p *Plan) readPlacement(d *decoder) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		if n.Kind == conf.List {
			p.Placed = true
			return p.readLists(d, n, key)
		}
		if d.placement(&p.Placement)(n, key) != nil {
			return d.wrong(n, key, Policies+" or a list of a list for each job")
		}
		p.Placed = p.Placed || p.Placement.Policy != OwnNodes
		return nil
	}
}

// placement returns a reader of placements.
func (d *decoder) placement(to *Placement) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		err := d.parsed(parseInto(to, ParsePlacement))(n, key)
		to.File = d.folder(to.File)
		return err
	}
}

// readLists reads a list of nodes for each job.
func (p *Plan) readLists(d *decoder, n *conf.Node, key string) error {
	p.Lists = [][]int32{}
	total := int64(0)
	for i := range n.List {
		var set Ranges
		if n.List[i].Kind != conf.List {
			return d.wrong(&n.List[i], key, "a list of nodes")
		}
		if err := d.numbers(&set)(&n.List[i], key); err != nil {
			return err
		}
		if total += set.Len(); total > maxPlanRanks {
			return d.fail(n.List[i].Line, key, fmt.Sprintf("at most %d nodes", maxPlanRanks),
				strconv.FormatInt(total, 10))
		}
		p.Lists = append(p.Lists, set.All())
	}
	return nil
}

// decodePlan reads a plan: in the syntax of this program, or a configuration of the ATLAHS generator's merge_goals.
func decodePlan(n *conf.Node, d *decoder) (*Plan, error) {
	p := &Plan{Bandwidth: defaultBandwidth}
	var seed int64
	perNode, shareNIC := false, true
	keys := []planKey{
		{"title", d.text(&p.Title)},
		{"mode", p.readMode(d)},
		{"placement", p.readPlacement(d)},
		{"nodes", d.whole(&p.Machine.Nodes, 1, math.MaxInt32)},
		{"seed", d.parsed(parseInto(&seed, parseSeed))},
		{"one-rank-per-node", d.boolean(&perNode)},
		{"share-nic", d.boolean(&shareNIC)},
		{"share-streams", d.boolean(&p.SharedStreams)},
		{"intra-bw", d.parsed(parseInto(&p.Bandwidth, units.ParseBandwidth))},
		{"unique-nic", d.boolean(&p.UniqueNIC)},
		{"start-calc", d.boolean(&p.StartCalc)},
		{"scale-compute", d.parsed(parseInto(&p.Scale, parseFactor))},
		{"cores-per-node", d.whole(&p.Machine.Slots, 1, math.MaxInt32)},
		{"jobs", d.jobs(&p.Jobs)},
	}
	if n.Has("goal_files") {
		keys = []planKey{
			{"mode", p.readMode(d)},
			{"goal_files", p.readGoalFiles(d)},
			{"pattern", p.readPlacement(d)},
			{"share-nic", d.boolean(&shareNIC)},
		}
	}
	if n.Kind != conf.Map {
		return nil, d.wrong(n, "plan", "a mapping")
	}
	if err := d.mapping(n, keys); err != nil {
		return nil, err
	}
	p.OwnNICs = !shareNIC
	if n.Has("goal_files") {
		perNode, p.PerNode = true, &perNode
		for _, key := range []string{"mode", "pattern"} {
			if !n.Has(key) {
				return nil, d.fail(n.Line, key, "the key beside goal_files", "none")
			}
		}
	}
	if len(p.Jobs) == 0 {
		return nil, d.fail(n.Line, "jobs", "a list of jobs", "none")
	}
	if n.Has("seed") {
		if p.Placement.Seeded {
			return nil, d.fail(n.Line, "seed", "one seed", "one of the placement, too")
		}
		p.Seed = &seed
	}
	if n.Has("one-rank-per-node") {
		p.PerNode, p.Placed = &perNode, true
	}
	if p.StartCalc && p.SharedStreams {
		return nil, d.fail(n.Line, "start-calc", "streams that are not shared, on which nothing else waits for the "+
			"start", "share-streams")
	}
	p.Placed = p.Placed || n.Has("nodes") || n.Has("cores-per-node")
	for i := range p.Jobs {
		j := &p.Jobs[i]
		placed := j.Nodes != nil || j.Placement != nil
		p.Placed = p.Placed || placed
		if (p.Lists != nil || p.Placement.Policy == Given) && placed || j.Nodes != nil && j.Placement != nil {
			return nil, d.fail(n.Line, "placement", "lists there or at the jobs", "both")
		}
	}
	return p, nil
}

func parseSeed(text string) (int64, error) {
	seed, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("expected a whole number, found %.40q", text)
	}
	return seed, nil
}

// readGoalFiles reads the list of traces of a configuration of merge_goals.
func (p *Plan) readGoalFiles(d *decoder) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		if n.Kind != conf.List || len(n.List) == 0 {
			return d.wrong(n, key, "a list of files")
		}
		for i := range n.List {
			j := PlanJob{Count: 1}
			if err := d.text(&j.File)(&n.List[i], key); err != nil {
				return err
			}
			j.File = d.folder(j.File)
			p.Jobs = append(p.Jobs, j)
		}
		return nil
	}
}
