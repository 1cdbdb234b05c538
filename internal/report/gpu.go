package report

import (
	"fmt"
	"slices"
	"strings"
)

// GPU returns the report of statistics of a GPU trace from their JSON document: the member "gpu" has lists of rows.
func GPU(document []byte) (*Report, error) {
	root, err := decode(document)
	if err != nil {
		return nil, err
	}
	return newReport(document, ofGPU, root.get("gpu", "ranks").len(), nil, (*page).gpu)
}

// WriteGPU writes the page and the pictures of statistics of a GPU trace.
func (o *Outputs) WriteGPU(document []byte) error {
	r, err := GPU(document)
	if err != nil {
		return err
	}
	return o.write(r)
}

// BeginGPU is Begin for statistics of a GPU trace.
func (o *Outputs) BeginGPU() error {
	o.of = ofGPU
	return o.Plots.check(o.of, "", nil)
}

// gpuList is a list of rows about a GPU trace, as a section of a page and as a picture.
type gpuList struct {
	member  string // of the document
	anchor  string // of the section, and name of the kind of picture
	heading string
	says    string // the sentence of the section
	caption string // of the figure
	label   string // member with the label of a row; "rank": the number of a rank
	stacked []string
	one     string // the only number; "": stacked
	unit    unit
	columns []string // of the table
}

// gpuLists are the lists in the order of a page.
var gpuLists = []gpuList{
	{"ranks", "gpu-time", "Time", "Each rank computes, communicates without computation, copies or idles.",
		"Parts of the time of each rank", "rank",
		[]string{"compute_ps", "overlapped_ps", "exposed_comm_ps", "other_ps", "idle_ps"}, "", time,
		[]string{"rank", "time_ps", "compute_ps", "overlapped_ps", "exposed_comm_ps", "other_ps", "idle_ps"}},
	{"types", "gpu-types", "Kinds of ops", "The kinds of ops that run at the same time, summed over ranks.",
		"Time by the kinds of ops that run", "name", nil, "time_ps", time, []string{"name", "time_ps"}},
	{"paths", "gpu-critical", "Critical paths", "The longest path of operators, launches and ops of each rank.",
		"Critical path of each rank by what bounds it", "rank",
		[]string{"compute_ps", "cpu_ps", "communication_ps", "between_kernels_ps", "launches_ps"}, "", time,
		[]string{"rank", "length_ps", "cpu_ps", "compute_ps", "communication_ps", "between_kernels_ps", "launches_ps"}},
	{"path_names", "gpu-path", "Names on critical paths", "The events with most time on the critical paths.",
		"Time on critical paths by name", "name", nil, "time_ps", time, []string{"name", "bound", "edges", "time_ps"}},
	{"stragglers", "gpu-stragglers", "Stragglers", "The ranks that start collectives last, and how long others wait.",
		"Waiting time of other ranks by straggler", "rank", nil, "waiting_ps", time,
		[]string{"rank", "collectives", "waiting_ps", "worst", "worst_waiting_ps"}},
	{"collectives", "gpu-collectives", "Communication", "Communication by kind, group and size, of all ranks.",
		"Time of communication", "name", nil, "sum_ps", time,
		[]string{"name", "size_bytes", "count", "sum_ps", "max_ps", "bus_bits_s"}},
	{"kernels", "gpu-kernels", "Kernels", "The kernels with most time, of all ranks.",
		"Time by kernel", "name", nil, "sum_ps", time, []string{"name", "kind", "ops", "sum_ps", "max_ps"}},
	{"idle", "gpu-idle", "Idle time", "The time between the ops of each stream, by reason.",
		"Idle time of each stream", "name", []string{"host_wait_ps", "kernel_wait_ps", "other_ps"}, "", time,
		[]string{"name", "host_wait_ps", "kernel_wait_ps", "other_ps"}},
	{"launches", "gpu-launches", "Launches", "The delay from the end of a launch call to the start of the op.",
		"Mean delay of launches by rank", "rank", nil, "mean_ps", time,
		[]string{"rank", "launches", "mean_ps", "p50_ps", "p99_ps", "max_ps", "short_ops", "long_calls",
			"long_delays"}},
	{"queues", "gpu-queues", "Queues", "The ops of each stream that are launched and have not started.",
		"Mean length of the queue of each stream", "name", nil, "mean", plain,
		[]string{"name", "count", "mean", "p50", "max", "full_ps"}},
}

// gpuFills are the numbers of the fills of stacked parts.
var gpuFills = map[string]int{"compute_ps": 0, "overlapped_ps": 1, "exposed_comm_ps": 3, "communication_ps": 3,
	"other_ps": 5, "idle_ps": 8, "host_wait_ps": 8, "kernel_wait_ps": 2, "cpu_ps": 7, "between_kernels_ps": 2,
	"launches_ps": 4}

