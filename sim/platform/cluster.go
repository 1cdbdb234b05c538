// This file builds the clusters of SimGrid's platform files: their links and their choice of routes.

package platform

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// spec is a cluster of a platform file.
type spec struct {
	id       string
	numbers  []int // of the hosts
	wire     Link  // rate and latency of its links
	split    bool  // links have two directions
	loopback int   // first of the loopback links, by host; -1: none
	limiter  int   // first of the links that limit hosts, then switches; -1: none
	named    bool  // names of limiters have the numbers of the hosts
}

// readCluster reads a cluster: a zone with hosts.
func (r *reader) readCluster(values map[string]string) (err error) {
	z, err := r.openZone(values["id"], kindCluster)
	if err != nil {
		return err
	}
	c := spec{id: values["id"], loopback: -1, limiter: -1}
	if c.numbers, err = radical(values["radical"]); err != nil {
		return err
	}
	if values["speed"] == "" {
		return errors.New("speed: expected a speed such as 1Gf, found none")
	}
	processor, err := processorOf(values)
	if err != nil {
		return err
	}
	if c.wire.Rate, err = parseRate("bw", values["bw"]); err != nil {
		return err
	}
	if c.wire.Latency, err = parseTime("lat", values["lat"]); err != nil {
		return err
	}
	switch policy := cmp.Or(values["sharing_policy"], "SPLITDUPLEX"); policy {
	case "SPLITDUPLEX", "FULLDUPLEX":
		c.split = true
	case "SHARED", "FATPIPE": // links of clusters are never fat in SimGrid
	default:
		return fmt.Errorf("sharing_policy: expected SPLITDUPLEX or SHARED, found %s", short(policy))
	}
	build, err := r.plan(&c, values)
	if err != nil {
		return err
	}
	for _, n := range c.numbers {
		if err := r.addHost(values["prefix"]+strconv.Itoa(n)+values["suffix"], processor); err != nil {
			return fmt.Errorf("radical: %w", err)
		}
	}
	if err := r.loopbacks(&c, values); err != nil {
		return err
	}
	if err := r.limiters(&c, values["limiter_link"], build.nodes); err != nil {
		return err
	}
	if z.cluster, err = build.make(); err == nil && build.routed {
		err = r.addRouter(cmp.Or(values["router_id"], values["prefix"]+c.id+"_router"+values["suffix"]))
	}
	r.zone = z.parent
	return err
}

// plan is a cluster whose size is known and whose links are not made.
type plan struct {
	nodes  int // with limiters: hosts, then switches
	cables int
	routed bool // routes between zones end at its router
	make   func() (cluster, error)
}

// plan returns the plan of a cluster. It returns an error if the platform would have too many links, before any is
// made.
func (r *reader) plan(c *spec, values map[string]string) (p plan, err error) {
	switch topology := cmp.Or(values["topology"], "FLAT"); topology {
	case "FLAT":
		c.named = true
		p = plan{nodes: len(c.numbers), cables: len(c.numbers), routed: true,
			make: func() (cluster, error) { return r.star(c, values) }}
	case "TORUS":
		p, err = r.torus(c, values["topo_parameters"])
	case "FAT_TREE":
		p, err = r.fatTree(c, values["topo_parameters"])
	case "DRAGONFLY":
		p, err = r.dragonfly(c, values["topo_parameters"])
	default:
		err = fmt.Errorf("topology: expected FLAT, TORUS, FAT_TREE or DRAGONFLY, found %s", short(topology))
	}
	if err != nil {
		return plan{}, err
	}
	links := len(r.p.Links) + p.cables
	if c.split {
		links += p.cables
	}
	if values["limiter_link"] != "" {
		links += p.nodes
	}
	if values["loopback_bw"] != "" || values["loopback_lat"] != "" {
		links += len(c.numbers)
	}
	if links > maxLinks {
		return plan{}, fmt.Errorf("expected at most %d links of the platform, found %d with those of this cluster",
			maxLinks, links)
	}
	return p, nil
}

