package nccl

import (
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
)

// Defaults of NCCL 2.20 for calls without description. NCCL also tunes by measurements of the machine, which this model
// does not.
const (
	steps          = 8
	simpleBuffer   = 4 << 20
	llBuffer       = 512 << 10
	ll128Buffer    = 4915200
	threads        = 512
	llBytes        = 64 << 10 // per rank and channel; below, the protocol is LL
	treeBytes      = 1 << 20  // below, on more than two nodes, the algorithm of an allreduce is tree
	chosenChannels = 2        // channels of a communicator without description

	ll128Threads      = 640
	maxSwitchChannels = 16 // of NVLS and NVLS Tree
)

// checkNames returns an error that names the key of an unknown algorithm or protocol.
func (o *Options) checkNames() error {
	if o.Algorithm != "" && !slices.Contains(modelled[:], o.Algorithm) {
		names, advice := strings.Join(modelled[:], ", "), ""
		if _, known := parseAlgorithm(o.Algorithm); known {
			advice = "; CollNet, the reduction inside the network, is not modelled"
		}
		return param.Errorf("algorithm", "expected one of %s, found %q%s", names, o.Algorithm, advice)
	}
	if _, ok := parseProtocol(o.Protocol); o.Protocol != "" && !ok {
		names := strings.Join(protocolNames[:], ", ")
		return param.Errorf("protocol", "expected one of %s, found %q", names, o.Protocol)
	}
	return nil
}

// Check returns an error that names the key of a wrong option.
func (o *Options) Check() error {
	if err := o.checkNames(); err != nil {
		return err
	}
	if o.Algorithm != "" && o.algorithm().simpleOnly() && o.Protocol != "" && o.Protocol != protocolNames[simple] {
		return param.Errorf("protocol", "%s has the protocol simple only, found %q", o.Algorithm, o.Protocol)
	}
	if o.Algorithm == algorithmNames[pat] && o.Version == versions[v220] {
		return param.Errorf("algorithm", "pat needs version=2.23 or later")
	}
	if o.Channels < 0 || o.Channels > maxChannels {
		return param.Errorf("channels", "expected 1..%d, found %d", maxChannels, o.Channels)
	}
	return o.checkTuning()
}

// modelled are the names of the algorithms with a model.
var modelled = [...]string{
	algorithmNames[tree], algorithmNames[ring], algorithmNames[nvls], algorithmNames[nvlsTree], algorithmNames[pat],
}

func (o *Options) algorithm() algorithm {
	a, _ := parseAlgorithm(o.Algorithm)
	return a
}

// choiceKey is the key of a chosen call.
type choiceKey struct {
	kind  dag.Subkind
	bytes int64
}

// choose returns the call of a collective without description. bytes and received are the op's Bytes and RecvBytes.
func (c *comm) choose(o *Options, kind dag.Subkind, bytes, received int64) *call {
	n := int64(len(c.members))
	switch { // sizes of one rank
	case kind == dag.ReduceScatter && received > 0:
		bytes = received
	case kind == dag.ReduceScatter:
		bytes = (max(bytes, 0) + n - 1) / n
	case kind == dag.Bcast: // only the root states Bytes
		bytes = max(bytes, received)
	}
	bytes = min(max(bytes, 0), maxElements)
	key := choiceKey{kind, bytes}
	if known := c.chosen[key]; known != nil {
		return known
	}
	chosen := &call{chosen: true, algorithm: ring, protocol: simple, typeSize: 4}
	if kind == dag.Allgather || kind == dag.Bcast || bytes%4 != 0 {
		chosen.typeSize = 1
	}
	c.selectFor(o, kind, bytes, chosen)
	c.chosen[key] = chosen
	return chosen
}

// selectFor sets the algorithm, protocol and channels of a call.
func (c *comm) selectFor(o *Options, kind dag.Subkind, bytes int64, chosen *call) {
	n := int64(len(c.members))
	channels := int64(o.Channels)
	if channels == 0 && c.topology.given {
		channels = int64(len(c.topology.rings))
	}
	wanted := o.algorithm()
	if wanted == nvlsTree && c.topology.nodes() == 1 { // as NCCL has it between nodes only
		wanted = nvls
	}
	forced := o.Algorithm != "" && wanted.has(kind)
	if o.tunes() && n > 1 {
		m := newModel(o, int(n), c.topology.nodes(), c.perNode, int(channels))
		whole := bytes
		if kind == dag.Allgather || kind == dag.ReduceScatter {
			whole = min(whole, math.MaxInt64/n) * n
		}
		best := m.best(kind, whole, func(a algorithm, p protocol) bool {
			return (!forced || a == wanted) && (o.Protocol == "" || protocolNames[p] == o.Protocol)
		})
		if len(best) > 0 {
			chosen.algorithm, chosen.protocol = best[0].algorithm, best[0].protocol
			chosen.why, chosen.best = byPrediction, best
			chosen.lay(kind, bytes, m.used(chosen, whole), c.topology)
			return
		}
	}
	if channels == 0 {
		channels = chosenChannels
	}
	chosen.why = bySize
	if kind == dag.Allreduce && bytes < treeBytes && c.topology.nodes() > 2 {
		chosen.algorithm = tree
	}
	if o.Algorithm != "" && (forced || kind == dag.Allreduce) {
		chosen.algorithm, chosen.why = ring, byOptions
		if forced {
			chosen.algorithm = wanted
		}
	}
	if bytes/channels < llBytes {
		chosen.protocol = ll
	}
	if o.Protocol != "" {
		chosen.protocol, _ = parseProtocol(o.Protocol)
		chosen.why = byOptions
	}
	if chosen.algorithm.simpleOnly() {
		chosen.protocol = simple
	}
	if chosen.algorithm.switched() {
		channels = min(channels, maxSwitchChannels)
	}
	chosen.lay(kind, bytes, channels, c.topology)
}

