package attr

import (
	"encoding/json"
	"strings"
)

// flowLists are the members of the attributes of traces from lists of flows, in which messages start at given times:
// htsim's connection matrices, HPCC's flow files and TrafPy's files.
var flowLists = [...]string{htsimKey, "hpcc", "trafpy"}

// IsFlowList reports whether the attributes are those of a trace from a list of flows, or of a merge of such traces.
func IsFlowList(attrs string) bool {
	if jobs, ok := ParseJobs(attrs); ok && len(jobs) > 0 {
		for _, job := range jobs {
			if !IsFlowList(string(job)) {
				return false
			}
		}
		return true
	}
	var member json.RawMessage
	for _, key := range flowLists {
		if Decode(attrs, key, &member) {
			return true
		}
	}
	return false
}

// FlowClass returns the member "class" of the attributes of a send, the class of its message, such as "query". Numbers
// are returned as text. It returns "" if there is none.
func FlowClass(attrs string) string {
	if !strings.Contains(attrs, `"class"`) {
		return ""
	}
	var class string
	if Decode(attrs, "class", &class) {
		return class
	}
	var number json.Number
	Decode(attrs, "class", &number)
	return number.String()
}

// Racks are the first ranks of the racks of consecutive ranks, ascending from 0: the member "racks" of the attributes
// of a trace.
type Racks []int

const racksKey = "racks"

// Encode returns the attributes of a trace with the member, "" without racks.
func (r Racks) Encode() string {
	if len(r) == 0 {
		return ""
	}
	return Encode(racksKey, r)
}

// ParseRacks returns the racks of a trace of the given number of ranks, nil if its attributes have none.
func ParseRacks(attrs string, ranks int) Racks {
	var r Racks
	if !Decode(attrs, racksKey, &r) || !r.Valid(ranks) {
		return nil
	}
	return r
}

// Valid reports whether the racks begin at 0, ascend, and have at least one of the ranks each.
func (r Racks) Valid(ranks int) bool {
	for i, first := range r {
		if i == 0 && first != 0 || i > 0 && first <= r[i-1] || first >= ranks {
			return false
		}
	}
	return len(r) > 0
}
