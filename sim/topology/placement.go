package topology

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/param"
)

// Placement is a policy that places ranks on the hosts of a network: packed, random, strided:N, nodes of the trace, or
// the hosts of a file.
type Placement struct {
	policy string
	stride int
	hosts  []uint32 // of a file, by rank; nil: there is none
}

// DefaultPlacement places rank r on host r.
var DefaultPlacement = Placement{policy: "packed"}

// PlacementPolicies are the policies by name; "strided:" precedes its stride.
var PlacementPolicies = []string{"packed", "random", "strided:", "nodes"}

// PlacementParam declares the policy. Check loads the file that it names.
func PlacementParam(p *Placement) param.Param {
	v := param.Func("policy", "placement", "rank placement: packed, random, strided:N, nodes of the trace, or a file with a "+
		"host per line", func(text string) error {
		*p = Placement{policy: text}
		name, stride, _ := strings.Cut(text, ":")
		if name != "strided" {
			return nil
		}
		n, err := strconv.Atoi(stride)
		if err != nil || n < 1 {
			return fmt.Errorf("strided: expected a whole number from 1, found %q", stride)
		}
		p.policy, p.stride = name, n
		return nil
	})
	return v.Default(p.policy).Offer(PlacementPolicies...)
}

// Check loads the file that the policy names, if it is no policy of another name.
func (p *Placement) Check() error {
	switch p.policy {
	case "packed", "random", "nodes", "strided":
		return nil
	}
	f, err := os.Open(p.policy)
	if errors.Is(err, os.ErrNotExist) {
		return param.Errorf("placement", "%q is neither packed, random, strided:N nor nodes, nor a file", p.policy)
	} else if err != nil {
		return err
	}
	defer f.Close()
	p.hosts, err = readHosts(f, p.policy)
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
	if p.hosts != nil {
		return p.hosts, nil
	}
	if p.policy == "nodes" {
		return onNodes(ranks, hosts, nics, nodes)
	}
	groups, err := groupsFor(ranks, hosts, nics)
	if err != nil {
		return nil, err
	}
	at := make([]uint32, 0, ranks)
	switch p.policy {
	case "random":
		for _, g := range rand.New(rand.NewPCG(uint64(seed), 0x706c6163)).Perm(groups)[:ranks] {
			at = append(at, uint32(g*nics))
		}
	default: // with the last host reached, go on with the first free one
		stride := max(1, p.stride)
		for first := 0; first < min(stride, groups) && len(at) < ranks; first++ {
			for g := first; g < groups && len(at) < ranks; g += stride {
				at = append(at, uint32(g*nics))
			}
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
			return nil, fmt.Errorf("rank %d is on node %d, but the network has only %d hosts for %d a node", r, node, hosts, nics)
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
	return 0, fmt.Errorf("the trace has %d ranks with %d interfaces each, but the network only %d hosts", ranks, nics, hosts)
}

// ByRank reports whether the policy gives the host of each rank by itself, so that several ranks may share one.
func (p *Placement) ByRank() bool { return p.hosts != nil || p.policy == "nodes" }
