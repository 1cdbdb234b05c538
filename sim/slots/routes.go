package slots

import (
	"cmp"
	"context"
	"slices"

	"github.com/tracedag/tracedag/sim/topology"
)

// routes has the k shortest loopless paths between the edge switches of hosts: first those of least length in the order
// of [topology.Routes.Choose], then longer ones by Yen's algorithm (J. Yen, Finding the K shortest loopless paths in a
// network, Management Science 17, 1971), ties by the numbers of ports. In a dragonfly, a path with fewer global links
// is shorter. Paths are computed when they are needed first.
type routes struct {
	net   *topology.Network
	table *topology.Routes
	k     int

	pairs map[[2]uint32]pathRange // by edge switches
	at    []uint32                // by path: start of its ports, and the end of the last
	ports []uint32

	hops [][]uint32 // by switch: ports to other switches, ascending; nil until Yen's algorithm needs them
}

// pathRange is the paths of a pair: numbers first to first+count-1.
type pathRange struct{ first, count uint32 }

func newRoutes(ctx context.Context, n *topology.Network, k int) (*routes, error) {
	table, err := topology.NewRoutes(ctx, n, nil)
	if err != nil {
		return nil, err
	}
	return &routes{net: n, table: table, k: k, pairs: make(map[[2]uint32]pathRange), at: []uint32{0}}, nil
}

// path returns the ports of a path between switches. The ports of the hosts precede and follow them.
func (r *routes) path(p uint32) []uint32 { return r.ports[r.at[p]:r.at[p+1]] }

// between returns the paths between two hosts; none if the network does not connect them.
func (r *routes) between(from, to uint32) pathRange {
	if r.table.NIC(from) == topology.NoPort || r.table.HostPort(to) == topology.NoPort {
		return pathRange{}
	}
	key := [2]uint32{r.table.Edge(from), r.table.Edge(to)}
	if pair, is := r.pairs[key]; is {
		return pair
	}
	paths := r.shortest(key[0], key[1])
	if len(paths) > 0 && len(paths) < r.k && key[0] != key[1] {
		paths = r.longer(paths, key[0], key[1])
	}
	pair := pathRange{uint32(len(r.at) - 1), uint32(len(paths))}
	for _, ports := range paths {
		r.ports = append(r.ports, ports...)
		r.at = append(r.at, uint32(len(r.ports)))
	}
	r.pairs[key] = pair
	return pair
}

// shortest returns the first k paths of least length.
func (r *routes) shortest(from, to uint32) (paths [][]uint32) {
	for path := range min(uint32(r.k), r.table.Paths(from, to)) {
		ports := []uint32{}
		for at, rest := from, path; at != to; {
			var port uint32
			port, rest = r.table.Choose(at, to, rest)
			ports = append(ports, port)
			at = r.end(port)
		}
		paths = append(paths, ports)
	}
	return paths
}

// end returns the switch at the end of a port between switches.
func (r *routes) end(port uint32) uint32 { return r.net.Head(port) - uint32(r.net.Hosts) }

// globalCost is the length of a global link of a dragonfly in other links: more than a loopless path has of these.
const globalCost = 1 << 24

// cost returns the length of a port's link.
func (r *routes) cost(port uint32) int64 {
	if d := r.net.Dragonfly; d != nil && d.Group(int(r.end(port))) != d.Group(int(r.end(port^1))) {
		return globalCost
	}
	return 1
}

func (r *routes) length(ports []uint32) (sum int64) {
	for _, port := range ports {
		sum += r.cost(port)
	}
	return sum
}

// longer adds paths to all paths of least length until there are k, or no more.
func (r *routes) longer(paths [][]uint32, from, to uint32) [][]uint32 {
	if r.hops == nil {
		r.hops = make([][]uint32, r.net.Switches)
		for l := range r.net.Links {
			if link := &r.net.Links[l]; min(link.A, link.B) >= uint32(r.net.Hosts) {
				for _, port := range []uint32{uint32(2 * l), uint32(2*l + 1)} {
					at := r.end(port ^ 1)
					r.hops[at] = append(r.hops[at], port)
				}
			}
		}
	}
	var found [][]uint32 // candidates that are not in paths
	for spurred := 0; len(paths) < r.k; {
		for ; spurred < len(paths); spurred++ {
			for i := range paths[spurred] {
				next := r.detour(paths, paths[spurred][:i], from, to)
				known := func(p []uint32) bool { return slices.Equal(p, next) }
				if next != nil && !slices.ContainsFunc(found, known) {
					found = append(found, next)
				}
			}
		}
		if len(found) == 0 {
			break
		}
		slices.SortFunc(found, func(a, b []uint32) int {
			return cmp.Or(cmp.Compare(r.length(a), r.length(b)), slices.Compare(a, b))
		})
		paths, found = append(paths, found[0]), found[1:]
	}
	return paths
}

// detour returns the shortest path that begins with the root and continues unlike all paths that begin with it, or nil.
func (r *routes) detour(paths [][]uint32, root []uint32, from, to uint32) []uint32 {
	visited, spur := make([]bool, r.net.Switches), from
	for _, port := range root {
		visited[spur] = true
		spur = r.end(port)
	}
	var banned []uint32
	for _, p := range paths {
		if len(p) > len(root) && slices.Equal(p[:len(root)], root) {
			banned = append(banned, p[len(root)])
		}
	}
	visited[spur] = true
	left := r.distances(to, visited)
	best, length := uint32(topology.NoPort), int64(0)
	for _, port := range r.hops[spur] {
		next := r.end(port)
		if visited[next] || left[next] < 0 || slices.Contains(banned, port) {
			continue
		}
		if total := r.cost(port) + left[next]; best == topology.NoPort || total < length {
			best, length = port, total
		}
	}
	if best == topology.NoPort {
		return nil
	}
	path := append(slices.Clone(root), best)
	for at := r.end(best); at != to; {
		for _, port := range r.hops[at] {
			if next := r.end(port); left[next] >= 0 && !visited[next] && left[at] == left[next]+r.cost(port) {
				path = append(path, port)
				at = next
				break
			}
		}
	}
	return path
}

// distances returns the length of the shortest path from each switch to the given one that avoids visited switches; -1:
// none.
func (r *routes) distances(to uint32, visited []bool) []int64 {
	left := make([]int64, r.net.Switches)
	for i := range left {
		left[i] = -1
	}
	left[to] = 0
	for queue := []uint32{to}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, out := range r.hops[at] {
			before, through := r.end(out), left[at]+r.cost(out^1)
			if !visited[before] && (left[before] < 0 || through < left[before]) {
				left[before] = through
				queue = append(queue, before)
			}
		}
	}
	return left
}