// radical returns the numbers of a list such as 0-15,20.
func radical(text string) (numbers []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, found := strings.Cut(part, "-")
		if !found {
			last = first
		}
		a, err := strconv.ParseUint(first, 10, 31)
		b, err2 := strconv.ParseUint(last, 10, 31)
		if err != nil || err2 != nil || b < a || b-a >= uint64(maxHosts-len(numbers)) {
			return nil, fmt.Errorf("radical: expected numbers such as 0-15,20 of at most %d hosts, found %s",
				maxHosts, short(text))
		}
		for n := a; n <= b; n++ {
			numbers = append(numbers, int(n))
		}
	}
	return numbers, nil
}

// loopbacks adds the link of each host to itself.
func (r *reader) loopbacks(c *spec, values map[string]string) error {
	if values["loopback_bw"] == "" && values["loopback_lat"] == "" {
		return nil
	}
	w := Link{Fat: true}
	var err error
	if w.Rate, err = parseRate("loopback_bw", values["loopback_bw"]); err != nil {
		return err
	}
	if w.Latency, err = parseTime("loopback_lat", values["loopback_lat"]); err != nil {
		return err
	}
	c.loopback = len(r.p.Links)
	for _, n := range c.numbers {
		w.Name = c.id + "_link_" + strconv.Itoa(n) + "_loopback"
		if err := r.addLink(w); err != nil {
			return err
		}
	}
	return nil
}

// limiters adds a link for each node, hosts before switches, that all its messages share.
func (r *reader) limiters(c *spec, rate string, nodes int) (err error) {
	if rate == "" {
		return nil
	}
	w := Link{}
	if w.Rate, err = parseRate("limiter_link", rate); err != nil {
		return err
	}
	c.limiter = len(r.p.Links)
	for i := range nodes {
		n := 3*len(c.numbers) - 1 - i // the numbers of switches in names count down
		if i < len(c.numbers) {
			n = i
			if c.named {
				n = c.numbers[i]
			}
		}
		w.Name = c.id + "_link_" + strconv.Itoa(n) + "_limiter"
		if err := r.addLink(w); err != nil {
			return err
		}
	}
	return nil
}

// loop appends the loopback of a host, if it has one.
func (c *spec) loop(list []uint32, host uint32) []uint32 {
	if c.loopback >= 0 {
		list = append(list, uint32(c.loopback)+host)
	}
	return list
}

// limit appends the limiter of a node, if there are limiters.
func (c *spec) limit(list []uint32, node int) []uint32 {
	if c.limiter >= 0 {
		list = append(list, uint32(c.limiter+node))
	}
	return list
}

// cables are the links of one kind: their numbers start at first. With two directions, each is followed by its reverse.
type cables struct {
	first int
	split bool
}

func (r *reader) cables(c *spec) cables { return cables{len(r.p.Links), c.split} }

// up and down return the two directions of a cable.
func (c cables) up(i int) uint32 {
	if c.split {
		i *= 2
	}
	return uint32(c.first + i)
}

func (c cables) down(i int) uint32 {
	if c.split {
		return c.up(i) + 1
	}
	return c.up(i)
}

// addCable adds a link of a cluster whose rate is a multiple of the cluster's.
func (r *reader) addCable(c *spec, times int, format string, args ...any) error {
	w := c.wire
	w.Name, w.Rate = fmt.Sprintf(format, args...), w.Rate*float64(times)
	return r.addPair(w, c.split)
}

// maxCounts is the largest number of dimensions or levels.
const maxCounts = 64

// counts parses positive numbers separated by commas.
func counts(text string) (list []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(part), 10, 31)
		if err != nil || n < 1 || n > maxHosts {
			return nil, fmt.Errorf("topo_parameters: expected numbers of 1 to %d, found %s", maxHosts,
				short(part))
		}
		if list = append(list, int(n)); len(list) > maxCounts {
			return nil, fmt.Errorf("topo_parameters: expected at most %d dimensions or levels, found more", maxCounts)
		}
	}
	return list, nil
}

