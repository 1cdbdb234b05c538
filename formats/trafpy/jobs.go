// This file reads and writes demand data of the job-centric mode: columns of jobs, each with a graph in the node-link
// form
// of NetworkX, and columns of the flows of all jobs.

package trafpy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/dag/jobgraph"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/flowio"
)

// jobID is the column that only files of jobs have.
const jobID = "job_id"

// jobFile is a file of jobs. Its flows repeat the data edges of the graphs.
type jobFile struct {
	ID        []word            `json:"job_id"`
	Graph     []nodeLink        `json:"job"`
	Time      []json.Number     `json:"event_time"`
	Establish []json.Number     `json:"establish"`
	Index     []json.Number     `json:"index"`
	Sizes     []json.RawMessage `json:"flow_size"`
}

// nodeLink is a graph as NetworkX writes it. Versions differ in the name of the list of edges.
type nodeLink struct {
	Nodes []struct {
		ID word `json:"id"`
	} `json:"nodes"`
	Links []link `json:"links"`
	Edges []link `json:"edges"`
}

type link struct {
	Source     word         `json:"source"`
	Target     word         `json:"target"`
	Dependency *json.Number `json:"dependency"` // 1: data, 0: control
	Of         struct {
		Source      word         `json:"sn"`
		Destination word         `json:"dn"`
		Size        json.Number  `json:"flow_size"`
		Type        string       `json:"dependency_type"`
		Run         *json.Number `json:"parent_op_run_time"`
	} `json:"attr_dict"`
}

// word is a name, or a number in its place.
type word string

// UnmarshalJSON accepts a string or a number.
func (w *word) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		return json.Unmarshal(text, (*string)(w))
	}
	var number json.Number
	if err := json.Unmarshal(text, &number); err != nil || number == "" {
		return fmt.Errorf("expected a name, found %.40q", text)
	}
	*w = word(number)
	return nil
}

// isJobs reports whether an object of columns has jobs.
func isJobs(text []byte) bool {
	if !bytes.Contains(text, []byte(`"`+jobID+`"`)) {
		return false
	}
	var columns map[string]json.RawMessage
	return json.Unmarshal(text, &columns) == nil && columns[jobID] != nil
}

// isPickle reports whether a file begins like a pickle, or like one that bzip2 compressed.
func isPickle(head []byte) bool {
	return len(head) > 1 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 ||
		len(head) > 9 && string(head[:3]) == "BZh" && string(head[4:10]) == "1AY&SY"
}

// errPickle refuses pickles.
var errPickle = errors.New("expected JSON or CSV, found a pickle, which can run programs when it is read: save the " +
	"dictionary as JSON or CSV")

// jobReader converts a file of jobs. Its table has the labels of machines.
type jobReader struct {
	*table
	clipped, joined, named int64 // run times below 0, data on one machine, ops with names that are not kept
}

// readJobs reads a file of jobs.
func readJobs(t *table, text []byte) (*dag.Trace, error) {
	var f jobFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, jobsError(t.file, err, len(text))
	}
	r := &jobReader{table: t}
	for _, column := range []struct {
		name     string
		len      int
		optional bool
	}{{"job", len(f.Graph), false}, {"event_time", len(f.Time), false}, {"establish", len(f.Establish), true},
		{"index", len(f.Index), true}} {
		if column.len != len(f.ID) && !(column.optional && column.len == 0) {
			return nil, format.FileErrorf(t.file, "expected columns of the same length, found %d values of %s and %d "+
				"of "+jobID, column.len, column.name, len(f.ID))
		}
	}
	jobs := make([]jobgraph.Job, len(f.ID))
	data := 0
	for i := range jobs {
		jobs[i].Name = string(f.ID[i])
		if err := r.job(&jobs[i], &f, i); err != nil {
			return nil, format.FileErrorf(t.file, "job %d (%.60s): %w", i, jobs[i].Name, err)
		}
		for n := range f.Graph[i].links() {
			if !jobs[i].Edges[n].Control {
				data++
			}
		}
	}
	if data += int(r.joined); f.Sizes != nil && len(f.Sizes) != data {
		return nil, format.FileErrorf(t.file, "expected a flow for each of the %d data edges of all jobs, found %d "+
			"values of flow_size", data, len(f.Sizes))
	}
	return r.trace(jobs)
}

// jobsError returns the error of JSON that is no file of jobs.
func jobsError(file string, err error, size int) error {
	wrong := &format.SyntaxError{File: file, Offset: int64(size), Expected: "columns of jobs", Found: err.Error()}
	var syntax *json.SyntaxError
	var value *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		wrong.Offset = syntax.Offset
	case errors.As(err, &value):
		wrong.Offset, wrong.Expected, wrong.Found = value.Offset, "another value of "+value.Field, "a "+value.Value
	}
	return wrong
}

