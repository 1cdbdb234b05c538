package nccl

import (
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
)

// check returns an error that names the key of a wrong option.
func (o *Options) check() error {
	if _, ok := parseAlgorithm(o.Algorithm); o.Algorithm != "" && (!ok || o.algorithm() > ring) {
		return param.Errorf("algorithm", "expected tree or ring, found %q", o.Algorithm)
	}
	if _, ok := parseProtocol(o.Protocol); o.Protocol != "" && !ok {
		names := strings.Join(protocolNames[:], ", ")
		return param.Errorf("protocol", "expected one of %s, found %q", names, o.Protocol)
	}
	if o.Channels < 0 || o.Channels > maxChannels {
		return param.Errorf("channels", "expected 1..%d, found %d", maxChannels, o.Channels)
	}
	return nil
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
	switch {
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
	channels := int64(chosenChannels)
	if c.topology.given {
		channels = int64(len(c.topology.rings))
	}
	if o.Channels > 0 {
		channels = int64(o.Channels)
	}
	if kind == dag.Allreduce {
		if bytes < treeBytes && c.topology.nodes > 2 {
			chosen.algorithm = tree
		}
		if o.Algorithm != "" {
			chosen.algorithm = o.algorithm()
		}
	}
	if bytes/channels < llBytes {
		chosen.protocol = ll
	}
	if o.Protocol != "" {
		chosen.protocol, _ = parseProtocol(o.Protocol)
	}
	chosen.lay(kind, bytes, channels, n)
	c.chosen[key] = chosen
	return chosen
}

// lay divides the bytes among channels as NCCL's scheduler does.
func (c *call) lay(kind dag.Subkind, bytes, channels, members int64) {
	chunkSteps, sliceSteps := int64(1), int64(1)
	if c.protocol == simple && c.algorithm == ring && kind != dag.Bcast && kind != dag.Reduce {
		chunkSteps, sliceSteps = 4, 2
	}
	t := c.typeSize
	var chunk, step, align int64
	switch c.protocol {
	case ll:
		step = llBuffer / steps
		chunk, align = step*chunkSteps/2, 8/t*threads
	case ll128:
		step = ll128Buffer / steps
		chunk, align = step*chunkSteps/16*15, 480/t*(threads/32)
	default:
		step = simpleBuffer / steps
		chunk, align = step*chunkSteps, 4096/t
	}
	c.slices, c.slice = chunkSteps/sliceSteps, step*sliceSteps/32
	roundUp := func(a, b int64) int64 { return (a + b - 1) / b * b }
	left := bytes / t
	budget := roundUp((bytes+channels-1)/channels, 16)
	for i := int32(0); left > 0; i++ {
		ch := channel{ring: i, chunk: chunk / t, last: chunk / t}
		ch.work = min(roundUp((min(budget, left*t)+t-1)/t, align), left)
		if kind == dag.Allreduce && c.algorithm == ring {
			rest := ch.work % (members * ch.chunk)
			ch.last = roundUp((rest+members-1)/members, align)
		}
		left -= ch.work
		c.channels = append(c.channels, ch)
	}
}
