package loggops

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// Params are the parameters of LogGOPS (Hoefler, Schneider, Lumsdaine: LogGOPSim - Simulating Large-Scale Applications
// in the LogGOPS Model, HPDC 2010, section 2). The trace defines P, the number of processors.
type Params struct {
	L        dag.Time // wire latency
	Overhead dag.Time // o: processor time per message, at sender and receiver
	Gap      dag.Time // g: gap between messages of a NIC
	GPerByte *big.Rat // G: gap per byte of a NIC in picoseconds, the inverse of its bandwidth
	OPerByte *big.Rat // O: processor time per byte in picoseconds
	S        int64    // largest eager message in bytes

	// Messages between ranks that share the NICs of their node, strict only.
	LocalLatency *dag.Time // nil: L
	LocalPerByte *big.Rat  // picoseconds per byte; nil: GPerByte

	// Segments replace L, Overhead, GPerByte and OPerByte by values that depend on the size of the message, strict
	// only; nil: none.
	Segments []Segment

	byDistance bool // a network replaces L; see Options
}

// values returns the parameters for results.
func (p Params) values() sim.Values {
	var latency any = int64(p.L)
	if p.byDistance {
		latency = "by distance"
	}
	values := sim.Values{
		{Name: "L_ps", Value: latency},
		{Name: "o_ps", Value: int64(p.Overhead)},
		{Name: "g_ps", Value: int64(p.Gap)},
		{Name: "G_ps_per_byte", Value: decimal(p.GPerByte)},
		{Name: "O_ps_per_byte", Value: decimal(p.OPerByte)},
		{Name: "S_bytes", Value: p.S},
	}
	if p.Segments != nil {
		values = append(values, sim.Value{Name: "segments", Value: segmentValues(p.Segments)})
	}
	if p.LocalLatency != nil {
		values = append(values, sim.Value{Name: "local_latency_ps", Value: int64(*p.LocalLatency)})
	}
	if p.LocalPerByte != nil {
		values = append(values, sim.Value{Name: "local_ps_per_byte", Value: decimal(p.LocalPerByte)})
	}
	return values
}

// String returns the parameters with their units.
func (p Params) String() string {
	nano := big.NewRat(1, int64(dag.Nanosecond))
	latency := p.L.String()
	if p.byDistance {
		latency = "by distance"
	}
	text := fmt.Sprintf("L=%s o=%v g=%v G=%sns/B O=%sns/B S=%dB", latency, p.Overhead, p.Gap,
		decimal(new(big.Rat).Mul(p.GPerByte, nano)), decimal(new(big.Rat).Mul(p.OPerByte, nano)), p.S)
	if p.Segments != nil {
		text = fmt.Sprintf("%d segments of size, g=%v S=%s", len(p.Segments), p.Gap, p.eager())
	}
	if p.LocalLatency != nil {
		text += fmt.Sprintf(" local-latency=%v", *p.LocalLatency)
	}
	if p.LocalPerByte != nil {
		text += fmt.Sprintf(" local-rate=%sns/B", decimal(new(big.Rat).Mul(p.LocalPerByte, nano)))
	}
	return text
}

// eager returns S with its unit.
func (p Params) eager() string {
	if p.S == math.MaxInt64 {
		return "unlimited"
	}
	return fmt.Sprintf("%dB", p.S)
}

// decimal returns r as a decimal number, exact up to nine decimals.
func decimal(r *big.Rat) json.Number {
	text := r.FloatString(9)
	return json.Number(strings.TrimRight(strings.TrimRight(text, "0"), "."))
}

// nsPerByte returns n/d nanoseconds as picoseconds.
func nsPerByte(n, d int64) *big.Rat {
	return big.NewRat(n*int64(dag.Nanosecond), d)
}

// presets are the parameter presets; the first is the default.
var presets = []struct {
	name   string
	about  string
	params Params
}{
	{
		name:  "default",
		about: "defaults of LogGOPSim and ATLAHS: 1.33 Gb/s, eager up to 65535 B",
		params: Params{
			L: 2500 * dag.Nanosecond, Overhead: 1500 * dag.Nanosecond, Gap: 1000 * dag.Nanosecond,
			GPerByte: nsPerByte(6, 1), OPerByte: nsPerByte(0, 1), S: 65535,
		},
	},
	{
		name:  "ai",
		about: "ATLAHS (Shen et al., SC 2025), AI workloads: GPU nodes at 25 GB/s, always rendezvous",
		params: Params{
			L: 3700 * dag.Nanosecond, Overhead: 200 * dag.Nanosecond, Gap: 5 * dag.Nanosecond,
			GPerByte: nsPerByte(4, 100), OPerByte: nsPerByte(0, 1), S: 0,
		},
	},
	{
		name:  "hpc",
		about: "ATLAHS (Shen et al., SC 2025), MPI workloads: a CPU cluster at 5.6 GB/s, eager up to 256 kB",
		params: Params{
			L: 3000 * dag.Nanosecond, Overhead: 6000 * dag.Nanosecond, Gap: 0,
			GPerByte: nsPerByte(18, 100), OPerByte: nsPerByte(0, 1), S: 256000,
		},
	},
}

