package platform

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/memory"
)

// Limits of a platform, so that a mistyped number causes an error instead of exhausting memory.
const (
	maxHosts = 1 << 20
	maxLinks = 1 << 22
	maxDepth = 64 // of elements
)

// Load reads a platform file.
func Load(name string) (*Platform, error) {
	data, err := memory.ReadFile(context.Background(), name)
	if err != nil {
		return nil, err
	}
	return Read(data, name)
}

// Read parses a platform file of version 4 or 4.1. name is used in errors, which give the line.
func Read(data []byte, name string) (*Platform, error) {
	r := &reader{p: &Platform{File: name, Settings: make(map[string]string)},
		xml: xml.NewDecoder(bytes.NewReader(data)), names: make(map[string]int32), links: make(map[string]uint32),
		halves: make(map[string]uint32)}
	if err := r.read(); err != nil {
		line, _ := r.xml.InputPos()
		return nil, fmt.Errorf("%s:%d: %w", name, line, err)
	}
	return r.p, nil
}

// reader reads a platform.
type reader struct {
	p     *Platform
	xml   *xml.Decoder
	stack []string // names of the open elements
	zone  *zone    // open; nil: none
	root  bool     // the platform has its outermost zone
	names map[string]int32

	links   map[string]uint32 // by name of a link or of one direction of it
	indexed int               // links whose names are in links
	halves  map[string]uint32 // by name of a link with two directions: the first of them
	trees   int               // links of fat trees, which their names count
	// Hosts of fat trees, and cables of dragonflies.
	treeHosts, dragonflies int

	parts   *starParts // of the open zone with the routing Cluster
	pending openRoute
}

// starParts is the parts of a zone with the routing Cluster, which apply when it ends.
type starParts struct {
	backbone []uint32
	spokes   []func(backbone []uint32) error
}

// openRoute is the route that is being read.
type openRoute struct {
	from, to        int32
	gateIn, gateOut int32
	symmetric       bool
	there, back     []uint32 // back: in the order of there
}

// attributes are those of the elements that are read. Others cause an error, unless they are empty.
var attributes = map[string][]string{
	"platform":  {"version"},
	"zone":      {"id", "routing"},
	"host":      {"id", "speed", "core", "pstate", "coordinates", "speed_file", "availability_file"},
	"router":    {"id", "coordinates"},
	"peer":      {"id", "speed", "bw_in", "bw_out", "lat", "coordinates", "speed_file", "availability_file"},
	"link":      {"id", "bandwidth", "latency", "sharing_policy"},
	"backbone":  {"id", "bandwidth", "latency"},
	"host_link": {"id", "up", "down"},
	"cabinet":   {"id", "prefix", "suffix", "radical", "speed", "bw", "lat"},
	"route":     {"src", "dst", "symmetrical"},
	"zoneRoute": {"src", "dst", "gw_src", "gw_dst", "symmetrical"},
	"bypassRoute": {
		"src", "dst"},
	"bypassZoneRoute": {"src", "dst", "gw_src", "gw_dst"},
	"link_ctn":        {"id", "direction"},
	"config":          {"id"},
	"cluster": {"id", "prefix", "suffix", "radical", "speed", "core", "bw", "lat", "sharing_policy", "topology",
		"topo_parameters", "bb_bw", "bb_lat", "bb_sharing_policy", "router_id", "limiter_link", "loopback_bw",
		"loopback_lat"},
}

// synonyms are the names of elements before version 4.1.
var synonyms = map[string]string{"AS": "zone", "ASroute": "zoneRoute", "bypassASroute": "bypassZoneRoute",
	"process": "actor"}

// ignored are elements without effect on routes, with all that they contain.
var ignored = []string{"disk", "actor", "random", "model_prop", "trace"}

// hostProfiles are the kinds of profiles of hosts.
var hostProfiles = []string{"", "SPEED", "HOST_AVAIL"}

// inside is the element around an element.
var inside = map[string][]string{"platform": {""}, "config": {"platform"}, "zone": {"platform", "zone"},
	"cluster": {"platform", "zone"}, "host": {"zone"}, "router": {"zone"}, "peer": {"zone"}, "link": {"zone"},
	"backbone": {"zone"}, "host_link": {"zone"}, "cabinet": {"zone"}, "route": {"zone"}, "zoneRoute": {"zone"},
	"bypassRoute": {"zone"}, "bypassZoneRoute": {"zone"},
	"link_ctn": {"route", "zoneRoute", "bypassRoute", "bypassZoneRoute"}}

