package topology

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag/compose"
	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/param"
)

// Placement is a policy that places ranks on the hosts of a network, one rank per host: packed, roundrobin (the same),
// random, random:SEED, strided:N, the nodes of the trace, or the hosts of a file.
type Placement struct {
	text  string // as given
	by    compose.Placement
	file  string   // with the hosts; "": none
	hosts []uint32 // by rank, of the file
}

// DefaultPlacement places rank r on host r.
var DefaultPlacement = Placement{text: "packed"}

// PlacementPolicies are the policies by name; "strided:" precedes its stride.
var PlacementPolicies = []string{"packed", "random", "strided:", "nodes"}

// PlacementParam declares the policy. Check loads the file that it names.
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
	return v.Default(p.text).Offer(PlacementPolicies...)
}

// Check loads the file that the policy names, if it names one.
func (p *Placement) Check() error {
	if p.file == "" {
		return nil
	}
	f, err := os.Open(p.file)
	if errors.Is(err, os.ErrNotExist) {
		return param.Errorf("placement", "%q is neither packed, random, strided:N nor nodes, nor a file", p.text)
	} else if err != nil {
		return err
	}
	defer f.Close()
	p.hosts, err = readHosts(f, p.file)
	return err
}

// readHosts reads the number of a host per line, by rank.
func readHosts(r io.Reader, name string) (hosts []uint32, err error) {
	hosts = []uint32{}
	err = conf.EachLine(r, name, func(fields []string) error {
		host, err := strconv.ParseUint(fields[0], 10, 31)
		if err != nil || len(fields) > 1 {
			return &conf.Error{Expected: "the number of a host", Found: strings.Join(fields, " ")}
		}
		hosts = append(hosts, uint32(host))
		return nil
	})
	return hosts, err
}

// Place returns the first host of each rank of a network. A rank has several NICs, each of which is one host. Nodes are
// those of the trace's ranks; nil places rank r on node r.
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
	stride := max(1, p.by.Stride) // with the last host reached, go on with the first free one
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
			return nil, fmt.Errorf("rank %d is on node %d, but the network has only %d hosts for %d a node", r, node,
				hosts, nics)
		}
		at[r] = uint32(node * nics)
	}
	return at, nil
}

// groupsFor returns the number of groups of hosts that a rank can have.
func groupsFor(ranks, hosts, nics int) (int, error) {
	if nics < 1 {
		return 0, fmt.Errorf("%d NICs per rank, expected 1 or more", nics)
	}
	if groups := hosts / nics; ranks <= groups {
		return groups, nil
	}
	return 0, fmt.Errorf("the trace has %d ranks with %d interfaces each, but the network only %d hosts", ranks,
		nics, hosts)
}

// ByRank reports whether the policy gives the host of each rank by itself, so that several ranks may share one.
func (p *Placement) ByRank() bool { return p.hosts != nil || p.by.Policy == compose.OwnNodes }
