package flit

import (
	"fmt"
	"io"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// keys returns the table of the parameters of routers, NICs and the coupling that --set sets.
func (p *Params) keys() param.Set {
	return param.Set{
		param.Time(&p.Cycle, "cycle", "time in which a link moves a flit").Sweep().Only(),
		count(&p.FlitBytes, "flit-bytes", "bytes of a flit").Only(),
		count(&p.PacketFlits, "packet-flits", "flits of a whole packet").Only(),
		onOff(&p.Pad, "pad-packets", "the last packet of a message is a whole one, too").Only(),
		count(&p.InjectionVCs, "injection-vcs", "virtual channels of ports from hosts").Only(),
		count(&p.LocalVCs, "local-vcs", "those of ports from routers").Only(),
		count(&p.GlobalVCs, "global-vcs", "those of ports from routers of other groups of a dragonfly").Only(),
		count(&p.InjectionBuffer, "injection-buffer", "flits of an input buffer of a port from a host, for each virtual channel").Only(),
		count(&p.LocalBuffer, "local-buffer", "the same, from routers").Only(),
		count(&p.GlobalBuffer, "global-buffer", "the same, from routers of other groups").Only(),
		count(&p.OutputBuffer, "output-buffer", "flits of the buffer of an output port; 0: there is none").Only(),
		count(&p.Pipeline, "pipeline", "cycles from the grant of an output to the head's leaving the router").Only(),
		count(&p.Speedup, "speedup", "flits that the crossbar moves in a cycle").Only(),
		count(&p.Iterations, "iterations", "of the allocator in a cycle").Only(),
		param.Enum(&p.InputArbiter, "input-arbiter", "among the virtual channels of an input: rr or lrs", arbiters...).Only(),
		param.Enum(&p.OutputArbiter, "output-arbiter", "among the inputs that request an output: rr or lrs", arbiters...).Only(),
		onOff(&p.TransitFirst, "transit-first", "packets from routers go before those from hosts").Only(),
		onOff(&p.WholeCredits, "whole-credits", "the credits of a packet go back all at once").Only(),
		count(&p.SourceQueue, "source-queue", "flits of an interface's queue; 0: there is none, nor a link").Only(),
		count(&p.InjectionDelay, "injection-delay", "cycles into the router's buffer without a source queue").Only(),
		count(&p.Threshold, "ugal-threshold", "flits by which UGAL favours the minimal path").Only(),
		onOff(&p.Coupling.Injected, "send-injected", "a send ends when its last packet is in the interface").Only(),
		onOff(&p.Coupling.Paced, "send-paced", "and no sooner than its flits at one a cycle").Only(),
		onOff(&p.Coupling.Head, "receive-head", "a receive ends with the first flit of the last packet").Only(),
		count(&p.Coupling.Local, "local-cycles", "cycles of a message between ranks of one host").Only(),
	}
}

// count declares a number that sweeps vary; Params.Check knows its range, which depends on others.
func count(at *int, name, help string) param.Param {
	return param.Int(at, name, help).Sweep()
}

// onOff declares a switch that prints as on or off.
func onOff(at *bool, name, help string) param.Param {
	return param.Enum((*toggle)(at), name, help, "on", "off").Placeholder("on|off")
}

// toggle is a bool that is written on or off.
type toggle bool

// MarshalText returns on or off.
func (t *toggle) MarshalText() ([]byte, error) {
	if *t {
		return []byte("on"), nil
	}
	return []byte("off"), nil
}

// UnmarshalText sets the switch by on or off.
func (t *toggle) UnmarshalText(text []byte) error {
	if string(text) != "on" && string(text) != "off" {
		return fmt.Errorf("expected on or off, found %q", text)
	}
	*t = string(text) == "on"
	return nil
}

// String returns the parameters in one line for people.
func (p Params) String() string {
	text := fmt.Sprintf("cycle=%v flit=%s packet=%d vcs=%d,%d,%d buffers=%d,%d,%d", p.Cycle, units.FormatSize(int64(p.FlitBytes)),
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

// linkRate returns the rate of every link, in Gb/s.
func (p *Params) linkRate() float64 {
	return float64(p.FlitBytes) * 8 * float64(dag.Nanosecond) / float64(p.Cycle)
}
