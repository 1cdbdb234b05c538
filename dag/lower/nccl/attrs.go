package nccl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// call is the validated description of an NCCL call, from attr.NCCLCall.
type call struct {
	algorithm algorithm
	protocol  protocol
	chosen    bool  // the trace has no description; choose.go selects algorithm and protocol
	typeSize  int64 // element size in bytes
	slices    int64 // slices of a chunk, for the protocol Simple
	slice     int64 // minimum slice size in elements, for the protocol Simple
	channels  []channel
	inPlace   bool
	grouped   bool  // runs in the kernel of the previous call
	chunk     int64 // of sends and receives: bytes of one message; 0: one message
	slot      int64 // bytes of a step of the buffer
	why       reason
	best      []Prediction // the best two, for the reason byPrediction
}

// reason is the reason for the algorithm and protocol of a call.
type reason uint8

const (
	byTrace reason = iota
	bySize
	byOptions
	byPrediction
)

// reasonNames are the names in reports.
var reasonNames = [...]string{"trace", "size", "options", "least predicted time"}

// channel is the part of a collective on one channel, in elements.
type channel struct {
	ring              int32 // index of the communicator's ring or tree
	work, chunk, last int64
}

// maxChannels is the maximum number of channels of a collective. NCCL has 32.
const maxChannels = 1024

// parseCall parses and validates the attributes of an op of the given kind.
func parseCall(attrs string, kind dag.Kind) (*call, error) {
	a, err := attr.ParseNCCLCall(attrs)
	if err != nil {
		return nil, fmt.Errorf("the attributes of an NCCL call: %w", err)
	}
	if a == nil {
		return &call{chosen: true}, nil
	}
	c := &call{chosen: a.Algorithm == "" && a.Protocol == "", inPlace: a.InPlace, grouped: a.Grouped}
	if c.chosen {
		return c, nil
	}
	var ok bool
	if c.protocol, ok = parseProtocol(a.Protocol); !ok {
		return nil, fmt.Errorf("NCCL protocol %q, expected one of %s", a.Protocol, strings.Join(protocolNames[:], ", "))
	}
	if kind != dag.Coll {
		if c.chunk = a.Chunk; c.chunk < 0 || c.chunk == 1 && c.protocol == ll {
			return nil, fmt.Errorf("messages of %d bytes of an NCCL send or receive", a.Chunk)
		}
		return c, nil
	}
	if c.algorithm, ok = parseAlgorithm(a.Algorithm); !ok {
		return nil, fmt.Errorf("NCCL algorithm %q, expected one of %s", a.Algorithm,
			strings.Join(algorithmNames[:], ", "))
	}
	return c, c.setChannels(a)
}

// setChannels sets the channels of a collective. It returns an error for values out of range.
func (c *call) setChannels(a *attr.NCCLCall) error {
	c.typeSize = a.Type
	if a.Type < 1 || a.Type > 1<<20 {
		return fmt.Errorf("NCCL data type of %d bytes, expected 1..%d", a.Type, 1<<20)
	}
	if len(a.Channels) > maxChannels {
		return fmt.Errorf("NCCL call with %d channels, expected at most %d", len(a.Channels), maxChannels)
	}
	if c.protocol == simple {
		if a.ChunkSteps < 1 || a.SliceSteps < 1 || a.SliceSteps > a.ChunkSteps || a.ChunkSteps > 1<<20 ||
			a.StepSize < 0 || a.StepSize > maxElements {
			return fmt.Errorf("NCCL chunks of %d steps and slices of %d, of %d bytes per step, are out of range",
				a.ChunkSteps,
				a.SliceSteps, a.StepSize)
		}
		c.slices = a.ChunkSteps / a.SliceSteps
		c.slice = a.StepSize * a.SliceSteps / 32
	}
	c.slot = a.StepSize
	c.channels = make([]channel, len(a.Channels))
	messages := int64(0)
	for i, n := range a.Channels {
		if len(n) != 4 {
			return errors.New("expected four numbers for each channel of an NCCL call: ring, work, " +
				"chunk and last chunk")
		}
		ch := channel{int32(n[0]), n[1], n[2], n[3]}
		if n[0] < 0 || n[0] >= maxChannels || ch.work < 0 || ch.work > maxElements/a.Type || ch.chunk < 1 ||
			ch.chunk > maxElements || ch.last < 0 || ch.last > maxElements {
			return fmt.Errorf("an NCCL call of %d elements in chunks of %d, the last of %d, on channel %d", n[1],
				n[2], n[3], n[0])
		}
		if messages += (ch.work/ch.chunk + 1) * max(c.slices, 1); messages > maxMessages {
			return fmt.Errorf("an NCCL call of more than %d messages: %d elements in chunks of %d and %d slices on "+
				"channel %d", maxMessages, n[1], n[2], c.slices, n[0])
		}
		c.channels[i] = ch
	}
	return nil
}

// maxElements is the maximum number of elements of a channel. It keeps sums of products with the number of ranks in
// range.
const maxElements = 1 << 40

// maxMessages is the maximum number of messages of a call per algorithm step. It bounds the time of lowering.
const maxMessages = 1 << 24

// agrees reports whether the descriptions of two members of a collective are equal.
func (c *call) agrees(d *call) bool {
	return c == d || c.chosen == d.chosen && c.algorithm == d.algorithm && c.protocol == d.protocol &&
		c.typeSize == d.typeSize && c.slices == d.slices && c.slice == d.slice && slices.Equal(c.channels, d.channels)
}
