package attr

import "fmt"

// HTSim is the member "htsim" of the attributes of a trace from a connection matrix of htsim.
type HTSim struct {
	Unit     int          `json:"unit"`               // start times are in units of 10^Unit ps
	Triggers []string     `json:"triggers,omitempty"` // lines of the file
	Failures LinkFailures `json:"failures,omitempty"`
}

// LinkFailures are the lines of a connection matrix that list links that are down from the start.
type LinkFailures []string

const htsimKey = "htsim"

// Encode returns the attributes of a trace with the member.
func (h *HTSim) Encode() string { return Encode(htsimKey, h) }

// ParseHTSim returns the member, and whether the attributes of a trace have it.
func ParseHTSim(attrs string) (h HTSim, ok bool) {
	ok = Decode(attrs, htsimKey, &h)
	return h, ok
}

// LinkFailure is a link between an aggregation switch and a core switch that is down.
type LinkFailure struct {
	Aggregation int // number of the aggregation switch
	Uplink      int // number of its link to the cores
}

// ParseLinkFailure parses a line. It returns an error for the lines of other switches.
func ParseLinkFailure(line string) (LinkFailure, error) {
	var kind string
	var l LinkFailure
	_, err := fmt.Sscanf(line, "failure switch_type %s switch_id %d link_id %d", &kind, &l.Aggregation, &l.Uplink)
	if err != nil || kind != "AGG" {
		return l, fmt.Errorf("a failure: expected \"failure switch_type AGG switch_id N link_id N\", found %q", line)
	}
	return l, nil
}
