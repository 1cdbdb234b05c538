package attr

import (
	"encoding/json"
	"strconv"
	"strings"
)

// JobEdge is the edge of a job graph that a send transfers: the member "edge" of the send's attributes, a list of these
// numbers. Package jobgraph defines job graphs.
type JobEdge struct {
	Index int32 // of the edge in its job, from 0
	Tail  int32 // number of the op at which the edge begins, from 0
	Head  int32 // number of the op at which it ends
}

const (
	edgeKey      = `"edge"`
	controlClass = "control"
)

// Append appends the member to b, after the class of control messages if control is set.
func (e JobEdge) Append(b []byte, control bool) []byte {
	if control {
		b = append(b, `"class":"`+controlClass+`",`...)
	}
	b = strconv.AppendInt(append(b, edgeKey+":["...), int64(e.Index), 10)
	b = strconv.AppendInt(append(b, ','), int64(e.Tail), 10)
	b = strconv.AppendInt(append(b, ','), int64(e.Head), 10)
	return append(b, ']')
}

// ParseJobEdge returns the edge in the attributes of a send; ok is false if there is none.
func ParseJobEdge(attrs string) (e JobEdge, ok bool) {
	if !strings.Contains(attrs, edgeKey) {
		return JobEdge{}, false
	}
	var known struct {
		Edge []int32 `json:"edge"`
	}
	if json.Unmarshal([]byte(attrs), &known) != nil || len(known.Edge) != 3 {
		return JobEdge{}, false
	}
	return JobEdge{known.Edge[0], known.Edge[1], known.Edge[2]}, true
}

// ControlMessage is the attributes of a message without data that only orders ops of a job graph.
const ControlMessage = `{"class":"` + controlClass + `"}`

// IsControl reports whether the attributes of a send are those of a control message.
func IsControl(attrs string) bool {
	return FlowClass(attrs) == controlClass
}
