package report

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

const (
	mostRows     = 64 // of the picture; above, a row stands for several lanes or ranks
	longestWaits = 20 // waits and collectives in a table
)

// band is a horizontal strip of a picture: slices of lanes, stacked by their share of the time.
type band struct {
	y, high int // in pixels
	steps   int // heights of a share
	lanes   []*lane
	class   laneGroup
}

// rows is the arrangement of a timeline in rows.
type rows struct {
	labels []string
	pitch  int // height of a row
	bands  []band
	per    int   // lines per row; 0: a row per lane
	first  []int // first row of each line
}

// arrange returns the rows of a timeline: one per lane if there are at most mostRows lanes, otherwise one per rank or
// group of ranks.
func (t *Timeline) arrange() *rows {
	r := &rows{first: make([]int, len(t.lines))}
	lanes := t.lanes()
	if len(lanes) <= mostRows {
		r.pitch = 22
		if len(lanes) > 16 {
			r.pitch = 13
		}
		for i, l := range lanes {
			if i == 0 || lanes[i-1].line != l.line || lanes[i-1].group < streamLane {
				r.first[l.line] = i
			}
			r.labels = append(r.labels, t.rankLabel(l.line, 1)+", "+l.name())
			high := r.pitch / 4 * 3
			r.bands = append(r.bands, band{y: i*r.pitch + 2, high: high, steps: high / 2, lanes: lanes[i : i+1],
				class: l.group})
		}
		return r
	}
	r.pitch, r.per = 11, (len(t.lines)+mostRows-1)/mostRows
	for first := 0; first < len(t.lines); first += r.per {
		var groups [3][]*lane
		for line := first; line < min(first+r.per, len(t.lines)); line++ {
			r.first[line] = len(r.labels)
			for _, l := range t.lines[line] {
				groups[l.group] = append(groups[l.group], l)
			}
		}
		for group, place := range [3]band{{y: 0, high: 2, steps: 1}, {y: 2, high: 6, steps: 3},
			{y: 8, high: 2, steps: 1}} {
			if place.lanes = groups[group]; len(place.lanes) > 0 {
				place.y, place.class = place.y+1+len(r.labels)*r.pitch, laneGroup(group)
				r.bands = append(r.bands, place)
			}
		}
		r.labels = append(r.labels, t.rankLabel(first, r.per))
	}
	return r
}

// rankLabel returns the label of the ranks of lines.
func (t *Timeline) rankLabel(line, lines int) string {
	from, to := line*t.edge, min((line+lines)*t.edge, t.ranks)-1
	if from == to {
		return fmt.Sprintf("rank %d", from)
	}
	return fmt.Sprintf("ranks %d to %d", from, to)
}

// name returns the name of a lane of a line.
func (l *lane) name() string {
	switch {
	case l.group == collLane:
		return "collectives"
	case l.others:
		return [...]string{streamLane: "other streams", nicLane: "other NICs"}[l.group]
	case l.group == nicLane:
		return fmt.Sprintf("NIC %d", l.number)
	}
	return fmt.Sprintf("stream %d", l.number)
}

// stacked is a stretch of columns of a band in which a kind takes the same heights.
type stacked struct {
	kind     SliceKind
	from, to int // columns
	low, up  int // in steps of the band
}

const subpixels = 1 << 16 // parts of a pixel in which time is counted

// stack returns the shares of the kinds in the columns of a band, each of which is step pixels wide.
func (b *band) stack(end uint64, step int) (all []stacked) {
	n := (width - labels - right) / step
	var cover [sliceKinds][]uint64
	full := uint64(step) * subpixels
	place := func(at uint64) uint64 { // end is not 0
		high, low := bits.Mul64(min(at, end), uint64(n)*full)
		quotient, _ := bits.Div64(high, low, end)
		return quotient
	}
	for _, l := range b.lanes {
		for i := range l.all {
			m := &l.all[i]
			if cover[m.kind] == nil {
				cover[m.kind] = make([]uint64, n+1)
			}
			spread(cover[m.kind], place(m.start), place(m.end), uint64(min(percentOf(m.busy, m.end-m.start), 100)),
				full)
		}
	}
	whole := full * uint64(len(b.lanes)) * 100
	var last [sliceKinds]int // index+1 of the last stretch in all
	for column := range n {
		sum, low := uint64(0), 0
		for k := range cover {
			if cover[k] == nil || cover[k][column] == 0 {
				continue
			}
			sum = min(sum+cover[k][column], whole)
			up := int((sum*uint64(b.steps) + whole/2) / whole)
			if up == low {
				continue
			}
			if i := last[k] - 1; i >= 0 && all[i].to == column && all[i].low == low && all[i].up == up {
				all[i].to++
			} else {
				all = append(all, stacked{SliceKind(k), column, column + 1, low, up})
				last[k] = len(all)
			}
			low = up
		}
	}
	return all
}

