package rescale

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// Report is what was inferred about a program.
type Report struct {
	From        int      `json:"from_ranks"`
	To          int      `json:"to_ranks"`
	Scaling     string   `json:"scaling"`
	Grid        *Grid    `json:"grid,omitempty"`
	Second      *Second  `json:"second,omitempty"`
	Others      []Second `json:"other_traces,omitempty"` // after the second
	Calls       []Call   `json:"calls"`
	Rounds      []Rounds `json:"rounds,omitempty"`
	Times       []Times  `json:"times,omitempty"`
	Open        []Open   `json:"open_times,omitempty"`
	Classes     []Class  `json:"classes"`
	Assumptions []string `json:"assumptions"`
	Dropped     []string `json:"dropped,omitempty"`
	Warnings    []string `json:"warnings,omitempty"` // about what other traces would show
}

// Times is the calcs whose time depends on the number of ranks in one way.
type Times struct {
	Trend string  `json:"trend"`
	Calls bool    `json:"calls,omitempty"` // their time in calls of MPI, otherwise that of computation
	Share float64 `json:"share"`           // of the time of all calcs on the new ranks
	Count int     `json:"count"`           // in the program
}

// Open is times of which one trace does not show how they grow.
type Open struct {
	What   string  `json:"what"`
	Taken  string  `json:"taken"`
	AtMost string  `json:"at_most"`
	Change float64 `json:"change"` // of the length of the new trace if they grow so, relative
}

// Second is how much the trace differs from another one when it is rescaled to its ranks.
type Second struct {
	Ranks int     `json:"ranks"`
	Bytes float64 `json:"bytes_difference"` // of pairs of ranks and collectives, relative to all bytes
	Calcs float64 `json:"calcs_difference"` // of the total time, relative
	// Longest is the difference of the longest calcs of a rank, relative.
	Longest float64 `json:"longest_difference"`
}

// Grid is the grid of the ranks, the fastest dimension first.
type Grid struct {
	Recorded []int  `json:"recorded"`
	New      []int  `json:"new"`
	Periodic []bool `json:"periodic"`
	Source   string `json:"source"` // of the new one: given, recorded, balanced, proportions, line
}

// Call is the calls of one kind with one partner and one rule of sizes.
type Call struct {
	Call    string `json:"call"`
	Partner string `json:"partner,omitempty"`
	Comm    string `json:"comm,omitempty"`
	Ranks   string `json:"ranks"`
	Bytes   string `json:"bytes"`
	Count   int    `json:"count"` // in the program
}

// Rounds are the rounds of an algorithm.
type Rounds struct {
	Calls    string `json:"calls"`
	Recorded int    `json:"recorded"`
	New      int    `json:"new"`
	Count    string `json:"count"`
	Times    int    `json:"times"` // in the program
}

// Class is ranks at the same place of the grid.
type Class struct {
	Place    string `json:"place"`
	Recorded int    `json:"recorded"`
	New      int    `json:"new"`
}

// classesOf returns the classes in a fixed order.
func classesOf(s *space, members map[int32][]int32, counts map[int32]int) []Class {
	keys := map[int32]bool{}
	for k := range members {
		keys[k] = true
	}
	for k := range counts {
		keys[k] = true
	}
	var sorted []int32
	for k := range keys {
		sorted = append(sorted, k)
	}
	slices.Sort(sorted)
	var all []Class
	for _, k := range sorted {
		var parts []string
		for d, v := len(s.grid)-1, k; d >= 0; d, v = d-1, v/3 {
			switch v % 3 {
			case 1:
				parts = append(parts, fmt.Sprintf("first along %c", axes[d]))
			case 2:
				parts = append(parts, fmt.Sprintf("last along %c", axes[d]))
			}
		}
		slices.Reverse(parts)
		all = append(all, Class{cmp.Or(strings.Join(parts, ", "), "inside"), len(members[k]), counts[k]})
	}
	return all
}

