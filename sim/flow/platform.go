// This file reads platform files of SimGrid.

package flow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/sim"
)

// Limits of a platform, so that a mistyped number causes an error instead of exhausting memory.
const (
	maxPlatformHosts = 1 << 20
	maxPlatformLinks = 1 << 22
	maxPlatformDepth = 64 // of elements
	maxPlatformRate  = 1e18
)

// platform is a network whose routes are given: a list of links, and a list of links for each pair of hosts. It
// implements paths. docs/reference/backends/flow.md has the rules.
type platform struct {
	file  string
	hosts []string
	wires []wire
	links []link
	table map[[2]uint32][]uint32 // by source and destination; nil: cluster has the routes
	cluster
	route []uint32 // found last
}

// wire is a link of a platform.
type wire struct {
	name    string
	rate    float64 // bytes per second
	latency uint64  // picoseconds
	fat     bool
}

// cluster has the routes of a regular platform.
type cluster interface {
	// hops appends the links from one host to another to a list. It returns the empty list if a host has no route to
	// itself.
	hops(list []uint32, from, to uint32) []uint32
}

// loadPlatform reads a platform file.
func loadPlatform(name string) (*platform, error) {
	data, err := memory.ReadFile(context.Background(), name)
	if err != nil {
		return nil, err
	}
	return readPlatform(data, name)
}

// readPlatform parses a platform file of version 4. name is used in errors.
func readPlatform(data []byte, name string) (*platform, error) {
	r := &platformReader{p: &platform{file: name}, xml: xml.NewDecoder(bytes.NewReader(data)),
		points: make(map[string]uint32), wires: make(map[string]uint32), halves: make(map[string]uint32)}
	if err := r.read(); err != nil {
		line, _ := r.xml.InputPos()
		return nil, fmt.Errorf("%s:%d: %w", name, line, err)
	}
	return r.p, nil
}

// platformReader reads a platform.
type platformReader struct {
	p      *platform
	xml    *xml.Decoder
	stack  []string // names of the open elements
	done   bool     // the network has a zone with hosts, or a cluster
	table  bool     // that is a zone
	depth  int      // of that zone's elements
	points map[string]uint32
	wires  map[string]uint32 // by name of a link or of one direction of it
	halves map[string]uint32 // by name of a link with two directions: the first of them

	from, to  uint32 // of the open route
	symmetric bool
	there     []uint32
	back      []uint32 // in the order of there
}

// attributes are those of the elements that are read. Others cause an error, unless they are empty.
var attributes = map[string][]string{
	"platform": {"version"},
	"zone":     {"id", "routing"},
	"host":     {"id", "speed", "core", "pstate", "coordinates"},
	"link":     {"id", "bandwidth", "latency", "sharing_policy"},
	"route":    {"src", "dst", "symmetrical"},
	"link_ctn": {"id", "direction"},
	"config":   {"id"},
	"cluster": {"id", "prefix", "suffix", "radical", "speed", "core", "bw", "lat", "sharing_policy", "topology",
		"topo_parameters", "bb_bw", "bb_lat", "bb_sharing_policy", "router_id", "limiter_link", "loopback_bw",
		"loopback_lat"},
}

func (r *platformReader) read() error {
	for {
		token, err := r.xml.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(r.stack) >= maxPlatformDepth {
				return fmt.Errorf("expected at most %d nested elements, found more", maxPlatformDepth)
			}
			if err := r.open(&t); err != nil {
				return fmt.Errorf("<%s>: %w", t.Name.Local, err)
			}
			r.stack = append(r.stack, t.Name.Local)
		case xml.EndElement:
			r.stack = r.stack[:len(r.stack)-1]
			if t.Name.Local == "route" {
				if err := r.closeRoute(); err != nil {
					return fmt.Errorf("<route>: %w", err)
				}
			}
		}
	}
	if len(r.p.hosts) == 0 {
		return errors.New("expected a <cluster>, or a <zone> with hosts, found none")
	}
	for _, w := range r.p.wires {
		r.p.links = append(r.p.links, link{capacity: w.rate, fat: w.fat})
	}
	return nil
}