func (r *reader) read() error {
	for {
		token, err := r.xml.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if len(r.stack) >= maxDepth {
				return fmt.Errorf("expected at most %d nested elements, found more", maxDepth)
			}
			name := cmp.Or(synonyms[t.Name.Local], t.Name.Local)
			inner, err := r.open(name, t.Attr)
			if err != nil {
				return fmt.Errorf("<%s>: %w", t.Name.Local, err)
			}
			if inner {
				r.stack = append(r.stack, name)
			} else if err := r.xml.Skip(); err != nil {
				return err
			}
		case xml.EndElement:
			name := r.stack[len(r.stack)-1]
			r.stack = r.stack[:len(r.stack)-1]
			if err := r.close(name); err != nil {
				return fmt.Errorf("<%s>: %w", t.Name.Local, err)
			}
		}
	}
	if len(r.p.hosts) == 0 {
		return errors.New("expected a <cluster>, or a <zone> with hosts, found none")
	}
	return r.addLoopback()
}

// addLoopback adds the link of hosts without another one to themselves.
func (r *reader) addLoopback() error {
	rate, latency := 10e9, 0.0
	for name, at := range map[string]*float64{"network/loopback-bw": &rate, "network/loopback-lat": &latency} {
		text, given := r.p.Settings[name]
		if !given {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v >= 0) || v > maxRate || at == &rate && v < 1 || at == &latency && v > maxTime {
			return fmt.Errorf("%s: expected a number of bytes per second or seconds, found %s", name, short(text))
		}
		*at = v
	}
	r.p.loopback = uint32(len(r.p.Links))
	r.p.Links = append(r.p.Links, Link{Name: "__loopback__", Rate: rate, Latency: latency, Fat: true})
	return nil
}

// open handles the start of an element, and reports whether its content is read.
func (r *reader) open(name string, attr []xml.Attr) (inner bool, err error) {
	parent := ""
	if len(r.stack) > 0 {
		parent = r.stack[len(r.stack)-1]
	}
	values := make(map[string]string, len(attr))
	for _, a := range attr {
		values[a.Name.Local] = a.Value
	}
	switch {
	case name == "prop":
		if parent == "config" && strings.HasPrefix(values["id"], "network/") {
			r.p.Settings[values["id"]] = values["value"]
		}
		return false, nil
	case name == "trace_connect" && slices.Contains(hostProfiles, values["kind"]):
		r.p.profiled = cmp.Or(r.p.profiled, values["element"])
		return false, nil
	case slices.Contains(ignored, name):
		return false, nil
	}
	if values["speed_file"] != "" || values["availability_file"] != "" {
		r.p.profiled = cmp.Or(r.p.profiled, values["id"])
	}
	known, ok := attributes[name]
	if !ok {
		return false, fmt.Errorf("not supported; expected %s", strings.Join(slices.Sorted(maps.Keys(attributes)), ", "))
	}
	for _, a := range attr {
		if !slices.Contains(known, a.Name.Local) && a.Value != "" {
			return false, fmt.Errorf("attribute %s is not supported; expected %s", short(a.Name.Local),
				strings.Join(known, ", "))
		}
	}
	if !slices.Contains(inside[name], parent) {
		return false, fmt.Errorf("expected it inside of another element, found it in <%s>", parent)
	}
	return true, r.start(name, values)
}

// start handles the start of an element that is read.
func (r *reader) start(name string, values map[string]string) error {
	switch name {
	case "platform":
		if v := values["version"]; v != "4" && v != "4.0" && v != "4.1" {
			return fmt.Errorf("expected version 4.1, found %s", short(v))
		}
	case "zone":
		return r.startZone(values)
	case "cluster":
		return r.readCluster(values)
	case "host":
		c, err := processorOf(values)
		if err != nil {
			return err
		}
		if err := r.addHost(values["id"], c); err != nil {
			return err
		}
		return r.place(values["coordinates"], r.names[values["id"]])
	case "router":
		if err := r.addRouter(values["id"]); err != nil {
			return err
		}
		return r.place(values["coordinates"], r.names[values["id"]])
	case "peer":
		return r.peer(values)
	case "link":
		return r.link(values)
	case "backbone", "host_link", "cabinet":
		return r.startPart(name, values)
	case "route", "zoneRoute", "bypassRoute", "bypassZoneRoute":
		return r.startRoute(name, values)
	case "link_ctn":
		return r.hop(values["id"], values["direction"])
	}
	return nil
}