// report returns the report.
func (g *target) report(classes []Class, source string) *Report {
	r := &Report{From: g.old.ranks, To: g.new.ranks, Scaling: g.o.Scaling.String(), Classes: classes,
		Assumptions: []string{}}
	if len(g.old.grid) > 1 {
		r.Grid = &Grid{g.old.grid, g.new.grid, g.old.periodic, source}
	}
	drawnSizes := g.reportCalls(r)
	g.reportRounds(r)
	assume := func(format string, args ...any) { r.Assumptions = append(r.Assumptions, fmt.Sprintf(format, args...)) }
	if g.old.ranks != g.new.ranks {
		if d := g.o.decided; d != nil {
			for _, o := range d.Others {
				r.Others = append(r.Others, Second(o))
			}
			r.Second, r.Others = &r.Others[0], r.Others[1:]
		} else if g.o.Scaling == Strong {
			assume("strong scaling: calcs and data of a rank shrink by %d/%d, borders by the grid", g.old.ranks,
				g.new.ranks)
		} else {
			assume("weak scaling: each rank keeps its calcs and the sizes of its messages")
		}
		if g.o.times == nil && g.o.Growth != Unknown && (len(g.lone) > 0 || len(g.inCalls) > 0) {
			assume("calcs of one rank alone, and calls of MPI such as those that make communicators: %s",
				g.o.Growth.basis().text())
		}
		switch source {
		case "balanced":
			assume("the grid is %s, as MPI_Dims_create divides %d ranks", text(g.new.grid), g.new.ranks)
		case "proportions":
			assume("the grid is %s, in the proportions of the recorded %s", text(g.new.grid), text(g.old.grid))
		}
	}
	for _, d := range g.old.unknown {
		assume("the border along %c is not periodic; with two ranks recorded along it, it could be", axes[d])
	}
	if g.tags != fromZero {
		assume("tags are the rank of the %s plus a number", []string{fromSender: "sender",
			fromReceiver: "receiver"}[g.tags])
	}
	g.assumeKept(assume)
	if drawnSizes > 0 {
		assume("the sizes of %d calls follow no rule; each rank has those of a recorded rank", drawnSizes)
	}
	g.reportTimes(r)
	r.Dropped = g.dropped()
	return r
}

// assumeKept names what keeps its value on the new ranks although another rule gives the recorded value as well:
// distances in the order of ranks, and numbers of iterations that are those of the ranks.
func (g *target) assumeKept(assume func(format string, args ...any)) {
	p, n := g.old.ranks, g.new.ranks
	if p == n {
		return
	}
	counts := map[call]int{}
	var kept []string
	for place, i := range g.order {
		c := g.slots[i].call
		if c == nil || c.kind != dag.Send || g.loopOf[place] >= 0 {
			continue
		}
		same := *c
		same.tag = 0
		if counts[same]++; counts[same] > 1 || c.rule != onLine && c.rule != byXor {
			continue
		}
		at := g.single[place]
		now, _ := g.callAt(&g.instances[at])
		switch {
		case now.at != c.at:
			assume("%s becomes %s, as far around all ranks", c.short(), now.short())
		case c.distance() > 1 || c.rule == byXor:
			kept = append(kept, c.rule.describe(c.at))
		}
	}
	if len(kept) > 0 {
		const most = 8
		assume("distances in the order of ranks do not depend on their number: %s",
			strings.Join(kept[:min(len(kept), most)], ", "))
	}
	if b := bits.Len(uint(n)) - 1; b%2 != 0 && slices.ContainsFunc(g.slots, func(s slot) bool {
		return s.call != nil && s.call.rule == transpose
	}) {
		assume("the transpose on %d ranks is that of a grid twice as long as wide, of pairs of ranks", n)
	}
	g.assumeSizes(assume)
	const least = 8 // ranks: smaller numbers are common
	named := map[int]bool{}
	for _, i := range g.order {
		c := g.slots[i].call
		if c == nil {
			continue
		}
		same := *c
		same.tag = 0
		if k := counts[same]; p >= least && !named[k] && (k == p || k == p-1 || 2*k == p || 2*k == p-2) {
			named[k] = true
			assume("%d times %s is a number of iterations that does not depend on the number of ranks", k, c.short())
		}
	}
}

