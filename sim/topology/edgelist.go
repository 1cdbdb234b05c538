// This file reads networks as lists of links. docs/reference/topologies.md describes the format.

package topology

import (
	"fmt"
	"io"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// ReadEdges reads a network as a list of links, one per line:
//
//	NODE NODE SPEED LATENCY    as in h0 s0 200Gbps 500ns; without units, Gb/s and ns
//	host NODE
//	switch NODE [LATENCY]
//
// A node without a host or switch line is a host if its name starts with "host" or is h and digits, otherwise a switch.
// Hosts are numbered in the order in which the file first names them. Switches are numbered in the same way, those with
// hosts first. name is the file name for errors.
func ReadEdges(r io.Reader, name string) (*Network, error) {
	e := &edgeReader{lineReader: newLineReader(r, name), byName: map[string]int{}}
	for e.next() {
		if err := e.readLine(); err != nil {
			return nil, err
		}
	}
	if err := e.err(); err != nil {
		return nil, err
	}
	return e.network()
}

// edgeReader is the state of reading a list of links.
type edgeReader struct {
	*lineReader
	nodes  []fileNode
	byName map[string]int
	links  []fileLink
}

type fileNode struct {
	name    string
	line    int // first line that names the node
	kind    nodeKind
	latency dag.Time
	links   int  // number of links of a host
	edge    bool // the switch has hosts
}

type nodeKind uint8

const (
	undeclared nodeKind = iota
	declaredHost
	declaredSwitch
)

type fileLink struct {
	a, b    int // nodes
	line    int
	rate    int64
	latency dag.Time
}

// isHost reports whether the node is a host, by its declaration or by its name.
func (n *fileNode) isHost() bool {
	if n.kind != undeclared {
		return n.kind == declaredHost
	}
	if strings.HasPrefix(n.name, "host") {
		return true
	}
	number, ok := strings.CutPrefix(n.name, "h")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

func (e *edgeReader) readLine() error {
	switch w := e.words; {
	case w[0] == "host" && len(w) == 2:
		return e.declare(w[1], declaredHost, 0)
	case w[0] == "switch" && (len(w) == 2 || len(w) == 3):
		latency := dag.Time(0)
		if len(w) == 3 {
			var err error
			if latency, err = parseTime(w[2]); err != nil {
				return e.wrap(err)
			}
		}
		return e.declare(w[1], declaredSwitch, latency)
	case w[0] == "host" || w[0] == "switch" || len(w) != 4:
		return e.expected("NODE NODE SPEED LATENCY, host NODE or switch NODE [LATENCY]", strings.Join(w, " "))
	}
	return e.readLink()
}

func (e *edgeReader) wrap(err error) error {
	return fmt.Errorf("%s:%d: %w", e.name, e.line, err)
}

func (e *edgeReader) readLink() error {
	w := e.words
	rate, err := parseRate(w[2])
	if err != nil {
		return e.wrap(err)
	}
	latency, err := parseTime(w[3])
	if err != nil {
		return e.wrap(err)
	}
	if w[0] == w[1] {
		return e.expected("two nodes", w[0]+" twice")
	}
	if len(e.links) == maxLinks {
		return e.expected(fmt.Sprintf("at most %d links", maxLinks), "one more")
	}
	a, err := e.node(w[0])
	if err != nil {
		return err
	}
	b, err := e.node(w[1])
	if err != nil {
		return err
	}
	e.links = append(e.links, fileLink{a, b, e.line, rate, latency})
	return nil
}

// node returns the node with the given name. It adds the node if it is new.
func (e *edgeReader) node(name string) (int, error) {
	if at, ok := e.byName[name]; ok {
		return at, nil
	}
	if len(e.nodes) == maxNodes {
		return 0, e.expected(fmt.Sprintf("at most %d nodes", maxNodes), "one more")
	}
	at := len(e.nodes)
	e.byName[name] = at
	e.nodes = append(e.nodes, fileNode{name: name, line: e.line})
	return at, nil
}

func (e *edgeReader) declare(name string, kind nodeKind, latency dag.Time) error {
	at, err := e.node(name)
	if err != nil {
		return err
	}
	if node := &e.nodes[at]; node.kind != undeclared {
		return e.expected("one host or switch line for "+shorten(name), "a second")
	}
	e.nodes[at].kind, e.nodes[at].latency = kind, latency
	return nil
}

// network numbers the nodes and builds the network.
func (e *edgeReader) network() (*Network, error) {
	if err := e.checkHosts(); err != nil {
		return nil, err
	}
	n := &Network{Links: make([]Link, 0, len(e.links))}
	var names []string
	number := make([]uint32, len(e.nodes))
	add := func(at int) {
		number[at] = uint32(len(names))
		names = append(names, e.nodes[at].name)
	}
	for at := range e.nodes {
		if e.nodes[at].isHost() {
			add(at)
			n.Hosts++
		}
	}
	for _, edge := range [...]bool{true, false} {
		for at := range e.nodes {
			if node := &e.nodes[at]; !node.isHost() && node.edge == edge {
				add(at)
				n.SwitchLatency = append(n.SwitchLatency, node.latency)
			}
		}
	}
	n.Switches = len(n.SwitchLatency)
	n.Tier = make([]int8, n.Switches)
	n.Name = func(node uint32) string { return names[node] }
	for _, link := range e.links {
		n.Links = append(n.Links, Link{number[link.a], number[link.b], link.rate, link.latency})
	}
	if err := n.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", e.name, err)
	}
	return n, nil
}

// checkHosts checks that every host has exactly one link, to a switch, and marks the switches with hosts.
func (e *edgeReader) checkHosts() error {
	for _, link := range e.links {
		a, b := &e.nodes[link.a], &e.nodes[link.b]
		switch {
		case a.isHost() && b.isHost():
			return fmt.Errorf("%s:%d: expected at least one switch, found the hosts %s and %s", e.name,
				link.line, shorten(a.name), shorten(b.name))
		case b.isHost():
			a, b = b, a
			fallthrough
		case a.isHost():
			b.edge = true
			if a.links++; a.links > 1 {
				return fmt.Errorf("%s:%d: expected one link per host, found a second link of %s", e.name, link.line,
					shorten(a.name))
			}
		}
	}
	for i := range e.nodes {
		if node := &e.nodes[i]; node.isHost() && node.links == 0 {
			return fmt.Errorf("%s:%d: expected one link per host, found no link of %s", e.name, node.line,
				shorten(node.name))
		}
	}
	return nil
}
