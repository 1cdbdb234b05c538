package collective

import (
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// Selected returns the algorithm that the choice selects for an instance, with its parameters other than the
// default ones, as [ParseChoice] reads it. size is the largest number of bytes that one member contributes or receives.
// Elements have 8 bytes, and all members equal blocks. The algorithm for a size of 0 is that for 1 byte.
func (c *Choice) Selected(kind dag.Subkind, size int64, members int) string {
	sel := c.find(kind, traits{size: max(size, 1), members: members})
	var parameters []string
	if sel.parameter.name != "" && sel.k != sel.parameter.standard {
		parameters = append(parameters, fmt.Sprintf("%s=%d", sel.parameter.name, sel.k))
	}
	if sel.segment > 0 {
		parameters = append(parameters, fmt.Sprintf("segment=%d", sel.segment))
	}
	if parameters == nil {
		return sel.name
	}
	return sel.name + "(" + strings.Join(parameters, ",") + ")"
}
