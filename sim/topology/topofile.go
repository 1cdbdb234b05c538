// This file reads and writes .topo files, the fat trees of htsim (Broadcom/csg-htsim and its derivatives).
// docs/reference/topologies.md describes the keys.

package topology

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

const gigabit = 1_000_000_000

// topoKeys are the keys of a tier in writing order. Each corresponds to one field.
var topoKeys = []struct {
	key      string
	required bool
	max      int64
	get      func(t *FatTreeTier) int64
	set      func(t *FatTreeTier, value int64)
}{
	{"Downlink_speed_Gbps", true, maxRate / gigabit,
		func(t *FatTreeTier) int64 { return t.Rate / gigabit },
		func(t *FatTreeTier, v int64) { t.Rate = v * gigabit }},
	{"Radix_Down", true, maxPorts,
		func(t *FatTreeTier) int64 { return int64(t.Down) },
		func(t *FatTreeTier, v int64) { t.Down = int(v) }},
	{"Radix_Up", false, maxPorts, // required below the top tier
		func(t *FatTreeTier) int64 { return int64(t.Up) },
		func(t *FatTreeTier, v int64) { t.Up = int(v) }},
	{"Downlink_Latency_ns", true, int64(maxLatency / dag.Nanosecond),
		func(t *FatTreeTier) int64 { return int64(t.Latency / dag.Nanosecond) },
		func(t *FatTreeTier, v int64) { t.Latency = dag.Time(v) * dag.Nanosecond }},
	{"Switch_Latency_ns", false, int64(maxLatency / dag.Nanosecond),
		func(t *FatTreeTier) int64 { return int64(t.SwitchLatency / dag.Nanosecond) },
		func(t *FatTreeTier, v int64) { t.SwitchLatency = dag.Time(v) * dag.Nanosecond }},
	{"Oversubscribed", false, maxPorts,
		func(t *FatTreeTier) int64 { return int64(t.Oversubscription) },
		func(t *FatTreeTier, v int64) { t.Oversubscription = int(v) }},
	{"Bundle", false, maxPorts,
		func(t *FatTreeTier) int64 { return int64(t.Bundle) },
		func(t *FatTreeTier, v int64) { t.Bundle = int(v) }},
	{"Queue_Up", false, 1 << 50,
		func(t *FatTreeTier) int64 { return t.QueueUp },
		func(t *FatTreeTier, v int64) { t.QueueUp = v }},
	{"Queue_Down", false, 1 << 50,
		func(t *FatTreeTier) int64 { return t.QueueDown },
		func(t *FatTreeTier, v int64) { t.QueueDown = v }},
}

// latencyKey reports whether 0 is a valid value of a key; all other keys need at least 1.
func latencyKey(key string) bool { return strings.HasSuffix(key, "_Latency_ns") }

