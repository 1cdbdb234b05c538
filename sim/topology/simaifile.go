// This file reads the topology files of SimAI. docs/reference/topologies.md describes the format.

package topology

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// longestLine is the longest accepted line of a SimAI file, in bytes: its second line has the numbers of all switches.
const longestLine = 1 << 26

// isSimAI reports whether the first line of a file is that of a SimAI file: five whole numbers and a type of GPUs.
func isSimAI(words []string) bool {
	return len(words) == 6 && !slices.ContainsFunc(words[:5], func(w string) bool {
		_, err := strconv.ParseUint(w, 10, 32)
		return err != nil
	})
}

// ReadSimAI reads a topology file of SimAI; name is the file name for errors.
//
//	NODES GPUS_PER_SERVER NVSWITCHES SWITCHES LINKS GPU_TYPE
//	numbers of all switches, NVSwitches first
//	NODE NODE RATE LATENCY ERROR_RATE    for each link
//
// The nodes that are no switches are the GPUs. [Network.GPUs] has their ports, those at NVSwitches first.
func ReadSimAI(r io.Reader, name string) (*Network, error) {
	s := &simaiReader{lineReader: newLineReader(r, name)}
	s.scanner.Buffer(make([]byte, 0, 4096), longestLine)
	for number := 0; s.next(); number++ {
		var err error
		switch number {
		case 0:
			err = s.readSizes()
		case 1:
			err = s.readSwitches()
		default:
			err = s.readLink()
		}
		if err != nil {
			return nil, err
		}
	}
	if err := s.err(); err != nil {
		return nil, err
	}
	if s.number == nil {
		return nil, fmt.Errorf("%s:%d: expected a line with the numbers of all switches, found the end of the file",
			name,
			s.line+1)
	}
	if len(s.links) != s.stated {
		return nil, fmt.Errorf("%s:%d: expected %d links as in the first line, found the end of the file after %d",
			name,
			s.line, s.stated, len(s.links))
	}
	n, err := s.network()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// simaiReader is the state of reading a SimAI file.
type simaiReader struct {
	*lineReader
	nodes, perServer, nvSwitches, switches, stated int

	number []int32 // by node: GPU number, or -1 - switch number
	gpus   int
	links  []simaiLink
}

// simaiLink is a link of a file. A GPU is a.
type simaiLink struct {
	a, b    int32 // numbers of [simaiReader.number]
	rate    int64
	latency dag.Time
}

// whole parses a word as a number from least to most; what names it for errors.
func (s *simaiReader) whole(word, what string, least, most int) (int, error) {
	v, err := strconv.Atoi(word)
	if err != nil || v < least || v > most {
		return 0, s.expected(fmt.Sprintf("%s from %d to %d", what, least, most), word)
	}
	return v, nil
}

func (s *simaiReader) readSizes() error {
	if len(s.words) != 6 {
		return s.expected("nodes, GPUs per server, NVSwitches, other switches, links and type of GPUs",
			strings.Join(s.words, " "))
	}
	for i, field := range [...]struct {
		to    *int
		what  string
		least int
		most  int
	}{{&s.nodes, "a number of nodes", 1, maxNodes}, {&s.perServer, "a number of GPUs per server", 1, maxNodes},
		{&s.nvSwitches, "a number of NVSwitches", 0, maxNodes}, {&s.switches, "a number of switches", 0, maxNodes},
		{&s.stated, "a number of links", 1, maxLinks}} {
		var err error
		if *field.to, err = s.whole(s.words[i], field.what, field.least, field.most); err != nil {
			return err
		}
	}
	if s.gpus = s.nodes - s.nvSwitches - s.switches; s.gpus < 1 || s.gpus%s.perServer != 0 {
		return s.expected(fmt.Sprintf("nodes besides the switches that are a multiple of %d GPUs per server",
			s.perServer), strconv.Itoa(s.gpus))
	}
	return nil
}

func (s *simaiReader) readSwitches() error {
	if want := s.nvSwitches + s.switches; len(s.words) != want {
		return s.expected(fmt.Sprintf("the numbers of %d switches", want), strconv.Itoa(len(s.words))+" numbers")
	}
	s.number = make([]int32, s.nodes)
	for i, word := range s.words {
		node, err := s.whole(word, "the number of a switch", 0, s.nodes-1)
		if err != nil {
			return err
		}
		if s.number[node] != 0 {
			return s.expected("each switch once", word+" twice")
		}
		s.number[node] = int32(-1 - i)
	}
	gpu := int32(0)
	for node := range s.number {
		if s.number[node] == 0 {
			s.number[node] = gpu
			gpu++
		}
	}
	return nil
}

func (s *simaiReader) readLink() error {
	w := s.words
	if len(w) != 5 {
		return s.expected("NODE NODE RATE LATENCY ERROR_RATE", strings.Join(w, " "))
	}
	if len(s.links) == s.stated {
		return s.expected(fmt.Sprintf("%d links as in the first line", s.stated), "another")
	}
	var ends [2]int32
	for i := range ends {
		node, err := s.whole(w[i], "the number of a node", 0, s.nodes-1)
		if err != nil {
			return err
		}
		ends[i] = s.number[node]
	}
	if ends[0] < 0 && ends[1] >= 0 {
		ends[0], ends[1] = ends[1], ends[0]
	}
	isNV := func(number int32) bool { return number < 0 && int(-1-number) < s.nvSwitches }
	switch {
	case ends[0] == ends[1]:
		return s.expected("two nodes", w[0]+" twice")
	case ends[1] >= 0:
		return s.expected("a link with a switch", "one between the GPUs "+w[0]+" and "+w[1])
	case ends[0] < 0 && (isNV(ends[0]) || isNV(ends[1])):
		return s.expected("links of NVSwitches to GPUs", "one between the switches "+w[0]+" and "+w[1])
	}
	rate, err := parseRate(w[2])
	if err != nil {
		return s.expected("a rate such as 400Gbps, up to 8Tbps", w[2])
	}
	latency, err := parseTime(w[3])
	if err != nil {
		return s.expected("a latency such as 0.0005ms", w[3])
	}
	if loss, err := strconv.ParseFloat(w[4], 64); err != nil || loss != 0 {
		return s.expected("an error rate of 0, because links do not lose packets", w[4])
	}
	s.links = append(s.links, simaiLink{ends[0], ends[1], rate, latency})
	return nil
}

// network builds the network: the ports of GPUs, then the switches in the order of the file.
func (s *simaiReader) network() (*Network, error) {
	g := &GPUs{PerServer: s.perServer, NVSwitches: s.nvSwitches, First: make([]uint32, s.gpus+1)}
	n := &Network{Switches: s.nvSwitches + s.switches, GPUs: g, Links: make([]Link, 0, len(s.links))}
	n.Tier, n.SwitchLatency = make([]int8, n.Switches), make([]dag.Time, n.Switches)
	for at := s.nvSwitches; at < n.Switches; at++ {
		n.Tier[at] = 1
	}
	nvPorts := make([]uint32, s.gpus)
	for _, l := range s.links {
		if l.a < 0 {
			continue
		}
		g.First[l.a+1]++
		n.Hosts++
		if at := -1 - l.b; int(at) < s.nvSwitches {
			nvPorts[l.a]++
		} else {
			n.Tier[at] = 0
		}
	}
	for gpu := range s.gpus {
		g.First[gpu+1] += g.First[gpu]
	}
	next := [2][]uint32{slices.Clone(g.First), slices.Clone(g.First)} // by kind of port: the next of each GPU
	for gpu, ports := range nvPorts {
		next[1][gpu] += ports
	}
	node := func(number int32) uint32 { return uint32(n.Hosts) + uint32(-1-number) }
	for _, l := range s.links {
		if l.a < 0 {
			n.Links = append(n.Links, Link{node(l.a), node(l.b), l.rate, l.latency})
			continue
		}
		kind := 1
		if int(-1-l.b) < s.nvSwitches {
			kind = 0
		}
		n.Links = append(n.Links, Link{next[kind][l.a], node(l.b), l.rate, l.latency})
		next[kind][l.a]++
	}
	n.nameGPUs()
	g.uniform = n.isUniform()
	return n, n.Validate()
}
