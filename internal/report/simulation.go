package report

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/tracedag/tracedag/internal/shell"
)

// simulation writes the page of a simulation.
func (p *page) simulation() {
	p.header()
	p.makespan()
	p.ranks()
	p.timeline()
	p.path()
	p.network()
	p.traffic()
	p.flows()
	p.queues()
	p.jobs()
	p.storage()
	p.parameters()
}

// row returns a row of a list of names and values; "" without a value.
func row(name, value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf("<dt>%s</dt><dd>%s</dd>\n", escape(name), value)
}

// shown returns a value as HTML, "" if the document does not have it.
func shown(v value, u unit) string {
	if !v.known || v.of == nil || v.of == "" {
		return ""
	}
	return show(v, u)
}

// heads writes the heading of the page.
func (p *page) heads(title, name value) {
	p.title = clean(title.text())
	if p.title = strings.TrimSpace(p.title); p.title == "" {
		p.title = clean(name.text())
	}
	if p.title = strings.TrimSpace(p.title); p.title == "" {
		p.title = "Synthetic traffic"
	}
	fmt.Fprintf(&p.head, "<h1><bdi>%s</bdi></h1>\n", escape(short(p.title, 120)))
	if short(p.title, 120) != p.title {
		fmt.Fprintf(&p.head, "<details><summary>Whole title</summary><p>%s</p></details>\n", show(title, plain))
	}
}

func (p *page) header() {
	root, run := p.root, p.root.get("run")
	trace := run.get("trace")
	if !trace.known {
		trace = value{map[string]any{}, "", false}
	}
	p.heads(trace.get("title"), trace.get("name"))
	p.title += " – simulate"
	w := &p.head
	backend := shown(root.get("backend"), plain)
	if model := shown(root.get("model"), plain); model != "" {
		backend += ", " + model
	}
	w.WriteString(`<dl class="lead">` + row("makespan", shown(root.get("makespan_ps"), time)) +
		row("backend", backend) + row("complete", shown(root.get("complete"), plain)) + "</dl>\n")
	p.trouble()
	w.WriteString("<dl>\n")
	w.WriteString(row("trace", shown(trace.get("name"), plain)))
	counts := ""
	if trace.get("ranks").known {
		counts = fmt.Sprintf("%s ranks, %s ops", show(trace.get("ranks"), plain), show(trace.get("ops"), plain))
	}
	w.WriteString(row("size", counts))
	if sum := trace.get("sha256").text(); len(sum) >= 12 {
		w.WriteString(row("SHA-256", fmt.Sprintf(`<code title="%s">%s</code>`, escape(sum), escape(sum[:12]))))
	}
	network := run.get("topology")
	built := ""
	if network.get("hosts").known {
		built = fmt.Sprintf("%s hosts, %s switches, %s links", show(network.get("hosts"), plain),
			show(network.get("switches"), plain), show(network.get("links"), plain))
		if given := shown(network.get("given"), plain); given != "" {
			built = given + ": " + built
		}
	}
	w.WriteString(row("topology", built))
	w.WriteString(row("placement", shown(network.get("placement"), plain)))
	w.WriteString(row("transport", shown(root.get("params", "transport"), plain)))
	w.WriteString(row("seed", shown(run.get("seed"), plain)))
	version := strings.TrimSpace(shown(run.get("program"), plain) + " " + shown(run.get("version"), plain))
	if commit := run.get("commit").text(); commit != "" {
		version += fmt.Sprintf(`, commit <code title="%s">%s</code>`, escape(commit), escape(short(commit, 13)))
	}
	w.WriteString(row("version", version) + "</dl>\n")
	if words := run.get("command").all(); len(words) > 0 {
		line := make([]string, len(words))
		for i, word := range words {
			line[i] = word.text()
		}
		fmt.Fprintf(w, "<pre id=\"command\">%s</pre>\n", escape(shell.Join(line...)))
	}
}

