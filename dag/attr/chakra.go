package attr

import (
	"encoding/json"
	"strconv"
	"strings"
)

// NodeID is the ID of the Chakra node of an op: the member "id" of the op's attributes. The ID of an op without it is
// one more than that of the previous op.
type NodeID uint64

const idKey = `"id"`

// Append appends the member to b.
func (id NodeID) Append(b []byte) []byte {
	return strconv.AppendUint(append(b, idKey+":"...), uint64(id), 10)
}

// ParseNodeID returns the ID in the attributes of an op; ok is false if there is none.
func ParseNodeID(attrs string) (NodeID, bool) {
	if !strings.Contains(attrs, idKey) {
		return 0, false
	}
	var known struct {
		ID *NodeID `json:"id"`
	}
	if json.Unmarshal([]byte(attrs), &known) != nil || known.ID == nil {
		return 0, false
	}
	return *known.ID, true
}

// ChakraGroups is the part of the member "chakra" of the attributes of a trace that other packages read. The format
// embeds it in its own attributes.
type ChakraGroups struct {
	Undefined []string `json:"undefined_groups,omitempty"` // communicators that ranks use and no file defines
}

// chakraTrace is the attributes of a trace from Chakra files, or of a merged trace with such jobs.
type chakraTrace struct {
	Chakra *ChakraGroups `json:"chakra"`
	Jobs   []chakraTrace `json:"jobs"`
}

// FromChakra reports whether a trace, or every job of a merged trace, comes from Chakra files.
func FromChakra(attrs string) bool {
	t := parseChakra(attrs)
	return t.all()
}

// ParseUndefinedGroups returns the names of the communicators that ranks of a trace use and no file defines, those of
// all jobs.
func ParseUndefinedGroups(attrs string) []string {
	if !strings.Contains(attrs, `"undefined_groups"`) {
		return nil
	}
	t := parseChakra(attrs)
	return t.undefined()
}

func parseChakra(attrs string) (t chakraTrace) {
	if json.Unmarshal([]byte(attrs), &t) != nil {
		return chakraTrace{}
	}
	return t
}

func (t *chakraTrace) all() bool {
	for i := range t.Jobs {
		if !t.Jobs[i].all() {
			return false
		}
	}
	return t.Chakra != nil || len(t.Jobs) > 0
}

func (t *chakraTrace) undefined() []string {
	var all []string
	if t.Chakra != nil {
		all = t.Chakra.Undefined
	}
	for i := range t.Jobs {
		all = append(all, t.Jobs[i].undefined()...)
	}
	return all
}
