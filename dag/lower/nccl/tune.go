package nccl

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
)

// Values of the options of the prediction. The first version, and the GPU Hopper, are the defaults.
var (
	versions = []string{"2.20", "2.23", "2.27", "2.30"}
	gpus     = []string{"volta", "ampere", "hopper", "blackwell"}
	intras   = []string{"nvlink", "nvlink-mesh", "pci"}
	cpus     = []string{"intel", "amd"}
)

// Indices in versions.
const (
	v220 = iota
	v223
	v227
	v230
)

// Indices in gpus.
const (
	volta = iota
	ampere
	hopper
	blackwell
)

// machine is the hardware of a GPU generation where the options name no other: reference systems of NVIDIA with one NIC
// per GPU.
type machine struct {
	link     float64 // NVLink of one GPU in one direction, GB/s, as NCCL's topology search counts it
	pci      float64 // PCI Express of one GPU, GB/s
	nic      float64 // GB/s
	channels int     // rings of one node
}

// hardware has the machines by index in gpus. A link counts 20, 20, 20.6 and 40.1 GB/s in NCCL's search.
var hardware = [...]machine{
	volta:     {6 * 20, 12, 12.5, 6},
	ampere:    {12 * 20, 24, 25, 12},
	hopper:    {18 * 20.6, 48, 50, 12},
	blackwell: {18 * 40.1, 48, 50, 16},
}

// scale is the index of a constant by the number of nodes: 1, 2 or more.
func scale(nodes int) int { return min(nodes, 3) - 1 }

// Limits of NCCL's model in GB/s: of one channel by GPU and number of nodes, and llMax of all channels.
var (
	ringLL128Max = [...][3]float64{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}}
	treeLL128Max = [...][3]float64{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.67, 20}}
	treeMax      = [...][3]float64{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}
	llMaxGPU     = [...]float64{39, 87.7, 87.7, 282}              // one node
	llMaxCPU     = [...][3]float64{{39, 39, 20.4}, {0, 22.5, 19}} // several nodes, by index in cpus
)

// nvlsEfficiency is the share of its bandwidth that NVLS reaches by GPU, from version 2.30 on.
var nvlsEfficiency = [...]float64{hopper: .85, blackwell: .74}

// llMaxHopper230 is llMaxGPU of Hopper from version 2.30 on.
const llMaxHopper230 = 141

// Latencies of NCCL's model in us, by protocol.
var (
	baseTree = [protocols]float64{ll: 6.8, ll128: 14, simple: 8.4} // simple: 0 in version 2.20
	baseRing = [protocols]float64{ll: 6.6, ll128: 14, simple: 8.4}

	// By hardware: NVLink, PCI Express, network. A tree by Simple takes 28 on all of them in version 2.20.
	treeStep = [...][protocols]float64{{.6, 1.25, 4}, {1, 1.9, 4}, {5, 8.5, 14}}
	ringStep = [...][protocols]float64{{.6, 1.9, 3.4}, {1, 2.5, 5.7}, {2.7, 4, 14}}
)

// Hardware of a step, indices of treeStep and ringStep.
const (
	overNVLink = iota
	overPCI
	overNetwork
)