// open handles the start of an element.
func (r *platformReader) open(t *xml.StartElement) error {
	parent := ""
	if len(r.stack) > 0 {
		parent = r.stack[len(r.stack)-1]
	}
	values := make(map[string]string, len(t.Attr))
	for _, a := range t.Attr {
		values[a.Name.Local] = a.Value
	}
	name := t.Name.Local
	switch name {
	case "disk":
		return nil
	case "prop":
		if parent == "config" && strings.HasPrefix(values["id"], "network/") {
			return fmt.Errorf("%s is not read; remove it and give --flow-model and the flags of models", values["id"])
		}
		return nil
	}
	known, ok := attributes[name]
	if !ok {
		return errors.New("expected platform, zone, host, link, route, link_ctn or cluster; others are not supported")
	}
	for _, a := range t.Attr {
		if !slices.Contains(known, a.Name.Local) && a.Value != "" {
			return fmt.Errorf("attribute %s is not supported; expected %s", a.Name.Local, strings.Join(known, ", "))
		}
	}
	inside := map[string]string{"platform": "", "config": "platform", "host": "zone", "link": "zone", "route": "zone",
		"link_ctn": "route"}
	if want, fixed := inside[name]; fixed && parent != want ||
		!fixed && parent != "platform" && parent != "zone" {
		return fmt.Errorf("expected it inside of another element, found it in <%s>", parent)
	}
	switch name {
	case "platform":
		if v := values["version"]; v != "4" && v != "4.1" {
			return fmt.Errorf("expected version 4.1, found %s", short(v))
		}
	case "zone":
		return r.zone(values["routing"])
	case "host":
		return r.host(values["id"])
	case "link":
		return r.link(values)
	case "route":
		return r.openRoute(values)
	case "link_ctn":
		return r.hop(values["id"], values["direction"])
	case "cluster":
		return r.cluster(values)
	}
	return nil
}

// zone opens a zone. A zone may wrap the only zone or cluster of the platform.
func (r *platformReader) zone(routing string) error {
	if routing != "Full" {
		return fmt.Errorf("expected routing Full, found %s; write out the routes", short(routing))
	}
	if r.done {
		return errOneZone
	}
	return nil
}

var errOneZone = errors.New("expected one zone with hosts or one cluster, found several; routes between zones are " +
	"not supported")

// inTable prepares the zone for hosts, links and routes.
func (r *platformReader) inTable() error {
	if r.done && (!r.table || r.depth != len(r.stack)) {
		return errOneZone
	}
	if !r.done {
		r.done, r.table, r.depth, r.p.table = true, true, len(r.stack), make(map[[2]uint32][]uint32)
	}
	return nil
}

func (r *platformReader) host(id string) error {
	if err := r.inTable(); err != nil {
		return err
	}
	return r.addHost(id)
}

func (r *platformReader) addHost(id string) error {
	if _, known := r.points[id]; known || id == "" {
		return fmt.Errorf("expected a unique id, found %s", short(id))
	}
	if len(r.p.hosts) >= maxPlatformHosts {
		return fmt.Errorf("expected at most %d hosts, found more", maxPlatformHosts)
	}
	r.points[id] = uint32(len(r.p.hosts))
	r.p.hosts = append(r.p.hosts, id)
	return nil
}

// addLink adds a directed link, or one that both directions share.
func (r *platformReader) addLink(w wire) error {
	if _, known := r.wires[w.name]; known || w.name == "" {
		return fmt.Errorf("expected a unique id, found %s", short(w.name))
	}
	if len(r.p.wires) >= maxPlatformLinks {
		return fmt.Errorf("expected at most %d links, found more", maxPlatformLinks)
	}
	if r.table { // links of clusters have unique names, which nothing refers to
		r.wires[w.name] = uint32(len(r.p.wires))
	}
	r.p.wires = append(r.p.wires, w)
	return nil
}

// addPair adds a link: two directed ones if it is split.
func (r *platformReader) addPair(w wire, split bool) error {
	if !split {
		return r.addLink(w)
	}
	up, down := w, w
	up.name, down.name = w.name+"_UP", w.name+"_DOWN"
	if err := r.addLink(up); err != nil {
		return err
	}
	return r.addLink(down)
}

