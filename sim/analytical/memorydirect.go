package analytical

import "fmt"

// DirectMemory is a memory pool whose memory groups and NPUs are connected directly, as a ring or a mesh. Every NPU
// accesses all memory groups evenly over shortest paths, and all NPUs access the memory at the same time.
type DirectMemory struct {
	Groups     int     // RingPool: number of memory groups
	Columns    int     // MeshPool: number of columns of nodes
	Rows       int     // MeshPool: number of rows of nodes
	Everywhere bool    // MeshPool: every node has a memory group; otherwise those of the first and the last column
	Bandwidth  float64 // of each direction of a link, 10^9 bytes per second
	HopLatency float64 // of a link, in nanoseconds
	ChunkSize  int64   // in bytes

	// load is the number of bytes on the busiest link, and hops the mean number of links on a path, both per byte that
	// an
	// NPU accesses.
	load, hops float64
}

// maxPairs limits the pairs of an NPU and a memory group, which are routed one by one.
const maxPairs = 1 << 26

// line counts the paths over each link in one direction of a line or a ring of places: those over link i, from place i
// to the next one, are the sum of the first i + 1 entries.
type line []int64

// add adds a path over a number of consecutive links from a place. Beyond the last place of a ring follows the first.
func (l line) add(from, links int) {
	if links == 0 {
		return
	}
	l[from]++
	if end := from + links; end < len(l) {
		l[end]--
	} else if end > len(l) {
		l[0]++
		l[end-len(l)]--
	}
}

// busiest returns the number of paths over the busiest link.
func (l line) busiest() (most int64) {
	sum := int64(0)
	for _, change := range l {
		sum += change
		most = max(most, sum)
	}
	return most
}

// route determines the load of links for the given number of NPUs.
func (d *DirectMemory) route(npus int) error {
	if d.Columns > 0 {
		return d.routeMesh(npus)
	}
	if npus > maxPairs/d.Groups {
		return fmt.Errorf("the memory has %d groups and the network %d NPUs, expected at most %d pairs of both",
			d.Groups, npus, maxPairs)
	}
	// Groups are spread evenly among the NPUs: with as many groups as NPUs they alternate, beginning with an NPU.
	places := npus + d.Groups
	forward, backward := make(line, places), make(line, places)
	total := 0
	for from := range places {
		if !d.isGroup(from, places) {
			continue
		}
		for to := range places {
			if d.isGroup(to, places) {
				continue
			}
			distance := (to - from + places) % places
			if 2*distance <= places { // the forward path if both are equally short
				forward.add(from, distance)
			} else {
				distance = places - distance
				backward.add((places-from)%places, distance)
			}
			total += distance
		}
	}
	d.share(max(forward.busiest(), backward.busiest()), total, npus, d.Groups)
	return nil
}

// isGroup reports whether a place of the ring is a memory group.
func (d *DirectMemory) isGroup(place, places int) bool {
	return (place+1)*d.Groups/places > place*d.Groups/places
}

// share sets the load and hops from the paths over the busiest link and the links of all paths.
func (d *DirectMemory) share(busiest int64, links, npus, groups int) {
	d.load = float64(busiest) / float64(groups)
	d.hops = float64(links) / float64(npus) / float64(groups)
}

// routeMesh determines the load of links of a mesh. A path leads from the memory group along its row, then along the
// column of the NPU.
func (d *DirectMemory) routeMesh(npus int) error {
	if d.Columns*d.Rows != npus {
		return fmt.Errorf("the memory has a mesh of %d x %d nodes, but the network has %d NPUs: expected mesh-columns "+
			"times mesh-rows to be this number", d.Columns, d.Rows, npus)
	}
	columns := []int{0}
	if d.Columns > 1 {
		columns = append(columns, d.Columns-1)
	}
	if d.Everywhere {
		columns = columns[:0]
		for x := range d.Columns {
			columns = append(columns, x)
		}
	}
	groups := len(columns) * d.Rows
	if npus > maxPairs/groups {
		return fmt.Errorf("the memory has %d groups and the network %d NPUs, expected at most %d pairs of both", groups,
			npus, maxPairs)
	}
	lines := func(count, length int) []line {
		all := make([]line, count)
		for i := range all {
			all[i] = make(line, length)
		}
		return all
	}
	right, left := lines(d.Rows, d.Columns), lines(d.Rows, d.Columns)
	down, up := lines(d.Columns, d.Rows), lines(d.Columns, d.Rows)
	total := 0
	for row := range d.Rows {
		for _, column := range columns {
			for x := range d.Columns {
				for y := range d.Rows {
					total += walk(right[row], left[row], column, x) + walk(down[x], up[x], row, y)
				}
			}
		}
	}
	busiest := int64(0)
	for _, all := range [][]line{right, left, down, up} {
		for _, l := range all {
			busiest = max(busiest, l.busiest())
		}
	}
	d.share(busiest, total, npus, groups)
	return nil
}

// walk adds a path between two places of a line and returns its number of links. Links toward lower places are those of
// the mirrored line.
func walk(ascending, descending line, from, to int) int {
	if to >= from {
		ascending.add(from, to-from)
		return to - from
	}
	descending.add(len(descending)-1-from, from-to)
	return from - to
}

// transferTime returns the time of an access in nanoseconds. Chunks pass the links of a path in a pipeline, in which
// the
// busiest link is the slowest.
func (d *DirectMemory) transferTime(bytes int64) float64 {
	if bytes == 0 {
		return 0
	}
	return d.hops*d.HopLatency + d.load*float64(bytes)/d.Bandwidth + max(0, d.hops-1)*float64(d.ChunkSize)/d.Bandwidth
}
