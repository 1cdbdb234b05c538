package flow

import (
	"context"
	"fmt"

	"github.com/tracedag/tracedag/sim/platform"
)

// given has the paths of a platform file. It implements paths.
type given struct {
	p      *platform.Platform
	router *platform.Router
	down   []int // by link: number of failures; nil: there are none
}

func newGiven(p *platform.Platform) *given { return &given{p: p, router: platform.NewRouter(p)} }

func (g *given) linksOf(link int) []uint32 { return []uint32{uint32(link)} }

func (g *given) fail(_ context.Context, links []int, change int) error {
	if g.down == nil {
		g.down = make([]int, len(g.p.Links))
	}
	for _, l := range links {
		g.down[l] += change
	}
	return nil
}

// solverLinks returns the links of the solver: one for each link of the platform.
func (g *given) solverLinks() []link {
	links := make([]link, len(g.p.Links))
	for i := range links {
		links[i] = link{capacity: g.p.Links[i].Rate, fat: g.p.Links[i].Fat}
	}
	return links
}

func (g *given) find(to *path, from, dst, _ uint32, _ []uint32) ([]uint32, error) {
	found, err := g.router.Route(from, dst)
	if err != nil {
		return nil, err
	}
	to.hops, to.latency, to.seconds = to.hops[:0], found.Latency*psPerSecond, found.Latency
	for _, i := range found.Links {
		if g.down != nil && g.down[i] > 0 {
			return nil, fmt.Errorf("expected a working route from %s to %s, found the failed link %s", g.p.Hosts[from],
				g.p.Hosts[dst], g.p.Links[i].Name)
		}
		to.hops = append(to.hops, hop{i, 1})
	}
	return nil, nil
}

func (g *given) works([]uint32) bool { return false }

func (g *given) latencyBetween(from, to uint32) float64 {
	found, err := g.router.Route(from, to)
	if err != nil {
		return 0 // the flow itself reports the error
	}
	return found.Latency * psPerSecond
}

func (g *given) portRows() ([]portRow, []uint32) {
	rows, links := make([]portRow, len(g.p.Links)), make([]uint32, len(g.p.Links))
	for i := range g.p.Links {
		l := &g.p.Links[i]
		rows[i], links[i] = portRow{port: i, name: l.Name, capacity: l.Rate, tier: -1}, uint32(i)
	}
	return rows, links
}
