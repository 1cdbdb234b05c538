package attr

import (
	"encoding/json"
	"strconv"
	"strings"
)

// NCCLCall describes the execution of an NCCL collective, send or receive: the member "nccl" of the op's attributes.
// docs/reference/lowering-nccl.md defines the fields.
type NCCLCall struct {
	Algorithm  string    `json:"algo"`        // of a collective, in NCCL's spelling in lower case
	Protocol   string    `json:"proto"`       // ll, ll128 or simple
	Type       int64     `json:"type"`        // element size in bytes
	ChunkSteps int64     `json:"chunk_steps"` // steps of a chunk
	SliceSteps int64     `json:"slice_steps"` // steps of a slice
	StepSize   int64     `json:"step_size"`   // bytes of a step
	Channels   [][]int64 `json:"channels"`    // number, elements, elements per chunk, elements of the last chunk
	InPlace    bool      `json:"in_place"`
	Grouped    bool      `json:"grouped"` // in the same kernel as the previous call
	Chunk      int64     `json:"chunk"`   // of a send or receive: bytes of one message; 0: one message
}

const ncclKey = `"nccl"`

// Append appends the member to b. A call without algorithm is a send or receive; one without protocol has only the
// flags InPlace and Grouped.
func (c *NCCLCall) Append(b []byte) []byte {
	b = append(b, ncclKey+":{"...)
	start := len(b)
	if c.Algorithm != "" {
		b = append(append(append(b, `"algo":"`...), c.Algorithm...), `",`...)
	}
	if c.Protocol != "" {
		b = append(append(append(b, `"proto":"`...), c.Protocol...), `",`...)
	}
	switch {
	case c.Algorithm != "":
		b = strconv.AppendInt(append(b, `"type":`...), c.Type, 10)
		b = strconv.AppendInt(append(b, `,"chunk_steps":`...), c.ChunkSteps, 10)
		b = strconv.AppendInt(append(b, `,"slice_steps":`...), c.SliceSteps, 10)
		b = strconv.AppendInt(append(b, `,"step_size":`...), c.StepSize, 10)
		b = append(appendLists(append(b, `,"channels":`...), c.Channels), ',')
	case c.Protocol != "":
		b = append(strconv.AppendInt(append(b, `"chunk":`...), c.Chunk, 10), ',')
	}
	if c.InPlace {
		b = append(b, `"in_place":true,`...)
	}
	if c.Grouped {
		b = append(b, `"grouped":true,`...)
	}
	if len(b) > start {
		b = b[:len(b)-1]
	}
	return append(b, '}')
}

// WithNCCLFlags returns the attributes of a call, whose only member Append wrote without flags, with flags. The empty
// text, of a call without description, gets the flag grouped only.
func WithNCCLFlags(attrs string, inPlace, grouped bool) string {
	switch {
	case attrs == "" && grouped:
		return string((&NCCLCall{Grouped: true}).Append([]byte{'{'})) + "}"
	case attrs == "" || !inPlace && !grouped:
		return attrs
	}
	b := append([]byte(nil), strings.TrimSuffix(attrs, "}}")...)
	if inPlace {
		b = append(b, `,"in_place":true`...)
	}
	if grouped {
		b = append(b, `,"grouped":true`...)
	}
	return string(append(b, "}}"...))
}

// HasNCCLCall reports whether the attributes of an op may describe an NCCL call. It is a fast test without parsing.
func HasNCCLCall(attrs string) bool { return strings.Contains(attrs, ncclKey) }

// ParseNCCLCall returns the description of a call, nil if the attributes have none. It returns the JSON error of
// malformed attributes.
func ParseNCCLCall(attrs string) (*NCCLCall, error) {
	var known struct {
		NCCL *NCCLCall `json:"nccl"`
	}
	if HasNCCLCall(attrs) {
		if err := json.Unmarshal([]byte(attrs), &known); err != nil {
			return nil, err
		}
	}
	return known.NCCL, nil
}

// NCCLTopology is the connections of one communicator by channel.
type NCCLTopology struct {
	Rings    [][]int32 `json:"rings,omitempty"`    // the ranks of each ring from rank 0 on
	Trees    [][]int32 `json:"trees,omitempty"`    // the parent of each rank in each tree, -1 at the root
	Channels int       `json:"channels,omitempty"` // number of channels if there are neither rings nor trees
}

// NCCLTopologies are the connections of communicators by name: the member "nccl" of the attributes of a trace.
type NCCLTopologies map[string]NCCLTopology

// Append appends the member to b, with the communicators in the order of their names.
func (t NCCLTopologies) Append(b []byte) []byte {
	text, err := json.Marshal(map[string]NCCLTopologies{"comms": t})
	if err != nil {
		panic("unreachable: " + err.Error()) // names and integers always have an encoding
	}
	return append(append(b, ncclKey+":"...), text...)
}

// ncclTrace is the attributes of a trace with NCCL calls, or of a merged trace with such jobs.
type ncclTrace struct {
	NCCL struct {
		Comms NCCLTopologies `json:"comms"`
	} `json:"nccl"`
	Jobs []ncclTrace `json:"jobs"`
}

// ParseNCCLTopologies returns the connections of the communicators of each job, of one job for a trace without jobs. It
// returns the JSON error of malformed attributes.
func ParseNCCLTopologies(attrs string) ([]NCCLTopologies, error) {
	var known ncclTrace
	if strings.Contains(attrs, ncclKey) {
		if err := json.Unmarshal([]byte(attrs), &known); err != nil {
			return nil, err
		}
	}
	traces := known.Jobs
	if traces == nil {
		traces = []ncclTrace{known}
	}
	var topologies []NCCLTopologies
	for i := range traces {
		topologies = append(topologies, traces[i].NCCL.Comms)
	}
	return topologies, nil
}

// EditNCCLTopologies returns the attributes of a trace with edit applied to the connections of every communicator of
// every job. It returns the JSON error of malformed attributes.
func EditNCCLTopologies(attrs string, edit func(NCCLTopology) NCCLTopology) (string, error) {
	if attrs == "" {
		return "", nil
	}
	var known map[string]json.RawMessage
	if err := json.Unmarshal([]byte(attrs), &known); err != nil {
		return "", err
	}
	var traces Jobs
	if json.Unmarshal(known["jobs"], &traces) == nil {
		for i := range traces {
			if string(traces[i]) == "null" {
				continue
			}
			text, err := EditNCCLTopologies(string(traces[i]), edit)
			if err != nil {
				return "", err
			}
			traces[i] = json.RawMessage(text)
		}
		if err := set(known, "jobs", traces); err != nil {
			return "", err
		}
	}
	var nccl map[string]json.RawMessage
	var comms NCCLTopologies
	if json.Unmarshal(known["nccl"], &nccl) == nil && json.Unmarshal(nccl["comms"], &comms) == nil {
		for name, c := range comms {
			comms[name] = edit(c)
		}
		if err := set(nccl, "comms", comms); err != nil {
			return "", err
		}
		if err := set(known, "nccl", nccl); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(known)
	return string(text), err
}

func set(object map[string]json.RawMessage, key string, value any) (err error) {
	object[key], err = json.Marshal(value)
	return err
}

// appendLists appends lists of integers as JSON.
func appendLists(b []byte, lists [][]int64) []byte {
	b = append(b, '[')
	for i, list := range lists {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		for k, v := range list {
			if k > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, v, 10)
		}
		b = append(b, ']')
	}
	return append(b, ']')
}
