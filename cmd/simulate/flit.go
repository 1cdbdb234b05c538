// This file is the flit backend as this command knows it: its flags, and how they become a run.

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/sim/flit"
	"github.com/tracedag/tracedag/sim/packet"
	"github.com/tracedag/tracedag/sim/topology"
)

// flitBackend runs the flit backend.
type flitBackend struct {
	messages
	p      *cli.Program
	cmd    *cobra.Command
	common *options
	flags  flitFlags

	network *topology.Network
	base    flit.Params
	traffic []flit.Traffic // synthetic, of each point; none: there is a trace
	hosts   []uint32       // that a file places ranks on; nil: there is none
	nodes   []int32        // that the trace places ranks on; nil: rank r on node r
	ranks   int
	replay  *flit.Replay
}

// flitFlags are the backend's flags.
type flitFlags struct {
	preset  string
	routing string
	cores   int

	synthetic, plot string
	load            string
	warmup, measure int64

	// Of the packet backend, too.
	topology, placement, links string
	set                        []string
}

// flitShares are flags of other backends that this one takes, too.
var flitShares = []string{"o", "topology", "placement", "set", "ports"}

func registerFlit(p *cli.Program, cmd *cobra.Command, o *options) runner {
	b := &flitBackend{p: p, cmd: cmd, common: o}
	f, flags := &b.flags, cmd.Flags()
	presets := flit.Presets()
	names := make([]string, 0, len(presets))
	for _, preset := range presets {
		names = append(names, preset.Name)
	}
	flags.StringVar(&f.preset, "preset", presets[0].Name,
		"published `network` whose parameters stand where none are given: "+strings.Join(names, ", ")+" (flit)")
	cli.CompleteWith(cmd, "preset", names)
	flags.BoolVar(&o.listPresets, "list-presets", false,
		"print the published networks and the parameters that --set sets, and do nothing else")
	flags.StringVar(&f.routing, "routing", "",
		"`way` of packets: "+strings.Join(flitRoutings(), ", ")+" (flit; default: minimal)")
	cli.CompleteWith(cmd, "routing", flitRoutings())
	flags.IntVar(&f.cores, "cores", 0, "how many ranks a host has (flit; default: as few as are needed)")
	flags.StringVar(&f.synthetic, "synthetic", "",
		"run no trace, but `traffic` at each --load: uniform, adversarial+I, permutation or hotspot[:SHARE[:HOST,...]] (flit)")
	flags.StringVar(&f.load, "load", "0.1..1.0:10",
		"`loads` of --synthetic, in flits a cycle and host: values separated by commas, or FROM..TO:N (flit)")
	flags.Int64Var(&f.warmup, "warmup", 10_000, "cycles of --synthetic before those that are measured (flit)")
	flags.Int64Var(&f.measure, "measure", 20_000, "cycles of --synthetic that are measured (flit)")
	flags.StringVar(&f.plot, "plot", "", "draw latency and accepted load of --synthetic over its loads to `FILE`: .svg, .png or .pdf (flit)")
	return b
}

// flitRoutings returns the names of the routings.
func flitRoutings() []string {
	var names []string
	for r := flit.Minimal; r <= flit.Adaptive; r++ {
		names = append(names, r.String())
	}
	return names
}