// numbers returns the members of the numbers of a row.
func (l *gpuList) numbers() []string {
	if l.one != "" {
		return []string{l.one}
	}
	return l.stacked
}

// rows returns the rows, at most most of them.
func (l *gpuList) rows(root value, most int) (rows []value, all int) {
	rows = root.get("gpu", l.member).all()
	return rows[:min(len(rows), most)], len(rows)
}

// labelOf returns the label of a row.
func (l *gpuList) labelOf(v value) string {
	if l.label == "rank" {
		return "rank " + fmt.Sprint(v.get("rank").of)
	}
	text := strings.TrimPrefix(v.get(l.label).text(), "void ")
	if bytes := v.get("size_bytes"); bytes.isNumber() {
		text += ", " + size.format(bytes.number())
	}
	return text
}

// gpuRows is the largest number of rows of a figure, and plottedNames that of rows with long names in a picture.
const (
	gpuRows      = 256
	plottedNames = 14
)

// gpu writes the page of statistics of a GPU trace.
func (p *page) gpu() {
	p.heads(p.root.get("title"), p.root.get("input"))
	p.title += " – tracecat"
	fmt.Fprintf(&p.head, "<dl class=\"lead\">%s</dl>\n<dl>\n%s</dl>\n",
		row("ranks", shown(p.root.get("rank_count"), plain)), row("trace", shown(p.root.get("input"), plain)))
	for i := range gpuLists {
		p.gpuSection(&gpuLists[i])
	}
}

// gpuSection writes a section of a list, if it has rows.
func (p *page) gpuSection(l *gpuList) {
	rows, all := l.rows(p.root, gpuRows)
	if len(rows) == 0 {
		return
	}
	says := new(sentence).add(l.says)
	p.section(l.anchor, l.heading, says)
	defer p.endSection()
	if len(rows) < all {
		fmt.Fprintf(&p.body, "<p>The figure has the first %d rows.</p>\n", len(rows))
	}
	drawn := make([]bar, len(rows))
	seen := make(map[string]bool)
	for i, v := range rows {
		name := clean(l.labelOf(v))
		drawn[i] = bar{label: name, full: short(name, 200)}
		for _, member := range l.numbers() {
			if n := v.get(member); n.number() > 0 { // gaps between ops that overlap are negative
				class := fmt.Sprintf("f%d", gpuFills[member])
				drawn[i].parts = append(drawn[i].parts, piece{class, heading(member), n})
				seen[member] = true
			}
		}
	}
	picture := bars(drawn, l.unit)
	for _, member := range l.stacked {
		if seen[member] {
			picture.key(fmt.Sprintf("f%d", gpuFills[member]), heading(member))
		}
	}
	p.figure(l.caption, says, picture, objectsOf(rows, l.caption, l.columns...))
}

// drawGPU returns the function that draws a list.
func drawGPU(member string) func(s *source) *picture {
	return func(s *source) *picture {
		l := &gpuLists[slices.IndexFunc(gpuLists, func(l gpuList) bool { return l.member == member })]
		most := plottedRanks
		if l.member == "kernels" || l.member == "path_names" { // with long names
			most = plottedNames
		}
		rows, all := l.rows(s.root, most)
		if len(rows) == 0 {
			return nil
		}
		out := &picture{}
		if len(rows) < all {
			out.addNote(fmt.Sprintf("the first %d of %d rows", len(rows), all))
		}
		lying := l.label != "rank"
		names := make([]string, len(rows))
		for i, v := range rows {
			if names[i] = label(short(l.labelOf(v), 40)); !lying {
				names[i] = fmt.Sprint(v.get("rank").of)
			}
		}
		of := quantity{name: heading(l.numbers()[0]), unit: l.unit}
		if len(l.stacked) > 0 {
			of.name = "time"
		}
		p := &panel{x: plotAxis{of: quantity{name: "rank"}, names: names}, y: plotAxis{of: of,
			stack: len(l.stacked) > 0}}
		if lying {
			p.x, p.y = p.y, plotAxis{of: quantity{name: "name"}, names: names, down: true}
		}
		base := make([]num, len(rows))
		for i := range base {
			base[i] = count(0)
		}
		for _, member := range l.numbers() {
			m := &barMarks{name: heading(member), lying: lying, fill: gpuFills[member]}
			for i, v := range rows {
				n := rounded(max(v.get(member).number(), 0))
				m.at, m.size = append(m.at, i), append(m.size, n)
				if len(l.stacked) > 0 {
					m.from = append(m.from, base[i])
					base[i] = rounded(base[i].of + n.of)
					m.to = append(m.to, base[i])
				} else {
					m.to = append(m.to, n)
				}
			}
			p.marks = append(p.marks, m)
			if len(l.stacked) > 0 {
				out.keys = append(out.keys, fillKey(m.name, m.fill))
			}
		}
		out.panels = []*panel{p}
		return out
	}
}