// close handles the end of an element.
func (r *reader) close(name string) error {
	switch name {
	case "zone":
		return r.endZone()
	case "route", "zoneRoute", "bypassRoute", "bypassZoneRoute":
		return r.endRoute(name)
	}
	return nil
}

// kinds are the routings by lower-case name.
var kinds = map[string]kind{"none": kindNone, "full": kindFull, "floyd": kindFloyd, "dijkstra": kindDijkstra,
	"dijkstracache": kindDijkstra, "cluster": kindStar, "vivaldi": kindVivaldi}

func (r *reader) startZone(values map[string]string) error {
	k, known := kinds[strings.ToLower(values["routing"])]
	if !known {
		return fmt.Errorf("routing: expected Full, Floyd, Dijkstra, DijkstraCache, Cluster, Vivaldi or None, found %s",
			short(values["routing"]))
	}
	_, err := r.openZone(values["id"], k)
	return err
}

// openZone opens a zone inside the open one.
func (r *reader) openZone(id string, k kind) (*zone, error) {
	switch parent := r.zone; {
	case parent == nil && r.root:
		return nil, errors.New("expected one outermost zone, found a second one; put both into a zone and add a " +
			"zoneRoute")
	case parent != nil && (parent.kind == kindStar || parent.kind == kindVivaldi):
		return nil, errors.New("expected no zones inside a zone with the routing Cluster or Vivaldi, found one")
	case parent != nil && parent.size > 0 && !parent.nested:
		return nil, errors.New("expected hosts or zones inside a zone, found both")
	}
	z := &zone{kind: k, parent: r.zone}
	if err := r.addOther(point{name: id, zone: r.zone, sub: z}); err != nil {
		return nil, err
	}
	z.self = r.names[id]
	if z.parent != nil {
		z.depth, z.parent.nested = z.parent.depth+1, true
	}
	switch k {
	case kindFull:
		z.routes = make(map[[2]int32]*route)
	case kindFloyd, kindDijkstra:
		z.graph = &graph{index: make(map[int32]int32), routes: make(map[[2]int32]*route)}
		z.routes = make(map[[2]int32]*route)
	case kindStar, kindVivaldi:
		z.spokes, z.coords = make(map[int32]*spoke), make(map[int32][3]float64)
		r.parts = &starParts{}
	}
	r.zone, r.root = z, true
	return z, nil
}

func (r *reader) endZone() error {
	z := r.zone
	r.zone = z.parent
	switch z.kind {
	case kindStar:
		for _, add := range r.parts.spokes {
			if err := add(r.parts.backbone); err != nil {
				return err
			}
		}
	case kindFloyd:
		if z.size > maxFloyd {
			return fmt.Errorf("expected at most %d points in a zone with the routing Floyd, found %d; use Dijkstra",
				maxFloyd, z.size)
		}
		z.graph.floyd()
	}
	return nil
}

// addOther adds a router or a zone.
func (r *reader) addOther(p point) error {
	if _, known := r.names[p.name]; known || p.name == "" {
		return fmt.Errorf("expected a unique id, found %s", short(p.name))
	}
	at := behind - int32(len(r.p.others))
	r.names[p.name] = at
	if p.zone != nil {
		p.id = int32(p.zone.size)
		r.join(p.zone, at)
	}
	r.p.others = append(r.p.others, p)
	return nil
}

// join adds a point to a zone.
func (r *reader) join(z *zone, at int32) {
	z.size++
	if z.kind == kindFloyd {
		z.graph.node(at) // SimGrid visits all points in the order of the file
	}
}

func (r *reader) addRouter(id string) error {
	if r.zone.nested {
		return errMixed
	}
	return r.addOther(point{name: id, zone: r.zone})
}

