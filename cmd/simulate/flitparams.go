// This file has the parameters of the flit backend by the names that --set and --sweep take.

package main

import (
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim/flit"
)

// flitParameter is a parameter of routers, interfaces or the coupling.
type flitParameter struct {
	name string
	doc  string
	at   func(p *flit.Params) any // a *dag.Time, *int, *bool or *flit.Arbiter
}

var flitParameters = []flitParameter{
	{"cycle", "time in which a link moves a flit", func(p *flit.Params) any { return &p.Cycle }},
	{"flit-bytes", "bytes of a flit", func(p *flit.Params) any { return &p.FlitBytes }},
	{"packet-flits", "flits of a whole packet", func(p *flit.Params) any { return &p.PacketFlits }},
	{"pad-packets", "the last packet of a message is a whole one, too", func(p *flit.Params) any { return &p.Pad }},
	{"injection-vcs", "virtual channels of ports from hosts", func(p *flit.Params) any { return &p.InjectionVCs }},
	{"local-vcs", "those of ports from routers", func(p *flit.Params) any { return &p.LocalVCs }},
	{"global-vcs", "those of ports from routers of other groups of a dragonfly", func(p *flit.Params) any { return &p.GlobalVCs }},
	{"injection-buffer", "flits of an input buffer of a port from a host, for each virtual channel",
		func(p *flit.Params) any { return &p.InjectionBuffer }},
	{"local-buffer", "the same, from routers", func(p *flit.Params) any { return &p.LocalBuffer }},
	{"global-buffer", "the same, from routers of other groups", func(p *flit.Params) any { return &p.GlobalBuffer }},
	{"output-buffer", "flits of the buffer of an output port; 0: there is none", func(p *flit.Params) any { return &p.OutputBuffer }},
	{"pipeline", "cycles from the grant of an output to the head's leaving the router", func(p *flit.Params) any { return &p.Pipeline }},
	{"speedup", "flits that the crossbar moves in a cycle", func(p *flit.Params) any { return &p.Speedup }},
	{"iterations", "of the allocator in a cycle", func(p *flit.Params) any { return &p.Iterations }},
	{"input-arbiter", "among the virtual channels of an input: rr or lrs", func(p *flit.Params) any { return &p.InputArbiter }},
	{"output-arbiter", "among the inputs that request an output: rr or lrs", func(p *flit.Params) any { return &p.OutputArbiter }},
	{"transit-first", "packets from routers go before those from hosts", func(p *flit.Params) any { return &p.TransitFirst }},
	{"whole-credits", "the credits of a packet go back all at once", func(p *flit.Params) any { return &p.WholeCredits }},
	{"source-queue", "flits of an interface's queue; 0: there is none, nor a link", func(p *flit.Params) any { return &p.SourceQueue }},
	{"injection-delay", "cycles into the router's buffer without a source queue", func(p *flit.Params) any { return &p.InjectionDelay }},
	{"ugal-threshold", "flits by which UGAL favours the minimal path", func(p *flit.Params) any { return &p.Threshold }},
	{"send-injected", "a send ends when its last packet is in the interface", func(p *flit.Params) any { return &p.Coupling.Injected }},
	{"send-paced", "and no sooner than its flits at one a cycle", func(p *flit.Params) any { return &p.Coupling.Paced }},
	{"receive-head", "a receive ends with the first flit of the last packet", func(p *flit.Params) any { return &p.Coupling.Head }},
	{"local-cycles", "cycles of a message between ranks of one host", func(p *flit.Params) any { return &p.Coupling.Local }},
}

// findFlitParameter returns the parameter of a name, nil if there is none.
func findFlitParameter(name string) *flitParameter {
	for i := range flitParameters {
		if flitParameters[i].name == name {
			return &flitParameters[i]
		}
	}
	return nil
}

// setFlit sets a parameter by a text such as "pipeline=3".
func setFlit(p *flit.Params, text string) error {
	name, value, found := strings.Cut(text, "=")
	if !found {
		return fmt.Errorf("expected NAME=VALUE, found %q", text)
	}
	f := findFlitParameter(name)
	if f == nil {
		return fmt.Errorf("expected a parameter that --list-presets lists, found %q", name)
	}
	switch at := f.at(p).(type) {
	case *dag.Time:
		t, err := units.ParseTime(value, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*at = t
	case *int:
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return fmt.Errorf("%s: expected a whole number, found %q", name, value)
		}
		*at = int(n)
	case *bool:
		switch value {
		case "on":
			*at = true
		case "off":
			*at = false
		default:
			return fmt.Errorf("%s: expected on or off, found %q", name, value)
		}
	case *flit.Arbiter:
		if err := at.UnmarshalText([]byte(value)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// value returns the value of a parameter as setFlit reads it.
func (f *flitParameter) value(p *flit.Params) string {
	switch at := f.at(p).(type) {
	case *dag.Time:
		return at.String()
	case *int:
		return strconv.Itoa(*at)
	case *bool:
		if *at {
			return "on"
		}
		return "off"
	case *flit.Arbiter:
		return at.String()
	}
	return ""
}

// parseWhole reads a value of a sweep; which are allowed depends on the others, and is checked when they run.
func parseWhole(text string) (*big.Rat, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("expected a whole number, found %q", text)
	}
	return new(big.Rat).SetInt64(n), nil
}

// flitParams are the parameters of a run as its result has them.
type flitParams flit.Params

// String returns the parameters for the table.
func (p flitParams) String() string {
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
func printPresets(p *cli.Program) error {
	out, err := p.Create("", false)
	if err != nil {
		return err
	}
	writePresets(out)
	return out.Commit()
}

func writePresets(w io.Writer) {
	presets := flit.Presets()
	head := []string{"parameter"}
	for i := range presets {
		fmt.Fprintf(w, "%s: %s\n  --topology %s\n\n", presets[i].Name, presets[i].Title, presets[i].Topology)
		head = append(head, presets[i].Name)
	}
	rows := [][]string{append(head, "meaning")}
	for i := range flitParameters {
		f := &flitParameters[i]
		row := []string{f.name}
		for k := range presets {
			row = append(row, f.value(&presets[k].Params))
		}
		rows = append(rows, append(row, f.doc))
	}
	printColumns(w, rows)
}

// linkRate returns the rate of every link, in Gb/s.
func (p flitParams) linkRate() float64 {
	return float64(p.FlitBytes) * 8 * float64(dag.Nanosecond) / float64(p.Cycle)
}
