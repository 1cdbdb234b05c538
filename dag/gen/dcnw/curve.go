package dcnw

import (
	"io"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/dag/gen/sizes"
)

// Curve is a distribution of message sizes.
type Curve struct {
	Name  string // of the workload or the file
	steps *openloop.Steps
}

// Mean returns the mean size in bytes.
func (c *Curve) Mean() float64 {
	return c.steps.Mean()
}

// workloads are the published distributions: name, alias (Homa's number, if it has one) and table.
var workloads = []struct{ name, alias, table string }{
	{"FB_KEYVALUE", "W1", "w1_facebook_keyvalue"},
	{"GOOGLE_SEARCH", "W2", "w2_google_search"},
	{"GOOGLE_ALL", "W3", "w3_google_all"},
	{"FB_HADOOP", "W4", "w4_facebook_hadoop"},
	{"WEBSEARCH", "W5", "w5_dctcp_websearch"},
	{"FB_CACHE", "FB_CACHE", "facebook_cachefollower_intracluster"},
	{"FB_WEB", "FB_WEB", "facebook_webserver_intracluster"},
}

// Workloads returns the names of the published distributions. dag/gen/sizes/README.md has their sources.
func Workloads() []string {
	names := make([]string, len(workloads))
	for i, w := range workloads {
		names[i] = w.name
	}
	return names
}

// Workload returns the distribution of a name or of Homa's number for it (W1 to W5), in any case.
func Workload(name string) (*Curve, bool) {
	upper := strings.ToUpper(name)
	for _, w := range workloads {
		if slices.Contains([]string{w.name, w.alias}, upper) {
			table, _ := sizes.Named(w.table)
			return newCurve(w.name, table), true
		}
	}
	return nil, false
}

func newCurve(name string, table *sizes.Curve) *Curve {
	return &Curve{Name: name, steps: openloop.NewSteps(table.Distinct())}
}

// ReadCurve reads a distribution, and the mean that the file states for it, 0 if it states none.
// docs/reference/generators/cdcnw.md specifies the format. A line that does not parse is an *openloop.LineError.
func ReadCurve(name string, file io.Reader) (c *Curve, statedMean float64, err error) {
	table, err := sizes.Read(name, file, sizes.CDCNW, sizes.Step)
	if err != nil {
		return nil, 0, err
	}
	return newCurve(name, table), table.StatedMean, nil
}