// trouble writes the warnings of the run, and why it is incomplete.
func (p *page) trouble() {
	root, w := p.root, &p.head
	warnings := root.get("run", "warnings").all()
	incomplete := root.get("complete").of == false
	if !incomplete && len(warnings) == 0 {
		return
	}
	w.WriteString(`<div class="box">`)
	if incomplete {
		w.WriteString("<h2>The run is incomplete</h2>\n<p>")
		if never := root.get("never_run"); never.number() > 0 {
			fmt.Fprintf(w, "%s of %s ops never ran. ", show(never, plain), show(root.get("ops"), plain))
		}
		if root.get("leftover").known {
			w.WriteString("Messages or receives found no partner. ")
		}
		w.WriteString("Times are those of the ops that ran.</p>\n")
		if aborted := shown(root.get("aborted"), plain); aborted != "" {
			fmt.Fprintf(w, "<p>Aborted: %s</p>\n", aborted)
		}
		if stuck := root.get("stuck").all(); len(stuck) > 0 {
			w.WriteString("<p>The first ops that wait:</p>\n<ul>\n")
			for _, s := range stuck {
				fmt.Fprintf(w, "<li>rank %s, op %s (%s) waits for %s</li>\n", show(s.get("rank"), plain),
					show(s.get("op"), plain), show(s.get("kind"), plain), show(s.get("waits_for"), plain))
			}
			w.WriteString("</ul>\n")
		}
	} else {
		w.WriteString("<h2>Warnings</h2>\n")
	}
	if len(warnings) > 0 {
		if incomplete {
			w.WriteString("<p>Warnings:</p>\n")
		}
		w.WriteString("<ul>\n")
		for _, v := range warnings {
			fmt.Fprintf(w, "<li>%s</li>\n", show(v, plain))
		}
		w.WriteString("</ul>\n")
	}
	w.WriteString("</div>\n")
}

func (p *page) makespan() {
	root, last := p.root, p.root.get("report", "ranks", "last")
	if !root.get("makespan_ps").known {
		return
	}
	says := new(sentence).add("The run takes ").show(root.get("makespan_ps"), time)
	if shares := last.get("shares"); shares.known {
		says.add(". Rank ").show(last.get("rank"), plain).add(", the last, spends ").
			show(shares.get("compute_share"), percent).add(" of its time with computation alone, ").
			show(shares.get("exposed_comm_share"), percent).add(" with exposed communication and ").
			show(shares.get("wait_share"), percent).add(" waiting")
	}
	says.add(".")
	ideal := root.get("report", "ideal_ps")
	if ideal.known {
		says.add(" Without network, it takes ").show(ideal, time).add("; the run takes ").
			show(root.get("report", "ideal_ratio"), plain).add(" times as long.")
	}
	p.section("makespan", "Makespan", says)
	w := &p.body
	w.WriteString("<dl>\n" + row("makespan", show(root.get("makespan_ps"), time)))
	w.WriteString(row("without network", shown(ideal, time)))
	w.WriteString(row("ratio", shown(root.get("report", "ideal_ratio"), plain)))
	for _, part := range parts {
		if v := last.get(part.name); v.number() > 0 {
			w.WriteString(row(heading(part.name), fmt.Sprintf("%s (%s)", show(v, time),
				show(last.get("shares", shareOf(part.name)), percent))))
		}
	}
	path := root.get("critical_path")
	w.WriteString(row("computation on the critical path", shown(path.get("compute_ps"), time)))
	overall := root.get("compare", "overall")
	w.WriteString(row("measured", shown(overall.get("measured_ps"), time)))
	w.WriteString(row("predicted", shown(overall.get("predicted_ps"), time)))
	w.WriteString(row("error", shown(overall.get("error"), percent)))
	w.WriteString(row("messages", shown(root.get("messages"), plain)))
	w.WriteString(row("bytes of messages", shown(root.get("bytes"), size)))
	w.WriteString(row("events", shown(root.get("events"), plain)) + "</dl>\n")
	p.endSection()
}