func (b *flitBackend) check() (err error) {
	f, o := &b.flags, b.common
	if err := b.readShared(); err != nil {
		return err
	}
	switch {
	case o.ops || o.criticalPath:
		return cli.Usagef("--ops and --critical-path are for the ideal backend")
	case f.cores < 0:
		return cli.Usagef("--cores: expected 1 or more, or 0 for as few as are needed, found %d", f.cores)
	case f.links != "" && (o.sweep != "" || f.synthetic != ""):
		return cli.Usagef("--ports is for a single run of a trace")
	}
	if f.links != "" {
		if err := b.p.CheckOutput(f.links, false); err != nil {
			return err
		}
	}
	preset, err := flit.FindPreset(f.preset)
	if err != nil {
		return cli.Usagef("--preset: %v", err)
	}
	if f.topology == "" {
		f.topology = preset.Topology
	}
	if b.network, err = topology.Load(withDefaults(f.topology, preset.Topology)); err != nil {
		return fmt.Errorf("--topology: %w", err)
	}
	b.base = preset.Params
	if err := b.readParams(); err != nil {
		return err
	}
	if f.synthetic != "" {
		return b.checkSynthetic()
	}
	for _, name := range []string{"load", "warmup", "measure", "plot"} {
		if b.cmd.Flags().Changed(name) {
			return cli.Usagef("--%s needs --synthetic", name)
		}
	}
	if err := b.readPlacement(); err != nil {
		return err
	}
	if o.timeline != "" {
		_, err = b.timeline(io.Discard, o.timeline, nil)
	}
	return err
}

// readShared gets the values of flags that the packet backend defines.
func (b *flitBackend) readShared() (err error) {
	f, flags := &b.flags, b.cmd.Flags()
	for name, into := range map[string]*string{"topology": &f.topology, "placement": &f.placement, "ports": &f.links} {
		if *into, err = flags.GetString(name); err != nil {
			return err
		}
	}
	f.set, err = flags.GetStringSlice("set")
	return err
}

// withDefaults adds to the description of a network what it leaves open: of a network of the preset's kind all that the preset
// has, of another the latency of links. Names of files stay as they are.
func withDefaults(text, preset string) string {
	kind, keys, described := strings.Cut(text, ":")
	if _, err := os.Stat(text); err == nil || !described {
		return text
	}
	presetKind, presetKeys, _ := strings.Cut(preset, ":")
	for pair := range strings.SplitSeq(presetKeys, ",") {
		key, _, _ := strings.Cut(pair, "=")
		if (kind == presetKind || key == "latency") && !strings.Contains(","+keys, ","+key+"=") {
			text += "," + pair
		}
	}
	return text
}

// readParams sets the parameters that flags give; those of the preset stand where a flag is not used.
func (b *flitBackend) readParams() error {
	f, p := &b.flags, &b.base
	changed := b.cmd.Flags().Changed
	p.Seed = b.common.seed
	if f.routing != "" {
		if err := p.Routing.UnmarshalText([]byte(f.routing)); err != nil {
			return cli.Usagef("--routing: %v", err)
		}
	}
	if changed("o") {
		p.Coupling.Overhead = b.common.costs.o
	}
	for _, text := range f.set {
		if err := setFlit(p, text); err != nil {
			return cli.Usagef("--set: %v", err)
		}
	}
	if b.common.sweep == "" { // in a sweep, a bad point does not stop the others
		if err := p.Check(); err != nil {
			return cli.Usagef("%v", err)
		}
	}
	return nil
}

func (b *flitBackend) readPlacement() error {
	law, text, _ := strings.Cut(b.flags.placement, ":")
	switch law {
	case "packed", "random", "nodes":
		if b.flags.placement == law {
			return nil
		}
	case "strided":
		if stride, err := strconv.Atoi(text); err != nil || stride < 1 {
			return cli.Usagef("--placement: strided: expected a whole number from 1, found %q", text)
		}
		return nil
	}
	var err error
	b.hosts, err = readHosts(b.flags.placement)
	return err
}

