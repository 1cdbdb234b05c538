package measure

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/sim"
)

// Window limits the flows in distributions to those that start from From until before Until; 0: no limit.
type Window struct{ From, Until dag.Time }

// Params returns the parameters measure-from and measure-until.
func (w *Window) Params() param.Set {
	return param.Set{
		param.Time(&w.From, "measure-from", "exclude flows that start earlier from distributions").Default("0s"),
		param.Time(&w.Until, "measure-until", "exclude flows that start at this time or later from distributions").
			Default("no limit"),
	}
}

// Check returns an error if the window is empty.
func (w *Window) Check() error {
	if w.Until > 0 && w.Until <= w.From {
		return param.Errorf("measure-until", "expected a time after --measure-from %v, found %v", w.From, w.Until)
	}
	return nil
}

// Limits reports whether the window excludes any time.
func (w *Window) Limits() bool { return w.From > 0 || w.Until > 0 }

// Holds reports whether a flow that starts at a time counts.
func (w *Window) Holds(start dag.Time) bool {
	return start >= w.From && (w.Until == 0 || start < w.Until)
}

// Row returns the summary line of a window with the given number of flows, of which some are excluded.
func (w *Window) Row(flows, excluded int) sim.Row {
	text := fmt.Sprintf("from %v", w.From)
	if w.Until > 0 {
		text += fmt.Sprintf(" until %v", w.Until)
	}
	return sim.Rowf("measured", "%d flows that start %s, %d excluded", flows-excluded, text, excluded)
}

// WindowSection is the section "fct_window" of a result.
type WindowSection struct {
	From     dag.Time  `json:"from_ps"`
	Until    *dag.Time `json:"until_ps"` // nil: no limit
	Flows    int       `json:"flows"`
	Excluded int       `json:"excluded_flows"`
}

// Section returns the section of a window with the given number of flows, of which some are excluded.
func (w *Window) Section(flows, excluded int) *WindowSection {
	s := &WindowSection{From: w.From, Flows: flows - excluded, Excluded: excluded}
	if w.Until > 0 {
		until := w.Until
		s.Until = &until
	}
	return s
}