var errMixed = errors.New("expected hosts or zones inside a zone, found both")

func (r *reader) addHost(id string, c processor) error {
	switch _, known := r.names[id]; {
	case known || id == "":
		return fmt.Errorf("expected a unique id, found %s", short(id))
	case len(r.p.hosts) >= maxHosts:
		return fmt.Errorf("expected at most %d hosts, found more", maxHosts)
	case r.zone.nested:
		return errMixed
	}
	at := int32(len(r.p.hosts))
	r.names[id] = at
	r.p.Hosts, r.p.processors = append(r.p.Hosts, id), append(r.p.processors, c)
	r.p.hosts = append(r.p.hosts, point{name: id, zone: r.zone, id: int32(r.zone.size)})
	r.join(r.zone, at)
	return nil
}

// processorOf returns the processor that the attributes of a host or cluster describe.
func processorOf(values map[string]string) (c processor, err error) {
	c.cores = 1
	if core := values["core"]; core != "" {
		n, err := strconv.ParseUint(core, 10, 31)
		if err != nil || n < 1 {
			return c, fmt.Errorf("core: expected 1 or more, found %s", short(core))
		}
		c.cores = int(n)
	}
	if values["speed"] == "" {
		return c, nil
	}
	speeds, err := parseSpeeds("speed", values["speed"])
	if err != nil {
		return c, err
	}
	state := uint64(0)
	if text := values["pstate"]; text != "" {
		if state, err = strconv.ParseUint(text, 10, 31); err != nil || state >= uint64(len(speeds)) {
			return c, fmt.Errorf("pstate: expected 0 to %d, found %s", len(speeds)-1, short(text))
		}
	}
	c.speed = speeds[state]
	return c, nil
}

// place sets the coordinates of a point.
func (r *reader) place(text string, at int32) error {
	if text == "" || r.zone.kind != kindVivaldi {
		return nil
	}
	var c [3]float64
	parts := strings.Fields(text)
	for i, part := range parts {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil || len(parts) != 3 || !(v >= -1e6 && v <= 1e6) {
			return fmt.Errorf("coordinates: expected three numbers from -1e6 to 1e6, found %s", short(text))
		}
		c[i] = v
	}
	r.zone.coords[at] = c
	return nil
}

// addLink adds a directed link, or one that both directions share.
func (r *reader) addLink(w Link) error {
	if w.Name == "" {
		return errors.New("expected a unique id, found an empty one")
	}
	if len(r.p.Links) >= maxLinks {
		return fmt.Errorf("expected at most %d links, found more", maxLinks)
	}
	r.p.Links = append(r.p.Links, w)
	return nil
}

// find returns the number of a link or of a direction of it. It indexes the names of links when one is requested,
// because those of large clusters rarely are.
func (r *reader) find(name string) (uint32, bool) {
	for ; r.indexed < len(r.p.Links); r.indexed++ {
		r.links[r.p.Links[r.indexed].Name] = uint32(r.indexed)
	}
	i, known := r.links[name]
	return i, known
}

// addPair adds a link: two directed ones if it is split.
func (r *reader) addPair(w Link, split bool) error {
	if !split {
		return r.addLink(w)
	}
	up, down := w, w
	up.Name, down.Name, down.Back = w.Name+"_UP", w.Name+"_DOWN", true
	if err := r.addLink(up); err != nil {
		return err
	}
	return r.addLink(down)
}

// quantities returns a link with a name and the bandwidth and latency of an element.
func quantities(id, bandwidth, latency string) (w Link, err error) {
	w.Name = id
	if w.Rate, err = parseRate("bandwidth", bandwidth); err != nil {
		return w, err
	}
	w.Latency, err = parseTime("latency", latency)
	return w, err
}

