// This file reads what plans say: how jobs are made of traces and where they run. docs/compose.md describes it for
// users.

package cli

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/internal/units"
)

// plan is what a plan file says, or the flags.
type plan struct {
	jobs      []planJob
	title     string
	layout    compose.Layout
	lists     [][]int32 // nodes of each job, in order; nil: none
	nodesPath string    // of a file with the nodes of all jobs; "": none
	placed    bool      // the nodes are a matter of the plan, not of the traces
	perNode   *bool     // one rank for each node; nil: where that is possible
	seed      *int64
	shareNIC  bool
	uniqueNIC bool
	startCalc bool // starts are calcs, not release times
	streams   bool // shared
	bandwidth Bandwidth
	scale     *big.Rat
}

// planJob is a trace of a plan, or count jobs that are the same.
type planJob struct {
	file, name, from string
	start            dag.Time
	count            int
	nodes            units.Numbers // nil: as the layout says
	edits            edits
}

// edits is what is done to a trace by itself, in this order.
type edits struct {
	window *timeWindow
	only   units.Numbers
	repeat int      // 0: once
	scale  *big.Rat // nil: 1
}

type timeWindow struct{ from, to dag.Time }

// Limits of plans.
const (
	maxPlanSize  = 4 << 20 // bytes of the file
	maxCopies    = 1 << 20
	maxPlanRanks = 1 << 22 // of all jobs
)

// parsePlan reads the syntax of a plan file.
func parsePlan(text []byte, name string) (conf.Node, error) {
	n, err := conf.Read(text, name)
	var wrong *conf.Error
	switch {
	case errors.As(err, &wrong):
		err = &format.SyntaxError{File: wrong.File, Line: wrong.Line, Expected: wrong.Expected, Found: wrong.Found}
	case err == nil && n.Kind == conf.Null:
		err = &format.SyntaxError{File: name, Line: n.Line, Expected: "a mapping", Found: "nothing"}
	}
	return n, err
}

// planDecoder reads the keys of a plan.
type planDecoder struct {
	file string // "": the plan is the command line
	in   string // what the keys belong to, such as "job: "
}

// folder returns a path in the plan as the program finds it.
func (d *planDecoder) folder(path string) string {
	if d.file == "" || path == "-" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(d.file), path)
}

// wrong returns an error about a value.
func (d *planDecoder) wrong(n *conf.Node, key, expected string) error {
	return d.fail(n.Line, key, expected, n.Found())
}

func (d *planDecoder) fail(line int64, key, expected, found string) error {
	if d.file == "" {
		return Usagef("--%s%s: expected %s, found %s", d.in, key, expected, found)
	}
	return &format.SyntaxError{File: d.file, Line: line, Class: d.in + key, Expected: expected, Found: found}
}

// planKey reads the value of a key.
type planKey struct {
	name string
	read func(n *conf.Node, key string) error
}

// mapping reads a mapping that has no other keys.
func (d *planDecoder) mapping(n *conf.Node, keys []planKey) error {
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

// text returns a reader of words.
func (d *planDecoder) text(to *string) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		if n.Kind != conf.Text && n.Kind != conf.Word || n.Text == "" {
			return d.wrong(n, key, "a text")
		}
		*to = n.Text
		return nil
	}
}

func (d *planDecoder) boolean(to *bool) func(*conf.Node, string) error {
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
func (d *planDecoder) whole(to *int, least, most int) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		v, err := strconv.Atoi(n.Text)
		if n.Kind != conf.Number && n.Kind != conf.Word || err != nil || v < least || v > most {
			return d.wrong(n, key, fmt.Sprintf("a whole number from %d to %d", least, most))
		}
		*to = v
		return nil
	}
}