// ReadTopo reads a .topo file; name is the file name for errors. The radixes and bundles must form a valid network.
// Oversubscribed, if present, must be the ratio of a switch's capacities or, as in htsim, of its numbers of ports.
func ReadTopo(r io.Reader, name string) (*Network, error) {
	t := &topoReader{lineReader: newLineReader(r, name), tier: -1, header: map[string]int64{}}
	for t.next() {
		if err := t.readLine(); err != nil {
			return nil, err
		}
	}
	if err := t.err(); err != nil {
		return nil, err
	}
	for _, key := range topoHeader {
		if _, ok := t.header[key.key]; !ok {
			return nil, fmt.Errorf("%s: expected a line %s, found none", name, key.key)
		}
	}
	p := FatTreeParams{Hosts: int(t.header["Nodes"]), PodHosts: int(t.header["Podsize"])}
	tiers := int(t.header["Tiers"])
	for i := range tiers {
		if t.lines[i] == 0 {
			return nil, fmt.Errorf("%s: expected a line Tier %d, found none", name, i)
		}
		for k, key := range topoKeys {
			required := key.required || key.key == "Radix_Up" && i < tiers-1
			if required && !t.seen[i][k] {
				return nil, fmt.Errorf("%s:%d: expected a line %s of tier %d, found none", name, t.lines[i], key.key, i)
			}
		}
	}
	p.Tiers = t.tiers[:tiers]
	n, err := FatTree(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// topoHeader is the keys before the tiers, with their largest values.
var topoHeader = []struct {
	key string
	max int64
}{{"Nodes", maxNodes}, {"Tiers", 3}, {"Podsize", maxNodes}}

// topoReader is the state of reading a .topo file.
type topoReader struct {
	*lineReader
	header map[string]int64
	tier   int // -1 before the first tier
	tiers  [3]FatTreeTier
	lines  [3]int // line at which each tier begins; 0: not read yet
	seen   [3][]bool
}

func (t *topoReader) readLine() error {
	key := t.words[0]
	if len(t.words) != 2 {
		return t.expected("a key and a number", strings.Join(t.words, " "))
	}
	if strings.EqualFold(key, "Tier") {
		return t.startTier()
	}
	if t.tier < 0 {
		for _, h := range topoHeader {
			if strings.EqualFold(key, h.key) {
				if _, ok := t.header[h.key]; ok {
					return t.expected("one line "+h.key, "a second")
				}
				value, err := t.number(1, h.max)
				t.header[h.key] = value
				return err
			}
		}
		return t.expected("Nodes, Tiers, Podsize or Tier", key)
	}
	for k, known := range topoKeys {
		if !strings.EqualFold(key, known.key) {
			continue
		}
		if t.seen[t.tier][k] {
			return t.expected(fmt.Sprintf("one line %s of tier %d", known.key, t.tier), "a second")
		}
		least := int64(1)
		if latencyKey(known.key) {
			least = 0
		}
		value, err := t.number(least, known.max)
		t.seen[t.tier][k] = true
		known.set(&t.tiers[t.tier], value)
		return err
	}
	return t.expected("Tier or a key of a tier such as Radix_Down", key)
}

func (t *topoReader) startTier() error {
	tiers, ok := t.header["Tiers"]
	if !ok {
		return t.expected("Tiers before the first Tier", t.words[0])
	}
	tier, err := t.number(0, tiers-1)
	if err != nil {
		return err
	}
	if t.lines[tier] != 0 {
		return t.expected(fmt.Sprintf("one line Tier %d", tier), "a second")
	}
	t.tier, t.lines[tier] = int(tier), t.line
	t.seen[tier] = make([]bool, len(topoKeys))
	return nil
}

// number parses the second word.
func (t *topoReader) number(least, most int64) (int64, error) {
	value, err := strconv.ParseInt(t.words[1], 10, 64)
	if err != nil || value < least || value > most {
		return 0, t.expected(fmt.Sprintf("%s with a whole number from %d to %d", t.words[0], least, most), t.words[1])
	}
	return value, nil
}

// WriteTopo writes a fat tree as a .topo file. It returns an error for other networks, and unless rates are whole Gb/s
// and latencies whole nanoseconds.
func WriteTopo(w io.Writer, n *Network) error {
	p := n.FatTree
	if p == nil {
		return fmt.Errorf("topo file: expected a fat tree, found another network")
	}
	for i, t := range p.Tiers {
		if t.Rate%gigabit != 0 || t.Latency%dag.Nanosecond != 0 || t.SwitchLatency%dag.Nanosecond != 0 {
			return fmt.Errorf("topo file: tier %d: expected whole Gb/s and nanoseconds, found %d bit/s, %v and %v", i,
				t.Rate, t.Latency, t.SwitchLatency)
		}
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "Nodes %d\nTiers %d\nPodsize %d\n", p.Hosts, len(p.Tiers), p.PodHosts)
	for i := range p.Tiers {
		fmt.Fprintf(b, "\nTier %d\n", i)
		for _, key := range topoKeys {
			if value := key.get(&p.Tiers[i]); value != 0 || latencyKey(key.key) {
				fmt.Fprintf(b, "%s %d\n", key.key, value)
			}
		}
	}
	return b.Flush()
}
