package sim

import (
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
)

// Topology describes the network of a run, as given and as built.
type Topology struct {
	Given    string     `json:"given"`              // specification or file name
	Hosts    int        `json:"hosts"`              // NPUs of the analytical backend
	Switches int        `json:"switches,omitempty"` // 0 if the backend does not model switches
	Links    int        `json:"links,omitempty"`    // full-duplex links; 0 if the backend does not model links
	Rates    []LinkRate `json:"rates,omitempty"`    // of links, by descending rate
	Dims     []Dim      `json:"dims,omitempty"`     // of the analytical backend

	Placement string   `json:"placement,omitempty"` // policy that places ranks on hosts
	Failures  []string `json:"failures,omitempty"`  // failing links, as given
}

// Dim is a dimension of a network of NPUs.
type Dim struct {
	Shape    string   `json:"shape"` // such as Ring
	NPUs     int      `json:"npus"`
	BitsPerS int64    `json:"bits_s"` // per link and direction
	Latency  dag.Time `json:"latency_ps"`
}

// LinkRate is the number of links with a rate.
type LinkRate struct {
	BitsPerS int64 `json:"bits_s"` // per direction
	Links    int   `json:"links"`
}

// String returns the topology as a line of the summary.
func (t *Topology) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d hosts", t.Given, t.Hosts)
	if t.Switches > 0 {
		fmt.Fprintf(&b, ", %d switches", t.Switches)
	}
	for i, rate := range t.Rates {
		if i == maxRates {
			fmt.Fprintf(&b, ", and %d more rates", len(t.Rates)-i)
			break
		}
		fmt.Fprintf(&b, ", %d links of %s", rate.Links, units.FormatBitRate(rate.BitsPerS))
	}
	if t.Placement != "" && t.Placement != "packed" {
		fmt.Fprintf(&b, ", placement %s", t.Placement)
	}
	switch n := len(t.Failures); n {
	case 0:
	case 1:
		b.WriteString(", 1 failure")
	default:
		fmt.Fprintf(&b, ", %d failures", n)
	}
	return b.String()
}

// maxRates is the largest number of rates in a line of the summary.
const maxRates = 4
