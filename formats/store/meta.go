package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/internal/parquet"
)

// Keys of the file metadata.
const (
	keyVersion    = "tracedag.version"
	keyRanks      = "tracedag.ranks"
	keyOps        = "tracedag.ops"
	keyComms      = "tracedag.comms"
	keyTitle      = "tracedag.title"
	keyProvenance = "tracedag.provenance"
	keyNodes      = "tracedag.nodes"
	keyJobs       = "tracedag.jobs"
	keySteps      = "tracedag.steps"
	keyAttrs      = "tracedag.attrs"
)

// strided is a dag.Range in the metadata: first, stride, count.
type strided [3]int32

// communicator is a dag.Comm in the metadata.
type communicator struct {
	Name   string    `json:"name,omitempty"`
	Ranges []strided `json:"ranges"`
}

// metadata returns the footer's key-value pairs for a trace of n ranks.
func metadata(t dag.Meta, comms []dag.Comm, n int, ops int64) ([]parquet.KeyValue, error) {
	if n > math.MaxInt32 {
		return nil, fmt.Errorf("expected at most %d ranks, found %d", math.MaxInt32, n)
	}
	if t.Nodes != nil && len(t.Nodes) != n {
		return nil, fmt.Errorf("expected a node for each of %d ranks, found %d nodes", n, len(t.Nodes))
	}
	for i, node := range t.Nodes {
		if node < 0 {
			return nil, fmt.Errorf("rank %d: expected a node of 0 or more, found %d", i, node)
		}
	}
	if int64(n) > maxEmptyRanks+ops {
		return nil, fmt.Errorf("expected at most %d more ranks than ops, found %d ranks and %d ops", maxEmptyRanks, n,
			ops)
	}
	keys := []parquet.KeyValue{
		{Key: keyVersion, Value: Version}, {Key: keyRanks, Value: strconv.Itoa(n)},
		{Key: keyOps, Value: strconv.FormatInt(ops, 10)},
	}
	add := func(key string, value any) error {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		if err := e.Encode(value); err != nil {
			return fmt.Errorf("writing %s: %w", key, err)
		}
		keys = append(keys, parquet.KeyValue{Key: key, Value: strings.TrimSuffix(text.String(), "\n")})
		return nil
	}
	communicators := make([]communicator, len(comms))
	for i := range comms {
		if err := comms[i].Check(n); err != nil {
			return nil, fmt.Errorf("communicator %d: %w", i, err)
		}
		communicators[i] = communicator{Name: comms[i].Name, Ranges: toStrided(comms[i].Ranges)}
	}
	if err := add(keyComms, communicators); err != nil {
		return nil, err
	}
	if t.Title != "" {
		keys = append(keys, parquet.KeyValue{Key: keyTitle, Value: t.Title})
	}
	if t.Provenance != nil {
		if err := add(keyProvenance, t.Provenance); err != nil {
			return nil, err
		}
	}
	if t.Nodes != nil {
		if err := add(keyNodes, toStrided(runs(t.Nodes))); err != nil {
			return nil, err
		}
	}
	if t.Jobs != nil {
		if err := add(keyJobs, t.Jobs); err != nil {
			return nil, err
		}
	}
	if t.Steps > 0 {
		keys = append(keys, parquet.KeyValue{Key: keySteps, Value: strconv.Itoa(int(t.Steps))})
	}
	if t.Attrs != "" {
		keys = append(keys, parquet.KeyValue{Key: keyAttrs, Value: t.Attrs})
	}
	return keys, nil
}

// runs divides values into strided runs.
func runs(values []int32) []dag.Range {
	var out []dag.Range
	for i := 0; i < len(values); {
		r := dag.Range{First: values[i], Count: 1}
		if i+1 < len(values) {
			r.Stride = values[i+1] - values[i]
			for i+int(r.Count) < len(values) && values[i+int(r.Count)]-values[i+int(r.Count)-1] == r.Stride {
				r.Count++
			}
		}
		// Two different numbers may also be the end of this run and the start of the next.
		if r.Count == 2 && r.Stride != 0 {
			r.Stride, r.Count = 0, 1
		}
		out = append(out, r)
		i += int(r.Count)
	}
	return out
}