// Preset returns the named parameter preset.
func Preset(name string) (Params, error) {
	for _, p := range presets {
		if p.name == name {
			return p.params, nil
		}
	}
	return Params{}, fmt.Errorf("unknown preset %q, expected one of %s", name, strings.Join(PresetNames(), ", "))
}

// PresetNames returns the names of the parameter presets.
func PresetNames() []string {
	names := make([]string, 0, len(presets))
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

// Model is one of the three models of the backend.
type Model string

// Models.
const (
	Strict    Model = "strict"    // LogGOPS as defined by its papers
	LogGOPSim Model = "loggopsim" // spcl/LogGOPSim, bit for bit
	ATLAHS    Model = "atlahs"    // the LogGOPSim of spcl/atlahs, bit for bit
)

// Models lists the models, the default first.
var Models = []Model{Strict, LogGOPSim, ATLAHS}

// ParseModel returns the named model.
func ParseModel(name string) (Model, error) {
	if !slices.Contains(Models, Model(name)) {
		return "", fmt.Errorf("unknown model %q, expected strict, loggopsim or atlahs", name)
	}
	return Model(name), nil
}

// Check returns an error if model m does not support the parameters.
func (p Params) Check(m Model) error {
	local := p.LocalLatency != nil || p.LocalPerByte != nil
	if m == Strict {
		if p.L < 0 || p.Overhead < 0 || p.Gap < 0 || p.S < 0 || p.GPerByte.Sign() < 0 || p.OPerByte.Sign() < 0 ||
			p.LocalLatency != nil && *p.LocalLatency < 0 {
			return errors.New("the strict model does not support negative parameters")
		}
		return p.checkSegments()
	}
	if p.Segments != nil {
		return fmt.Errorf("the %s model has no parameters by message size: use a parameter file with --model strict", m)
	}
	if local {
		return fmt.Errorf("the %s model has no ranks on one node: use local-rate and local-latency with "+
			"--model strict", m)
	}
	if _, err := p.nanoseconds(m == ATLAHS); err != nil {
		return fmt.Errorf("the %s model: %w", m, err)
	}
	return nil
}

// nanoseconds are parameters in the representation of the reference simulators: unsigned integers that wrap around.
type nanoseconds struct {
	L, o, g uint64
	G, O    uint64
	GFloat  float64 // atlahs only
	S       uint32
}

// nanoseconds converts p. With fractionalG, G may be a fraction of a nanosecond; all other values must be whole.
func (p Params) nanoseconds(fractionalG bool) (nanoseconds, error) {
	var n nanoseconds
	times := []struct {
		name string
		from dag.Time
		to   *uint64
	}{{"L", p.L, &n.L}, {"o", p.Overhead, &n.o}, {"g", p.Gap, &n.g}}
	for _, t := range times {
		if t.from%dag.Nanosecond != 0 {
			return n, fmt.Errorf("%s is %s, expected whole nanoseconds", t.name, t.from)
		}
		*t.to = uint64(t.from / dag.Nanosecond)
	}
	whole := func(name string, r *big.Rat, to *uint64) error {
		ns := new(big.Rat).Quo(r, new(big.Rat).SetInt64(int64(dag.Nanosecond)))
		if !ns.IsInt() || !ns.Num().IsInt64() {
			return fmt.Errorf("%s is %s ns per byte, expected whole nanoseconds", name, ns.FloatString(6))
		}
		*to = uint64(ns.Num().Int64())
		return nil
	}
	if err := whole("O", p.OPerByte, &n.O); err != nil {
		return n, err
	}
	if fractionalG {
		ns := new(big.Rat).Quo(p.GPerByte, new(big.Rat).SetInt64(int64(dag.Nanosecond)))
		n.GFloat, _ = ns.Float64()
	} else if err := whole("G", p.GPerByte, &n.G); err != nil {
		return n, err
	}
	if p.S < -1<<31 || p.S > 1<<32-1 {
		return n, fmt.Errorf("the largest eager message is %d bytes, expected 0..4294967295", p.S)
	}
	n.S = uint32(p.S)
	return n, nil
}
