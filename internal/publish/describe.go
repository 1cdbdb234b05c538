package publish

import (
	"cmp"
	"encoding/json"
	"math/big"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/internal/dataset"
	"github.com/tracedag/tracedag/internal/shell"
)

// described is what a store says of its trace.
type described struct {
	dataset.Row
	generator string // workload model of tracegen, "" for other traces
	made      []dag.Input
	attrs     string        // of the trace
	problems  []dag.Problem // that keep the trace from completing, of the first few
	count     int           // of all problems
}

// describe reads a store and returns its row without name, path and what the metadata of the set state. Title and
// Workload are those of the trace.
func describe(name string) (*described, error) {
	size, digest, err := digestFile(name)
	if err != nil {
		return nil, err
	}
	d := &described{}
	d.Bytes, d.SHA256 = size, digest
	err = withStore(name, func(f *store.File) error {
		h, err := f.Header()
		if err != nil {
			return err
		}
		d.header(h)
		d.StoreVersion = f.Version()
		t, err := dag.ReadAll(f)
		if err != nil {
			return err
		}
		d.problems, d.count = dag.ValidateLimit(t, 1)
		d.statistics(dag.Summarize(t))
		d.Measured = slices.ContainsFunc(t.Ranks, func(r *dag.Rank) bool {
			isSet := func(at dag.Time) bool { return at != dag.Unmeasured }
			return slices.ContainsFunc(r.MeasuredStart, isSet) || slices.ContainsFunc(r.MeasuredEnd, isSet)
		})
		sum, err := store.ContentSHA256(dag.FromTrace(t))
		d.ContentSHA256 = sum
		return err
	})
	return d, err
}

// withStore calls do with an open store.
func withStore(name string, do func(f *store.File) error) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	f, err := store.Open(file, info.Size(), name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := do(f); err != nil {
		return format.InFile(name, err)
	}
	return nil
}

// readHeader returns the header of a store.
func readHeader(name string) (h *dag.Header, err error) {
	err = withStore(name, func(f *store.File) error {
		h, err = f.Header()
		return err
	})
	return h, err
}

// header sets what the header states.
func (d *described) header(h *dag.Header) {
	d.Title, d.attrs = h.Title, h.Attrs
	if len(h.Provenance) == 0 {
		return
	}
	first := &h.Provenance[0]
	d.Program, d.ProgramVersion, d.Seed = first.Program, first.Version, first.Seed
	d.Command, d.made = shell.Join(first.Command...), first.Inputs
	if first.Program == "tracegen" && len(first.Command) > 1 && first.Command[1] == NameOf(first.Command[1]) {
		d.generator = first.Command[1]
	}
}

// statistics sets the statistics.
func (d *described) statistics(s *dag.Stats) {
	d.Ranks, d.Nodes, d.Jobs, d.Communicators = int64(s.Ranks), int64(s.Nodes), int64(s.Jobs), int64(s.Comms)
	d.Ops = s.Ops
	d.Calcs, d.Sends, d.Recvs = s.Kinds[dag.Calc], s.Kinds[dag.Send], s.Kinds[dag.Recv]
	d.Colls, d.Mems, d.IOs = s.Kinds[dag.Coll], s.Kinds[dag.Mem], s.Kinds[dag.IO]
	d.Messages = s.Messages.Count
	d.BytesSent, d.BytesCollective = fits(s.SentBytes.Big()), fits(s.CollectiveBytes.Big())
	d.BytesMem, d.BytesIO = fits(s.MemBytes.Big()), fits(s.IOBytes.Big())
	d.CalcPS, d.Flops = fits(s.CalcTime), fits(s.Flops.Big())
	d.LastReleasePS, d.CriticalPathPS = int64(s.LastRelease), int64(s.CriticalPath.Time)
	d.Dependencies = s.Deps
}

// fits returns a sum, nil if it has more than 63 bits.
func fits(sum *big.Int) *int64 {
	if !sum.IsInt64() {
		return nil
	}
	n := sum.Int64()
	return &n
}

// source returns the name of the format that the trace was first read from: tracegen for generated ones, otherwise the
// format whose attributes the trace has, and otherwise that of the name of the first input.
func (d *described) source(formats format.List) string {
	if d.generator != "" {
		return "tracegen"
	}
	var attrs map[string]json.RawMessage
	if json.Unmarshal([]byte(d.attrs), &attrs) == nil {
		for _, name := range formats.Names() {
			if _, has := attrs[name]; has {
				return name
			}
		}
	}
	for _, in := range d.made {
		if f := formats.ForPath(strings.TrimSuffix(strings.TrimSuffix(in.Name, ".gz"), ".zst")); f != nil {
			return f.Name
		}
	}
	return format.Default
}

// sameTrace reports whether two stores whose ops are equal have the same communicators, nodes, jobs and attributes.
func sameTrace(a, b string) (bool, error) {
	x, errX := readHeader(a)
	y, errY := readHeader(b)
	if err := cmp.Or(errX, errY); err != nil {
		return false, err
	}
	return slices.Equal(x.Nodes, y.Nodes) && slices.Equal(x.Jobs, y.Jobs) && x.Steps == y.Steps && x.Attrs == y.Attrs &&
		reflect.DeepEqual(x.Comms, y.Comms), nil
}