func (g *nodeLink) links() []link {
	if len(g.Links) > 0 {
		return g.Links
	}
	return g.Edges
}

// trace builds the trace of jobs whose machines are label numbers.
func (r *jobReader) trace(jobs []jobgraph.Job) (*dag.Trace, error) {
	if len(jobs) == 0 {
		return nil, format.FileErrorf(r.file, "expected jobs, found none")
	}
	edges := 0
	for i := range jobs {
		edges += len(jobs[i].Edges)
	}
	r.flows = make([]flowio.Flow, edges) // place compares the number of ranks with it
	ranks, of := r.place()
	if err := flowio.CheckRanks(int(ranks), edges); err != nil {
		return nil, &format.FileError{File: r.file, Err: err}
	}
	for i := range jobs {
		for n := range jobs[i].Edges {
			e := &jobs[i].Edges[n]
			e.Source, e.Destination = of[e.Source], of[e.Destination]
		}
	}
	trace, err := jobgraph.Trace(r.options.Context, flowio.Ranks(ranks, r.options), jobs, jobgraph.Messages)
	if err != nil {
		return nil, &format.FileError{File: r.file, Err: err}
	}
	r.style.Decimals = usual.Decimals
	trace.Attrs = attr.Encode("trafpy", r.style)
	for _, loss := range []struct {
		n    int64
		text string
	}{
		{r.clipped, "run times below 0 become 0"}, {r.rounded, "sizes are rounded to whole bytes"},
		{r.joined, "data edges whose ends are one machine become control edges"},
		{r.named, "names of ops are not kept, because they are not op_0, op_1, ..."},
		{r.moved, "values of the column index are not kept: they differ from the position of the job"},
	} {
		if loss.n > 0 {
			r.options.Warn("%s: %d %s", r.file, loss.n, loss.text)
		}
	}
	return trace, nil
}

// job sets job i of a file.
func (r *jobReader) job(j *jobgraph.Job, f *jobFile, i int) error {
	at := oneValue(r.style)
	if err := at.time(0, []byte(f.Time[i])); err != nil {
		return fmt.Errorf("event_time: %w", err)
	}
	j.Arrival = at.flows[0].Start
	if f.Establish != nil && f.Establish[i] != "1" && f.Establish[i] != "1.0" {
		return fmt.Errorf("establish: expected 1, found %s", f.Establish[i])
	}
	if f.Index != nil && string(f.Index[i]) != strconv.Itoa(i) {
		r.moved++
	}
	graph := &f.Graph[i]
	number, err := r.number(graph)
	if err != nil {
		return err
	}
	j.Ops = int32(len(graph.Nodes))
	for n := range graph.links() {
		e, err := r.edge(&graph.links()[n], number)
		if err != nil {
			return fmt.Errorf("edge %d: %w", n, err)
		}
		j.Edges = append(j.Edges, e)
	}
	return j.Check(len(r.names))
}

// number returns the numbers of ops by their names: the op without edges into it is the first, that without edges out
// of
// it the last. Others have the number k+1 if their names are op_k, or else their place.
func (r *jobReader) number(g *nodeLink) (map[word]int32, error) {
	const first, last = 1, 2
	ends := make(map[word]int, len(g.Nodes)) // op without edges in, or out
	for _, node := range g.Nodes {
		ends[node.ID] = first | last
	}
	if len(ends) < len(g.Nodes) || len(g.Nodes) < 2 {
		return nil, fmt.Errorf("%d ops with %d names, expected two or more ops with different names", len(g.Nodes),
			len(ends))
	}
	for n, l := range g.links() {
		for _, name := range []word{l.Source, l.Target} {
			if _, known := ends[name]; !known {
				return nil, fmt.Errorf("edge %d: expected an op of nodes, found %.60q", n, name)
			}
		}
		ends[l.Source] &^= last
		ends[l.Target] &^= first
	}
	number := make(map[word]int32, len(g.Nodes))
	inner := int32(len(g.Nodes)) - 2
	seen, usual := make([]bool, inner), true
	next := int32(1)
	for _, node := range g.Nodes {
		switch ends[node.ID] {
		case first:
			number[node.ID] = 0
		case last:
			number[node.ID] = inner + 1
		default:
			number[node.ID] = next
			next++
			k, err := strconv.Atoi(strings.TrimPrefix(string(node.ID), "op_"))
			if usual = usual && err == nil && k >= 0 && k < int(inner) && !seen[k] &&
				string(node.ID) == "op_"+strconv.Itoa(k); usual {
				seen[k] = true
			}
		}
	}
	if next != inner+1 || len(number) < len(g.Nodes) {
		return nil, errors.New("expected a source, without edges into it, and a sink, without edges out of it")
	}
	for name, n := range number {
		switch k, err := strconv.Atoi(strings.TrimPrefix(string(name), "op_")); {
		case n == 0 && name == "source", n == inner+1 && name == "sink":
		case n > 0 && n <= inner && usual && err == nil:
			number[name] = int32(k) + 1
		default:
			r.named++
		}
	}
	return number, nil
}