// spread adds the time from a place to another one to the columns that it covers. Each column is full long.
func spread(cover []uint64, from, to, share, full uint64) {
	for column := from / full; column <= to/full && column < uint64(len(cover)); column++ {
		start, end := max(from, column*full), min(to, (column+1)*full)
		cover[column] += (end - start) * share
	}
}

// figureOf draws the timeline. Columns become wider until the paths have at most budget bytes.
func (t *Timeline) figureOf(r *rows, budget int) *drawing {
	d := &drawing{}
	high := r.pitch * len(r.labels)
	d.marks.WriteString(`<g class="axes">`)
	d.axis(axis{most: float64(t.end) * float64(t.unit), unit: time}, float64(high))
	d.marks.WriteString("</g>\n")
	every := max(1, (13+r.pitch-1)/r.pitch)
	d.marks.WriteString(`<g class="rows">`)
	for i, label := range r.labels {
		if i%every == 0 {
			fmt.Fprintf(&d.marks, `<text x="%d" y="%d" text-anchor="end">%s</text>`, labels-8,
				i*r.pitch+r.pitch/2+4, escape(short(label, 26)))
		}
	}
	d.marks.WriteString("</g>\n")
	var paths [sliceKinds]strings.Builder
	for step := 1; ; step *= 2 {
		length := 0
		for k := range paths {
			paths[k].Reset()
		}
		for i := range r.bands {
			b := &r.bands[i]
			unit := b.high / b.steps
			for _, s := range b.stack(t.end, step) {
				w, h := (s.to-s.from)*step, (s.up-s.low)*unit
				fmt.Fprintf(&paths[s.kind], "M%d %dh%dv%dh-%dz", labels+s.from*step, b.y+b.high-s.up*unit, w, h, w)
			}
		}
		for k := range paths {
			length += paths[k].Len()
		}
		if length <= budget || step >= 32 {
			break
		}
	}
	d.marks.WriteString(`<g class="slices">`)
	for k := range paths {
		if t.counts[k] > 0 {
			fmt.Fprintf(&d.marks, `<path class="%s" data-kind="%d" d="%s"/>`, sliceNames[k].class, k, paths[k].String())
			d.key(sliceNames[k].class, sliceNames[k].name)
		}
	}
	d.marks.WriteString("</g>\n")
	if len(t.steps) > 0 {
		fmt.Fprintf(&d.marks, `<path class="critical" d="%s"/>`+"\n", t.overlay(r))
		d.key("critical", "critical path")
	}
	return d
}

// turns returns the critical path as points in pixels of the picture, right of the labels: at most two turns per pixel
// of time.
func (t *Timeline) turns(r *rows) (all [][2]int) {
	place := func(at uint64) int {
		high, low := bits.Mul64(min(at, t.end), width-labels-right)
		quotient, _ := bits.Div64(high, low, t.end)
		return int(quotient)
	}
	x, y, turns := -1, -1, 0
	to := func(newX, newY int) {
		if newX > x {
			turns = 0
		}
		x, y = newX, newY
		all = append(all, [2]int{x, y})
	}
	for _, s := range t.steps {
		from, end := place(s.Start), place(s.End)
		row := r.pitch*r.first[int(s.Rank)/t.edge] + r.pitch/2
		if x < 0 {
			to(from, row)
		}
		if from > x {
			to(from, y)
		}
		if row != y && turns < 2 {
			to(x, row)
			turns++
		}
		if end > x {
			to(end, y)
		}
	}
	return all
}

// overlay returns the critical path as a line from row to row.
func (t *Timeline) overlay(r *rows) string {
	var b strings.Builder
	last := [2]int{-1, -1}
	for i, p := range t.turns(r) {
		switch {
		case i == 0:
			fmt.Fprintf(&b, "M%d %d", labels+p[0], p[1])
		case p[0] != last[0]:
			fmt.Fprintf(&b, "H%d", labels+p[0])
		default:
			fmt.Fprintf(&b, "V%d", p[1])
		}
		last = p
	}
	return b.String()
}

