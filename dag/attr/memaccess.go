package attr

import (
	"encoding/json"
	"strconv"
	"strings"
)

// MemAccess describes an access to memory beyond the columns of its op: members of the op's attributes.
type MemAccess struct {
	// Gather is the number of ranks whose parts the memory's network gathers on the way of a load, or reduces on the
	// way of a store: 1 for a plain access of the rank's own data, 0 if unknown.
	Gather int64 `json:"gather,omitempty"`
	Local  bool  `json:"local,omitempty"` // the memory is that of the accelerator
}

// Append appends the members, of which at least one is set, to b.
func (a MemAccess) Append(b []byte) []byte {
	if a.Gather != 0 {
		b = strconv.AppendInt(append(b, `"gather":`...), a.Gather, 10)
		if !a.Local {
			return b
		}
		b = append(b, ',')
	}
	return append(b, `"local":true`...)
}

// ParseMemAccess returns the description in the attributes of an op; ok is false if there is none.
func ParseMemAccess(attrs string) (a MemAccess, ok bool) {
	if !strings.Contains(attrs, `"gather"`) && !strings.Contains(attrs, `"local"`) {
		return a, false
	}
	if json.Unmarshal([]byte(attrs), &a) != nil {
		return MemAccess{}, false
	}
	return a, a != MemAccess{}
}