// errLinks is returned for a product of counts beyond the limits.
var errLinks = fmt.Errorf("topo_parameters: expected at most %d links, found more", maxLinks)

// product returns the product of positive numbers, or an error if it exceeds the largest number of links.
func product(list ...int) (int, error) {
	p := 1
	for _, n := range list {
		if p > maxLinks/n {
			return 0, errLinks
		}
		p *= n
	}
	return p, nil
}

// checkHosts returns an error unless a cluster has the given number of hosts.
func (c *spec) checkHosts(hosts int) error {
	if hosts != len(c.numbers) {
		return fmt.Errorf("expected %d hosts by topo_parameters, found %d in radical", hosts, len(c.numbers))
	}
	return nil
}

// star is a cluster without topology: hosts around a switch without limits, or around a backbone.
type star struct {
	spec
	cables   cables
	backbone int // link; -1: none
}

func (r *reader) star(c *spec, values map[string]string) (cluster, error) {
	s := star{spec: *c, cables: r.cables(c), backbone: -1}
	for _, n := range c.numbers {
		if err := r.addCable(c, 1, "%s_link_%d", c.id, n); err != nil {
			return nil, err
		}
	}
	latency, err := parseTime("bb_lat", values["bb_lat"])
	if err != nil || values["bb_bw"] == "" && latency == 0 {
		return &s, err
	}
	w := Link{Name: c.id + "_backbone", Latency: latency}
	if w.Rate, err = parseRate("bb_bw", values["bb_bw"]); err != nil {
		return nil, err
	}
	switch policy := cmp.Or(values["bb_sharing_policy"], "SHARED"); policy {
	case "SHARED":
	case "FATPIPE":
		w.Fat = true
	default:
		return nil, fmt.Errorf("bb_sharing_policy: expected SHARED or FATPIPE, found %s", short(policy))
	}
	s.backbone = len(r.p.Links)
	return &s, r.addLink(w)
}

func (s *star) hops(list []uint32, from, to uint32) []uint32 {
	router := uint32(len(s.numbers))
	if from == to && from != router && s.loopback >= 0 {
		return s.loop(list, from)
	}
	if from != router {
		list = append(s.limit(list, int(from)), s.cables.up(int(from)))
	}
	if s.backbone >= 0 && (from != router || to != router) {
		list = append(list, uint32(s.backbone))
	}
	// A route has each link once.
	if to != router && (from != to || s.split) {
		list = append(list, s.cables.down(int(to)))
	}
	if to != router && from != to {
		list = s.limit(list, int(to))
	}
	return list
}

// torus is a grid with wrap-around links. Routes finish one dimension after the other, from the first.
type torus struct {
	spec
	dims   []int
	cables cables // by node and dimension: towards the next node
}

func (r *reader) torus(c *spec, text string) (p plan, err error) {
	dims, err := counts(text)
	if err != nil {
		return p, err
	}
	nodes, err := product(dims...)
	if err != nil {
		return p, err
	}
	build := func() (cluster, error) {
		t := torus{*c, dims, r.cables(c)}
		for node := range nodes {
			stride := 1
			for _, d := range dims {
				next := t.neighbor(node, stride, d, 1)
				if err := r.addCable(c, 1, "%s_link_from_%d_to_%d", c.id, node, next); err != nil {
					return nil, err
				}
				stride *= d
			}
		}
		return &t, nil
	}
	return plan{nodes: nodes, cables: nodes * len(dims), make: build}, c.checkHosts(nodes)
}

// neighbor returns the node at a distance in a dimension of d nodes.
func (t *torus) neighbor(node, stride, d, distance int) int {
	at := node / stride % d
	return node + ((at+distance+d)%d-at)*stride
}

