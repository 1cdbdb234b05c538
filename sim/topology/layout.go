package topology

import (
	"math"
	"slices"
)

// Position is the place of a node in a drawing: from 0 at the left to 1 at the right, and from 0 at the top to 1 at the
// bottom.
type Position struct{ X, Y float64 }

// Layout is the arrangement of nodes in a drawing.
type Layout uint8

// Layouts of networks.
const (
	Rows   Layout = iota // rows of nodes: hosts at the bottom, switches by their distance from hosts, the tier
	Levels               // rows of switches by their distance from the switch of the first host; hosts below theirs
	Grid                 // meshes and tori; a third dimension repeats the plane to the right, a fourth to the bottom
	Groups               // dragonflies: groups on a circle, routers on circles, hosts outside of them
)

var layouts = [...]string{"rows", "levels", "grid", "groups"}

// String returns the name of the layout.
func (l Layout) String() string { return layouts[l] }

// Layout returns the layout of the network and the place of each node.
func (n *Network) Layout() (Layout, []Position) {
	places := make([]Position, n.Hosts+n.Switches)
	switch {
	case n.Mesh != nil:
		n.placeGrid(places)
		return Grid, places
	case n.Dragonfly != nil:
		n.placeGroups(places)
		return Groups, places
	}
	edges := make([]int, n.Hosts)
	for i, s := range n.edgeSwitches() {
		edges[i] = s
	}
	levels := n.levels(slices.Compact(slices.Sorted(slices.Values(edges))))
	if n.Switches == 1 || slices.Max(levels) > 0 {
		n.placeRows(places, levels, edges)
		return Rows, places
	}
	n.placeLevels(places, n.levels(edges[:1]), edges)
	return Levels, places
}

// edgeSwitches returns the switch of each host.
func (n *Network) edgeSwitches() []int {
	edges := make([]int, n.Hosts)
	for _, l := range n.Links {
		a, b := int(l.A), int(l.B)
		if a > b {
			a, b = b, a
		}
		if a < n.Hosts {
			edges[a] = b - n.Hosts
		}
	}
	return edges
}

// levels returns the distance of each switch from the nearest of the given ones. That of switches without a path is one
// more than the largest.
func (n *Network) levels(from []int) []int {
	next := make([][]int, n.Switches)
	for _, l := range n.Links {
		if a, b := int(l.A)-n.Hosts, int(l.B)-n.Hosts; a >= 0 && b >= 0 {
			next[a], next[b] = append(next[a], b), append(next[b], a)
		}
	}
	level := slices.Repeat([]int{-1}, n.Switches)
	queue := slices.Clone(from)
	for _, s := range from {
		level[s] = 0
	}
	most := 0
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for _, t := range next[s] {
			if level[t] < 0 {
				level[t] = level[s] + 1
				most = max(most, level[t])
				queue = append(queue, t)
			}
		}
	}
	for s := range level {
		if level[s] < 0 {
			level[s] = most + 1
		}
	}
	return level
}

// placeRows places hosts at the bottom, in the order of their switches, and switches by level above them.
func (n *Network) placeRows(places []Position, levels, edges []int) {
	rows := slices.Max(levels) + 1
	order := make([]int, n.Hosts)
	for host := range order {
		order[host] = host
	}
	slices.SortStableFunc(order, func(a, b int) int { return edges[a] - edges[b] })
	for i, host := range order {
		places[host] = Position{(float64(i) + 0.5) / float64(n.Hosts), 1}
	}
	n.placeSwitches(places, levels, func(level int) float64 { return 1 - float64(level+1)/float64(rows) })
}

// placeSwitches places the switches of each level in a row at the height that y returns.
func (n *Network) placeSwitches(places []Position, levels []int, y func(level int) float64) {
	count := make([]int, slices.Max(levels)+1)
	for _, level := range levels {
		count[level]++
	}
	placed := make([]int, len(count))
	for s, level := range levels {
		places[n.Hosts+s] = Position{(float64(placed[level]) + 0.5) / float64(count[level]), y(level)}
		placed[level]++
	}
}

// placeLevels places switches by level from the top, and hosts below their switch.
func (n *Network) placeLevels(places []Position, levels, edges []int) {
	rows := float64(slices.Max(levels) + 1)
	n.placeSwitches(places, levels, func(level int) float64 { return float64(level) / rows })
	widest := make([]int, slices.Max(levels)+1)
	for _, level := range levels {
		widest[level]++
	}
	n.hang(places, edges, func(s int) (width, height float64) {
		return 0.8 / float64(widest[levels[s]]), 0.45 / rows
	})
}

// hang places the hosts of each switch side by side below it, in a place of the given size.
func (n *Network) hang(places []Position, edges []int, room func(s int) (width, height float64)) {
	count := make([]int, n.Switches)
	for _, s := range edges {
		count[s]++
	}
	placed := make([]int, n.Switches)
	for host, s := range edges {
		width, height := room(s)
		at := places[n.Hosts+s]
		at.X += width * ((float64(placed[s])+0.5)/float64(count[s]) - 0.5)
		at.Y += height
		placed[s]++
		places[host] = at
	}
}

// placeGrid places the routers of a mesh: even dimensions to the right, odd ones to the bottom.
func (n *Network) placeGrid(places []Position) {
	dims := n.Mesh.Dims
	var size [2]float64 // with a gap of one cell between planes
	strides := make([]float64, len(dims))
	for d, routers := range dims {
		side := &size[d%2]
		strides[d] = max(1, *side+1)
		if d < 2 {
			strides[d] = 1
		}
		*side = strides[d]*float64(routers-1) + max(1, *side)
	}
	cell := 1 / max(size[0], size[1], 1)
	for s := range n.Switches {
		at, rest := [2]float64{0.5, 0.4}, s
		for d, routers := range dims {
			at[d%2] += strides[d] * float64(rest%routers)
			rest /= routers
		}
		places[n.Hosts+s] = Position{at[0] * cell, at[1] * cell}
	}
	n.hang(places, n.edgeSwitches(), func(int) (width, height float64) { return 0.4 * cell, 0.3 * cell })
	for host := range n.Hosts { // beside the vertical links
		places[host].X += 0.24 * cell
	}
}

// placeGroups places the groups of a dragonfly on a circle.
func (n *Network) placeGroups(places []Position) {
	d := n.Dragonfly
	between := math.Sin(math.Pi / float64(d.Groups))
	radius := min(0.2, 0.42*between/(1+between)) // of a group with its hosts
	hosts := make([]int, d.A*d.Groups)
	for host, s := range n.edgeSwitches() {
		angle := 2 * math.Pi * float64(s/d.A) / float64(d.Groups)
		x, y := 0.5+(0.5-radius)*math.Sin(angle), 0.5-(0.5-radius)*math.Cos(angle)
		around := func(share, distance float64) Position {
			turn := angle + 2*math.Pi*share
			return Position{x + distance*math.Sin(turn), y - distance*math.Cos(turn)}
		}
		router := float64(s % d.A)
		distance := 0.6 * radius
		if d.A == 1 {
			distance = 0
		}
		places[n.Hosts+s] = around(router/float64(d.A), distance)
		spread := ((float64(hosts[s])+0.5)/float64(d.P) - 0.5) * 0.8
		hosts[s]++
		places[host] = around((router+spread)/float64(d.A), radius)
	}
}