// parsed returns a reader of numbers or texts that have a form of their own.
func (d *planDecoder) parsed(parse func(string) error) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		if n.Kind != conf.Text && n.Kind != conf.Number && n.Kind != conf.Word {
			return d.wrong(n, key, "a number or a text")
		}
		if err := parse(n.Text); err != nil {
			if d.file == "" {
				return Usagef("--%s%s: %v", d.in, key, err)
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

// parseFactor reads a factor such as 0.5 or 2/3.
func parseFactor(text string) (*big.Rat, error) {
	over, under, fraction := strings.Cut(text, "/")
	n, rest, err := units.CutNumber(over)
	if err == nil && rest == "" && fraction {
		var d *big.Rat
		if d, rest, err = units.CutNumber(under); err == nil && d.Sign() > 0 {
			n.Quo(n, d)
		} else {
			rest = under
		}
	}
	if err != nil || rest != "" {
		return nil, fmt.Errorf("expected a factor such as 0.5, 2 or 1/3, found %q", text)
	}
	return n, checkFactor(n)
}

func checkFactor(n *big.Rat) error {
	if !n.Num().IsInt64() || !n.Denom().IsInt64() {
		return fmt.Errorf("expected less extreme a factor or fewer digits, found %s", n.RatString())
	}
	return nil
}

// parseWindow reads FROM..TO, where one of the times may be left out.
func parseWindow(text string) (*timeWindow, error) {
	from, to, ok := strings.Cut(text, "..")
	w := &timeWindow{0, dag.MaxTime}
	var err error
	if ok && from != "" {
		w.from, err = units.ParseTime(from, 0)
	}
	if ok && err == nil && to != "" {
		w.to, err = units.ParseTime(to, 0)
	}
	if !ok || err != nil || w.to <= w.from {
		return nil, fmt.Errorf("expected FROM..TO such as 1ms..2.5ms, 1ms.. or ..2ms, found %q", text)
	}
	return w, nil
}

// numbers returns a reader of a text such as 0-7,12, or of a list of numbers and such texts.
func (d *planDecoder) numbers(to *units.Numbers) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		elements := n.List
		if n.Kind != conf.List {
			elements = []conf.Node{*n}
		}
		if len(elements) == 0 {
			return d.wrong(n, key, "at least one number")
		}
		set := units.Numbers{}
		for i := range elements {
			var part units.Numbers
			if err := d.parsed(parseInto(&part, units.ParseNumbers))(&elements[i], key); err != nil {
				return err
			}
			set = append(set, part...)
		}
		*to = set
		return nil
	}
}

// editKeys are the keys of what is done to a trace by itself.
func (d *planDecoder) editKeys(e *edits) []planKey {
	return []planKey{
		{"window", d.parsed(parseInto(&e.window, parseWindow))},
		{"only-ranks", d.numbers(&e.only)},
		{"repeat", d.whole(&e.repeat, 1, math.MaxInt32)},
		{"scale-compute", d.parsed(parseInto(&e.scale, parseFactor))},
	}
}

// job reads a job.
func (d *planDecoder) job(n *conf.Node) (planJob, error) {
	j := planJob{count: 1}
	keys := []planKey{
		{"file", d.text(&j.file)},
		{"name", d.text(&j.name)},
		{"from", d.text(&j.from)},
		{"start", d.parsed(parseInto(&j.start, func(s string) (dag.Time, error) { return units.ParseTime(s, 0) }))},
		{"count", d.whole(&j.count, 1, maxCopies)},
		{"nodes", d.numbers(&j.nodes)},
	}
	if err := d.mapping(n, append(keys, d.editKeys(&j.edits)...)); err != nil {
		return j, err
	}
	if j.file == "" {
		return j, d.fail(n.Line, "file", "the name of a trace", "none")
	}
	j.file = d.folder(j.file)
	return j, nil
}

// jobs reads the list of jobs.
func (d *planDecoder) jobs(to *[]planJob) func(*conf.Node, string) error {
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

// modes are the values of the key mode: whether jobs share nodes.
var modes = map[string]bool{"multi-job": false, "multi-tenant": true}

func (p *plan) readMode(d *planDecoder) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		shared, ok := modes[n.Text]
		if !ok || n.Kind != conf.Text && n.Kind != conf.Word {
			return d.wrong(n, key, "multi-job or multi-tenant")
		}
		p.layout.Shared, p.placed = shared, true
		return nil
	}
}

// patterns are the values of the key placement that are one word.
var patterns = map[string]compose.Pattern{"packed": compose.Packed, "round-robin": compose.Dealt,
	"round_robin": compose.Dealt, "random": compose.Shuffled}

// readPlacement reads the key placement, or pattern, as the ATLAHS generator calls it.
func (p *plan) readPlacement(d *planDecoder) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) (err error) {
		p.placed = true
		if n.Kind == conf.List {
			return p.readLists(d, n, key)
		}
		pattern, ok := patterns[n.Text]
		law, of, _ := strings.Cut(n.Text, ":")
		switch {
		case n.Kind != conf.Text && n.Kind != conf.Word:
		case ok:
			p.layout.Pattern = pattern
			return nil
		case law == "random":
			var seed int64
			if seed, err = strconv.ParseInt(of, 10, 64); err == nil {
				p.layout.Pattern, p.seed = compose.Shuffled, &seed
				return nil
			}
		case law == "strided":
			if stride, err := strconv.ParseUint(of, 10, 31); err == nil && stride > 0 {
				p.layout.Pattern, p.layout.Stride = compose.Strided, int(stride)
				return nil
			}
		case law == "file" && of != "":
			p.nodesPath = d.folder(of)
			return nil
		}
		return d.wrong(n, key,
			"packed, random, random:SEED, round-robin, strided:K, file:PATH or a list of a list for each job")
	}
}