func (t *torus) hops(list []uint32, from, to uint32) []uint32 {
	if from == to && t.loopback >= 0 {
		return t.loop(list, from)
	}
	node, stride := int(from), 1
	for dim, d := range t.dims {
		at, target := node/stride%d, int(to)/stride%d
		// The shorter direction; of two equal ones, SimGrid's choice.
		ahead := target > at && target <= at+d/2 || at > d/2 && (at+d/2)%d >= target
		for node/stride%d != target {
			list = t.limit(list, node)
			if ahead {
				list = append(list, t.cables.up(node*len(t.dims)+dim))
				node = t.neighbor(node, stride, d, 1)
			} else {
				node = t.neighbor(node, stride, d, -1)
				list = append(list, t.cables.down(node*len(t.dims)+dim))
			}
		}
		stride *= d
	}
	return t.limit(list, node)
}

// fatTree is an extended generalized fat tree. A node of a level has a digit for each level of the tree: those of lower
// levels number the parents that the route to it went through, the others its position among the children. Index l of
// the lists is about the links between levels l and l+1.
type fatTree struct {
	spec
	children, parents, ports []int
	cables                   []cables // by level, child, parent and port
	nodes                    []int    // by level
	first                    int      // hosts of the fat trees before it, which SimGrid counts in its choice of ports
}

func (r *reader) fatTree(c *spec, text string) (p plan, err error) {
	parts := strings.Split(text, ";")
	var lists [4][]int
	for i, part := range parts {
		if len(parts) != 4 {
			return p, fmt.Errorf("topo_parameters: expected levels;children;parents;ports, such as 2;8,4;1,4;1,1, "+
				"found %s", short(text))
		}
		if lists[i], err = counts(part); err != nil {
			return p, err
		}
		want := 1
		if i > 0 {
			want = lists[0][0]
		}
		if len(lists[i]) != want {
			return p, fmt.Errorf("topo_parameters: expected a list of %d in %s, found %d", want, short(part),
				len(lists[i]))
		}
	}
	t := &fatTree{children: lists[1], parents: lists[2], ports: lists[3]}
	for level := range len(t.children) + 1 {
		nodes, err := product(append(append([]int(nil), t.parents[:level]...), t.children[level:]...)...)
		if err != nil {
			return p, err
		}
		t.nodes = append(t.nodes, nodes)
		p.nodes += nodes
	}
	for level := range t.children {
		links, err := product(t.nodes[level], t.parents[level], t.ports[level])
		if err != nil {
			return p, err
		}
		p.cables += links
	}
	p.make = func() (cluster, error) { return t, r.makeFatTree(c, t) }
	return p, c.checkHosts(t.nodes[0])
}

// makeFatTree makes the links of a fat tree.
func (r *reader) makeFatTree(c *spec, t *fatTree) error {
	t.spec = *c
	t.first, r.treeHosts = r.treeHosts, r.treeHosts+t.nodes[0]
	below := 0
	for level := range t.children {
		t.cables = append(t.cables, r.cables(c))
		each := t.parents[level] * t.ports[level]
		for i := range t.nodes[level] * each {
			child := i / each
			parent := t.other(level, child, level+1, level, i%each/t.ports[level])
			if err := r.addCable(c, 1, "link_from_%d_%d_%d", t.name(below, child),
				t.name(below+t.nodes[level], parent), r.trees); err != nil {
				return err
			}
			r.trees++
		}
		below += t.nodes[level]
	}
	return nil
}

// name returns the number of a node in names: switches count down. below is the number of nodes on lower levels.
func (t *fatTree) name(below, node int) int {
	if hosts := t.nodes[0]; below > 0 {
		return 2*hosts - 1 - (below - hosts + node)
	}
	return node
}

// radix returns the number of values of a digit of the nodes on a level.
func (t *fatTree) radix(level, digit int) int {
	if digit < level {
		return t.parents[digit]
	}
	return t.children[digit]
}

// digit returns a digit of a node.
func (t *fatTree) digit(level, node, which int) int {
	for i := range which {
		node /= t.radix(level, i)
	}
	return node % t.radix(level, which)
}

// other returns the node on another level whose digits are those of a node, but for one that is given.
func (t *fatTree) other(level, node, onto, which, value int) int {
	result, stride := 0, 1
	for i := range t.children {
		v := node % t.radix(level, i)
		node /= t.radix(level, i)
		if i == which {
			v = value
		}
		result += v * stride
		stride *= t.radix(onto, i)
	}
	return result
}

