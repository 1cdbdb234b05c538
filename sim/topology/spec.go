// This file builds networks from a topology specification on the command line, such as fattree:k=8,rate=200Gbps, or
// from a file.

package topology

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/param"
)

// Defaults of links, as in htsim.
const (
	defaultRate    = "100Gbps"
	defaultLatency = "1us"
)

// kinds are the kinds of networks that Parse supports.
var kinds = []struct {
	name     string
	keys     []string
	required []string
	build    func(o *options) (*Network, error)
}{
	{"fattree", []string{"k", "hosts", "tiers", "tor", "pod", "rate", "latency", "switchlatency", "oversubscription",
		"bundle"}, nil, parseFatTree},
	{"leafspine", []string{"hosts", "tor", "spines", "rate", "latency", "switchlatency", "oversubscription", "bundle"},
		[]string{"hosts", "tor"}, parseLeafSpine},
	{"dragonfly", []string{"p", "a", "h", "rate", "latency", "globalrate", "globallatency", "switchlatency",
		"arrangement"},
		[]string{"p", "a", "h"}, parseDragonfly},
	{"mesh", []string{"dims", "p", "rate", "latency", "switchlatency"}, []string{"dims"}, parseMesh},
	{"torus", []string{"dims", "p", "rate", "latency", "switchlatency"}, []string{"dims"}, parseTorus},
	{"spectrumx", podKeys, nil, parseSpectrumX},
	{"alibabahpn", append([]string{"planes"}, podKeys...), nil, parseAlibabaHPN},
	{"dcn+", append([]string{"tors"}, podKeys...), nil, parseDCN},
	{"star", []string{"hosts", "rate", "latency", "switchlatency"}, []string{"hosts"}, parseStar},
}