func (r *platformReader) link(values map[string]string) (err error) {
	if err := r.inTable(); err != nil {
		return err
	}
	w := wire{name: values["id"]}
	if w.rate, err = platformRate("bandwidth", values["bandwidth"]); err != nil {
		return err
	}
	if w.latency, err = platformTime("latency", values["latency"]); err != nil {
		return err
	}
	split := false
	switch policy := cmp.Or(values["sharing_policy"], "SHARED"); policy {
	case "SHARED":
	case "FATPIPE":
		w.fat = true
	case "SPLITDUPLEX", "FULLDUPLEX":
		if _, known := r.wires[w.name]; known {
			return fmt.Errorf("expected a unique id, found %s", short(w.name))
		}
		split = true
	default:
		return fmt.Errorf("sharing_policy: expected SHARED, FATPIPE or SPLITDUPLEX, found %s", short(policy))
	}
	if _, known := r.halves[w.name]; known {
		return fmt.Errorf("expected a unique id, found %s", short(w.name))
	}
	if split {
		r.halves[w.name] = uint32(len(r.p.wires))
	}
	return r.addPair(w, split)
}

func (r *platformReader) openRoute(values map[string]string) error {
	for _, end := range []struct {
		name string
		to   *uint32
	}{{"src", &r.from}, {"dst", &r.to}} {
		host, known := r.points[values[end.name]]
		if !known || !r.table {
			return fmt.Errorf("%s: expected a host that is declared before, found %s", end.name,
				short(values[end.name]))
		}
		*end.to = host
	}
	switch s := strings.ToUpper(values["symmetrical"]); s {
	case "", "YES", "NO":
		r.symmetric = s != "NO" && r.from != r.to
	default:
		return fmt.Errorf("symmetrical: expected YES or NO, found %s", short(s))
	}
	r.there, r.back = nil, nil
	return nil
}

// hop appends a link to the open route.
func (r *platformReader) hop(id, direction string) error {
	half, split := r.halves[id]
	i, single := r.wires[id]
	switch {
	case !split && !single:
		return fmt.Errorf("id: expected a link that is declared before, found %s", short(id))
	case split && direction == "UP":
		r.there, r.back = append(r.there, half), append(r.back, half+1)
	case split && direction == "DOWN":
		r.there, r.back = append(r.there, half+1), append(r.back, half)
	case single && (direction == "" || direction == "NONE"):
		r.there, r.back = append(r.there, i), append(r.back, i)
	case split:
		return fmt.Errorf("direction: expected UP or DOWN, because %s is SPLITDUPLEX, found %s", short(id),
			short(direction))
	default:
		return fmt.Errorf("direction: expected none, because %s is not SPLITDUPLEX, found %s", short(id),
			short(direction))
	}
	return nil
}

// closeRoute adds the open route. The route back of a symmetrical one takes the links in reverse order.
func (r *platformReader) closeRoute() error {
	if len(r.there) == 0 {
		return errors.New("expected at least one <link_ctn>, found none")
	}
	if err := r.addRoute(r.from, r.to, r.there); err != nil || !r.symmetric {
		return err
	}
	slices.Reverse(r.back)
	return r.addRoute(r.to, r.from, r.back)
}

func (r *platformReader) addRoute(from, to uint32, hops []uint32) error {
	pair := [2]uint32{from, to}
	if r.p.table[pair] != nil {
		return fmt.Errorf("expected one route from %s to %s, found a second one; routes are symmetrical unless "+
			"symmetrical is NO", r.p.hosts[from], r.p.hosts[to])
	}
	r.p.table[pair] = hops
	return nil
}

// timeUnits and rateUnits are the units of SimGrid, in picoseconds and bytes per second.
var timeUnits = map[string]int64{"": 1e12, "w": 7 * 86400e12, "d": 86400e12, "h": 3600e12, "m": 60e12, "s": 1e12,
	"ms": 1e9, "us": 1e6, "ns": 1e3, "ps": 1}