// place returns on which hosts so many ranks are.
func (b *flitBackend) place(ranks int) (flit.Placement, error) {
	f, all := &b.flags, b.network.Hosts
	if b.hosts != nil {
		return flit.Placement{Hosts: b.hosts}, nil
	}
	hosts := make([]uint32, ranks)
	if f.placement == "nodes" {
		for r := range hosts {
			node := r
			if b.nodes != nil {
				node = int(b.nodes[r])
			}
			if node >= all {
				return flit.Placement{}, fmt.Errorf("rank %d is on node %d, but the network has only %d hosts", r, node, all)
			}
			hosts[r] = uint32(node)
		}
		return flit.Placement{Hosts: hosts}, nil
	}
	cores := f.cores
	if cores == 0 {
		cores = max(1, (ranks+all-1)/all)
	}
	used := (ranks + cores - 1) / cores
	if used > all {
		return flit.Placement{}, fmt.Errorf("the trace has %d ranks, for %d hosts of %d each, but the network has only %d hosts", ranks,
			used, cores, all)
	}
	var nodes packet.Placement
	var err error
	switch law, stride, _ := strings.Cut(f.placement, ":"); law {
	case "random":
		nodes, err = packet.Shuffled(used, all, 1, b.common.seed)
	case "strided":
		step, _ := strconv.Atoi(stride) // it was checked
		nodes, err = packet.Strided(used, all, 1, step)
	default:
		nodes, err = packet.Packed(used, all, 1)
	}
	if err != nil {
		return flit.Placement{}, err
	}
	for r := range hosts {
		hosts[r] = nodes.Hosts[r/cores]
	}
	return flit.Placement{Hosts: hosts}, nil
}

func (b *flitBackend) compile(t dag.Source, _ func(string, ...any)) error {
	h, err := t.Header()
	if err != nil {
		return err
	}
	b.ranks, b.nodes = h.Ranks, h.Nodes
	if _, err := b.place(b.ranks); err != nil {
		return err
	}
	b.replay, err = flit.Compile(t)
	return err
}

func (b *flitBackend) parameters() []parameter {
	all := []parameter{timeParameter("o", dag.Nanosecond), {"seed", parseNumber}}
	for i := range flitParameters {
		switch p := &flitParameters[i]; p.at(new(flit.Params)).(type) {
		case *dag.Time:
			all = append(all, timeParameter(p.name, 0))
		case *int:
			all = append(all, parameter{p.name, parseWhole})
		}
	}
	return all
}

// with returns the parameters of the flags, with the given settings.
func (b *flitBackend) with(settings []setting) flit.Params {
	p := b.base
	for _, s := range settings {
		switch n := s.rounded(); s.name {
		case "o":
			p.Coupling.Overhead = dag.Time(n)
		case "seed":
			p.Seed = n
		default:
			switch at := findFlitParameter(s.name).at(&p).(type) {
			case *dag.Time:
				*at = dag.Time(n)
			case *int:
				*at = int(n)
			}
		}
	}
	return p
}

func (b *flitBackend) params(settings []setting) (model string, params any) {
	p := b.with(settings)
	return p.Routing.String(), flitParams(p)
}

func (b *flitBackend) run(settings []setting, r replay) (*result, error) {
	compiled := b.replay
	if r.again {
		compiled = compiled.Clone()
	}
	o := flit.Options{Network: b.network, Params: b.with(settings), Timeline: r.timeline, Progress: r.progress}
	err := o.Params.Check()
	if err != nil {
		return nil, err
	}
	if o.Placement, err = b.place(b.ranks); err != nil {
		return nil, err
	}
	var links *cli.Output
	if b.flags.links != "" && !r.again && !r.part {
		if links, err = b.p.Create(b.flags.links, false); err != nil {
			return nil, err
		}
		defer links.Close()
	}
	done, report, err := compiled.Run(o)
	if err != nil {
		return nil, err
	}
	if links != nil {
		writeTable(links, linkTable(report, len(report.Links)))
		if err := links.Commit(); err != nil {
			return nil, err
		}
	}
	own := newFlitResult(report)
	done.Params, done.Stats = flitParams(o.Params), own
	return &result{Result: done, flit: own}, nil
}

// busiest returns the links of a report, the one with the most flits first.
func busiest(links []flit.LinkReport) []flit.LinkReport {
	sorted := slices.Clone(links)
	slices.SortStableFunc(sorted, func(x, y flit.LinkReport) int {
		switch {
		case x.Flits > y.Flits:
			return -1
		case x.Flits < y.Flits:
			return 1
		}
		return 0
	})
	return sorted
}