// above reports whether a host is below a node.
func (t *fatTree) above(level, node int, host uint32) bool {
	for i := level; i < len(t.children); i++ {
		if t.digit(level, node, i) != t.digit(0, int(host), i) {
			return false
		}
	}
	return level > 0
}

// below returns the number of nodes on the levels below one.
func (t *fatTree) below(level int) (nodes int) {
	for _, n := range t.nodes[:level] {
		nodes += n
	}
	return nodes
}

// cable returns the cable of a port from a child to its parent with the given digit.
func (t *fatTree) cable(level, child, parent, port int) int {
	return (child*t.parents[level]+parent)*t.ports[level] + port
}

func (t *fatTree) hops(list []uint32, from, to uint32) []uint32 {
	if from == to && t.loopback >= 0 {
		return t.loop(list, from)
	}
	level, node, rest := 0, int(from), t.first+int(to)
	for !t.above(level, node, to) {
		d := rest % (t.parents[level] * t.ports[level])
		rest /= t.parents[level]
		parent, port := d%t.parents[level], d/t.parents[level]
		list = append(t.limit(list, t.below(level)+node), t.cables[level].up(t.cable(level, node, parent, port)))
		node = t.other(level, node, level+1, level, parent)
		level++
	}
	for level > 0 {
		// SimGrid looks for the child from the port of the source on. After a hop, it continues with the next port of
		// the child's, and begins anew only if none is left.
		down := level - 1
		for i := (t.first + int(from)) % t.ports[down] * t.children[down]; down >= 0 &&
			i < t.children[down]*t.ports[down]; i++ {
			own := t.digit(0, int(to), down)
			if i%t.children[down] != own {
				continue
			}
			child := t.other(level, node, down, down, own)
			list = append(list, t.cables[down].down(t.cable(down, child, t.digit(level, node, down),
				i/t.children[down])))
			list = t.limit(list, t.below(level)+node)
			level, node = down, child
			down--
		}
	}
	return t.limit(list, node)
}

// dragonfly is a cluster of groups of chassis of routers. Router b of the first chassis of a group has the link to
// group b.
type dragonfly struct {
	spec
	groups, chassis, blades, perBlade int
	local, green, black, blue         cables
}

func (r *reader) dragonfly(c *spec, text string) (p plan, err error) {
	var numbers []int
	parts := strings.Split(text, ";")
	for i, part := range parts {
		list, err := counts(part)
		if err != nil {
			return p, err
		}
		if len(parts) != 4 || len(list) != []int{2, 2, 2, 1}[i] {
			return p, fmt.Errorf("topo_parameters: expected groups,links;chassis,links;routers,links;nodes, such as "+
				"3,2;2,1;3,2;4, found %s", short(text))
		}
		numbers = append(numbers, list...)
	}
	d := &dragonfly{groups: numbers[0], chassis: numbers[2], blades: numbers[4], perBlade: numbers[6]}
	nodes, err := product(d.groups, d.chassis, d.blades, d.perBlade)
	if err != nil {
		return p, err
	}
	if d.groups > d.blades {
		return p, fmt.Errorf("topo_parameters: expected at least as many routers per chassis as groups (%d), "+
			"found %d", d.groups, d.blades)
	}
	if _, err := product(d.groups, d.chassis, d.blades, max(d.chassis, d.blades)); err != nil {
		return p, err
	}
	pairsOf := func(n int) int { return n * (n - 1) / 2 }
	p.nodes = nodes + nodes/d.perBlade
	p.cables = nodes + d.groups*d.chassis*pairsOf(d.blades) + d.groups*pairsOf(d.chassis)*d.blades + pairsOf(d.groups)
	p.make = func() (cluster, error) {
		return d, r.makeDragonfly(c, d, nodes, [3]int{numbers[5], numbers[3], numbers[1]})
	}
	return p, c.checkHosts(nodes)
}

