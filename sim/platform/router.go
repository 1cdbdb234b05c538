package platform

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Router finds routes. It is not safe for concurrent use; several routers may use one platform.
type Router struct {
	p     *Platform
	trees map[treeKey][]int32 // of shortest paths, see graph.tree
	kept  int                 // entries of trees
	path  Path
	steps int
	seen  map[uint32]bool
}

// treeKey names the tree of shortest paths from a node of a zone.
type treeKey struct {
	zone *zone
	from int32
}

// Path is a list of links with its latency in seconds, which in Vivaldi zones exceeds that of the links.
type Path struct {
	Links   []uint32
	Latency float64
}

// Limits of a search.
const (
	maxSteps = 1 << 16 // parts of one path
	maxHops  = 1 << 20 // links of one path
	maxKept  = 1 << 24 // entries of trees of shortest paths
)

// NewRouter returns a router.
func NewRouter(p *Platform) *Router {
	return &Router{p: p, trees: make(map[treeKey][]int32), seen: make(map[uint32]bool)}
}

// errNone is the error of a missing route.
var errNone = errors.New("found none")

// Route returns the path from one host to another, valid until the next call. A host without a route to itself has the
// implicit loopback.
func (r *Router) Route(from, to uint32) (*Path, error) {
	r.path.Links, r.path.Latency, r.steps = r.path.Links[:0], 0, 0
	err := r.global(int32(from), int32(to))
	if err == nil && len(r.path.Links) == 0 {
		switch {
		case from == to:
			r.add(r.p.loopback)
		case r.path.Latency == 0:
			err = errNone
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: expected a route from %s to %s, %w", r.p.File, r.p.Hosts[from], r.p.Hosts[to], err)
	}
	return &r.path, nil
}

// Loops reports whether a host has a route to itself in the file.
func (r *Router) Loops(host uint32) bool {
	path, err := r.Route(host, host)
	return err == nil && (len(path.Links) != 1 || path.Links[0] != r.p.loopback)
}

// add appends links to the path.
func (r *Router) add(links ...uint32) {
	for _, i := range links {
		r.path.Links = append(r.path.Links, i)
		r.path.Latency += r.p.Links[i].Latency
	}
}

// above returns the zones around a point, from the innermost.
func (p *Platform) above(at int32) (zones []*zone) {
	for z := p.point(at).zone; z != nil; z = z.parent {
		zones = append(zones, z)
	}
	return zones
}

// split removes the zones from the ends of two lists that are in both, but for the first ones, and returns the last of
// them.
func split(a, b []*zone) (restA, restB []*zone, common *zone) {
	for len(a) > 1 && len(b) > 1 && a[len(a)-1] == b[len(b)-1] {
		common = a[len(a)-1]
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return a, b, common
}

// global appends the route between two points anywhere in the platform: that of the innermost zone around both, and
// those to and from its gateways.
func (r *Router) global(from, to int32) error {
	if r.steps++; r.steps > maxSteps || len(r.path.Links) > maxHops {
		return errors.New("found one of too many parts")
	}
	a, b := r.p.point(from), r.p.point(to)
	if a.zone == nil || b.zone == nil {
		return errNone
	}
	common, left, right := a.zone, a.zone, b.zone
	if left != right {
		var ups, downs []*zone
		ups, downs, common = split(r.p.above(from), r.p.above(to))
		left, right = ups[len(ups)-1], downs[len(downs)-1]
		if left == right {
			common = left
		}
	}
	if common == nil {
		return errNone
	}
	if done, err := r.bypass(common, from, to); done || err != nil {
		return err
	}
	if left == right {
		if a.zone != common || b.zone != common {
			return errNone
		}
		_, _, err := r.local(common, from, to)
		return err
	}
	// The links to the gateway precede those between the zones.
	at := len(r.path.Links)
	in, out, err := r.local(common, left.self, right.self)
	if err != nil {
		return err
	}
	if in == nobody || out == nobody {
		return errNone
	}
	middle := slices.Clone(r.path.Links[at:])
	r.path.Links = r.path.Links[:at]
	if from != in {
		if err := r.global(from, in); err != nil {
			return err
		}
	}
	r.path.Links = append(r.path.Links, middle...)
	if out != to {
		return r.global(out, to)
	}
	return nil
}

// bypass appends the bypass route of a zone between two points or zones around them, if there is one.
func (r *Router) bypass(z *zone, from, to int32) (found bool, err error) {
	if len(z.bypasses) == 0 {
		return false, nil
	}
	a, b := r.p.point(from).zone, r.p.point(to).zone
	if a == z && b == z {
		if part := z.bypasses[[2]int32{from, to}]; part != nil {
			r.add(part.links...)
			return true, nil
		}
		return false, nil
	}
	ups, downs, _ := split(r.p.above(from), r.p.above(to))
	look := func(i, j int) *route {
		if i < len(ups) && j < len(downs) {
			return z.bypasses[[2]int32{ups[i].self, downs[j].self}]
		}
		return nil
	}
	for most := range max(len(ups), len(downs)) {
		for i := range most + 1 {
			for _, pair := range [2][2]int{{i, most}, {most, i}} {
				part := look(pair[0], pair[1])
				if part == nil {
					continue
				}
				if err := r.global(from, part.from); err != nil {
					return true, err
				}
				r.add(part.links...)
				return true, r.global(part.to, to)
			}
		}
	}
	return false, nil
}

// local appends the route between two points of a zone, and returns its gateways.
func (r *Router) local(z *zone, from, to int32) (in, out int32, err error) {
	switch z.kind {
	case kindFull:
		if part := z.routes[[2]int32{from, to}]; part != nil {
			r.add(part.links...)
			return part.from, part.to, nil
		}
		if from == to && !z.nested {
			r.add(r.p.loopback)
		}
	case kindFloyd, kindDijkstra:
		return r.shortest(z, from, to)
	case kindStar, kindVivaldi:
		r.star(z, from, to)
		if z.kind == kindVivaldi {
			return nobody, nobody, r.distance(z, from, to)
		}
	case kindCluster:
		at := len(r.path.Links)
		r.path.Links = z.cluster.hops(r.path.Links, uint32(r.p.point(from).id), uint32(r.p.point(to).id))
		for _, i := range r.path.Links[at:] {
			r.path.Latency += r.p.Links[i].Latency
		}
	}
	return nobody, nobody, nil
}

// star appends the links up from a point of a star and down to another one, each link once.
func (r *Router) star(z *zone, from, to int32) {
	a, b := z.spokes[from], z.spokes[to]
	if from == to && a != nil && a.loop != nil {
		r.add(a.loop...)
		return
	}
	clear(r.seen)
	once := func(links []uint32) {
		for _, i := range links {
			if !r.seen[i] {
				r.seen[i] = true
				r.add(i)
			}
		}
	}
	if a != nil {
		once(a.up)
	}
	if b != nil {
		once(b.down)
	}
}

// distance adds the latency of the distance between two points: coordinates are in milliseconds, the third is the
// height of a point above the plane.
func (r *Router) distance(z *zone, from, to int32) error {
	a, known := z.coords[from]
	b, knownToo := z.coords[to]
	if !known || !knownToo {
		return errors.New("found no coordinates of one of them")
	}
	x, y := a[0]-b[0], a[1]-b[1]
	plane := math.Sqrt(float64(x*x) + float64(y*y)) // rounded as in SimGrid, unlike math.Hypot
	r.path.Latency += (plane + math.Abs(a[2]) + math.Abs(b[2])) / 1000
	return nil
}