// platformTime parses a latency, by default 0 and in seconds, and rounds it to picoseconds.
func platformTime(name, text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, unit, err := units.CutNumber(text)
	size, known := timeUnits[unit]
	if err != nil || !known {
		return 0, fmt.Errorf("%s: expected a time such as 500ns or 1.5us, found %s", name, short(text))
	}
	n.Mul(n, new(big.Rat).SetInt64(size))
	if n.Cmp(new(big.Rat).SetInt64(int64(1000*dag.Second))) > 0 {
		return 0, fmt.Errorf("%s: expected at most 1000s, found %s", name, short(text))
	}
	n.Add(n, big.NewRat(1, 2))
	return new(big.Int).Quo(n.Num(), n.Denom()).Uint64(), nil
}

// platformRate parses a bandwidth, by default in bytes per second.
func platformRate(name, text string) (float64, error) {
	n, unit, err := units.CutNumber(text)
	prefix, isBytes := strings.CutSuffix(unit, "Bps")
	isBits := false
	if !isBytes {
		prefix, isBits = strings.CutSuffix(unit, "bps")
	}
	binary := strings.HasSuffix(prefix, "i")
	power := slices.Index([]string{"", "k", "M", "G", "T", "P", "E"}, prefix)
	if binary {
		power = slices.Index([]string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}, prefix)
	}
	if err != nil || power < 0 || !isBytes && !isBits && unit != "" {
		return 0, fmt.Errorf("%s: expected a bandwidth such as 12.5GBps or 100Gbps, found %s", name, short(text))
	}
	base := int64(1000)
	if binary {
		base = 1024
	}
	for range power {
		n.Mul(n, big.NewRat(base, 1))
	}
	if isBits {
		n.Quo(n, big.NewRat(8, 1))
	}
	rate, _ := n.Float64()
	if rate < 1 || rate > maxPlatformRate {
		return 0, fmt.Errorf("%s: expected 1 to 1e18 bytes per second, found %s", name, short(text))
	}
	return rate, nil
}

// short quotes a text of a file and shortens it for an error.
func short(s string) string {
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return strconv.Quote(s)
}

// between returns the links from one host to another, valid until the next call.
func (p *platform) between(from, to uint32) []uint32 {
	if p.cluster == nil {
		return p.table[[2]uint32{from, to}]
	}
	p.route = p.hops(p.route[:0], from, to)
	return p.route
}

// loops reports whether messages of a host to itself take links.
func (p *platform) loops(host uint32) bool { return len(p.between(host, host)) > 0 }

func (p *platform) find(to *path, from, dst, _ uint32) ([]uint32, error) {
	hops := p.between(from, dst)
	if len(hops) == 0 {
		return nil, fmt.Errorf("%s: expected a route from %s to %s, found none", p.file, p.hosts[from], p.hosts[dst])
	}
	to.hops, to.latency = to.hops[:0], 0
	for _, i := range hops {
		to.hops = append(to.hops, hop{i, 1})
		to.latency += p.wires[i].latency
	}
	return nil, nil
}

func (p *platform) latencyBetween(from, to uint32) (latency uint64) {
	for _, i := range p.between(from, to) {
		latency += p.wires[i].latency
	}
	return latency
}

func (p *platform) portRows() ([]portRow, []uint32) {
	rows, links := make([]portRow, len(p.wires)), make([]uint32, len(p.wires))
	for i := range p.wires {
		w := &p.wires[i]
		rows[i], links[i] = portRow{port: i, name: w.name, capacity: w.rate, tier: -1}, uint32(i)
	}
	return rows, links
}

// describe returns the description of the platform for results.
func (p *platform) describe() *sim.Topology {
	t := &sim.Topology{Given: p.file, Hosts: len(p.hosts), Links: len(p.wires)}
	links := make(map[int64]int)
	for i := range p.wires {
		links[int64(min(p.wires[i].rate*8, 9e18))]++
	}
	for rate, number := range links {
		t.Rates = append(t.Rates, sim.LinkRate{BitsPerS: rate, Links: number})
	}
	slices.SortFunc(t.Rates, func(a, b sim.LinkRate) int { return cmp.Compare(b.BitsPerS, a.BitsPerS) })
	return t
}
