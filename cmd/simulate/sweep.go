package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tracedag/tracedag/internal/cli"
)

// point is the outcome at one point of a sweep: a result or an error.
type point struct {
	result *result
	model  string
	params any
	err    error
	ready  chan struct{} // closed when the rest is set
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
	points := make([]point, len(grid))
	for i := range points {
		points[i].ready = make(chan struct{})
	}
	// Results wait for those before them to be printed; ahead bounds how many may.
	ahead := make(chan struct{}, 4*o.threads)
	stop := make(chan struct{})
	var runs errgroup.Group
	runs.SetLimit(min(o.threads, len(grid)) + 1) // and the one that starts them
	runs.Go(func() error {
		for i := range points {
			select {
			case ahead <- struct{}{}:
			case <-stop:
				return nil
			}
			runs.Go(func() error {
				pt := &points[i]
				defer close(pt.ready)
				defer progress.Add(1)
				pt.model, pt.params = run.params(grid[i])
				pt.result, pt.err = run.run(grid[i], replay{threads: 1, again: true})
				return nil
			})
		}
		return nil
	})
	write := writeJSONLine
	if o.csv {
		write = csvWriter(out)
	}
	failed, incomplete := 0, 0
	var broken error
	for i := range points {
		<-points[i].ready
		<-ahead
		switch {
		case points[i].err != nil:
			failed++
			p.Error("%s: point %d: %v", name, i+1, points[i].err)
		case !points[i].result.Complete:
			incomplete++
		}
		if broken = write(out, o.backend, &points[i]); broken == nil {
			broken = out.Flush()
		}
		if broken != nil {
			close(stop)
			break
		}
		points[i] = point{} // a result may be large
	}
	if err := runs.Wait(); err != nil {
		return err
	}
	if broken != nil {
		return broken
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
