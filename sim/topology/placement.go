package topology

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// Placement is a policy that places ranks on the hosts of a network, one rank per host: packed, roundrobin (the same),
// random, random:SEED, strided:N, nodes (the trace's node numbers), or the hosts listed in a file.
type Placement struct {
	text  string // as given by the user
	by    compose.Placement
	file  string   // file with the hosts; "": none
	hosts []uint32 // by rank: host from the file
}

// DefaultPlacement places rank r on host r.
var DefaultPlacement = Placement{text: "packed"}

// NodePlacement places ranks on the hosts with the numbers of their nodes.
var NodePlacement = Placement{text: "nodes", by: compose.Placement{Policy: compose.OwnNodes}}

// OrNodes returns NodePlacement for ranks that share the NICs of their nodes, unless the caller chose the policy, and p
// otherwise.
func (p *Placement) OrNodes(shared, chosen bool) Placement {
	if shared && !chosen {
		return NodePlacement
	}
	return *p
}

// PlacementPolicies are the names of the policies; a stride follows "strided:".
var PlacementPolicies = []string{"packed", "random", "strided:", "nodes"}

// PlacementParam declares the parameter for p. Call Check afterwards to load the file that it names.
func PlacementParam(p *Placement) param.Param {
	v := param.Func("policy", "placement", "rank placement: packed, random, random:SEED, strided:N, "+
		"nodes of the trace, or a file with a host per line", func(text string) (err error) {
		*p = Placement{text: text}
		p.by, err = compose.ParsePlacement(text)
		switch name, _, _ := strings.Cut(text, ":"); {
		case err == nil:
			p.file = p.by.File
		case name == "strided" || name == "random":
			return err
		default:
			p.file = text
		}
		return nil
	})
	return v.Default(p.text).Offer(PlacementPolicies...).OrFile()
}

// Check loads the file of the policy, if any, with the numbers of hosts.
func (p *Placement) Check() error { return p.CheckNames(nil) }

// CheckNames loads the file of the policy, if any, with numbers or names of hosts.
func (p *Placement) CheckNames(names []string) error {
	if p.file == "" {
		return nil
	}
	f, err := os.Open(p.file)
	if errors.Is(err, os.ErrNotExist) {
		return param.Errorf("placement", "expected packed, random, random:SEED, strided:N, nodes or a file, found %q",
			p.text)
	} else if err != nil {
		return err
	}
	defer f.Close()
	p.hosts, err = readHosts(f, p.file, names)
	return err
}

// readHosts reads the number of a host, or one of some names of hosts, per line, by rank.
func readHosts(r io.Reader, name string, names []string) (hosts []uint32, err error) {
	hosts = []uint32{}
	expected, known := "the number of a host", make(map[string]uint64, len(names))
	if names != nil {
		expected = "the name or the number of a host"
	}
	for i, host := range names {
		known[host] = uint64(i)
	}
	err = conf.EachLine(r, name, func(fields []string) error {
		host, is := known[fields[0]]
		if !is {
			var err error
			host, err = strconv.ParseUint(fields[0], 10, 31)
			is = err == nil
		}
		if !is || len(fields) > 1 {
			return &conf.Error{Expected: expected, Found: strings.Join(fields, " ")}
		}
		hosts = append(hosts, uint32(host))
		return nil
	})
	return hosts, err
}