// facts describes the timeline of a page, for its text.
func (t *Timeline) facts(r *rows, e *encoded) map[string]any {
	shown := 0
	if n := len(e.Levels); n > 0 {
		shown = e.Levels[n-1].Slices
	}
	facts := map[string]any{"slices_in_page": shown, "aggregated": !e.exact, "rows": len(r.labels),
		"ranks_per_row": max(1, r.per) * t.edge}
	if e.Path != nil {
		facts["path_stretches"], facts["path_stretches_in_page"] = len(t.steps), e.Path.Slices
	}
	return facts
}

// timelineOf is the timeline of a page.
type timelineOf struct {
	drawn *drawing
	facts map[string]any
	data  []byte
}

// prepare draws and encodes a timeline for a page that has other contents of a number of bytes.
func (t *Timeline) prepare(other int) (*timelineOf, error) {
	if t == nil || t.Empty() || t.end == 0 {
		return nil, nil
	}
	most, picture := smallPage, smallPage/10
	if t.ranks > smallRanks {
		most, picture = min(largePage, smallPage+(t.ranks-smallRanks)*5000), smallPage/2
	}
	r := t.arrange()
	drawn := t.figureOf(r, picture)
	e := t.encode(min(maxTimeline, max(leastTimeline, most-other-drawn.marks.Len())))
	data, err := marshal(e)
	if err != nil {
		return nil, err
	}
	return &timelineOf{drawn, t.facts(r, e), data}, nil
}

// A page about at most smallRanks ranks has at most about smallPage bytes, others up to largePage.
const (
	smallRanks = 64
	smallPage  = 290_000
	largePage  = 4_700_000
)

// timeline writes the timeline.
func (p *page) timeline() {
	all, facts := p.root.get("timeline"), p.root.get("report", "timeline")
	if !all.known {
		return
	}
	waits := all.get("waits").all()
	says := new(sentence).show(all.get("slices"), plain).add(" slices on ").show(all.get("lanes"), plain).add(" lanes")
	if len(waits) > 0 {
		says.add("; the longest wait, ").show(waits[0].get("time_ps"), time).add(", is that of rank ").
			show(waits[0].get("rank"), plain).add(" from ").show(waits[0].get("start_ps"), time).add(" on")
	}
	says.add(".")
	p.section("timeline", "Timeline", says)
	defer p.endSection()
	text := new(sentence)
	if per := facts.get("ranks_per_row"); per.number() > 1 {
		text.add("A row of the picture is a group of ").show(per, plain).add(" ranks. ")
	}
	merges := ""
	if facts.get("aggregated").of == true {
		text.add("This page has ").show(facts.get("slices_in_page"), plain).
			add(" slices: short neighbours of a kind are one slice. ")
		merges = "The option <code>--timeline FILE.json.gz</code> writes all of them to a file for Perfetto."
	}
	if text.html.Len() > 0 {
		fmt.Fprintf(&p.body, "<p>%s%s</p>\n", text.html.String(), merges)
	}
	members := []string{"rank", "op", "start_ps", "time_ps"}
	if slices.ContainsFunc(waits, func(v value) bool { return v.get("name").known }) {
		members = slices.Insert(members, 2, "name")
	}
	longest := objectsOf(waits[:min(len(waits), longestWaits)], "Longest waits", members...)
	sums := objectsOf(all.get("kinds").all(), "Slices of all ranks by kind", "kind", "slices", "time_ps")
	if p.lanes != nil {
		p.figure("Ranks over time", says, p.lanes.drawn, sums)
	} else {
		sums.write(&p.body)
	}
	if len(waits) > 0 {
		p.folded("Longest waits", longest)
	}
	if list := all.get("longest_collectives").all(); len(list) > 0 {
		p.folded("Longest collectives", objectsOf(list[:min(len(list), longestWaits)], "Longest collectives", "name",
			"number", "start_ps", "end_ps", "time_ps"))
	}
}

// dataOf returns the element with the data of the timeline.
func (t *timelineOf) dataOf() string {
	if t == nil {
		return ""
	}
	return `<script type="application/json" id="timeline-data">` +
		strings.ReplaceAll(string(json.RawMessage(t.data)), "<", `\u003c`) + "</script>\n"
}
