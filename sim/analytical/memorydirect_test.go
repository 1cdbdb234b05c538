package analytical

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// readMemory reads a memory for a number of NPUs.
func readMemory(t *testing.T, npus int, format string, args ...any) *Memory {
	t.Helper()
	m, err := ReadMemory(fmt.Appendf(nil, format, args...), "m.json", t.Errorf)
	if err == nil {
		err = m.Check(npus)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &m
}

func ringPool(t *testing.T, npus, groups int, bandwidth float64) *Memory {
	return readMemory(t, npus, `{"memory-type": "RING_POOL", "num-remote-memory-groups": %d, "link-bw": %v,
		"hop-latency": 20, "chunk-size": 100}`, groups, bandwidth)
}

func meshPool(t *testing.T, columns, rows int, memory string, bandwidth float64) *Memory {
	return readMemory(t, columns*rows, `{"memory-type": "MESH_POOL", "mesh-columns": %d, "mesh-rows": %d,
		"memory-columns": "%s", "link-bw": %v, "hop-latency": 20, "chunk-size": 100}`, columns, rows, memory, bandwidth)
}

// TestRingLoads compares rings of as many groups as NPUs with closed forms: N/8 + 1/4 for even N, and the mean distance
// (N + R)/4.
func TestRingLoads(t *testing.T) {
	for _, n := range []int{2, 4, 8, 16, 256} {
		d := ringPool(t, n, n, 1).Direct
		if want := float64(n)/8 + 0.25; d.load != want || d.hops != float64(n)/2 {
			t.Errorf("%d NPUs: load %v and %v hops, expected %v and %v", n, d.load, d.hops, want, n/2)
		}
	}
}

// TestRingPaths compares loads with paths that are walked link by link.
func TestRingPaths(t *testing.T) {
	for _, c := range []struct{ npus, groups int }{{4, 4}, {5, 5}, {3, 3}, {6, 2}, {2, 7}, {1, 1}, {9, 4}} {
		d := ringPool(t, c.npus, c.groups, 1).Direct
		places := c.npus + c.groups
		links, total, groups := make(map[[2]int]int), 0, 0
		for from := range places {
			if !d.isGroup(from, places) {
				continue
			}
			groups++
			for to := range places {
				if d.isGroup(to, places) {
					continue
				}
				step := 1
				if forward := (to - from + places) % places; 2*forward > places {
					step = places - 1
				}
				for at := from; at != to; total++ {
					next := (at + step) % places
					links[[2]int{at, next}]++
					at = next
				}
			}
		}
		busiest := 0
		for _, n := range links {
			busiest = max(busiest, n)
		}
		load, hops := float64(busiest)/float64(c.groups), float64(total)/float64(c.npus*c.groups)
		if groups != c.groups || math.Abs(d.load-load) > 1e-12 || math.Abs(d.hops-hops) > 1e-12 {
			t.Errorf("%+v: load %v and %v hops, expected %v and %v with %d groups", c, d.load, d.hops, load, hops, groups)
		}
	}
}

// TestMeshPaths compares loads with counted ones and with paths that are walked link by link.
func TestMeshPaths(t *testing.T) {
	for _, c := range []struct {
		columns, rows int
		memory        string
		load          float64 // counted by hand; 0: unknown
	}{
		{4, 4, "every", 1}, {8, 8, "every", 2}, {4, 4, "both", 1.5}, {8, 8, "both", 3.5}, {1, 4, "both", 0},
		{5, 3, "both", 0}, {3, 7, "every", 0}, {2, 2, "both", 0},
	} {
		d := meshPool(t, c.columns, c.rows, c.memory, 1).Direct
		links, total, groups := make(map[[4]int]int), 0, 0
		for gx := range c.columns {
			if c.memory == "both" && gx != 0 && gx != c.columns-1 {
				continue
			}
			for gy := range c.rows {
				groups++
				for node := range c.columns * c.rows {
					x, y := gx, gy
					for ; x != node%c.columns || y != node/c.columns; total++ {
						fromX, fromY := x, y
						switch tx, ty := node%c.columns, node/c.columns; {
						case x < tx:
							x++
						case x > tx:
							x--
						case y < ty:
							y++
						default:
							y--
						}
						links[[4]int{fromX, fromY, x, y}]++
					}
				}
			}
		}
		busiest := 0
		for _, n := range links {
			busiest = max(busiest, n)
		}
		load, hops := float64(busiest)/float64(groups), float64(total)/float64(c.columns*c.rows*groups)
		if c.load != 0 && load != c.load || math.Abs(d.load-load) > 1e-12 || math.Abs(d.hops-hops) > 1e-12 {
			t.Errorf("%+v: load %v and %v hops, expected %v and %v", c, d.load, d.hops, load, hops)
		}
	}
}

// multiLevel returns a tree of switches with 4 NPUs each and links whose bandwidth keeps the bisection of the NPUs.
func multiLevel(t *testing.T, npus int, bandwidth float64, inSwitch int) *Memory {
	return readMemory(t, npus, `{"memory-type": "MULTILEVEL_SWITCH_POOL", "levels": 2, "radix": [4, %d], "bw": [%v, %v, %v],
		"chunk-size": 100, "in-switch": %d}`, npus/4, bandwidth, 4*bandwidth, float64(npus)*bandwidth, inSwitch)
}

// TestMultiLevelTimes checks times by hand: 16 NPUs, two levels.
func TestMultiLevelTimes(t *testing.T) {
	m := readMemory(t, 16, `{"memory-type": "MULTILEVEL_SWITCH_POOL", "levels": 2, "radix": [4, 4], "bw": [10, 20, 40],
		"chunk-size": 100, "remote-mem-latency": 5, "in-switch": 1}`)
	for _, c := range []struct {
		bytes        int64
		ranks        int32
		t0, t1, t2   float64 // of the root, of switches, of NPUs
		load1, load2 float64
		time         int64
	}{
		{100, 1, 40, 20, 10, 4, 1, 5 + 70},
		{250, 1, 40, 20, 10, 4, 1, 5 + 70 + 2*40},
		{250, 16, 40, 80, 160, 16, 16, 5 + 280 + 2*160}, // every link carries W N
		{250, 0, 40, 80, 160, 16, 16, 5 + 280 + 2*160},  // all, without an attribute
		{100, 2, 40, 20, 20, 4, 2, 5 + 80},              // two groups of two below a switch
		{100, 8, 40, 40, 80, 8, 8, 5 + 160},             // a group spans two switches
	} {
		stages, loads := m.Stages(c.ranks), m.Loads(1, c.ranks)
		if stages[0] != c.t0 || stages[1] != c.t1 || stages[2] != c.t2 || loads[0] != 16 || loads[1] != c.load1 ||
			loads[2] != c.load2 || m.accessTime(c.bytes, c.ranks) != c.time {
			t.Errorf("%+v: times %v, loads %v, access %d ns", c, stages, loads, m.accessTime(c.bytes, c.ranks))
		}
	}
}

// TestPoolsOfEqualBisection orders the kinds of pools, and compares them with a memory at each NPU.
func TestPoolsOfEqualBisection(t *testing.T) {
	const bytes, link = 1 << 30, 16.0
	for _, side := range []int{4, 8, 16} {
		n := side * side
		// The bisection of a mesh has side links and that of a ring two. In the root of the tree, half of the data of
		// half
		// of the NPUs comes from the other half of the memory.
		bisection := link * float64(side)
		tree := multiLevel(t, n, bisection/float64(n/4), 0).accessTime(bytes, 1)
		mesh := meshPool(t, side, side, "every", link).accessTime(bytes, 1)
		ring := ringPool(t, n, n, bisection/2).accessTime(bytes, 1)
		if tree > mesh || mesh > ring {
			t.Errorf("%d NPUs: switches %d ns, mesh %d, ring %d, expected to ascend", n, tree, mesh, ring)
		}
	}
	local := readMemory(t, 16, `{"memory-type": "LOCAL", "latency": 0, "bandwidth": 16}`).accessTime(bytes, 0)
	for _, pool := range []func(bandwidth float64) *Memory{
		func(b float64) *Memory { return ringPool(t, 16, 16, b) },
		func(b float64) *Memory { return meshPool(t, 4, 4, "every", b) },
		func(b float64) *Memory { return meshPool(t, 4, 4, "both", b) },
		func(b float64) *Memory { return multiLevel(t, 16, b, 0) },
		func(b float64) *Memory { return multiLevel(t, 16, b, 1) },
	} {
		m := pool(16)
		once := m.accessTime(bytes, 0)
		if once < local {
			t.Errorf("%v takes %d ns, less than local memory, %d", m.Kind, once, local)
		}
		for _, other := range []int64{m.accessTime(2*bytes, 0) / 2, pool(8).accessTime(bytes, 0) / 2} {
			if d := float64(other)/float64(once) - 1; math.Abs(d) > 1e-4 {
				t.Errorf("%v: twice the bytes or half the bandwidth takes %v ns / 2, expected %v", m.Kind, other, once)
			}
		}
	}
}

// TestGatherOfHierarchicalPool checks the limits of both equations of the paper, and a group of each kind in between:
// 16 nodes of 16 NPUs.
func TestGatherOfHierarchicalPool(t *testing.T) {
	const pool = `{"memory-type": "HIERARCHICAL_POOL", "num-nodes": 16, "num-npus-per-node": 16,
		"num-out-node-switches": 4, "num-remote-memory-groups": 8, "chunk-size": 1048576, "mem-side-bw": 100,
		"gpu-side-bw": 100, "in-node-bw": 256, "in-switch": %d}`
	plain, in := readMemory(t, 256, pool, 0), readMemory(t, 256, pool, 1)
	const w = 1 << 24
	for _, bytes := range []int64{0, 1, w, w + 1, 3 * w} {
		if a, b := in.accessTime(bytes, 1), plain.accessTime(bytes, 0); a != b {
			t.Errorf("%d bytes: gathered from 1 rank %d ns, plain %d", bytes, a, b)
		}
		if a, b := in.accessTime(bytes, 256), in.accessTime(bytes, 0); a != b {
			t.Errorf("%d bytes: gathered from all ranks %d ns, by default %d", bytes, a, b)
		}
	}
	for _, c := range []struct {
		ranks              int32
		node, link, t2, t3 float64
	}{
		{1, 4, 1, 5242.88, 512}, {2, 4, 2, 5242.88, 1024}, {16, 4, 16, 5242.88, 8192}, {32, 8, 32, 10485.76, 16384},
		{128, 32, 128, 41943.04, 65536}, {256, 64, 256, 83886.08, 131072}, {3, 4.5, 3, 5898.24, 1536},
	} {
		loads, times := in.Loads(1, c.ranks), in.Stages(c.ranks)
		for k, want := range []float64{8, c.node, c.link, 10485.76, c.t2, c.t3} {
			if got := append(loads, times...)[k]; math.Abs(got-want) > 1e-9*want {
				t.Errorf("%d ranks: loads %v, times %v, expected %+v", c.ranks, loads, times, c)
			}
		}
	}
	for _, c := range []struct {
		memory *Memory
		ranks  int32
		want   string
	}{
		{plain, 2, `this needs a memory with "in-switch": 1`}, {in, 257, "the network has 256 NPUs"},
		{ringPool(t, 4, 4, 1), 2, "found RING_POOL"},
	} {
		if err := c.memory.gathers(c.ranks); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %d ranks: error %v, expected %q", c.memory.Kind, c.ranks, err, c.want)
		}
	}
	if err := plain.gathers(1); err != nil {
		t.Error(err)
	}
}

