// This file has the model HOROVOD.

package model

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/horovod"
)

type horovodModel struct {
	params horovod.Params
}

// Horovod returns the model HOROVOD. An extended trace has no jitter and time step; its reader chooses them.
// Horovod returns an error if the size of an allreduce is no multiple of 1024 bytes.
func Horovod(p horovod.Params) (*Model, error) {
	layers := append(slices.Collect(maps.Values(p.Overrides)), p.Layer)
	for _, l := range layers {
		if l.AllreduceBytes%1024 != 0 {
			return nil, fmt.Errorf("expected allreduces of a multiple of 1024 bytes in an extended trace, "+
				"found %d bytes", l.AllreduceBytes)
		}
	}
	return &Model{
		header: Header{Tasks: int64(p.Workers), Clock: cmp.Or(p.Clock, dag.Nanosecond)},
		kind:   kindHorovod,
		model:  &horovodModel{p},
	}, nil
}

// fields are the parameters of a layer in the units of the file.
type fields struct {
	ComputeMS         float64 `json:"COMPUTE_MS"`
	NegotiationLoopMS float64 `json:"NEGOTIATION_LOOP_MS"`
	GatvBytes         int64   `json:"GATV_BYTES"`
	GatvTotalBytes    int64   `json:"GATV_TOTAL_BYTES"`
	GatvProb          float64 `json:"GATV_PROB"`
	BcastBytes        int64   `json:"BCAST_BYTES"`
	AredKBytes        int64   `json:"ARED_KBYTES"`
}

func fieldsOf(l *horovod.Layer) fields {
	return fields{
		float64(l.Compute) / float64(dag.Millisecond), float64(l.NegotiationLoop) / float64(dag.Millisecond),
		l.GathervBytes, l.GathervTotalBytes, l.GathervProbability, l.BcastBytes, l.AllreduceBytes / 1024,
	}
}

func (f *fields) layer() horovod.Layer {
	return horovod.Layer{
		Compute: fromMS(f.ComputeMS), NegotiationLoop: fromMS(f.NegotiationLoopMS), GathervBytes: f.GatvBytes,
		GathervTotalBytes: f.GatvTotalBytes, GathervProbability: f.GatvProb, BcastBytes: f.BcastBytes,
		AllreduceBytes: f.AredKBytes * 1024,
	}
}

// keywords returns the fields; optional makes all of them optional.
func (f *fields) keywords(optional bool) []keyword {
	return []keyword{
		{"COMPUTE_MS", number{&f.ComputeMS, isMS, expectedMS}, optional},
		{"NEGOTIATION_LOOP_MS", number{&f.NegotiationLoopMS, isMS, expectedMS}, optional},
		{"GATV_BYTES", count{&f.GatvBytes, math.MaxInt64}, optional},
		{"GATV_TOTAL_BYTES", count{&f.GatvTotalBytes, math.MaxInt64}, optional},
		{"GATV_PROB", number{&f.GatvProb, probability, "above 0 and at most 1"}, optional},
		{"BCAST_BYTES", count{&f.BcastBytes, math.MaxInt64}, optional},
		{"ARED_KBYTES", count{&f.AredKBytes, math.MaxInt64 / 1024}, optional},
	}
}

const expectedMS = "from 1e-9 (a picosecond) to 1e9"

// isMS reports whether a number of milliseconds is a valid time of 1 ps or more.
func isMS(v float64) bool {
	return fromMS(min(v, 2e9)) >= dag.Picosecond && v <= 1e9
}

func fromMS(v float64) dag.Time {
	return dag.Time(math.Round(v * float64(dag.Millisecond)))
}

func parseHorovod(p *parser) (model, error) {
	if err := p.next("a record of BATCHES and LAYERS"); err != nil {
		return nil, err
	}
	var batches, layers int64
	err := p.keywords(nil,
		keyword{"BATCHES", count{&batches, math.MaxInt32}, false},
		keyword{"LAYERS", count{&layers, math.MaxInt32}, false})
	if err != nil {
		return nil, err
	}
	first := p.place
	m := &horovodModel{horovod.Params{
		Workers: int(p.header.Tasks), Batches: int(batches), Layers: int(layers), Overrides: map[int]horovod.Layer{},
		Jitter: horovod.Default().Jitter, Clock: p.header.Clock, TimeStep: p.options.TimeStep,
	}}
	if jitter := p.options.Jitter; jitter != nil {
		m.params.Jitter = *jitter
	}
	defaults, err := p.defaultLayer()
	if err != nil {
		return nil, err
	}
	m.params.Layer = defaults.layer()
	for len(p.rest) > 0 {
		if err := p.layer(&m.params, defaults); err != nil {
			return nil, err
		}
	}
	p.place = first
	return m, nil
}