// Load returns the network of a specification ([Parse]) or of a file ([ReadTopo], [ReadSimAI], [ReadEdges]).
func Load(text string) (*Network, error) {
	kind, _, found := strings.Cut(text, ":")
	if found && slices.Contains(Kinds(), resolveKind(kind)) {
		return Parse(text)
	}
	if IsPlatform(text) {
		return nil, fmt.Errorf("%s: expected a specification, a .topo file or a list of links, found a platform of "+
			"SimGrid; use --backend flow, packet or loggops", text)
	}
	n, err := open(text)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(text, `./\`) {
		return nil, fmt.Errorf("topology: expected %s, each followed by a colon, or a file, found %s%s", kindNames(),
			shorten(text), param.Suggest(kind, Kinds()))
	}
	return n, err
}

// kindNames lists the names of kinds for an error.
func kindNames() string {
	return strings.Join(Kinds(), ", ")
}

// open reads a network from a file: a .topo file of htsim, which starts with one of its keys, a topology file of SimAI,
// which starts with its sizes, or a list of links.
func open(path string) (*Network, error) {
	data, err := memory.ReadFile(context.Background(), path)
	if err != nil {
		return nil, err
	}
	read := ReadEdges
	if first := newLineReader(bytes.NewReader(data), path); first.next() && slices.ContainsFunc(
		[]string{"Nodes", "Tiers", "Podsize", "Tier"}, func(key string) bool {
			return strings.EqualFold(key, first.words[0])
		}) {
		read = ReadTopo
	} else if isSimAI(first.words) {
		read = ReadSimAI
	}
	return read(bytes.NewReader(data), path)
}

// Parse returns the network of a specification such as
//
//	fattree:k=8,rate=200Gbps,latency=500ns
//	fattree:hosts=128,tiers=3,rate=200Gbps/400Gbps,oversubscription=2
//	leafspine:hosts=128,tor=16,spines=16
//	dragonfly:p=4,a=8,h=4,rate=200Gbps,globallatency=2us
//	dragonfly:p=2,a=4,h=2,arrangement=palmtree
//	mesh:dims=8x8
//	torus:dims=4x4x4,p=2
//	star:hosts=16
//	spectrumx:gpus=64,psws=4
//	alibabahpn:gpus=1024,planes=2
//	dcn+:gpus=512,tors=2
//
// docs/reference/topologies.md describes all keys.
func Parse(text string) (*Network, error) {
	kind, rest, _ := strings.Cut(text, ":")
	name := resolveKind(kind)
	for _, k := range kinds {
		if k.name != name {
			continue
		}
		o := &options{}
		var err error
		if rest != "" || len(k.required) > 0 {
			o, err = parseOptions(rest, k.keys)
		}
		if err != nil {
			return nil, fmt.Errorf("topology %s: %w", shorten(text), err)
		}
		for _, key := range k.required {
			if o.values[key] == "" {
				return nil, fmt.Errorf("topology %s: expected %s=, found none", shorten(text), key)
			}
		}
		n, err := k.build(o)
		if o.err != nil {
			err = o.err
		}
		if err != nil {
			return nil, fmt.Errorf("topology %s: %w", shorten(text), err)
		}
		return n, nil
	}
	return nil, fmt.Errorf("topology: expected %s, each followed by a colon, found %s%s", kindNames(), shorten(text),
		param.Suggest(kind, Kinds()))
}

// Kinds returns the names of the networks that [Parse] builds.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// Completions returns the beginnings of specifications: the names of the networks, each with a colon.
func Completions() []string {
	names := Kinds()
	for i := range names {
		names[i] += ":"
	}
	return names
}

// resolveKind returns the kind of a network that a name or synonym means, in any case, with or without hyphens.
func resolveKind(name string) string {
	return param.Resolve(name, Kinds(), param.Synonym{Choice: "fattree", Names: []string{"clos", "folded-clos"}},
		param.Synonym{Choice: "leafspine", Names: []string{"spine-leaf"}},
		param.Synonym{Choice: "alibabahpn", Names: []string{"hpn"}},
		param.Synonym{Choice: "dcn+", Names: []string{"dcn", "dcnplus"}},
		param.Synonym{Choice: "star", Names: []string{"crossbar", "single-switch"}})
}

// options are the keys and values of a specification.
type options struct {
	values map[string]string
	err    error // the first invalid value
}

func parseOptions(text string, keys []string) (*options, error) {
	o := &options{values: map[string]string{}}
	for part := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(part, "=")
		switch {
		case !slices.Contains(keys, key):
			return nil, fmt.Errorf("expected one of %s, found %s", strings.Join(keys, ", "), shorten(key))
		case !found || value == "":
			return nil, fmt.Errorf("expected a value of %s, found none", key)
		case o.values[key] != "":
			return nil, fmt.Errorf("expected one value of %s, found another", key)
		}
		o.values[key] = value
	}
	return o, nil
}

func (o *options) fail(key string, err error) {
	if err != nil && o.err == nil {
		o.err = fmt.Errorf("%s: %w", key, err)
	}
}

// count returns an integer of at least 1, or none if the key is absent.
func (o *options) count(key string, none int) int {
	text := o.values[key]
	if text == "" {
		return none
	}
	number, err := parseCount(text)
	o.fail(key, err)
	return number
}

func parseCount(text string) (int, error) {
	number, err := units.ParseCount(text, 1, maxNodes)
	return int(number), err
}

// perUnit protects the slashes of the units /s and /B, which do not separate values; perUnitBack restores them.
var (
	perUnit     = strings.NewReplacer("/s", "\x00", "/B", "\x01")
	perUnitBack = strings.NewReplacer("\x00", "/s", "\x01", "/B")
)

// list returns one value per tier. Slashes separate the values; the last value applies to all higher tiers.
func list[T any](o *options, key, otherwise string, tiers int, parse func(string) (T, error)) []T {
	text := o.values[key]
	if text == "" {
		text = otherwise
	}
	var values []T
	for _, part := range strings.Split(perUnit.Replace(text), "/") {
		value, err := parse(perUnitBack.Replace(part))
		o.fail(key, err)
		values = append(values, value)
	}
	if len(values) > tiers {
		o.fail(key, fmt.Errorf("expected at most %d values, found %d", tiers, len(values)))
	}
	for len(values) < tiers {
		values = append(values, values[len(values)-1])
	}
	return values
}

func (o *options) rate(key, otherwise string) int64 {
	return list(o, key, otherwise, 1, parseRate)[0]
}

func (o *options) time(key, otherwise string) dag.Time {
	return list(o, key, otherwise, 1, parseTime)[0]
}

// tiers returns the parameters of the tiers of a fat tree.
func (o *options) tiers(count int) []FatTreeTier {
	rates := list(o, "rate", defaultRate, count, parseRate)
	latencies := list(o, "latency", defaultLatency, count, parseTime)
	switchLatencies := list(o, "switchlatency", "0", count, parseTime)
	bundles := list(o, "bundle", "1", count-1, parseCount) // of the tiers from 1 on
	tiers := make([]FatTreeTier, count)
	for i := range tiers {
		tiers[i] = FatTreeTier{Rate: rates[i], Latency: latencies[i], SwitchLatency: switchLatencies[i]}
		if i > 0 {
			tiers[i].Bundle = bundles[i-1]
		}
	}
	if text := o.values["oversubscription"]; text != "" {
		for i, part := range strings.Split(text, "/") {
			over, err := parseCount(part)
			if i >= count-1 {
				err = fmt.Errorf("expected at most %d values, found %s", count-1, shorten(text))
			}
			o.fail("oversubscription", err)
			tiers[min(i, count-1)].Oversubscription = over
		}
	}
	return tiers
}

func parseFatTree(o *options) (*Network, error) {
	tiers := o.count("tiers", 3)
	if tiers != 2 && tiers != 3 {
		return nil, fmt.Errorf("expected 2 or 3 tiers, found %d", tiers)
	}
	p := FatTreeParams{Hosts: o.count("hosts", 0), K: o.count("k", 0), PodHosts: o.count("pod", 0),
		Tiers: o.tiers(tiers)}
	p.Tiers[0].Down = o.count("tor", 0)
	if o.err != nil {
		return nil, o.err
	}
	return FatTree(p)
}

func parseLeafSpine(o *options) (*Network, error) {
	p := FatTreeParams{Hosts: o.count("hosts", 0), Tiers: o.tiers(2)}
	p.Tiers[0].Down = o.count("tor", 0)
	if spines := o.count("spines", 0); spines > 0 && o.err == nil {
		if spines > maxPorts/p.Tiers[1].Bundle {
			return nil, fmt.Errorf("expected at most %d ports up, found %d spines", maxPorts, spines)
		}
		p.Tiers[0].Up = spines * p.Tiers[1].Bundle
	}
	if o.err != nil {
		return nil, o.err
	}
	return FatTree(p)
}

func parseDragonfly(o *options) (*Network, error) {
	p := DragonflyParams{P: o.count("p", 0), A: o.count("a", 0), H: o.count("h", 0),
		Rate: o.rate("rate", defaultRate), Latency: o.time("latency", defaultLatency),
		SwitchLatency: o.time("switchlatency", "0")}
	p.GlobalRate, p.GlobalLatency = p.Rate, p.Latency
	if o.values["globalrate"] != "" {
		p.GlobalRate = o.rate("globalrate", "")
	}
	if o.values["globallatency"] != "" {
		p.GlobalLatency = o.time("globallatency", "")
	}
	if name := o.values["arrangement"]; name != "" {
		i := slices.Index(arrangements[:], name)
		if i < 0 {
			return nil, fmt.Errorf("arrangement: expected one of %s, found %s", strings.Join(arrangements[:], ", "),
				shorten(name))
		}
		p.Arrangement = Arrangement(i)
	}
	if o.err != nil {
		return nil, o.err
	}
	return Dragonfly(p)
}

func parseMesh(o *options) (*Network, error)  { return parseGrid(o, false) }
func parseTorus(o *options) (*Network, error) { return parseGrid(o, true) }

func parseGrid(o *options, wrap bool) (*Network, error) {
	p := MeshParams{Wrap: wrap, P: o.count("p", 1), Rate: o.rate("rate", defaultRate),
		Latency: o.time("latency", defaultLatency), SwitchLatency: o.time("switchlatency", "0")}
	for part := range strings.SplitSeq(o.values["dims"], "x") {
		size, err := parseCount(part)
		o.fail("dims", err)
		p.Dims = append(p.Dims, size)
	}
	if o.err != nil {
		return nil, o.err
	}
	return Mesh(p)
}

func parseStar(o *options) (*Network, error) {
	hosts, rate := o.count("hosts", 0), o.rate("rate", defaultRate)
	latency, switchLatency := o.time("latency", defaultLatency), o.time("switchlatency", "0")
	if o.err != nil {
		return nil, o.err
	}
	return Star(hosts, rate, latency, switchLatency)
}
