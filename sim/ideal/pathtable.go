package ideal

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/tracedag/tracedag/dag"
)

// pathJSON is the critical path as a member of the result; with all, op by op.
type pathJSON struct {
	path *Path
	all  bool
}

// WriteJSON writes the path as a JSON object.
func (j pathJSON) WriteJSON(w io.Writer) error {
	out, path := bufio.NewWriter(w), j.path
	compute := strconv.FormatFloat(share(path.Compute, path.Length), 'g', -1, 64)
	fmt.Fprintf(out, `{"length_ps":%d,"compute_ps":%d,"compute_share":%s,"mem_ps":%d,"io_ps":%d,`+
		`"wait_ps":%d,"ops":%d`, path.Length, path.Compute, compute, path.Memory, path.IO, path.Wait, path.Ops())
	if j.all {
		out.WriteString(`,"path":[`)
		for k := range path.Ops() {
			if k > 0 {
				out.WriteByte(',')
			}
			e := path.Entry(k)
			fmt.Fprintf(out, `{"rank":%d,"op":%d,"kind":"%s","start_ps":%d,"end_ps":%d,"led_by":"%s"}`, e.Rank, e.Op,
				e.Kind, e.Start, e.End, e.Lead)
		}
		out.WriteByte(']')
	}
	out.WriteByte('}')
	return out.Flush()
}

// share returns part/whole, or 0 if both are 0.
func share(part, whole dag.Time) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// shares returns the composition of a path, such as "75% compute, 25% release times".
func shares(path *Path) string {
	text := fmt.Sprintf("%.4g%% compute", 100*share(path.Compute, path.Length))
	for _, part := range []struct {
		length dag.Time
		of     string
	}{{path.Memory, "memory"}, {path.IO, "I/O"}, {path.Wait, "waiting for a release time"}} {
		if part.length > 0 {
			text += fmt.Sprintf(", %.4g%% %s", 100*share(part.length, path.Length), part.of)
		}
	}
	return text
}

// printPath prints a path as a table with one line per stretch on one rank.
func printPath(w io.Writer, path *Path) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "\nfrom\tto\trank\tops\tcount\tbusy\tled by")
	for k := 0; k < path.Ops(); {
		first := path.Entry(k)
		last, busy, next := first, first.End-first.Start, k+1
		for ; next < path.Ops(); next++ {
			e := path.Entry(next)
			if e.Rank != first.Rank {
				break
			}
			last, busy = e, busy+e.End-e.Start
		}
		ops := strconv.Itoa(first.Op)
		if next > k+1 {
			ops += fmt.Sprintf("..%d", last.Op)
		}
		fmt.Fprintf(tab, "%v\t%v\t%d\t%s\t%d\t%v\t%s\n", first.Start, last.End, first.Rank, ops, next-k,
			busy, first.Lead)
		k = next
	}
	tab.Flush()
}
