package report

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
)

const (
	comparedResults = lineStyles // on a page, at most
	listedChanges   = 300        // between two results, at most
)

// Kept is a result to compare.
type Kept struct {
	Name     string // of its file
	Document []byte // JSON
	// Changes are the values that differ from those of the first result, the largest differences first.
	Changes []Change
}

// Change is a value that differs between two results.
type Change struct {
	Metric string          `json:"metric"`
	Item   string          `json:"item,omitempty"` // place in a list
	A      json.RawMessage `json:"a"`              // null: the result does not have it
	B      json.RawMessage `json:"b"`
	// Difference is b - a and Ratio b / a, if both are numbers.
	Difference json.RawMessage `json:"difference"`
	Ratio      json.RawMessage `json:"ratio"`
}

// complete sets the difference and the ratio.
func (c *Change) complete() {
	null := json.RawMessage("null")
	for _, v := range []*json.RawMessage{&c.A, &c.B} {
		if *v == nil {
			*v = null
		}
	}
	c.Difference, c.Ratio = null, null
	a, isA := new(big.Rat).SetString(string(c.A))
	b, isB := new(big.Rat).SetString(string(c.B))
	if !isA || !isB {
		return
	}
	difference := new(big.Rat).Sub(b, a)
	if difference.IsInt() {
		c.Difference = json.RawMessage(difference.Num().String())
	} else {
		c.Difference = numberOfRat(difference)
	}
	if a.Sign() != 0 {
		c.Ratio = numberOfRat(new(big.Rat).Quo(b, a))
	}
}

// numberOfRat returns the JSON of a number, null if it is out of range.
func numberOfRat(r *big.Rat) json.RawMessage {
	f, _ := r.Float64()
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !json.Valid([]byte(text)) {
		text = "null"
	}
	return json.RawMessage(text)
}

// Compare returns the report of several results, which a page shows side by side.
func Compare(all []Kept) (*Report, error) {
	if len(all) > comparedResults {
		return nil, fmt.Errorf("expected at most %d results, found %d", comparedResults, len(all))
	}
	type pair struct {
		Changes []Change `json:"changes"`
		Number  int      `json:"number"`
	}
	document := struct {
		Names   []string          `json:"names"`
		Results []json.RawMessage `json:"results"`
		Pairs   []pair            `json:"compared_with_first"`
	}{}
	for i, k := range all {
		r, err := Simulation(k.Document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.Name, err)
		}
		document.Names, document.Results = append(document.Names, k.Name), append(document.Results, r.document)
		if i == 0 {
			continue
		}
		p := pair{Changes: []Change{}, Number: len(k.Changes)}
		for _, c := range k.Changes[:min(len(k.Changes), listedChanges)] {
			c.complete()
			p.Changes = append(p.Changes, c)
		}
		document.Pairs = append(document.Pairs, p)
	}
	text, err := marshal(document)
	if err != nil {
		return nil, err
	}
	return newReport(text, ofSeveral, 0, nil, (*page).compare)
}

// compare writes the page of several results.
func (p *page) compare() {
	results, names := p.root.get("results").all(), p.root.get("names")
	p.title = "Comparison of results – simulate"
	w := &p.head
	w.WriteString("<h1>Comparison of results</h1>\n")
	t := &table{caption: "Results", headings: []string{"result", "trace", "backend", "model", "complete", "makespan",
		"99th percentile of the FCT", "99th percentile of the slowdown"}}
	for i, r := range results {
		var cells []string
		for _, c := range []struct {
			v    value
			unit unit
		}{
			{names.at(i), plain}, {r.get("run", "trace", "name"), plain}, {r.get("backend"), plain},
			{r.get("model"), plain},
			{r.get("complete"), plain}, {r.get("makespan_ps"), time}, {r.get("fct_ps", "p99"), time},
			{r.get("slowdown", "p99"), plain},
		} {
			cells = append(cells, shown(c.v, c.unit))
		}
		t.rows = append(t.rows, cells)
	}
	t.writeOpen(w)
	w.WriteString("\n")
	p.compareMakespans(results, names)
	p.compareParts(results, names)
	p.compareCurves(results, names)
	p.changes(results, names)
}

func (p *page) compareMakespans(results []value, names value) {
	all := make([]bar, len(results))
	least, most := 0, 0
	for i, r := range results {
		name := clean(names.at(i).text())
		all[i] = bar{label: name, full: short(name, 200), parts: []piece{{"f0", "makespan", r.get("makespan_ps")}}}
		if r.get("makespan_ps").number() < results[least].get("makespan_ps").number() {
			least = i
		}
		if r.get("makespan_ps").number() > results[most].get("makespan_ps").number() {
			most = i
		}
	}
	says := new(sentence).show(names.at(least), plain).add(" has the shortest makespan, ").
		show(results[least].get("makespan_ps"), time).add("; ").show(names.at(most), plain).add(" the longest, ").
		show(results[most].get("makespan_ps"), time).add(".")
	values := &table{caption: "Makespans", headings: []string{"result", "makespan"}}
	for i, r := range results {
		values.rows = append(values.rows, []string{show(names.at(i), plain), show(r.get("makespan_ps"), time)})
	}
	p.section("makespan", "Makespan", says)
	p.figure("Makespan of each result", says, bars(all, time), values)
	p.endSection()
}

