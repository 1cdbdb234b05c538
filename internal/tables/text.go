package tables

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tracedag/tracedag/dag"
)

// textWriter writes the summary for people: the makespan and the numbers that differ between replicas, with half the
// width of the 95 % interval of their mean.
type textWriter struct {
	w    *tabwriter.Writer
	axes int
}

// WriteText adds the summary for people as an output.
func (t *Tables) WriteText(to io.Writer) {
	w := &textWriter{w: tabwriter.NewWriter(to, 0, 0, 2, ' ', 0), axes: len(t.axes)}
	fmt.Fprintln(w.w, strings.Join(append(slices.Clone(t.axes), "metric", "mean", "±95%", "min", "max", "runs"), "\t"))
	t.all = append(t.all, w)
	t.summarize(w)
}

func (w *textWriter) write(row []value) error {
	r := row[w.axes:] // metric, unit, n, mean, sd, low, high, min, p50, max, failed
	if r[0].text != "makespan_ps" && !(r[4].present && r[4].float > 0) {
		return nil
	}
	for _, factor := range row[:w.axes] {
		fmt.Fprintf(w.w, "%s\t", factor.text)
	}
	half := value{present: r[6].present, float: r[6].float - r[3].float}
	failed := ""
	if r[10].int > 0 {
		failed = fmt.Sprintf(", %d failed", r[10].int)
	}
	_, err := fmt.Fprintf(w.w, "%s\t%s\t%s\t%s\t%s\t%d%s\n", strings.TrimSuffix(r[0].text, "_ps"),
		readable(r[3], r[1].text),
		readable(half, r[1].text), readable(r[7], r[1].text), readable(r[9], r[1].text), r[2].int, failed)
	return err
}

// readable returns a number with its unit, with at most five digits.
func readable(v value, unit string) string {
	switch {
	case !v.present:
		return "-"
	case unit == "ps" && v.float >= 0 && v.float < 1e18:
		return dag.Time(rounded(v.float)).String()
	case unit == "1":
		return strconv.FormatFloat(v.float, 'g', 5, 64)
	}
	return strconv.FormatFloat(v.float, 'g', 5, 64) + " " + unit
}

// rounded returns a number of at least 0 with five digits.
func rounded(f float64) float64 {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'e', 4, 64), 64)
	return short
}

func (w *textWriter) flush() error { return nil }
func (w *textWriter) close() error { return w.w.Flush() }
