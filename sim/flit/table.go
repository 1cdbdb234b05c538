package flit

import (
	"fmt"
	"io"
	"math/big"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// keys returns the table of the keys of --set: parameters of routers, NICs and the coupling.
func (p *Params) keys() param.Set {
	return param.Set{
		param.Time(&p.Cycle, "cycle", "cycle time: transmission time of a flit on a link").Sweep().Only(),
		count(&p.FlitBytes, "flit-bytes", "flit size in bytes").Only(),
		count(&p.PacketFlits, "packet-flits", "flits of a full packet").Only(),
		onOff(&p.Pad, "pad-packets", "pad the last packet of a message to full size").Only(),
		count(&p.InjectionVCs, "injection-vcs", "virtual channels per port from a host").Only(),
		count(&p.LocalVCs, "local-vcs", "virtual channels per port from a router; 0: as many as the routing needs").
			Only(),
		count(&p.GlobalVCs, "global-vcs", "virtual channels per port from a router of another dragonfly group; "+
			"0: as many as the routing needs").Only(),
		count(&p.InjectionBuffer, "injection-buffer", "input buffer per virtual channel of a port from a host, "+
			"in flits").Only(),
		count(&p.LocalBuffer, "local-buffer",
			"input buffer per virtual channel of a port from a router, in flits").Only(),
		count(&p.GlobalBuffer, "global-buffer", "input buffer per virtual channel of a port from a router of another "+
			"group, in flits").Only(),
		count(&p.OutputBuffer, "output-buffer", "output buffer of a port, in flits; 0: none").Only(),
		count(&p.Pipeline, "pipeline", "cycles from the grant of an output until the head leaves the router").Only(),
		count(&p.Speedup, "speedup", "flits per cycle through the crossbar").Only(),
		count(&p.Iterations, "iterations", "iterations of the allocator per cycle").Only(),
		param.Enum(&p.InputArbiter, "input-arbiter",
			"arbiter among the virtual channels of an input: rr (round robin) or "+
				"lrs (least recently served)",
			arbiters...).Only(),
		param.Enum(&p.OutputArbiter, "output-arbiter",
			"arbiter among the inputs of an output: rr (round robin) or "+
				"lrs (least recently served)",
			arbiters...).Only(),
		onOff(&p.TransitFirst, "transit-first", "serve packets from routers before packets from hosts").Only(),
		onOff(&p.WholeCredits, "whole-credits", "return all credits of a packet with its first flit").Only(),
		count(&p.SourceQueue, "source-queue", "NIC queue, in flits; 0: no queue and no link to the router").Only(),
		count(&p.InjectionDelay, "injection-delay", "cycles to the router's buffer without a source queue").Only(),
		param.New((*length)(&p.Threshold), "ugal-threshold", "UGAL's bias to the minimal path in queue length: a "+
			"number of flits, or of full packets as in 3packets").Placeholder("n").Sweep().Only(),
		param.Enum(&p.UGALWeight, "ugal-weight", "weights of the queues that UGAL compares: 2 (the other path counts "+
			"twice), hops (each by the hops that FOGSim attributes to its path) or paths (each by its hops)",
			weights...).Only(),
		count(&p.PiggybackCoefficient, "pb-coefficient", "pb: queue of a congested global link, in percent of the "+
			"mean of its router").Only(),
		param.New((*length)(&p.PiggybackThreshold), "pb-threshold", "pb: flits or packets by which the queue of a "+
			"congested global link is longer").Placeholder("n").Sweep().Only(),
		param.Enum(&p.MisroutePolicy, "misroute-policy", "links off the minimal path for par and olm; auto: mm for "+
			"par, mm-l for olm", policies...).Only(),
		count(&p.MisrouteMinimum, "misroute-minimum", "par and olm: queue of a port that packets avoid, in percent "+
			"of its capacity").Only(),
		count(&p.LocalThreshold, "local-threshold", "par and olm: longest queue of another local port, in percent of "+
			"the avoided one").Only(),
		count(&p.GlobalThreshold, "global-threshold", "par and olm: longest queue of another global port, in percent "+
			"of the avoided one").Only(),
		count(&p.RestrictionCoefficient, "restriction-coefficient", "par and olm: queue of an avoided global port, in "+
			"percent of the mean of its router").Only(),
		param.New((*length)(&p.RestrictionThreshold), "restriction-threshold", "par and olm: flits or packets by "+
			"which the queue of an avoided global port is longer").Placeholder("n").Sweep().Only(),
		onOff(&p.Coupling.Injected, "send-injected", "end a send when its last packet enters the NIC").Only(),
		onOff(&p.Coupling.Paced, "send-paced", "end a send no earlier than one cycle per flit; needs send-injected").
			Only(),
		onOff(&p.Coupling.Head, "receive-head", "end a receive with the first flit of the last packet").Only(),
		count(&p.Coupling.Local, "local-cycles", "latency of a message between ranks of one host, in cycles").Only(),
	}
}

// count declares a number that sweeps can vary. Params.Check checks its range, which depends on other parameters.
func count(at *int, name, help string) param.Param {
	return param.Int(at, name, help).Sweep()
}

// length is a Length as the value of a parameter. Sweeps vary it in flits.
type length Length

func (l *length) Type() string   { return "length" }
func (l *length) String() string { return Length(*l).String() }

func (l *length) Set(text string) error {
	return (*Length)(l).parse(text)
}

func (l *length) Parse(text string) (*big.Rat, error) {
	var v Length
	if err := v.parse(text); err != nil {
		return nil, err
	}
	if v.Packets {
		return nil, fmt.Errorf("expected a number of flits, found %q", text)
	}
	return new(big.Rat).SetInt64(v.N), nil
}

func (l *length) SetNumber(x *big.Rat) error {
	n, err := param.Rounded(x)
	*l = length{N: n}
	return err
}

// onOff declares a switch with the values on and off.
func onOff(at *bool, name, help string) param.Param {
	return param.Enum((*toggle)(at), name, help, "on", "off").Placeholder("on|off")
}

// toggle is a bool with the texts on and off.
type toggle bool

// MarshalText returns on or off.
func (t *toggle) MarshalText() ([]byte, error) {
	if *t {
		return []byte("on"), nil
	}
	return []byte("off"), nil
}

// UnmarshalText parses on or off.
func (t *toggle) UnmarshalText(text []byte) error {
	if string(text) != "on" && string(text) != "off" {
		return fmt.Errorf("expected on or off, found %q", text)
	}
	*t = string(text) == "on"
	return nil
}

// String formats the parameters in one line.
func (p Params) String() string {
	text := fmt.Sprintf("cycle=%v flit=%s packet=%d vcs=%d,%d,%d buffers=%d,%d,%d", p.Cycle,
		units.FormatSize(int64(p.FlitBytes)),
		p.PacketFlits, p.InjectionVCs, p.LocalVCs, p.GlobalVCs, p.InjectionBuffer, p.LocalBuffer, p.GlobalBuffer)
	if p.OutputBuffer > 0 {
		text += fmt.Sprintf(" output-buffer=%d", p.OutputBuffer)
	}
	text += fmt.Sprintf(" pipeline=%d", p.Pipeline)
	if p.Speedup > 1 {
		text += fmt.Sprintf(" speedup=%d", p.Speedup)
	}
	if p.SourceQueue > 0 {
		text += fmt.Sprintf(" source-queue=%d", p.SourceQueue)
	}
	return text
}

// printPresets prints the published networks with their parameters.
func printPresets(w io.Writer) {
	presets := Presets()
	head := []string{"parameter"}
	tables := make([]param.Set, len(presets))
	for i := range presets {
		fmt.Fprintf(w, "%s: %s\n  --topology %s\n\n", presets[i].Name, presets[i].Title, presets[i].Topology)
		head = append(head, presets[i].Name)
		tables[i] = presets[i].Params.keys()
	}
	rows := [][]string{append(head, "meaning")}
	for k, key := range new(Params).keys() {
		row := []string{key.Name}
		for i := range tables {
			row = append(row, tables[i][k].Value.String())
		}
		rows = append(rows, append(row, key.Help))
	}
	sim.PrintColumns(w, rows)
}

// linkRate returns the rate of every link in Gb/s.
func (p *Params) linkRate() float64 {
	return float64(p.FlitBytes) * 8 * float64(dag.Nanosecond) / float64(p.Cycle)
}