// Place returns the first hosts of the ranks in a network with the given number of hosts. A rank has the given number
// of NICs, each of which is one host. nodes are the node numbers of the trace's ranks; nil places rank r on node r.
func (p *Placement) Place(ranks, hosts, nics int, seed int64, nodes []int32) ([]uint32, error) {
	switch {
	case p.hosts != nil:
		return p.hosts, nil
	case p.by.Policy == compose.OwnNodes:
		return onNodes(ranks, hosts, nics, nodes)
	}
	groups, err := groupsFor(ranks, hosts, nics)
	if err != nil {
		return nil, err
	}
	at := make([]uint32, 0, ranks)
	if p.by.Policy == compose.Random {
		if p.by.Seeded {
			seed = p.by.Seed
		}
		for _, g := range rand.New(rand.NewPCG(uint64(seed), 0x706c6163)).Perm(groups)[:ranks] {
			at = append(at, uint32(g*nics))
		}
		return at, nil
	}
	stride := max(1, p.by.Stride) // after the last host, continue with the first free one
	for first := 0; first < min(stride, groups) && len(at) < ranks; first++ {
		for g := first; g < groups && len(at) < ranks; g += stride {
			at = append(at, uint32(g*nics))
		}
	}
	return at, nil
}

func onNodes(ranks, hosts, nics int, nodes []int32) ([]uint32, error) {
	at := make([]uint32, ranks)
	for r := range at {
		node := r
		if nodes != nil {
			node = int(nodes[r])
		}
		if (node+1)*nics > hosts {
			return nil, fmt.Errorf("rank %d is on node %d, but the network has only %d hosts with %d per node", r, node,
				hosts, nics)
		}
		at[r] = uint32(node * nics)
	}
	return at, nil
}

// groupsFor returns the number of groups of nics hosts, each of which can be a rank.
func groupsFor(ranks, hosts, nics int) (int, error) {
	if nics < 1 {
		return 0, fmt.Errorf("expected at least 1 NIC per rank, found %d", nics)
	}
	if groups := hosts / nics; ranks <= groups {
		return groups, nil
	}
	each := "1 NIC"
	if nics > 1 {
		each = fmt.Sprintf("%d NICs", nics)
	}
	return 0, fmt.Errorf("%d ranks with %s each need %d hosts, but the network has %d; use a larger --topology, "+
		"or share hosts (--placement nodes or FILE)", ranks, each, ranks*nics, hosts)
}

// CheckHosts returns an error if the first hosts of ranks do not match the number of ranks, or the number of hosts of a
// network. Several ranks may share a host.
func CheckHosts(first []uint32, nics, ranks, hosts int) error {
	if len(first) != ranks {
		return fmt.Errorf("the placement has hosts for %d ranks, expected %d as in the trace", len(first), ranks)
	}
	for r, h := range first {
		if int(h)+max(nics, 1) > hosts {
			return fmt.Errorf("rank %d is placed on host %d, expected hosts 0 to %d of the network", r, h, hosts-1)
		}
	}
	return nil
}

// Endpoints returns the source and destination hosts of a send: NIC i of a rank is its first host plus i mod nics.
// first has the first hosts by rank; 0 NICs are one.
func Endpoints(first []uint32, nics int, send *sim.Op) (from, to uint32) {
	nic := uint32(0)
	if nics > 1 {
		nic = uint32(int(send.NIC) % nics)
	}
	return first[send.Rank] + nic, first[send.Peer] + nic
}

// Local is the connection of ranks on one host.
type Local struct {
	Rate    int64 // bit/s; 0: unlimited
	Latency dag.Time
}

// SetRate sets the rate from a text such as 100Gbps or, for 0, unlimited.
func (l *Local) SetRate(text string) error {
	r, err := units.ParseRate(text, "")
	if err == nil && r.Num > 0 {
		bits, _ := r.BitsPerSecond()
		l.Rate = max(1, bits)
	}
	return err
}

// Time returns the time of a message in picoseconds, at most math.MaxInt64.
func (l Local) Time(bytes uint64) uint64 {
	t := uint64(l.Latency)
	if l.Rate > 0 {
		t += uint64(min(math.Ceil(float64(bytes)*8e12/float64(l.Rate)), 1<<62))
	}
	return min(t, math.MaxInt64)
}

// ByRank reports whether the policy defines the hosts of ranks directly, so that several ranks may share a host.
func (p *Placement) ByRank() bool { return p.hosts != nil || p.by.Policy == compose.OwnNodes }

// String returns the policy as the user gave it.
func (p *Placement) String() string { return p.text }