// used returns the number of channels of a call of the given bytes: NCCL gives each at least some bytes per thread.
func (m *model) used(c *call, bytes int64) int64 {
	channels := int64(m.channels)
	if c.algorithm.switched() {
		return min(channels, maxSwitchChannels)
	}
	least := int64(threads * 64)
	switch {
	case c.protocol == ll128:
		least = ll128Threads * 8
	case c.protocol == ll:
		if least = threads * 8; c.algorithm == ring {
			least *= int64(m.ranks)
		}
	}
	return max(min(channels, bytes/least), 1)
}

// lay divides the bytes among channels as NCCL's scheduler does.
func (c *call) lay(kind dag.Subkind, bytes, channels int64, t *topology) {
	chunkSteps, sliceSteps := int64(1), int64(1)
	if c.protocol == simple && c.algorithm == ring && kind != dag.Bcast && kind != dag.Reduce {
		chunkSteps, sliceSteps = 4, 2
	}
	size := c.typeSize
	var chunk, step, align int64
	switch c.protocol {
	case ll:
		step = llBuffer / steps
		chunk, align = step*chunkSteps/2, 8/size*threads
	case ll128:
		step = ll128Buffer / steps
		chunk, align = step*chunkSteps/16*15, 480/size*(threads/32)
	default:
		step = simpleBuffer / steps
		chunk, align = step*chunkSteps, 4096/size
	}
	heads := int64(1)
	switch {
	case c.algorithm.switched():
		heads = int64(len(t.groups[0]))
		chunk = switchChunk(c.algorithm, chunk, bytes, channels*heads, len(t.groups))
	case c.algorithm == tree && c.protocol == ll128 && c.why == byPrediction:
		chunk = treeLL128Chunk(chunk, bytes, channels, len(t.rings[0].order), len(t.groups))
	}
	c.slot = step
	c.slices, c.slice = chunkSteps/sliceSteps, step*sliceSteps/32
	roundUp := func(a, b int64) int64 { return (a + b - 1) / b * b }
	left := bytes / size
	budget := roundUp((bytes+channels-1)/channels, 16)
	for i := int32(0); left > 0; i++ {
		ch := channel{ring: i, chunk: chunk / size, last: chunk / size}
		ch.work = min(roundUp((min(budget, left*size)+size-1)/size, align), left)
		if members := c.parts(kind, heads, t); members > 0 {
			rest := ch.work % (members * ch.chunk)
			ch.last = roundUp((rest+members-1)/members, align)
		}
		left -= ch.work
		c.channels = append(c.channels, ch)
	}
}

// parts returns into how many parts a loop of a call divides its data, 0 if it has whole chunks only.
func (c *call) parts(kind dag.Subkind, heads int64, t *topology) int64 {
	switch {
	case kind != dag.Allreduce || c.algorithm == tree:
		return 0
	case c.algorithm.switched():
		return heads
	}
	return int64(len(t.rings[0].order))
}

// switchChunk returns the bytes of a chunk of NVLS or NVLS Tree, of which there are parts at a time. Small calls have
// smaller chunks.
func switchChunk(a algorithm, chunk, bytes, parts int64, nodes int) int64 {
	limits := [][2]int64{{64, 64 << 10}, {8, 32 << 10}, {2, 16 << 10}}
	most := int64(128 << 10)
	if a == nvlsTree {
		limits = [][2]int64{{32, 256 << 10}, {16, 128 << 10}, {4, 64 << 10}, {1, 32 << 10}}
		if most = chunk; nodes >= 4 {
			most = 64 << 10
		}
	}
	chunk = min(chunk, most)
	for _, l := range limits {
		if bytes < l[0]*parts*chunk {
			chunk = min(chunk, l[1])
		}
	}
	return chunk
}

// treeLL128Chunk returns the bytes of a chunk of a tree by LL128. Small calls have smaller chunks.
func treeLL128Chunk(chunk, bytes, channels int64, ranks, nodes int) int64 {
	perNode := float64(ranks) / float64(nodes)
	hops := float64(bits.Len(uint(nodes))) + 0.1*perNode
	for _, l := range []struct {
		chunks float64
		least  int64
	}{{64, 128 << 10}, {16, 32 << 10}} {
		for chunk > l.least && float64(bytes/(channels*chunk)) < hops*l.chunks/perNode {
			chunk /= 2
		}
	}
	return chunk
}