func (r *reader) link(values map[string]string) error {
	w, err := quantities(values["id"], values["bandwidth"], values["latency"])
	if err != nil {
		return err
	}
	split := false
	switch policy := cmp.Or(values["sharing_policy"], "SHARED"); policy {
	case "SHARED":
	case "FATPIPE":
		w.Fat = true
	case "SPLITDUPLEX", "FULLDUPLEX":
		split = true
	default:
		return fmt.Errorf("sharing_policy: expected SHARED, FATPIPE or SPLITDUPLEX, found %s", short(policy))
	}
	for _, name := range []string{w.Name, w.Name + "_UP", w.Name + "_DOWN"} {
		_, known := r.find(name)
		_, half := r.halves[name]
		if (known || half) && (split || name == w.Name) {
			return fmt.Errorf("expected a unique id, found %s", short(w.Name))
		}
	}
	if split {
		r.halves[w.Name] = uint32(len(r.p.Links))
	}
	return r.addPair(w, split)
}

// startPart handles the parts of zones with the routing Cluster.
func (r *reader) startPart(name string, values map[string]string) error {
	if r.zone.kind != kindStar {
		return errors.New("expected it in a zone with the routing Cluster, found another routing")
	}
	z := r.zone
	switch name {
	case "backbone":
		w, err := quantities(values["id"], values["bandwidth"], values["latency"])
		if err != nil {
			return err
		}
		r.parts.backbone = []uint32{uint32(len(r.p.Links))}
		return r.addLink(w)
	case "host_link":
		r.parts.spokes = append(r.parts.spokes, func(backbone []uint32) error {
			at, known := r.names[values["id"]]
			up, isLink := r.find(values["up"])
			down, isToo := r.find(values["down"])
			if !known || !isLink || !isToo || r.p.point(at).zone != z {
				return fmt.Errorf("host_link %s: expected a host of the zone and the names of two links, found %s "+
					"and %s",
					short(values["id"]), short(values["up"]), short(values["down"]))
			}
			z.connect(at, up, down, backbone)
			return nil
		})
		return nil
	}
	c, err := processorOf(values)
	if err != nil {
		return err
	}
	numbers, err := radical(values["radical"])
	if err != nil {
		return err
	}
	for _, n := range numbers {
		id := values["prefix"] + strconv.Itoa(n) + values["suffix"]
		if err := r.addHost(id, c); err != nil {
			return fmt.Errorf("radical: %w", err)
		}
		w, err := quantities("link_"+id, values["bw"], values["lat"])
		if err != nil {
			return err
		}
		at, up := r.names[id], uint32(len(r.p.Links))
		if err := r.addPair(w, true); err != nil {
			return err
		}
		r.parts.spokes = append(r.parts.spokes, func(backbone []uint32) error {
			z.connect(at, up, up+1, backbone)
			return nil
		})
	}
	return nil
}

// connect sets the links between a point of a star and its center.
func (z *zone) connect(at int32, up, down uint32, backbone []uint32) {
	s := z.spoke(at)
	s.up, s.down = append([]uint32{up}, backbone...), append(slices.Clone(backbone), down)
}

// spoke returns the links of a point of a star.
func (z *zone) spoke(at int32) *spoke {
	s := z.spokes[at]
	if s == nil {
		s = &spoke{}
		z.spokes[at] = s
	}
	return s
}

// peer adds a host with its links to the center of a Vivaldi zone.
func (r *reader) peer(values map[string]string) error {
	if r.zone.kind != kindVivaldi {
		return errors.New("expected it in a zone with the routing Vivaldi, found another routing")
	}
	id := values["id"]
	c, err := processorOf(values)
	if err != nil {
		return err
	}
	if err := r.addHost(id, c); err != nil {
		return err
	}
	at, up := r.names[id], uint32(len(r.p.Links))
	for _, half := range []struct{ direction, rate string }{{"UP", "bw_out"}, {"DOWN", "bw_in"}} {
		rate, err := parseRate(half.rate, values[half.rate])
		if err != nil {
			return err
		}
		if err := r.addLink(Link{Name: "link_" + id + "_" + half.direction, Rate: rate}); err != nil {
			return err
		}
	}
	r.zone.connect(at, up, up+1, nil)
	return r.place(values["coordinates"], at)
}

// within reports whether a point is in a zone or in zones inside it.
func (r *reader) within(at int32, z *zone) bool {
	for around := r.p.point(at).zone; around != nil; around = around.parent {
		if around == z {
			return true
		}
	}
	return false
}

