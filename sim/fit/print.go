package fit

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/sim"
)

// WriteTable prints the estimate: tables, residuals, remarks, and parameters with their 95 % intervals.
func (f *File) WriteTable(w io.Writer) error {
	line := func(label, text string) { fmt.Fprintf(w, "%-11s %s\n", label, text) }
	line("backend", f.Backend+", model "+f.Model)
	for _, s := range f.Sources {
		line("table", s.Name+": "+s.Tool)
	}
	for _, r := range f.Residuals {
		line("residuals", fmt.Sprintf("%s: mean %s%%, largest %s%% of %d times", r.Table+r.Test,
			twoDigits(100*r.Mean), twoDigits(100*r.Largest), r.Points))
	}
	for _, n := range f.Remarks {
		line("remark", n)
	}
	for _, name := range order(f.Parameters) {
		line(name, f.Parameters[name].text())
	}
	f.writeSegments(w)
	return f.writeChoices(w)
}

// writeSegments prints the parameters of each segment.
func (f *File) writeSegments(w io.Writer) {
	if len(f.Segments) == 0 {
		return
	}
	names := order(f.Segments[0].Parameters)
	table := [][]string{append([]string{"bytes from"}, names...)}
	for _, s := range f.Segments {
		row := []string{strconv.FormatInt(s.From, 10)}
		for _, name := range names {
			row = append(row, s.Parameters[name].text())
		}
		table = append(table, row)
	}
	fmt.Fprintln(w)
	sim.PrintColumns(w, table)
}

// writeChoices prints the algorithms of collectives.
func (f *File) writeChoices(w io.Writer) (err error) {
	if len(f.Choices) == 0 {
		return nil
	}
	table := [][]string{{"collective", "ranks", "bytes", "algorithm", "error", "runner-up", "error"}}
	for _, c := range f.Choices {
		row := []string{c.Collective, strconv.Itoa(c.Ranks), fmt.Sprintf("%d..%d", c.From, c.To), c.Algorithm,
			percent(c.Error), c.RunnerUp, percent(c.RunnerUpError)}
		if c.None {
			row[3] = "none (" + c.Algorithm + ")"
		}
		if c.RunnerUp == "" {
			row[6] = ""
		}
		table = append(table, row)
	}
	fmt.Fprintln(w)
	sim.PrintColumns(w, table)
	if f.Collective != "" {
		_, err = fmt.Fprintf(w, "\n--collective '%s'\n", f.Collective)
	}
	return err
}

func percent(v float64) string {
	if text := twoDigits(100 * v); v < 0 {
		return text + "%"
	} else {
		return "+" + text + "%"
	}
}

// twoDigits formats a number with two significant digits, and with all digits before the point up to a million.
func twoDigits(v float64) string {
	if size := math.Abs(v); size >= 99.5 && size < 1e6 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// order returns the names of parameters: known ones in the usual order, then others by name.
func order(parameters map[string]Parameter) (names []string) {
	usual := []string{"L", "o_send", "o_recv", "g", "G", "O_send", "O_recv", "S"}
	for name := range parameters {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		i, j := slices.Index(usual, a), slices.Index(usual, b)
		if i < 0 && j < 0 || i == j {
			return strings.Compare(a, b)
		}
		return cmp.Compare(uint(i), uint(j)) // -1 is behind all others
	})
	return names
}

// text returns the value and its interval with a readable unit.
func (p Parameter) text() string {
	scale, unit := 1.0, p.Unit
	largest := math.Max(p.Value, p.High)
	switch {
	case p.Unit == "s" && largest >= 1e-3:
		scale, unit = 1e3, "ms"
	case p.Unit == "s" && largest >= 1e-6:
		scale, unit = 1e6, "us"
	case p.Unit == "s":
		scale, unit = 1e9, "ns"
	case p.Unit == "1":
		unit = ""
	case p.Unit == "B/s":
		scale, unit = 1e-9, "GB/s"
	case p.Unit == "s/B":
		scale, unit = 1e9, "ns/B"
	}
	digits := func(v float64) string { return strconv.FormatFloat(v*scale, 'g', 4, 64) }
	if p.Unit == "B" {
		digits = func(v float64) string {
			if v >= unlimited {
				return "unlimited"
			}
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		if p.Value >= unlimited {
			unit = ""
		}
	}
	if p.Value == 0 && p.High == 0 {
		return "0"
	}
	if digits(p.Low) == digits(p.High) {
		return digits(p.Value) + unit
	}
	return digits(p.Value) + unit + " (" + digits(p.Low) + ".." + digits(p.High) + ")"
}
