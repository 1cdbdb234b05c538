package report

import "fmt"

// Limits of a picture of a fit.
const (
	mostFitPoints = 10_000
	mostFitCuts   = 64
)

// BeginFit returns an error about a picture that a fit of parameters cannot have.
func (o *Outputs) BeginFit() error {
	o.of = ofFit
	return o.Plots.check(o.of, "", nil)
}

// drawFit draws measured times with their fitted lines over size, and beside them the relative errors. Rules are the
// cuts of segments. Messages without bytes have no place on the logarithmic axis.
func drawFit(s *source) *picture {
	curves := s.root.get("curves").all()
	bytes := quantity{name: "message size", unit: size}
	left := &panel{x: plotAxis{of: bytes, log: true}, y: plotAxis{of: quantity{name: "time", unit: time}, log: true}}
	right := &panel{x: plotAxis{of: bytes, log: true}, y: plotAxis{of: quantity{name: "residual", unit: percent},
		stack: true}} // errors below 0 have no logarithm
	out := &picture{panels: []*panel{left, right}}
	points, least, most := 0, 0.0, 0.0
	for i, v := range curves {
		if i == maxSeries {
			out.addNote(fmt.Sprintf("%d further paths omitted", len(curves)-i))
			break
		}
		name := label(v.get("name").text())
		measured := &lineMarks{name: name, style: i, alone: true}
		fitted := &lineMarks{name: name + ", fitted", style: i, bare: true}
		errors := &lineMarks{name: name + ", residual", style: i, alone: true}
		for k, at := range v.get("bytes").all() {
			took, fit := v.get("measured_ps").at(k), v.get("fitted_ps").at(k)
			x := exact(at)
			if !(x.of > 0 && took.number() > 0 && fit.number() > 0) {
				continue
			}
			if least == 0 || x.of < least {
				least = x.of
			}
			most = max(most, x.of)
			measured.points = append(measured.points, lineMark{x: x, y: exact(took)})
			errors.points = append(errors.points, lineMark{x: x, y: rounded(fit.number()/took.number() - 1)})
		}
		for k, at := range v.get("line_bytes").all() {
			if took := v.get("line_ps").at(k); at.number() > 0 && took.number() > 0 {
				fitted.points = append(fitted.points, lineMark{x: exact(at), y: exact(took)})
			}
		}
		points += len(measured.points)
		left.marks = append(left.marks, fitted, measured)
		right.marks = append(right.marks, errors)
		out.keys = append(out.keys, (&lineMarks{name: name, style: i}).key())
	}
	if points == 0 || points > mostFitPoints {
		return nil
	}
	right.marks = append(right.marks, &ruleMarks{level: true})
	cuts := s.root.get("cuts").all()
	var rule *ruleMarks
	for _, cut := range cuts[:min(len(cuts), mostFitCuts)] {
		if at := exact(cut); at.of >= least && at.of <= most {
			rule = &ruleMarks{at: at}
			left.marks, right.marks = append(left.marks, rule), append(right.marks, rule)
		}
	}
	if rule != nil {
		out.keys = append(out.keys, rule.key("cut of segments"))
	}
	return out
}