// edge returns an edge, whose machines are label numbers.
func (r *jobReader) edge(l *link, number map[word]int32) (e jobgraph.Edge, err error) {
	e.Tail, e.Head = number[l.Source], number[l.Target]
	if l.Of.Source == "" || l.Of.Destination == "" {
		return e, errors.New("expected sn and dn, the machines at its ends, found none")
	}
	if e.Source, err = r.label([]byte(l.Of.Source)); err == nil {
		e.Destination, err = r.label([]byte(l.Of.Destination))
	}
	if err != nil {
		return e, err
	}
	switch {
	case l.Of.Type != "" && l.Of.Type != "data_dep" && l.Of.Type != "control_dep":
		return e, fmt.Errorf("dependency_type: expected data_dep or control_dep, found %.60q", l.Of.Type)
	case l.Of.Type != "":
		e.Control = l.Of.Type == "control_dep"
	case l.Dependency == nil:
		return e, errors.New("expected dependency_type or dependency, found none")
	default:
		e.Control = *l.Dependency == "0"
	}
	value := oneValue(r.style)
	if err := value.size(0, []byte(l.Of.Size)); err != nil {
		return e, fmt.Errorf("flow_size: %w", err)
	}
	r.rounded += value.rounded
	switch e.Bytes = value.flows[0].Bytes; {
	case e.Control && e.Bytes > 0:
		return e, fmt.Errorf("flow_size: expected 0 of a control edge, found %s", l.Of.Size)
	case e.Control && l.Dependency != nil && *l.Dependency == "1" || !e.Control && e.Source == e.Destination:
		e.Bytes, e.Control = 0, true // the packer put both ends on one machine
		r.joined++
	}
	if l.Of.Run == nil {
		return e, nil
	}
	run := string(*l.Of.Run)
	if digits, negative := strings.CutPrefix(run, "-"); negative {
		if run = "0"; strings.Trim(digits, "0.") != "" {
			r.clipped++
		}
	}
	if err := value.time(0, []byte(run)); err != nil {
		return e, fmt.Errorf("parent_op_run_time: %w", err)
	}
	e.Run = value.flows[0].Start
	return e, nil
}

// jobWriter writes the columns of jobs.
type jobWriter struct {
	*bufio.Writer
	rows rows // labels
	jobs []jobgraph.Job
}

// writeJobs writes the jobs of a trace.
func writeJobs(out io.Writer, t *dag.Trace, jobs []jobgraph.Job) error {
	w := &jobWriter{bufio.NewWriterSize(out, 1<<18), rows{trace: t, style: styleOf(t)}, jobs}
	w.column("{", jobID, func(i int) { w.quote(jobs[i].Name) })
	w.column(", ", "job", w.graph)
	w.column(", ", "event_time", func(i int) { w.time(jobs[i].Arrival) })
	w.column(", ", "establish", func(int) { w.WriteByte('1') })
	w.column(", ", "index", func(i int) { w.WriteString(strconv.Itoa(i)) })
	flow := 0
	w.flows("flow_id", func(j *jobgraph.Job, _ *jobgraph.Edge) {
		w.quote(fmt.Sprintf("%s_flow_%d", j.Name, flow))
		flow++
	})
	w.flows("sn", func(_ *jobgraph.Job, e *jobgraph.Edge) { w.label(e.Source) })
	w.flows("dn", func(_ *jobgraph.Job, e *jobgraph.Edge) { w.label(e.Destination) })
	w.flows("flow_size", func(_ *jobgraph.Job, e *jobgraph.Edge) { w.size(e.Bytes) })
	w.WriteByte('}')
	return w.Flush()
}

// column writes a column with a value per job.
func (w *jobWriter) column(before, name string, value func(i int)) {
	fmt.Fprintf(w, `%s"%s": [`, before, name)
	for i := range w.jobs {
		if i > 0 {
			w.WriteString(", ")
		}
		value(i)
	}
	w.WriteByte(']')
}

// flows writes a column with a value per data edge of all jobs.
func (w *jobWriter) flows(name string, value func(j *jobgraph.Job, e *jobgraph.Edge)) {
	fmt.Fprintf(w, `, "%s": [`, name)
	first := true
	for i := range w.jobs {
		j := &w.jobs[i]
		for n := range j.Edges {
			if j.Edges[n].Control {
				continue
			}
			if !first {
				w.WriteString(", ")
			}
			first = false
			value(j, &j.Edges[n])
		}
	}
	w.WriteByte(']')
}

