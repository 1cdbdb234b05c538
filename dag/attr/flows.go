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