// assumeSizes names the messages along the order of ranks that keep their size under strong scaling.
func (g *target) assumeSizes(assume func(format string, args ...any)) {
	var kept []string
	for i := range g.instances {
		inst := &g.instances[i]
		s := &g.slots[inst.slot]
		c := s.call
		if g.o.Scaling != Strong || c == nil || c.kind != dag.Send || s.size.value <= few {
			continue
		}
		if inOrder := c.rule == byXor || c.rule == onLine || c.rule == binary; !inOrder ||
			g.scaled(s, inst, s.size.value, 0) != s.size.value {
			continue
		}
		if text := c.rule.describe(c.at); !slices.Contains(kept, text) && len(kept) < 8 {
			kept = append(kept, text)
		}
	}
	if kept != nil {
		assume("the sizes of messages along the order of ranks do not shrink: %s", strings.Join(kept, ", "))
	}
}

// reportCalls lists the kinds of call. It returns the number of calls with drawn sizes.
func (g *target) reportCalls(r *Report) (drawnSizes int) {
	at := map[Call]int{}
	for _, i := range g.order {
		s := &g.slots[i]
		if s.call == nil {
			continue
		}
		c := Call{Call: s.template.Kind.String(), Partner: s.call.rule.describe(s.call.at), Ranks: "all",
			Bytes: s.size.text()}
		if s.call.kind == dag.Coll {
			c.Call = s.call.sub.String()
			c.Comm = g.commText(s.call.comm)
		}
		switch {
		case !s.always:
			c.Ranks = "by " + s.feature.describe()
		case isMessage(s.call.kind) && s.call.rule != anyone:
			c.Ranks = "with partner"
		}
		if s.size.kind == drawn {
			drawnSizes++
		}
		n, known := at[c]
		if !known {
			n = len(r.Calls)
			at[c] = n
			r.Calls = append(r.Calls, c)
		}
		r.Calls[n].Count++
	}
	return drawnSizes
}

func (z *size) text() string {
	switch z.kind {
	case byPlace:
		return "by " + z.feature.describe()
	case drawn:
		return "by rank"
	}
	return fmt.Sprint(z.value)
}

// commText returns a kind of communicator in words.
func (g *target) commText(kind int32) string {
	mask := kind >> 8
	if mask == 0 {
		return "all ranks"
	}
	var parts []string
	for d := range g.old.grid {
		if mask&(1<<d) != 0 {
			parts = append(parts, string(axes[d]))
		}
	}
	if parts == nil {
		return "the rank alone"
	}
	return "ranks along " + strings.Join(parts, " and ")
}

// reportRounds lists the kinds of rounds, and the assumptions about them.
func (g *target) reportRounds(r *Report) {
	at := map[Rounds]int{}
	for l, x := range g.loops {
		e := Rounds{Calls: g.callsOf(&x), Recorded: x.rounds, New: g.counts[l], Count: x.count.text()}
		if g.keepsRounds(&x) {
			e.Count = "fixed"
		}
		n, known := at[e]
		if !known {
			n = len(r.Rounds)
			at[e] = n
			r.Rounds = append(r.Rounds, e)
			if x.counted && !x.unsure && !g.keepsRounds(&x) && g.old.ranks != g.new.ranks && g.o.decided == nil {
				r.Assumptions = append(r.Assumptions, fmt.Sprintf("%d rounds of %s are %s of %d ranks, not a fixed "+
					"number", x.rounds, e.Calls, e.Count, g.old.ranks))
			}
		}
		r.Rounds[n].Times++
	}
}

// short returns the call without its tag.
func (c *call) short() string {
	if c.kind == dag.Coll {
		return fmt.Sprintf("%v with roots from %s on", c.sub, c.rule.describe(c.at))
	}
	return fmt.Sprintf("%v %s", c.kind, c.rule.describe(c.at))
}