func (p *page) compareParts(results []value, names value) {
	values := &table{caption: "Time of all ranks by part", headings: []string{"result"}}
	var used []string
	for _, part := range parts {
		for _, r := range results {
			if r.get("breakdown_total", part.name).number() > 0 {
				used = append(used, part.name)
				values.headings = append(values.headings, heading(part.name))
				break
			}
		}
	}
	if len(used) == 0 {
		return
	}
	var all []bar
	says := new(sentence).add("Computation alone takes ")
	for i, r := range results {
		name, shares := clean(names.at(i).text()), r.get("report", "ranks", "shares")
		if !shares.known {
			continue
		}
		b := bar{label: name, full: short(name, 200)}
		line := []string{show(names.at(i), plain)}
		for _, part := range parts {
			share := shares.get(shareOf(part.name))
			if share.known {
				b.parts = append(b.parts, piece{part.class, heading(part.name), share})
			}
		}
		for _, part := range used {
			line = append(line, shown(shares.get(shareOf(part)), percent))
		}
		if len(all) > 0 {
			says.add("; ")
		}
		all = append(all, b)
		says.show(shares.get("compute_share"), percent).add(" in ").show(names.at(i), plain)
		values.rows = append(values.rows, line)
	}
	says.add(", of the time of the ranks.")
	p.section("ranks", "Ranks", says)
	picture := bars(all, percent)
	for _, part := range parts {
		for _, name := range used {
			if part.name == name {
				picture.key(part.class, heading(part.name))
			}
		}
	}
	p.figure("Shares of the parts of the time of all ranks", says, picture, values)
	p.endSection()
}

// compareCurves writes distributions of flows over each other.
func (p *page) compareCurves(results []value, names value) {
	begun := false
	for _, m := range []struct {
		curve, of, name string
		unit            unit
	}{{"fct_cdf", "fct_ps", "flow completion time", time}, {"slowdown_cdf", "slowdown", "slowdown", plain}} {
		var curves []value
		var labels []string
		says := new(sentence).add("The 99th percentile of the " + m.name + " is ")
		values := &table{caption: "Percentiles", headings: append([]string{"result"}, quantiles...)}
		for i, r := range results {
			curve := r.get(m.curve)
			if !curve.known {
				curve = r.get("report", m.curve)
			}
			if curve.len() < 2 {
				continue
			}
			if len(curves) > 0 {
				says.add("; ")
			}
			says.show(r.get(m.of, "p99"), m.unit).add(" in ").show(names.at(i), plain)
			curves, labels = append(curves, curve), append(labels, clean(names.at(i).text()))
			line := []string{show(names.at(i), plain)}
			for _, q := range quantiles {
				line = append(line, show(r.get(m.of, q), m.unit))
			}
			values.rows = append(values.rows, line)
		}
		if len(curves) == 0 {
			continue
		}
		says.add(".")
		if !begun {
			begun = true
			p.section("flows", "Flows", says)
		}
		p.figure("Share of flows up to a "+m.name, says, distributions(m.name, m.unit, curves, labels), values)
	}
	if begun {
		p.endSection()
	}
}

// changes writes the values that differ from those of the first result.
func (p *page) changes(results []value, names value) {
	p.section("differences", "Differences", nil)
	for i, pair := range p.root.get("compared_with_first").all() {
		changes := pair.get("changes").all()
		says := new(sentence).show(pair.get("number"), plain).add(" values of ").show(names.at(i+1), plain).
			add(" differ from those of ").show(names.at(0), plain).add(".")
		p.body.WriteString("<p>" + says.html.String() + "</p>\n")
		if len(changes) == 0 {
			continue
		}
		caption := "Values that differ"
		if float64(len(changes)) < pair.get("number").number() {
			caption = fmt.Sprintf("The first %d values that differ", len(changes))
		}
		t := &table{caption: caption, headings: []string{"value", "place", clean(names.at(0).text()),
			clean(names.at(i + 1).text()), "difference", "ratio"}}
		for _, c := range changes {
			u := unitOfPath(c.get("metric").text())
			t.rows = append(t.rows, []string{show(c.get("metric"), plain), shown(c.get("item"), plain),
				show(c.get("a"), u),
				show(c.get("b"), u), show(c.get("difference"), u), show(c.get("ratio"), plain)})
		}
		p.folded("Compared with "+clean(names.at(i+1).text()), t)
	}
	p.endSection()
}