// graph writes the graph of job i.
func (w *jobWriter) graph(i int) {
	j := &w.jobs[i]
	into, out := j.In(), j.Out()
	control, sum := 0, int64(0)
	for n := range j.Edges {
		sum += j.Edges[n].Bytes
		if j.Edges[n].Control {
			control++
		}
	}
	fmt.Fprintf(w, `{"directed": true, "multigraph": false, "graph": {"num_data_deps": %d, "num_control_deps": %d, `+
		`"job_id": `, len(j.Edges)-control, control)
	w.quote(j.Name)
	fmt.Fprintf(w, `, "sum_flow_info": %d}, "nodes": [`, sum)
	for op := range j.Ops {
		if op > 0 {
			w.WriteString(", ")
		}
		fmt.Fprintf(w, `{"id": "%s"}`, opName(j, op))
	}
	w.WriteString(`], "links": [`)
	for n := range j.Edges {
		if n > 0 {
			w.WriteString(", ")
		}
		w.link(j, int32(n), into, out)
	}
	w.WriteString("]}")
}

// link writes an edge.
func (w *jobWriter) link(j *jobgraph.Job, n int32, into, out func(op int32) []int32) {
	e := &j.Edges[n]
	tail, head := opName(j, e.Tail), opName(j, e.Head)
	data, kind := 1, "data_dep"
	if e.Control {
		data, kind = 0, "control_dep"
	}
	fmt.Fprintf(w, `{"dep_id": %d, "dependency": %d, "attr_dict": {"sn": `, n, data)
	w.label(e.Source)
	w.WriteString(`, "dn": `)
	w.label(e.Destination)
	w.WriteString(`, "flow_size": `)
	w.size(e.Bytes)
	fmt.Fprintf(w, `, "flow_id": "flow_%d", "job_id": `, n)
	w.quote(j.Name)
	fmt.Fprintf(w, `, "edge": ["%s", "%s"]`, tail, head)
	w.neighbours(j, "parent", into(e.Tail))
	w.neighbours(j, "child", out(e.Head))
	fmt.Fprintf(w, `, "parent_op": "%s", "child_op": "%s", "dependency_type": "%s", "establish": null, `+
		`"event_time": null, "parent_op_run_time": `, tail, head, kind)
	w.time(e.Run)
	fmt.Fprintf(w, `}, "source": "%s", "target": "%s"}`, tail, head)
}

// neighbours writes the edges before or behind an edge.
func (w *jobWriter) neighbours(j *jobgraph.Job, which string, edges []int32) {
	fmt.Fprintf(w, `, "%s_dependency_edges": [`, which)
	for i, n := range edges {
		if i > 0 {
			w.WriteString(", ")
		}
		fmt.Fprintf(w, `["%s", "%s"]`, opName(j, j.Edges[n].Tail), opName(j, j.Edges[n].Head))
	}
	fmt.Fprintf(w, `], "%s_dependency_flow_ids": [`, which)
	for i, n := range edges {
		if i > 0 {
			w.WriteString(", ")
		}
		fmt.Fprintf(w, `"flow_%d"`, n)
	}
	w.WriteByte(']')
}

// opName returns the name of an op.
func opName(j *jobgraph.Job, op int32) string {
	switch op {
	case 0:
		return "source"
	case j.Ops - 1:
		return "sink"
	}
	return "op_" + strconv.Itoa(int(op)-1)
}

func (w *jobWriter) quote(text string) {
	w.Write(appendQuoted(w.AvailableBuffer(), []byte(strings.ToValidUTF8(text, "\ufffd"))))
}

func (w *jobWriter) label(rank int32) {
	w.Write(appendQuoted(w.AvailableBuffer(), w.rows.appendLabel(nil, rank)))
}

func (w *jobWriter) time(t dag.Time) {
	w.Write(w.rows.style.appendTime(w.AvailableBuffer(), t))
}

func (w *jobWriter) size(bytes int64) {
	w.Write(strconv.AppendInt(w.AvailableBuffer(), bytes, 10))
}

// jobLosses returns what the writer of jobs omits.
func jobLosses(t *dag.Trace) []format.Loss {
	var others, names int64
	for _, r := range t.Ranks {
		for i, kind := range r.Kind {
			if !slices.Contains([]dag.Kind{dag.Calc, dag.Send, dag.Recv}, kind) {
				others++
			}
			if r.Name.At(i) != "" {
				names++
			}
		}
	}
	var l format.Losses
	l.Add("that they are no part of jobs, and are skipped", others)
	l.Add("names", names)
	l.AddNodes(t)
	return l
}