// readLists reads a list of nodes for each job.
func (p *plan) readLists(d *planDecoder, n *conf.Node, key string) error {
	p.lists = [][]int32{}
	total := int64(0)
	for i := range n.List {
		var set units.Numbers
		if n.List[i].Kind != conf.List {
			return d.wrong(&n.List[i], key, "a list of nodes")
		}
		if err := d.numbers(&set)(&n.List[i], key); err != nil {
			return err
		}
		if total += set.Len(); total > maxPlanRanks {
			return d.fail(n.List[i].Line, key, fmt.Sprintf("at most %d nodes", maxPlanRanks), strconv.FormatInt(total, 10))
		}
		p.lists = append(p.lists, set.All())
	}
	return nil
}

// decodePlan reads a plan: one of ours, or a configuration of the ATLAHS generator's merge_goals.
func decodePlan(n *conf.Node, d *planDecoder) (*plan, error) {
	p := &plan{bandwidth: defaultBandwidth}
	var seed int64
	perNode := false
	keys := []planKey{
		{"title", d.text(&p.title)},
		{"mode", p.readMode(d)},
		{"placement", p.readPlacement(d)},
		{"nodes", d.whole(&p.layout.Nodes, 1, math.MaxInt32)},
		{"seed", d.parsed(parseInto(&seed, parseSeed))},
		{"one-rank-per-node", d.boolean(&perNode)},
		{"share-nic", d.boolean(&p.shareNIC)},
		{"share-streams", d.boolean(&p.streams)},
		{"intra-bw", d.parsed(p.bandwidth.Set)},
		{"unique-nic", d.boolean(&p.uniqueNIC)},
		{"start-calc", d.boolean(&p.startCalc)},
		{"scale-compute", d.parsed(parseInto(&p.scale, parseFactor))},
		{"jobs", d.jobs(&p.jobs)},
	}
	if n.Has("goal_files") {
		keys = []planKey{
			{"mode", p.readMode(d)},
			{"goal_files", p.readGoalFiles(d)},
			{"pattern", p.readPlacement(d)},
			{"share-nic", d.boolean(&p.shareNIC)},
		}
	}
	if n.Kind != conf.Map {
		return nil, d.wrong(n, "plan", "a mapping")
	}
	if err := d.mapping(n, keys); err != nil {
		return nil, err
	}
	if n.Has("goal_files") {
		perNode, p.perNode = true, &perNode
		for _, key := range []string{"mode", "pattern"} {
			if !n.Has(key) {
				return nil, d.fail(n.Line, key, "the key beside goal_files", "none")
			}
		}
	}
	if len(p.jobs) == 0 {
		return nil, d.fail(n.Line, "jobs", "a list of jobs", "none")
	}
	if n.Has("seed") {
		if p.seed != nil {
			return nil, d.fail(n.Line, "seed", "one seed", "one of the placement, too")
		}
		p.seed = &seed
	}
	if n.Has("one-rank-per-node") {
		p.perNode, p.placed = &perNode, true
	}
	if p.startCalc && p.streams {
		return nil, d.fail(n.Line, "start-calc", "streams that are not shared, on which nothing else waits for the start",
			"share-streams")
	}
	p.placed = p.placed || n.Has("nodes")
	for i := range p.jobs {
		p.placed = p.placed || p.jobs[i].nodes != nil
		if (p.lists != nil || p.nodesPath != "") && p.jobs[i].nodes != nil {
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
func (p *plan) readGoalFiles(d *planDecoder) func(*conf.Node, string) error {
	return func(n *conf.Node, key string) error {
		if n.Kind != conf.List || len(n.List) == 0 {
			return d.wrong(n, key, "a list of files")
		}
		for i := range n.List {
			j := planJob{count: 1}
			if err := d.text(&j.file)(&n.List[i], key); err != nil {
				return err
			}
			j.file = d.folder(j.file)
			p.jobs = append(p.jobs, j)
		}
		return nil
	}
}