// treeFactor is the share of its bandwidth that a tree reaches, by protocol and size: 64 bytes * 2^i.
var treeFactor = [protocols][23]float64{
	ll:     {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
	ll128:  {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
	simple: {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}

// model is NCCL's model of the time of collectives of one communicator.
type model struct {
	version, gpu, cpu int
	pci, switched     bool // the GPUs of a node are connected by PCI Express; by NVLink through switches
	near              bool // NICs are near their GPUs
	ranks, nodes      int
	channels          int
	intra, inter      float64 // bandwidth of a channel inside a node and between nodes, GB/s
}

// tunes reports whether some option of the prediction is given.
func (o *Options) tunes() bool {
	return o.Tune || o.Retune || o.Version != "" || o.GPU != "" || o.Intra != "" || o.CPU != "" || o.NICs > 0 ||
		o.NICRate > 0 || o.LinkRate > 0
}

// checkTuning returns an error that names the key of a wrong option of the prediction.
func (o *Options) checkTuning() error {
	for _, choice := range []struct {
		key, value string
		values     []string
	}{{"version", o.Version, versions}, {"gpu", o.GPU, gpus}, {"intra", o.Intra, intras}, {"cpu", o.CPU, cpus}} {
		if choice.value != "" && !slices.Contains(choice.values, choice.value) {
			return param.Errorf(choice.key, "expected one of %s, found %q", strings.Join(choice.values, ", "),
				choice.value)
		}
	}
	switch {
	case o.Unpredicted && o.tunes():
		return param.Errorf("tune", "no excludes version, gpu, intra, cpu, nics-per-node, nic-rate, link-rate and "+
			"--nccl-version, which the prediction uses")
	case o.GPU == gpus[blackwell] && o.version() < v230:
		return param.Errorf("gpu", "blackwell needs version=2.30: earlier versions have no constants for it")
	case o.NICs < 0 || o.NICs > maxChannels:
		return param.Errorf("nics-per-node", "expected 1..%d, found %d", maxChannels, o.NICs)
	case o.NICRate < 0:
		return param.Errorf("nic-rate", "expected 1 B/s or more, found %d", o.NICRate)
	case o.LinkRate < 0:
		return param.Errorf("link-rate", "expected 1 B/s or more, found %d", o.LinkRate)
	}
	return nil
}

// Retuned sets the version of NCCL that chooses algorithm and protocol of all collectives, also of those with
// description. It returns an error if the other options contradict it.
func (o *Options) Retuned(version string) error {
	if o.Version != "" && o.Version != version {
		return fmt.Errorf("expected %s as in --lower nccl:version=%s, found %s", o.Version, o.Version, version)
	}
	o.Version, o.Retune = version, true
	return o.Check()
}

func (o *Options) version() int { return max(slices.Index(versions, o.Version), v220) }

// newModel returns the model of a communicator by the options. perNode is the number of ranks of the trace on its
// nodes.
// channels is the number of channels, 0 if only the hardware determines it.
func newModel(o *Options, ranks, nodes, perNode, channels int) *model {
	m := &model{version: o.version(), gpu: hopper, cpu: max(slices.Index(cpus, o.CPU), 0), ranks: ranks, nodes: nodes}
	if o.GPU != "" {
		m.gpu = slices.Index(gpus, o.GPU)
	}
	m.pci, m.switched = o.Intra == "pci", o.Intra == "" || o.Intra == "nvlink"
	h := hardware[m.gpu]
	link, nic := h.link, h.nic
	if m.pci {
		link = h.pci
	}
	if o.LinkRate > 0 {
		link = float64(o.LinkRate) / 1e9
	}
	if o.NICRate > 0 {
		nic = float64(o.NICRate) / 1e9
	}
	perNode = max(perNode, 1)
	nics := perNode
	if o.NICs > 0 {
		nics = o.NICs
	}
	m.near = m.gpu >= hopper || 2*nics >= perNode
	total, own := link, h.channels
	if m.pci {
		own = 2
	}
	if nodes > 1 {
		// The communicator uses the NICs near its GPUs.
		local := (ranks + nodes - 1) / nodes
		own = max(1, min(nics, (nics*local+perNode-1)/perNode))
		total = min(link, float64(own)*nic)
	}
	if m.channels = channels; channels == 0 {
		m.channels = own
	}
	m.intra = total / float64(m.channels)
	m.inter = m.intra
	return m
}

// perNode returns the number of ranks per node.
func (m *model) perNode() float64 { return float64(m.ranks) / float64(m.nodes) }

// steps returns the steps of a ring, and how many of them cross nodes.
func (m *model) steps(kind dag.Subkind) (all, crossing float64) {
	n, nodes := float64(m.ranks), float64(m.nodes)
	switch kind {
	case dag.Allreduce:
		all, crossing = 2*(n-1), 2*nodes
	case dag.Allgather, dag.ReduceScatter:
		all, crossing = n-1, nodes-1
	default:
		all, crossing = n, nodes
	}
	if m.nodes == 1 {
		crossing = 0
	}
	return all, crossing
}

// allows reports whether NCCL has an algorithm and protocol for a collective on the machine, and this package a model.
func (m *model) allows(kind dag.Subkind, a algorithm, p protocol) bool {
	if p == ll128 && (m.pci || m.nodes > 1 && !m.near) || a.simpleOnly() && p != simple {
		return false
	}
	all := kind == dag.Allreduce
	parts := kind == dag.Allgather || kind == dag.ReduceScatter
	switch a {
	case ring:
		return true
	case tree:
		return all
	case nvls: // over several nodes it needs CollNet
		return (all || parts) && m.gpu >= hopper && m.switched && m.nodes == 1
	case nvlsTree:
		return all && m.gpu >= hopper && m.switched && m.nodes > 1 && m.ranks%m.nodes == 0
	case pat:
		return parts && m.version >= v223 && m.ranks == m.nodes
	}
	return false
}

// bandwidth returns the algorithm bandwidth in GB/s without the effect of the size.
func (m *model) bandwidth(kind dag.Subkind, a algorithm, p protocol) float64 {
	c, b := float64(m.channels), m.inter
	if m.nodes <= 2 {
		b = m.intra
	}
	steps, _ := m.steps(kind)
	ringRatio := float64(m.ranks) / steps
	switch a {
	case ring:
		bus := c * b
		switch {
		case p == ll && (m.nodes > 1 || kind == dag.Allreduce || kind == dag.Reduce):
			bus = min(m.llMax(), bus/4)
		case p == ll:
			bus = min(m.llMax(), bus/3)
		case p == ll128 && m.version == v220 && m.perNode() < 2:
			bus = min(bus*.7, c*ringLL128Max[m.gpu][scale(m.nodes)])
		case p == ll128:
			bus = min(bus*.92, c*ringLL128Max[m.gpu][scale(m.nodes)])
		}
		return bus * ringRatio
	case tree:
		bus := min(c*b*.92, c*treeMax[m.gpu][scale(m.nodes)])
		switch {
		case p == ll:
			bus = min(bus/3.8, m.llMax())
		case p == ll128 && m.nodes == 1:
			bus = min(bus*7/9, c*treeLL128Max[m.gpu][scale(m.nodes)])
		case p == ll128:
			bus = min(bus*120/128, c*treeLL128Max[m.gpu][scale(m.nodes)])
		}
		return bus / 2
	case nvls, nvlsTree:
		across := m.inter
		if a == nvlsTree && m.nodes > 2 {
			across /= 2
		}
		bus := c * min(m.intra, across)
		if m.version < v230 {
			return bus * 5 / 6
		}
		if a == nvls {
			bus *= nvlsEfficiency[m.gpu]
		}
		return bus * ringRatio
	}
	share := .75 // PAT
	if m.version == v223 {
		share = .85
	}
	return c * b * share / 2
}

// llMax returns the maximum bandwidth by the protocol LL in GB/s.
func (m *model) llMax() float64 {
	switch {
	case m.nodes > 1:
		return llMaxCPU[m.cpu][scale(m.nodes)]
	case m.gpu == hopper && m.version >= v230:
		return llMaxHopper230
	}
	return llMaxGPU[m.gpu]
}

// latency returns the time of a collective of no bytes in us, without the effect of the size.
func (m *model) latency(kind dag.Subkind, a algorithm, p protocol) float64 {
	inside := overNVLink
	if m.pci {
		inside = overPCI
	}
	levels := float64(bits.Len(uint(m.nodes)) - 1)
	switch a {
	case ring:
		step := ringStep[inside][p]
		if m.nodes > 1 { // the CPU posts every step
			post := [...]float64{1, 2}[m.cpu]
			if p == simple {
				post *= 3
			}
			step = max(step, post)
		}
		all, crossing := m.steps(kind)
		return baseRing[p] + (all-crossing)*step + crossing*ringStep[overNetwork][p]
	case tree:
		base, step, across := baseTree[p], treeStep[inside][p], treeStep[overNetwork][p]
		if p == simple && m.version == v220 {
			base, step, across = 0, 28, 28
		}
		return base + 2*(float64(m.ranks/m.nodes-1)*step+levels*across)
	case nvls, nvlsTree:
		us := 25.0
		if m.version == v220 {
			us = 23
		}
		switch {
		case a == nvls && m.nodes > 1:
			us += 18
		case a == nvlsTree && m.version >= v230:
			us += 2 * levels * 20.9
		case a == nvlsTree:
			us += 2 * levels * 14
		}
		return us
	}
	return 8 + levels*treeStep[overNetwork][simple]/3.5 + 2.8*float64(m.ranks) // PAT
}

// time returns the predicted time in us. bytes is the size of the whole vector, for an allgather and a reduce-scatter
// that of all ranks together.
func (m *model) time(kind dag.Subkind, a algorithm, p protocol, bytes int64) float64 {
	bandwidth, latency := m.bandwidth(kind, a, p), m.latency(kind, a, p)
	switch {
	case a == tree:
		if i := max(bits.Len64(uint64(bytes)>>6)-1, 0); i < len(treeFactor[p]) {
			bandwidth *= treeFactor[p][i]
		}
	case a == ring && p == simple && kind == dag.Allreduce && m.nodes > 1 &&
		bytes/(int64(m.channels)*int64(m.ranks)) >= 64:
		latency *= [...]float64{volta: 1.9, ampere: 1.4, hopper: 1.4, blackwell: 1.4}[m.gpu]
	}
	return latency + float64(bytes)/(1000*bandwidth)
}

// Prediction is the predicted time of an algorithm and protocol.
type Prediction struct {
	Algorithm string  `json:"algorithm"`
	Protocol  string  `json:"protocol"`
	US        float64 `json:"us"`

	algorithm algorithm
	protocol  protocol
}

// best returns the two predictions of the least times among those that only permits, the first first; of equal times
// the
// one with the lower numbers.
func (m *model) best(kind dag.Subkind, bytes int64, only func(algorithm, protocol) bool) []Prediction {
	var found []Prediction
	for a := range algorithm(len(algorithmNames)) {
		for p := range protocol(protocols) {
			if m.allows(kind, a, p) && only(a, p) {
				found = append(found, Prediction{algorithmNames[a], protocolNames[p], m.time(kind, a, p, bytes), a, p})
			}
		}
	}
	slices.SortStableFunc(found, func(x, y Prediction) int {
		switch {
		case x.US < y.US:
			return -1
		case x.US > y.US:
			return 1
		}
		return 0
	})
	return found[:min(len(found), 2)]
}
