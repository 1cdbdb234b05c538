// Package attr defines the attributes of traces and ops that one package writes and another one reads.
//
// Attributes are the text of a JSON object, or "". Each type of this package is one member of such an object: its
// Append method appends the member, without the braces of the object, and its Parse function reads the member from the
// attributes. Attributes that only the format itself reads are declared in the format's package.
package attr

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Encode returns attributes with one member, the JSON encoding of value. It panics if value has no JSON encoding.
func Encode(name string, value any) string {
	text, err := json.Marshal(map[string]any{name: value})
	if err != nil {
		panic(fmt.Sprintf("unreachable: %T cannot be encoded: %v", value, err))
	}
	return string(text)
}

// with returns attributes with a member, NAME and value in JSON, behind their other members.
func with(attrs, member string) string {
	if attrs == "" {
		return "{" + member + "}"
	}
	return attrs[:len(attrs)-1] + "," + member + "}"
}

// Decode decodes a member of attributes into the value to which to points. It returns false if the attributes are not
// a JSON object, or if the member is absent or of another type.
func Decode(attrs, name string, to any) bool {
	if attrs == "" {
		return false
	}
	if only, ok := strings.CutPrefix(attrs, `{"`+name+`":`); ok { // fast path: usually it is the only member
		if json.Unmarshal([]byte(strings.TrimSuffix(only, "}")), to) == nil {
			return true
		}
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(attrs), &members) != nil || members[name] == nil {
		return false
	}
	return json.Unmarshal(members[name], to) == nil
}

// Jobs are the attributes of each job of a merged trace, in order, null for a job without attributes.
type Jobs []json.RawMessage

// jobs is the member of the attributes of a merged trace.
type jobs struct {
	Jobs Jobs `json:"jobs"`
}

// Append appends the member "jobs" to b.
func (j Jobs) Append(b []byte) ([]byte, error) {
	text, err := json.Marshal(jobs{j})
	if err != nil {
		return b, err
	}
	return append(b, text[1:len(text)-1]...), nil
}

// ParseJobs returns the attributes of each job of a merged trace. It returns false if the attributes have other members
// than "jobs", and thus do not come from a merge.
func ParseJobs(attrs string) (Jobs, bool) {
	var known jobs
	decoder := json.NewDecoder(strings.NewReader(attrs))
	decoder.DisallowUnknownFields()
	return known.Jobs, decoder.Decode(&known) == nil
}