// makeDragonfly makes the links of a dragonfly: times has the multiples of the rate of links within chassis, within
// groups and between groups.
func (r *reader) makeDragonfly(c *spec, d *dragonfly, nodes int, times [3]int) (err error) {
	d.spec = *c
	add := func(multiple int, format string, args ...any) {
		if err == nil {
			err = r.addCable(c, multiple, format+"_%d", append(args, r.dragonflies)...)
			r.dragonflies++
		}
	}
	d.local = r.cables(c)
	for n := range nodes {
		add(1, "local_link_from_router_%d_to_node_%d", n/d.perBlade, n%d.perBlade)
	}
	d.green = r.cables(c)
	for i := range d.groups * d.chassis {
		pairs(d.blades, func(a, b int) {
			add(times[0], "green_link_in_chassis_%d_between_routers_%d_and_%d", i%d.chassis, a, b)
		})
	}
	d.black = r.cables(c)
	for i := range d.groups {
		pairs(d.chassis, func(a, b int) {
			for blade := range d.blades {
				add(times[1], "black_link_in_group_%d_between_chassis_%d_and_%d_blade_%d", i, a, b, blade)
			}
		})
	}
	d.blue = r.cables(c)
	pairs(d.groups, func(a, b int) {
		add(times[2], "blue_link_between_group_%d_and_%d_routers_%d_and_%d", a, b, d.router(a, 0, b),
			d.router(b, 0, a))
	})
	return err
}

// pairs calls f with all pairs of numbers below n.
func pairs(n int, f func(a, b int)) {
	for a := range n {
		for b := a + 1; b < n; b++ {
			f(a, b)
		}
	}
}

// pair returns the number of a pair in the order of pairs, and whether a is the smaller one.
func pair(n, a, b int) (number int, ascending bool) {
	if a > b {
		number, _ = pair(n, b, a)
		return number, false
	}
	return a*(2*n-a-1)/2 + b - a - 1, true
}

func (d *dragonfly) router(group, chassis, blade int) int {
	return (group*d.chassis+chassis)*d.blades + blade
}

func (d *dragonfly) hops(list []uint32, from, to uint32) []uint32 {
	if from == to && d.loopback >= 0 {
		return d.loop(list, from)
	}
	hosts := len(d.numbers)
	source, target := int(from)/d.perBlade, int(to)/d.perBlade
	group, chassis, blade := source/d.blades/d.chassis, source/d.blades%d.chassis, source%d.blades
	group2, chassis2, blade2 := target/d.blades/d.chassis, target/d.blades%d.chassis, target%d.blades
	towards := func(c cables, number int, ascending bool) uint32 {
		if ascending {
			return c.up(number)
		}
		return c.down(number)
	}
	limit := func() { list = d.limit(list, hosts+d.router(group, chassis, blade)) }
	green := func(onto int) {
		limit()
		number, ascending := pair(d.blades, blade, onto)
		list = append(list, towards(d.green, (group*d.chassis+chassis)*d.blades*(d.blades-1)/2+number, ascending))
		blade = onto
	}
	black := func(onto int) {
		limit()
		number, ascending := pair(d.chassis, chassis, onto)
		list = append(list, towards(d.black, (group*d.chassis*(d.chassis-1)/2+number)*d.blades+blade, ascending))
		chassis = onto
	}
	list = append(d.limit(list, int(from)), d.local.up(int(from)))
	if group != group2 {
		if blade != group2 {
			green(group2)
		}
		if chassis != 0 {
			black(0)
		}
		number, ascending := pair(d.groups, group, group2)
		list = append(list, towards(d.blue, number, ascending))
		limit()
		group, chassis, blade = group2, 0, group
	}
	if source != target {
		if blade != blade2 {
			green(blade2)
			chassis = 0 // SimGrid continues in the first chassis, without a link
		}
		if chassis != chassis2 {
			black(chassis2)
		}
	}
	list = d.limit(list, hosts+target)
	return d.limit(append(list, d.local.down(int(to))), int(to))
}