func (p *page) ranks() {
	root, derived := p.root, p.root.get("report", "ranks")
	if !derived.known {
		return
	}
	last := derived.get("last")
	says := new(sentence).add("Rank ").show(last.get("rank"), plain).add(" finishes last, at ").
		show(last.get("finish_ps"), time)
	if after := derived.get("last_after_mean"); after.isNumber() {
		says.add(", ").show(after, percent).add(" after the mean")
	}
	says.add("; rank ").show(derived.get("first", "rank"), plain).add(" finishes first, at ").
		show(derived.get("first", "finish_ps"), time)
	names := partsOf(root.get("breakdown_total"))
	longest := value{}
	for _, part := range parts {
		if v := derived.get("shares", shareOf(part.name)); v.number() > longest.number() {
			longest = v
		}
	}
	if longest.known {
		name := longest.pointer[strings.LastIndexByte(longest.pointer, '/')+1:]
		says.add(". The largest part of the time of all ranks is ").
			add(heading(strings.TrimSuffix(name, "_share")+"_ps")).add(", ").show(longest, percent)
	}
	says.add(".")
	p.section("ranks", "Ranks", says)
	defer p.endSection()
	members := append([]string{"rank", "finish_ps"}, used(root.get("breakdown_total"), names)...)
	if worst := derived.get("worst"); worst.known {
		quantiles := objectsOf(derived.get("percentiles").all(), "Percentiles over all ranks", "part", "min_ps",
			"p25_ps", "p50_ps", "p75_ps", "max_ps")
		shownParts := slices.DeleteFunc(derived.get("percentiles").all(), func(v value) bool {
			return v.get("max_ps").number() == 0
		})
		p.figure("Time of ranks by part, percentiles over all ranks", says, bands(shownParts), quantiles)
		p.figure("Parts of the time of the ranks that finish last", says, ofRanks(worst.all(), names,
			func(i int) value { return worst.at(i).get("finish_ps") }), objectsOf(worst.all(), "Ranks that finish last",
			members...))
	} else if finish := root.get("finish_ps"); finish.known {
		breakdown := root.get("breakdown")
		ranks := make([]value, finish.len())
		values := &table{caption: "Times of ranks", headings: []string{"rank", "finish"}}
		for _, name := range members[2:] {
			values.headings = append(values.headings, heading(name))
		}
		for i := range finish.len() {
			if ranks[i] = breakdown.at(i); len(names) == 0 || !ranks[i].get("rank").known {
				ranks[i] = value{of: map[string]any{"rank": i}}
			}
			line := []string{fmt.Sprint(i), show(finish.at(i), time)}
			for _, name := range members[2:] {
				line = append(line, show(ranks[i].get(name), time))
			}
			values.rows = append(values.rows, line)
		}
		p.figure("Parts of the time of each rank", says, ofRanks(ranks, names, finish.at), values)
	}
	if jobs := root.get("breakdown_jobs").all(); len(jobs) > 0 {
		all := make([]bar, len(jobs))
		for i, job := range jobs {
			all[i] = bar{label: clean(job.get("name").text()), full: clean(short(job.get("name").text(), 100))}
			for _, part := range parts {
				all[i].parts = append(all[i].parts, piece{part.class, heading(part.name), job.get(part.name)})
			}
		}
		drawn := bars(all, time)
		for _, part := range parts {
			if root.get("breakdown_total", part.name).number() > 0 {
				drawn.key(part.class, heading(part.name))
			}
		}
		says := new(sentence).add("Parts of the time of each job, over all of its ranks.")
		p.figure("Parts of the time of each job", says, drawn,
			objectsOf(jobs, "Sums over the ranks of each job", append([]string{"name"}, members[2:]...)...))
	}
}

// used returns the parts that are not 0 in all.
func used(total value, names []string) (all []string) {
	for _, name := range names {
		if total.get(name).number() > 0 {
			all = append(all, name)
		}
	}
	return all
}

// path writes the critical path.
func (p *page) path() {
	path := p.root.get("critical_path")
	length := path.get("length_ps")
	if length.number() <= 0 {
		return
	}
	says := new(sentence).add("The critical path is ").show(length, time).add(" long and has ").
		show(path.get("ops"), plain).add(" ops; ").show(path.get("compute_share"), percent).
		add(" of it is computation.")
	p.section("critical-path", "Critical path", says)
	defer p.endSection()
	var names []string
	for name, v := range path.of.(map[string]any) {
		if unitOf(name) == time && name != "length_ps" && (value{of: v}).number() > 0 {
			names = append(names, name)
		}
	}
	sort.Slice(names, func(i, k int) bool {
		a, b := path.get(names[i]).number(), path.get(names[k]).number()
		return a > b || a == b && names[i] < names[k]
	})
	values := &table{caption: "Time on the critical path by part", headings: []string{"part", "time"}}
	all := make([]bar, len(names))
	for i, name := range names {
		v := path.get(name)
		all[i] = bar{label: heading(name), full: heading(name), parts: []piece{{"f0", "", v}}}
		values.rows = append(values.rows, []string{escape(heading(name)), show(v, time)})
	}
	p.figure("Critical path by part", says, bars(all, time), values)
	if list := path.get("by_name").all(); len(list) > 0 {
		first := list[0]
		says := new(sentence).add("Most of the critical path is ").show(first.get("name"), plain).add(": ").
			show(first.get("time_ps"), time).add(" in ").show(first.get("steps"), plain).add(" steps.")
		p.figure("Critical path by name of the op", says, single(list[:min(len(list), 20)],
			func(v value) string { return v.get("name").text() }, "time_ps", time),
			objectsOf(list, "Time on the critical path by name", "name", "steps", "time_ps"))
	}
	if list := path.get("by_rank").all(); len(list) > 0 {
		first := list[0]
		says := new(sentence).add("Most of the critical path is on rank ").show(first.get("rank"), plain).add(": ").
			show(first.get("time_ps"), time).add(".")
		p.figure("Critical path by rank", says, single(list[:min(len(list), 20)],
			func(v value) string { return "rank " + fmt.Sprint(v.get("rank").of) }, "time_ps", time),
			objectsOf(list, "Time on the critical path by rank", "rank", "steps", "time_ps"))
	}
	if counts := path.get("sensitivity"); counts.known {
		p.body.WriteString("<h3>Sensitivity</h3>\n<p>Growth of the makespan per unit of each parameter while " +
			"the path stays the same.</p>\n<dl>\n")
		p.list(counts)
		p.body.WriteString("</dl>\n")
	}
}

