package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/ideal"
)

// listedRanks is up to how many ranks the table lists each one's finish.
const listedRanks = 16

// printTable prints a result for people, with its critical path if that is not nil.
func printTable(w io.Writer, l *loaded, r *result, path *ideal.Path) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(what, format string, args ...any) {
		fmt.Fprintf(tab, "%s\t"+format+"\n", append([]any{what}, args...)...)
	}
	trace := l.name
	if l.title != "" {
		trace += ": " + strconv.Quote(l.title)
	}
	row("trace", "%s, %d ranks, %d ops", trace, l.ranks, r.Ops)
	if r.Model == "" { // and no parameters
		row("backend", "%s", r.Backend)
	} else {
		row("backend", "%s, model %s", r.Backend, r.Model)
		row("parameters", "%v", r.Params)
	}
	if !r.Complete {
		row("complete", "no: %s", incomplete(r.Result))
	}
	row("makespan", "%v", r.Makespan)
	if path != nil {
		row("critical path", "%d ops, %s", path.Ops(), shares(path))
	}
	first, last := extremes(r.Finish)
	if len(r.Finish) > 0 {
		row("finish", "first rank %d at %v, last rank %d at %v", first, r.Finish[first], last, r.Finish[last])
	}
	row("messages", "%d, %s", r.Messages, units.FormatSize(r.Bytes))
	if io := r.IOLatency; io != nil {
		row("I/O latency", "%d accesses, mean %v, p50 %v, p99 %v, p99.9 %v, max %v", io.Count, io.Mean, io.P50, io.P99, io.P999,
			io.Max)
	}
	wall := time.Duration(r.Wall)
	row("replay", "%d events in %v, %.3g ops/s", r.Events, wall.Round(time.Microsecond), r.OpsPerS)
	if r.packetResult != nil {
		r.packetResult.print(row)
	}
	if r.flit != nil {
		r.flit.print(row)
	}
	if r.NPUs != nil {
		printBreakdown(tab, r.NPUs)
	} else if n := len(r.Finish); n > 0 && n <= listedRanks {
		fmt.Fprintln(tab, "\nrank\tfinish")
		for rank, finish := range r.Finish {
			fmt.Fprintf(tab, "%d\t%v\n", rank, finish)
		}
	}
	if r.packetResult != nil {
		r.packetResult.printPorts(tab)
	}
	if r.flit != nil {
		r.flit.printTables(tab)
	}
	printJobs(tab, r)
	printComparison(tab, r.Compare)
	tab.Flush()
}

// extremes returns the first rank to finish and the last, the lowest of equals.
func extremes(finish []sim.Clock) (first, last int) {
	for rank, f := range finish {
		if f.Ticks < finish[first].Ticks {
			first = rank
		}
		if f.Ticks > finish[last].Ticks {
			last = rank
		}
	}
	return first, last
}