func TestPoolErrors(t *testing.T) {
	const tree = `{"memory-type": "MULTILEVEL_SWITCH_POOL", "chunk-size": 1, `
	const ring = `{"memory-type": "RING_POOL", "chunk-size": 1, "link-bw": 1, `
	for _, c := range []struct {
		npus       int
		text, want string
	}{
		{4, tree + `"levels": 2, "radix": [4], "bw": [1, 1, 1]}`, "radix: expected a list of 2 numbers above 0, found [4]"},
		{4, tree + `"levels": 1, "radix": [4.5], "bw": [1, 1]}`, "radix: expected integers with a product of at most"},
		{4, tree + `"levels": 2, "radix": [1e7, 1e7], "bw": [1, 1, 1]}`, "radix: expected integers with a product of at most"},
		{4, tree + `"levels": 1, "radix": [4], "bw": [1, 0]}`, "bw: expected a list of 2 numbers above 0"},
		{4, tree + `"levels": 0}`, "levels: expected a number from 1 to 32"},
		{4, tree + `"levels": 1, "radix": [8], "bw": [1, 1]}`, "the memory has switches of radix [8], but the network has 4"},
		{4, ring + `"order": "blocks", "num-remote-memory-groups": 4}`, "order: expected one of alternate"},
		{5, ring + `"num-remote-memory-groups": 16777216}`, "expected at most 67108864 pairs of both"},
		{4, `{"memory-type": "MESH_POOL", "chunk-size": 1, "link-bw": 1, "mesh-columns": 3, "mesh-rows": 2,
			"memory-columns": "every"}`, "a mesh of 3 x 2 nodes, but the network has 4 NPUs"},
		{4, `{"memory-type": "MESH_POOL", "chunk-size": 1, "link-bw": 1, "mesh-columns": 2, "mesh-rows": 2}`,
			"memory-columns: expected"},
	} {
		m, err := ReadMemory([]byte(c.text), "m.json", nil)
		if err == nil {
			err = m.Check(c.npus)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %q", c.text, err, c.want)
		}
	}
}