// defaultLayer reads the record with the default parameters of the layers.
func (p *parser) defaultLayer() (f fields, err error) {
	if err := p.next("a record of DEFAULT"); err != nil {
		return f, err
	}
	if field, _ := p.word(""); !strings.EqualFold(field, "DEFAULT") {
		return f, p.fail("DEFAULT", quote(field))
	}
	return f, p.keywords(nil, f.keywords(false)...)
}

// layer reads the record of a layer.
func (p *parser) layer(params *horovod.Params, defaults fields) error {
	if err := p.next(""); err != nil {
		return err
	}
	field, _ := p.word("")
	id, err := strconv.ParseUint(field, 10, 31)
	if err != nil || int(id) >= params.Layers {
		return p.fail(fmt.Sprintf("a layer in 0..%d", params.Layers-1), quote(field))
	}
	if _, twice := params.Overrides[int(id)]; twice {
		return p.fail("each layer once", fmt.Sprintf("layer %d twice", id))
	}
	f := defaults
	if err := p.keywords(nil, f.keywords(true)...); err != nil {
		return err
	}
	params.Overrides[int(id)] = f.layer()
	return nil
}

// maxListed is the maximum number of layers that the attributes list; if there are more, they list none.
const maxListed = 1000

func (m *horovodModel) attrs(c common) any {
	type attrs struct {
		common
		Batches    int      `json:"batches"`
		Layers     int      `json:"layers"`
		Params     []fields `json:"layer_params,omitempty"`
		Allreduces int64    `json:"allreduces"`
		Bytes      *big.Int `json:"allreduce_bytes_total"`
		Iterations int64    `json:"expected_negotiation_iterations,omitempty"`
	}
	p := &m.params
	a := attrs{common: c, Batches: p.Batches, Layers: p.Layers, Allreduces: int64(p.Batches) * int64(p.Layers)}
	if p.Layers <= maxListed {
		for i := range p.Layers {
			l, differs := p.Overrides[i]
			if !differs {
				l = p.Layer
			}
			a.Params = append(a.Params, fieldsOf(&l))
		}
	}
	a.Bytes = m.allreduceBytes()
	if m.isCertain() {
		a.Iterations = a.Allreduces
	}
	return a
}

// allreduceBytes returns the sum of all allreduces.
func (m *horovodModel) allreduceBytes() *big.Int {
	p := &m.params
	product := func(n int, bytes int64) *big.Int { return new(big.Int).Mul(big.NewInt(int64(n)), big.NewInt(bytes)) }
	sum := product(p.Layers-len(p.Overrides), p.Layer.AllreduceBytes)
	for _, l := range p.Overrides { // in any order, because the sum is exact
		sum.Add(sum, big.NewInt(l.AllreduceBytes))
	}
	return sum.Mul(sum, big.NewInt(int64(p.Batches)))
}

// isCertain reports whether every negotiation ends after one iteration: all workers announce, and the announced
// size, drawn around its mean, always suffices.
func (m *horovodModel) isCertain() bool {
	certain := func(l *horovod.Layer) bool {
		return l.GathervProbability == 1 && l.GathervTotalBytes <= l.GathervBytes/2
	}
	p := &m.params
	for _, l := range p.Overrides {
		if !certain(&l) {
			return false
		}
	}
	return len(p.Overrides) == p.Layers || certain(&p.Layer)
}

func (m *horovodModel) records() [][]string {
	p := &m.params
	records := [][]string{
		{"BATCHES", strconv.Itoa(p.Batches), "LAYERS", strconv.Itoa(p.Layers)},
		layerRecord("DEFAULT", &p.Layer),
	}
	for _, i := range slices.Sorted(maps.Keys(p.Overrides)) {
		l := p.Overrides[i]
		records = append(records, layerRecord(strconv.Itoa(i), &l))
	}
	return records
}

func layerRecord(name string, l *horovod.Layer) []string {
	f := fieldsOf(l)
	ms := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	whole := func(v int64) string { return strconv.FormatInt(v, 10) }
	return []string{
		name, "COMPUTE_MS", ms(f.ComputeMS), "NEGOTIATION_LOOP_MS", ms(f.NegotiationLoopMS),
		"GATV_BYTES", whole(f.GatvBytes), "GATV_TOTAL_BYTES", whole(f.GatvTotalBytes), "GATV_PROB",
		formatFloat(f.GatvProb), "BCAST_BYTES", whole(f.BcastBytes), "ARED_KBYTES", whole(f.AredKBytes),
	}
}

func (m *horovodModel) source(ctx context.Context, seed int64) (dag.Source, error) {
	p := m.params
	p.Context = ctx
	return horovod.NewSource(p, seed)
}
