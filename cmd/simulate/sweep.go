package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/par"
)

// point is the outcome at one point of a sweep: a result or an error.
type point struct {
	result *result
	model  string
	params any
	err    error
}

// failure is what a sweep prints for a point without a result.
type failure struct {
	Backend string `json:"backend"`
	Model   string `json:"model,omitempty"`
	Params  any    `json:"params"`
	Error   string `json:"error"`
}

// sweep runs the trace at every point of a grid, several at the same time, and prints a line for each, in the order of
// the grid, as soon as it and all before it are done. A point that fails does not stop the others.
func sweep(p *cli.Program, o *options, run runner, name string, grid [][]setting, out *cli.Output) error {
	progress := p.Progress("sweeping", int64(len(grid)), "points")
	defer progress.Close()
	runPoint := func(settings []setting) (pt point) {
		defer progress.Add(1)
		pt.model, pt.params = run.params(settings)
		pt.result, pt.err = run.run(settings, replay{threads: 1, again: true})
		return pt
	}
	write := writeJSONLine
	if o.csv {
		write = csvWriter(out)
	}
	failed, incomplete := 0, 0
	threads, i := min(o.threads, len(grid)), 0
	// Results wait for those before them to be written, but not arbitrarily many: they may be large.
	for pt := range par.Ordered(slices.Values(grid), threads, 4*threads, func() func([]setting) point { return runPoint }) {
		i++
		switch {
		case pt.err != nil:
			failed++
			p.Error("%s: point %d: %v", name, i, pt.err)
		case !pt.result.Complete:
			incomplete++
		}
		if err := write(out, o.backend, &pt); err != nil {
			return err
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	if failed+incomplete > 0 {
		p.Info("%s: of %d points, %d failed and %d are incomplete", name, len(grid), failed, incomplete)
		return cli.Reported(cli.ExitFailed)
	}
	return nil
}

func writeJSONLine(w io.Writer, backend string, pt *point) error {
	var document any = pt.result
	if pt.err != nil {
		document = failure{backend, pt.model, pt.params, pt.err.Error()}
	}
	line, err := marshal(document)
	if err != nil {
		return fmt.Errorf("writing a result: %w", err)
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// csvWriter returns what writes points as comma-separated values, under a line of names. The parameters are columns of
// their own; the finish times of the ranks are left out.
func csvWriter(w io.Writer) func(io.Writer, string, *point) error {
	table := csv.NewWriter(w)
	head := false
	return func(_ io.Writer, backend string, pt *point) error {
		params := pt.params
		if pt.err == nil {
			params = pt.result.Params // with what follows from the network
		}
		names, values, err := columns(params)
		if err != nil {
			return err
		}
		if !head {
			head = true
			names = append(append([]string{"backend", "model"}, names...), "complete", "makespan_ps", "ops", "never_run",
				"events", "messages", "bytes", "wall_s", "ops_per_s")
			names = append(append(names, extraColumns[backend]...), "error")
			if err := table.Write(names); err != nil {
				return err
			}
		}
		record := []string{backend, pt.model}
		if r := pt.result; pt.err == nil {
			makespan, _ := r.Makespan.AppendText(nil)
			wall, err := r.Wall.MarshalJSON()
			if err != nil {
				return err
			}
			record = append(record, values...)
			record = append(record, strconv.FormatBool(r.Complete), string(makespan), fmt.Sprint(r.Ops),
				fmt.Sprint(r.NeverRun), fmt.Sprint(r.Events), fmt.Sprint(r.Messages), fmt.Sprint(r.Bytes), string(wall),
				strconv.FormatFloat(r.OpsPerS, 'g', 6, 64))
			record = append(append(record, r.packetResult.columns()...), r.flit.columns()...)
			record = append(record, "")
		} else {
			record = append(record, values...)
			record = append(record, "false")
			record = append(append(record, make([]string, 8+len(extraColumns[backend]))...), pt.err.Error())
		}
		if err := table.Write(record); err != nil {
			return err
		}
		table.Flush()
		return table.Error()
	}
}

// extraColumns are those that the results of a backend have beyond others'.
var extraColumns = map[string][]string{"packet": packetColumns, "flit": flitColumns}

// columns returns the names and values of what marshals to a JSON object, in its order. Those of an object in it have the
// object's name in front of theirs, and a dot.
func columns(params any) (names, values []string, err error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, nil, err
	}
	tokens := json.NewDecoder(bytes.NewReader(text))
	tokens.UseNumber()
	var inside []string // names of the objects
	name := ""
	for depth := 0; ; {
		token, err := tokens.Token()
		if err == io.EOF {
			return names, values, nil
		}
		if err != nil {
			return nil, nil, err
		}
		switch brace, is := token.(json.Delim); {
		case is && brace == '{':
			if depth++; depth > 1 {
				inside, name = append(inside, name+"."), ""
			}
		case is:
			depth--
			inside = inside[:max(0, len(inside)-1)]
		case name == "":
			name = fmt.Sprint(token)
		default:
			names, values = append(names, strings.Join(inside, "")+name), append(values, fmt.Sprint(token))
			name = ""
		}
	}
}