// list writes the numbers and texts of an object as a list, by name.
func (p *page) list(v value) {
	object, _ := v.of.(map[string]any)
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p.body.WriteString(row(heading(name), shown(v.get(name), unitOf(name))))
	}
}

// traffic writes the traffic matrix.
func (p *page) traffic() {
	matrix := p.root.get("matrix")
	rows := matrix.get("bytes").all()
	if len(rows) == 0 {
		return
	}
	busy := matrix.get("largest").all()
	edge := matrix.get("ranks_per_row")
	says := new(sentence)
	if edge.number() > 1 {
		says.add("Each row and column is a group of ").show(edge, plain).add(" ranks, by the first of them. ")
	}
	says.show(matrix.get("pairs"), plain).add(" pairs communicate")
	if len(busy) > 0 {
		says.add("; most bytes, ").show(busy[0].get("bytes"), size).add(", go from rank ").
			show(busy[0].get("src"), plain).add(" to rank ").show(busy[0].get("dst"), plain)
	}
	says.add(".")
	p.section("matrix", "Traffic matrix", says)
	p.figure("Bytes from rank to rank, on a logarithmic scale", says,
		heat(cells{of: matrix.get("bytes"), noun: "rank", edge: max(1, edge.number())}, size),
		objectsOf(busy, "Pairs of ranks with most bytes", "src", "dst", "messages", "bytes"))
	p.jobTraffic()
	p.endSection()
}

// jobs writes a line per job.
func (p *page) jobs() {
	jobs := p.root.get("jobs").all()
	if len(jobs) == 0 {
		return
	}
	last := slices.MaxFunc(jobs, func(a, b value) int {
		return a.get("finish_ps").integer().Cmp(b.get("finish_ps").integer())
	})
	says := new(sentence).add("Of the jobs, ").show(last.get("name"), plain).add(" finishes last, at ").
		show(last.get("finish_ps"), time).add(".")
	p.section("jobs", "Jobs", says)
	members := []string{"name", "ranks", "start_ps", "finish_ps", "makespan_ps", "compute_ps", "exposed_compute_share"}
	if jobs[0].get("alone_makespan_ps").known {
		members = append(members, "alone_makespan_ps", "slowdown")
	}
	all := make([]bar, len(jobs))
	for i, job := range jobs {
		name := clean(job.get("name").text())
		all[i] = bar{label: name, full: short(name, 200), parts: []piece{{"none", "start", job.get("start_ps")},
			{"f0", "makespan", job.get("makespan_ps")}}}
	}
	p.figure("Jobs over time", says, bars(all, time), objectsOf(jobs, "Jobs", members...))
	p.endSection()
}

// parameters writes all parameters.
func (p *page) parameters() {
	given := &table{caption: "Options that differ from their default", headings: []string{"option", "value"}}
	add := func(t *table, v value) {
		var walk func(name string, v value)
		walk = func(name string, v value) {
			switch of := v.of.(type) {
			case map[string]any:
				keys := make([]string, 0, len(of))
				for key := range of {
					keys = append(keys, key)
				}
				slices.Sort(keys)
				for _, key := range keys {
					walk(strings.TrimPrefix(name+"."+key, "."), v.get(key))
				}
			case []any:
				for i := range of {
					walk(fmt.Sprintf("%s.%d", name, i), v.at(i))
				}
			default:
				u := unitOf(name)
				if u == percent { // a factor
					u = plain
				}
				t.rows = append(t.rows, []string{"<code>" + escape(name) + "</code>", show(v, u)})
			}
		}
		walk("", v)
	}
	add(given, p.root.get("run", "settings"))
	all := &table{caption: "Parameters in use", headings: []string{"parameter", "value"}}
	add(all, p.root.get("params"))
	if len(given.rows)+len(all.rows) == 0 {
		return
	}
	p.section("parameters", "Parameters", nil)
	for _, t := range []*table{given, all} {
		if len(t.rows) > 0 {
			p.folded(t.caption, t)
		}
	}
	p.endSection()
}