func toStrided(ranges []dag.Range) []strided {
	out := make([]strided, len(ranges))
	for i, r := range ranges {
		out[i] = strided{r.First, r.Stride, r.Count}
	}
	return out
}

// description is the metadata of a file.
type description struct {
	dag.Meta
	comms []dag.Comm
	ranks int
}

// keyValues returns the metadata by key.
func keyValues(keys []parquet.KeyValue) map[string]string {
	m := make(map[string]string, len(keys))
	for _, k := range keys {
		m[k.Key] = k.Value
	}
	return m
}

// checkVersion returns the minor version of a file, or an error if this program cannot read the version. A file
// without a version comes from another program and is judged by its columns alone.
func checkVersion(version string) (int, error) {
	if version == "" {
		return minorVersion, nil
	}
	major, minor, ok := strings.Cut(version, ".")
	m, err := strconv.Atoi(major)
	n, minorErr := strconv.Atoi(minor)
	if !ok || err != nil || minorErr != nil || m < 1 {
		return 0, fmt.Errorf("%s: expected a version such as %q, found %q", keyVersion, Version, version)
	}
	if m > majorVersion {
		return 0, fmt.Errorf("expected schema version %d.x, found %s; update tracedag", majorVersion, version)
	}
	return n, nil
}

// describe reads the metadata of a file with the given number of ranks. Without metadata, it has one communicator
// of all ranks.
func describe(keys map[string]string, ranks int) (*description, error) {
	d := &description{ranks: ranks}
	d.Title, d.Attrs = keys[keyTitle], keys[keyAttrs]
	var comms []communicator
	var nodes []strided
	for _, k := range []struct {
		key  string
		into any
	}{{keyComms, &comms}, {keyNodes, &nodes}, {keyProvenance, &d.Provenance}, {keyJobs, &d.Jobs}} {
		text, ok := keys[k.key]
		if !ok {
			continue
		}
		if err := json.Unmarshal([]byte(text), k.into); err != nil {
			return nil, fmt.Errorf("%s: %w", k.key, err)
		}
	}
	for i, c := range comms {
		comm := dag.Comm{Name: c.Name}
		for _, r := range c.Ranges {
			comm.Ranges = append(comm.Ranges, dag.Range{First: r[0], Stride: r[1], Count: r[2]})
		}
		if err := comm.Check(ranks); err != nil {
			return nil, fmt.Errorf("%s: communicator %d: %w", keyComms, i, err)
		}
		d.comms = append(d.comms, comm)
	}
	for _, name := range attr.ParseUndefinedGroups(d.Attrs) {
		for i := range d.comms {
			if d.comms[i].Name == name {
				d.comms[i].Undefined = true
			}
		}
	}
	if len(d.comms) == 0 {
		d.comms = []dag.Comm{dag.World(ranks)}
	}
	if text, ok := keys[keySteps]; ok {
		steps, err := strconv.ParseInt(text, 10, 32)
		if err != nil || steps < 0 {
			return nil, fmt.Errorf("%s: expected a number in 0..%d, found %q", keySteps, math.MaxInt32, text)
		}
		d.Steps = int32(steps)
	}
	if _, ok := keys[keyNodes]; ok {
		var err error
		if d.Nodes, err = expandNodes(nodes, ranks); err != nil {
			return nil, fmt.Errorf("%s: %w", keyNodes, err)
		}
	}
	return d, nil
}

// expandNodes returns the node of each rank.
func expandNodes(ranges []strided, ranks int) ([]int32, error) {
	nodes := make([]int32, 0, ranks)
	for _, r := range ranges {
		first, stride, count := int64(r[0]), int64(r[1]), int64(r[2])
		last := first + stride*(count-1)
		if count < 1 || min(first, last) < 0 || max(first, last) > math.MaxInt32 {
			return nil, fmt.Errorf("expected a first node, a stride and a count of nodes in 0..%d, found %d, %d, %d",
				math.MaxInt32, r[0], r[1], r[2])
		}
		if int64(len(nodes))+count > int64(ranks) {
			return nil, fmt.Errorf("expected nodes of %d ranks, found more", ranks)
		}
		for k := range count {
			nodes = append(nodes, int32(first+stride*k))
		}
	}
	if len(nodes) != ranks {
		return nil, fmt.Errorf("expected nodes of %d ranks, found %d", ranks, len(nodes))
	}
	return nodes, nil
}