// name returns the call without its tag, of one round.
func (c *call) name() string {
	if c.kind == dag.Coll {
		return c.describe()
	}
	return c.short()
}

func (c count) text() string {
	n := "N"
	var along []string
	for d, axis := range axes {
		if c.mask&(1<<d) != 0 {
			along = append(along, "N"+string(axis))
		}
	}
	if along != nil {
		n = strings.Join(along, ", ")
	}
	if len(along) > 1 {
		n = map[bool]string{false: "max(", true: "min("}[c.log] + n + ")"
	}
	switch {
	case c.fixed:
		return "fixed"
	case c.root:
		return "log2 of the square root of N, rounded up"
	case c.log:
		n = "log2 " + n
	case c.times == 0 || c.times == 1 && c.per == 2:
		n += "/2"
	case c.per > 1:
		n = fmt.Sprintf("%d %s/%d", c.times, n, c.per)
	case c.times == 2 && c.offset == -2:
		return "2 (" + n + " - 1)"
	case c.times > 1:
		n = fmt.Sprintf("%d %s", c.times, n)
	}
	if c.offset != 0 {
		n += fmt.Sprintf(" - %d", -c.offset)
	}
	return n
}

func (t *Times) text() string {
	text := fmt.Sprintf("%.3g %% ", 100*t.Share)
	if t.Calls {
		text += "in calls of MPI "
	}
	return text + t.Trend
}

// dropped lists what the new trace lacks.
func (g *target) dropped() (all []string) {
	var measured, attrs bool
	for _, r := range g.from.Ranks {
		measured = measured || len(r.MeasuredStart) > 0
		for i := 0; i < r.Attrs.Len() && !attrs; i++ {
			text := r.Attrs.At(i)
			attrs = keptAttrs(text) != text
		}
	}
	if measured {
		all = append(all, "measured times")
	}
	lost := 0
	for i := range g.slots {
		if s := &g.slots[i]; s.uncounted || s.counts != nil && g.counted[i] == nil {
			lost++
		}
	}
	if lost > 0 && g.old.ranks != g.new.ranks {
		all = append(all, fmt.Sprintf("the bytes by partner of %d alltoallv, which follow no rule", lost))
	}
	if attrs || g.from.Attrs != "" {
		all = append(all, "attributes of formats")
	}
	if g.from.Nodes != nil {
		all = append(all, "nodes of ranks")
	}
	return all
}

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// Summary returns the report as lines of text.
func (r *Report) Summary() (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if r.Grid != nil {
		var periodic []string
		for d, p := range r.Grid.Periodic {
			if p {
				periodic = append(periodic, string(axes[d]))
			}
		}
		add("grid %s becomes %s (x first), periodic along: %s", text(r.Grid.Recorded), text(r.Grid.New),
			cmp.Or(strings.Join(periodic, ", "), "none"))
	}
	if s := r.Second; s != nil {
		add("%s scaling: rescaled to the %d ranks of the second trace, bytes differ by %.3g %%, calcs by %.3g %%",
			r.Scaling, s.Ranks, 100*s.Bytes, 100*s.Calcs)
	}
	for _, s := range r.Others {
		add("rescaled to the %d ranks of another trace, bytes differ by %.3g %%, calcs by %.3g %%", s.Ranks,
			100*s.Bytes, 100*s.Calcs)
	}
	for _, x := range r.Rounds {
		add("%d rounds become %d (%s), %d times: %s", x.Recorded, x.New, x.Count, x.Times, x.Calls)
	}
	if r.Second != nil && r.Times != nil {
		var texts []string
		for _, t := range r.Times {
			texts = append(texts, t.text())
		}
		add("time of calcs by the traces: %s", strings.Join(texts, ", "))
	}
	for _, a := range r.Assumptions {
		add("assumed: %s", a)
	}
	if len(r.Dropped) > 0 {
		add("dropped: %s", strings.Join(r.Dropped, ", "))
	}
	return lines
}