// startRoute handles the ends of a route.
func (r *reader) startRoute(name string, values map[string]string) error {
	zones := name == "zoneRoute" || name == "bypassZoneRoute"
	bypass := strings.HasPrefix(name, "bypass")
	w := openRoute{gateIn: nobody, gateOut: nobody}
	for _, end := range []struct {
		name, gate string
		to, gateTo *int32
	}{{"src", "gw_src", &w.from, &w.gateIn}, {"dst", "gw_dst", &w.to, &w.gateOut}} {
		at, known := r.names[values[end.name]]
		kind := "host or router"
		if zones {
			kind = "zone"
		}
		if !known || (r.p.point(at).sub != nil) != zones || !bypass && r.p.point(at).zone != r.zone {
			return fmt.Errorf("%s: expected a %s of this zone that is declared before, found %s", end.name, kind,
				short(values[end.name]))
		}
		*end.to = at
		if !zones {
			continue
		}
		gate, known := r.names[values[end.gate]]
		if !known || r.p.point(gate).sub != nil || !r.within(gate, r.p.point(at).sub) {
			return fmt.Errorf("%s: expected a host or router in the zone %s, found %s", end.gate,
				short(values[end.name]), short(values[end.gate]))
		}
		*end.gateTo = gate
	}
	switch s := strings.ToUpper(values["symmetrical"]); s {
	case "", "YES", "NO":
		w.symmetric = s != "NO" && w.from != w.to && !bypass
	default:
		return fmt.Errorf("symmetrical: expected YES or NO, found %s", short(s))
	}
	r.pending = w
	return nil
}

// hop appends a link to the open route.
func (r *reader) hop(id, direction string) error {
	w := &r.pending
	half, split := r.halves[id]
	i, single := r.find(id)
	if !split && !single { // a link of a cluster
		if half, split = r.find(id + "_UP"); split {
			down, both := r.find(id + "_DOWN")
			split = both && down == half+1
		}
	}
	switch {
	case !split && !single:
		return fmt.Errorf("id: expected a link that is declared before, found %s", short(id))
	case split && direction == "UP":
		w.there, w.back = append(w.there, half), append(w.back, half+1)
	case split && direction == "DOWN":
		w.there, w.back = append(w.there, half+1), append(w.back, half)
	case single && (direction == "" || direction == "NONE"):
		w.there, w.back = append(w.there, i), append(w.back, i)
	case split:
		return fmt.Errorf("direction: expected UP or DOWN, because %s is SPLITDUPLEX, found %s", short(id),
			short(direction))
	default:
		return fmt.Errorf("direction: expected none, because %s is not SPLITDUPLEX, found %s", short(id),
			short(direction))
	}
	return nil
}

// endRoute adds the open route. The route back of a symmetrical one takes the links in reverse order.
func (r *reader) endRoute(name string) error {
	w := &r.pending
	z := r.zone
	there := &route{w.there, w.gateIn, w.gateOut}
	switch {
	case len(w.there) == 0:
		return errors.New("expected at least one <link_ctn>, found none")
	case strings.HasPrefix(name, "bypass"):
		if z.bypasses == nil {
			z.bypasses = make(map[[2]int32]*route)
		}
		return r.addRoute(z.bypasses, w.from, w.to, there)
	case z.spokes != nil && name == "route" && w.from == w.to:
		z.spoke(w.from).loop = w.there
		return nil
	case z.routes == nil:
		return errors.New("expected a zone with the routing Full, Floyd or Dijkstra, found another routing")
	}
	if err := r.addRoute(z.routes, w.from, w.to, there); err != nil {
		return err
	}
	if z.graph != nil {
		z.graph.add(w.from, w.to, there)
	}
	if !w.symmetric {
		return nil
	}
	slices.Reverse(w.back)
	back := &route{w.back, w.gateOut, w.gateIn}
	if z.graph != nil {
		z.graph.add(w.to, w.from, back)
	}
	return r.addRoute(z.routes, w.to, w.from, back)
}

func (r *reader) addRoute(routes map[[2]int32]*route, from, to int32, added *route) error {
	pair := [2]int32{from, to}
	if routes[pair] != nil {
		return fmt.Errorf("expected one route from %s to %s, found a second one; routes are symmetrical unless "+
			"symmetrical is NO", r.p.point(from).name, r.p.point(to).name)
	}
	routes[pair] = added
	return nil
}
