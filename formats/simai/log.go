// This file parses the logs of AICB: workloads and measurements with a line per call.

package simai

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/memory"
)

// logStart is the beginning of the header of a log.
const logStart = "comm_type,comm_group,"

// isLog reports whether a text begins with the header of a log, possibly after a line in brackets.
func isLog(head []byte) bool {
	if bytes.HasPrefix(head, []byte("[")) {
		_, head, _ = bytes.Cut(head, []byte("\n"))
	}
	return bytes.HasPrefix(head, []byte(logStart))
}

// logCall is a line of a log.
type logCall struct {
	line  int64
	kind  logKind
	coll  dag.Subkind // of a collective
	group string      // such as tp_group
	size  int         // members of the group; 0: not stated
	bytes int64
	time  dag.Time
	count int64
	peer  int64 // rank of a message; noPeer: next or previous stage
	back  bool  // to or from the previous stage
	name  string
}

type logKind uint8

const (
	logColl logKind = iota
	logSend
	logRecv
	logCalc
	logEnd // of an epoch
)

const noPeer = -1

// logColls are the collectives by comm_type.
var logColls = map[string]dag.Subkind{
	"all_reduce": dag.Allreduce, "all_gather": dag.Allgather, "all_gather_into_tensor": dag.Allgather,
	"reduce_scatter": dag.ReduceScatter, "reduce_scatter_tensor": dag.ReduceScatter, "all_to_all": dag.Alltoall,
	"broadcast": dag.Bcast, "reduce": dag.Reduce, "barrier": dag.Barrier,
}

// logSection is the program of the ranks of a pipeline stage.
type logSection struct {
	ranks []int32 // nil: not stated
	calls []logCall
}

// logParser parses a log.
type logParser struct {
	file    string
	line    int64
	columns map[string]int
	list    []logSection
}

func (p *logParser) fail(expected, found string) error {
	return &format.SyntaxError{File: p.file, Line: p.line, Expected: expected, Found: found}
}

// parseLog parses the sections of a log.
func parseLog(file string, content []byte) ([]logSection, error) {
	p := &logParser{file: file}
	var block []byte // lines from a header on
	start := int64(1)
	flush := func() error {
		if len(bytes.TrimSpace(block)) == 0 {
			return nil
		}
		return p.parseBlock(block, start)
	}
	number := int64(0)
	for line := range bytes.Lines(content) {
		number++
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] == '[' {
			if err := flush(); err != nil {
				return nil, err
			}
			p.line = number
			ranks, err := p.parseRanks(string(text))
			if err != nil {
				return nil, err
			}
			p.list = append(p.list, logSection{ranks: ranks})
			block, start = nil, number+1
			continue
		}
		block = append(block, line...)
	}
	if err := flush(); err != nil {
		return nil, err
	}
	for i := range p.list {
		if len(p.list[i].calls) == 0 {
			p.line = number + 1
			return nil, p.fail("calls for each list of ranks", "none for one of them")
		}
	}
	if len(p.list) == 0 {
		p.line = 1
		return nil, p.fail("a header that begins with "+logStart, "the end of the file")
	}
	return p.list, nil
}

// parseRanks parses a line such as [rank0 ~ rank127] or [ pp_stage0: [rank0, rank1] ].
func (p *logParser) parseRanks(text string) (ranks []int32, err error) {
	if _, list, found := strings.Cut(text, ":"); found {
		text = list
	}
	text = strings.Trim(text, "[] \t")
	number := func(word string) (int32, error) {
		digits, ok := strings.CutPrefix(strings.TrimSpace(word), "rank")
		n, err := strconv.ParseInt(digits, 10, 32)
		if !ok || err != nil || n < 0 || n >= maxRanks {
			return 0, p.fail("ranks such as [rank0 ~ rank127] or [pp_stage0: [rank0, rank1]]", quote(word))
		}
		return int32(n), nil
	}
	if first, last, isRange := strings.Cut(text, "~"); isRange {
		a, err := number(first)
		if err != nil {
			return nil, err
		}
		b, err := number(last)
		if err != nil {
			return nil, err
		}
		if b < a {
			return nil, p.fail("ranks in ascending order", quote(text))
		}
		for r := a; r <= b; r++ {
			ranks = append(ranks, r)
		}
		return ranks, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		r, err := number(word)
		if err != nil {
			return nil, err
		}
		ranks = append(ranks, r)
	}
	return ranks, nil
}

// parseBlock parses a header and the lines after it, from the given line of the file on.
func (p *logParser) parseBlock(block []byte, start int64) error {
	if len(p.list) == 0 {
		p.list = append(p.list, logSection{})
	}
	section := &p.list[len(p.list)-1]
	r := csv.NewReader(bytes.NewReader(block))
	r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = -1, true, true
	p.columns = nil
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		line, _ := r.FieldPos(0)
		p.line = start + int64(line) - 1
		if err != nil {
			return p.fail("comma-separated values", err.Error())
		}
		if p.columns == nil {
			if err := p.parseHeader(fields); err != nil {
				return err
			}
			continue
		}
		if len(section.calls) == maxOps {
			return p.fail(fmt.Sprintf("at most %d calls", maxOps), "another")
		}
		c, err := p.parseCall(fields)
		if err != nil {
			return err
		}
		section.calls = append(section.calls, c)
	}
}

func (p *logParser) parseHeader(fields []string) error {
	p.columns = make(map[string]int)
	for i, name := range fields {
		name = strings.TrimSpace(name)
		if _, twice := p.columns[name]; twice {
			return p.fail("a header whose columns have different names", quote(name)+" twice")
		}
		p.columns[name] = i
	}
	for _, name := range []string{"comm_type", "comm_group", "msg_size"} {
		if _, ok := p.columns[name]; !ok {
			return p.fail("a header with the column "+name, quote(strings.Join(fields, ",")))
		}
	}
	return nil
}

// parseCall parses a line.
func (p *logParser) parseCall(fields []string) (c logCall, err error) {
	if len(fields) != len(p.columns) {
		return c, p.fail(fmt.Sprintf("%d fields as in the header", len(p.columns)), strconv.Itoa(len(fields)))
	}
	field := func(name string) string {
		if i, ok := p.columns[name]; ok {
			if text := strings.TrimSpace(fields[i]); text != "None" && text != "nan" {
				return text
			}
		}
		return ""
	}
	number := func(name string, none, most float64) float64 {
		text := field(name)
		if text == "" || err != nil {
			return none
		}
		v, bad := strconv.ParseFloat(text, 64)
		if bad != nil || !(v >= 0 && v <= most) {
			err = p.fail(name+" of 0 to "+strconv.FormatFloat(most, 'f', 0, 64), quote(text))
		}
		return v
	}
	kind := strings.TrimPrefix(field("comm_type"), "CommType.")
	c = logCall{line: p.line, group: strings.TrimPrefix(field("comm_group"), "CommGroup."), peer: noPeer,
		name: field("stage")}
	coll := false
	if c.coll, coll = logColls[kind]; !coll {
		switch kind {
		case "isend":
			c.kind = logSend
		case "irecv":
			c.kind = logRecv
		case "computation":
			c.kind = logCalc
		case "epoch_end":
			c.kind = logEnd
		default:
			return c, p.fail("a comm_type such as CommType.all_reduce or CommType.computation", quote(kind))
		}
	}
	if c.name == "" {
		c.name = kind
	}
	const mostMs = float64(dag.MaxTime / dag.Millisecond)
	if c.kind != logCalc { // a computation has the shapes of its tensors
		c.bytes = int64(number("msg_size", 0, maxBytes))
	}
	c.size = int(number("comm_group_size", 0, maxRanks))
	c.count = int64(number("count", 1, maxOps))
	c.time = dag.Time(math.Round(number("_elapsed_time", 0, mostMs) * float64(dag.Millisecond)))
	c.back = strings.HasSuffix(field("additional"), "_prev")
	other := "dst"
	if c.kind == logRecv {
		other = "src"
	}
	c.peer = int64(number(other, noPeer, maxRanks-1))
	return c, err
}

// logGroups are the groups of a log with the names of their sizes.
var logGroups = []string{"tp_group", "dp_group", "ep_group", "ep_dp_group", "ep_tp_group", "pp_group",
	"embedding_group", "all", "all_nodes"}

// logLayout is the division of the ranks of a log: ranks of a stage are numbered tensor position first.
type logLayout struct {
	file   string
	stages [][]int32
	world  int
	tp, ep int
	stage  []int32 // by rank
	at     []int32 // by rank: position in its stage
}

// layoutOf returns the division of ranks. ranks is the number that the user requests, 0 for that of the log.
func layoutOf(file string, sections []logSection, ranks int) (*logLayout, error) {
	fail := func(text string, args ...any) (*logLayout, error) { return nil, format.FileErrorf(file, text, args...) }
	sizes := make(map[string]int) // by group
	for i := range sections {
		for k := range sections[i].calls {
			c := &sections[i].calls[k]
			if c.kind == logCalc || c.kind == logEnd {
				continue
			}
			if !slices.Contains(logGroups, c.group) {
				return nil, &format.SyntaxError{File: file, Line: c.line,
					Expected: "a comm_group such as CommGroup.tp_group", Found: quote(c.group)}
			}
			sizes[c.group] = max(sizes[c.group], c.size)
		}
	}
	l := &logLayout{file: file, tp: max(sizes["tp_group"], 1)}
	if len(sections) == 1 {
		listed := sections[0].ranks
		pp := max(sizes["pp_group"], 1)
		world := max(len(listed), sizes["all"], sizes["all_nodes"])
		if world == 0 {
			world = l.tp * max(sizes["dp_group"], sizes["ep_group"], 1)
			if world > maxRanks/pp {
				return fail("expected at most %d ranks, found more", maxRanks)
			}
			world *= pp
		}
		if ranks > 0 && listed == nil {
			world = ranks
		}
		if world > maxRanks || world%pp != 0 {
			return fail("%d ranks: expected a multiple of the %d stages of pp_group, at most %d", world, pp, maxRanks)
		}
		if listed == nil {
			for r := range world {
				listed = append(listed, int32(r))
			}
		}
		for len(listed) > 0 {
			l.stages = append(l.stages, listed[:world/pp])
			listed = listed[world/pp:]
		}
	}
	for i := range sections {
		if len(sections) > 1 {
			l.stages = append(l.stages, sections[i].ranks)
		}
	}
	for _, stage := range l.stages {
		l.world += len(stage)
		if len(stage) != len(l.stages[0]) || len(stage) == 0 {
			return fail("expected the same number of ranks in each stage, found %d and %d", len(l.stages[0]),
				len(stage))
		}
		if len(stage)%l.tp != 0 {
			return fail("%d ranks of a stage: expected a multiple of the %d ranks of a tp_group", len(stage), l.tp)
		}
	}
	if ranks > 0 && ranks != l.world {
		return fail("the log is of %d ranks, which --ranks cannot change, found %d", l.world, ranks)
	}
	dp := len(l.stages[0]) / l.tp
	if l.ep = sizes["ep_group"]; l.ep == 0 {
		l.ep = dp
		if n := sizes["ep_dp_group"]; n > 0 && dp%n == 0 {
			l.ep = dp / n
		} else if n := sizes["ep_tp_group"]; n > 0 && n%l.tp == 0 {
			l.ep = n / l.tp
		}
	}
	if l.ep > dp || dp%l.ep != 0 {
		return fail("%d data parallel ranks: expected a multiple of the %d ranks of an ep_group", dp, l.ep)
	}
	l.stage, l.at = make([]int32, l.world), make([]int32, l.world)
	seen := make([]bool, l.world)
	for s, stage := range l.stages {
		for i, r := range stage {
			if int(r) >= l.world || seen[r] {
				return fail("expected the ranks 0 to %d once each, found rank %d", l.world-1, r)
			}
			seen[r] = true
			l.stage[r], l.at[r] = int32(s), int32(i)
		}
	}
	return l, nil
}

// members returns the group of a kind to which a rank belongs.
func (l *logLayout) members(group string, rank int32) (list []int32) {
	stage, at := l.stages[l.stage[rank]], int(l.at[rank])
	block, within := at/l.tp, at%l.tp // data parallel and tensor parallel positions
	blocks := len(stage) / l.tp
	add := func(first, stride, count int) {
		for k := range count {
			list = append(list, stage[first+k*stride])
		}
	}
	switch group {
	case "tp_group":
		add(block*l.tp, 1, l.tp)
	case "dp_group":
		add(within, l.tp, blocks)
	case "ep_group":
		add(block/l.ep*l.ep*l.tp+within, l.tp, l.ep)
	case "ep_dp_group":
		add(block%l.ep*l.tp+within, l.ep*l.tp, blocks/l.ep)
	case "ep_tp_group":
		add(block/l.ep*l.ep*l.tp, 1, l.ep*l.tp)
	case "pp_group":
		for _, s := range l.stages {
			list = append(list, s[at])
		}
	case "embedding_group":
		list = []int32{l.stages[0][at]}
		if last := l.stages[len(l.stages)-1][at]; len(l.stages) > 1 {
			list = append(list, last)
		}
	default:
		for r := range l.world {
			list = append(list, int32(r))
		}
	}
	return list
}

// readLog reads a log.
func readLog(in *format.Input, content []byte, own *Options, o format.ReadOptions) (*dag.Trace, error) {
	sections, err := parseLog(in.Name, content)
	if err != nil {
		return nil, err
	}
	l, err := layoutOf(in.Name, sections, max(own.Ranks, o.Ranks))
	if err != nil {
		return nil, err
	}
	dropUnmatched(in.Name, sections, o)
	b := &logBuilder{logLayout: l, o: o, passes: max(own.Passes, 1), comms: map[[2]int32]int32{},
		all: dag.NewBuilder(l.world)}
	perRank := int64(0)
	for i := range sections {
		n := int64(0)
		for k := range sections[i].calls {
			n += sections[i].calls[k].count
		}
		perRank = max(perRank, n)
	}
	if perRank > maxOps/int64(b.passes) || perRank*int64(b.passes) > maxAllOps/8/int64(l.world) {
		return nil, format.FileErrorf(in.Name, "%d ranks with %d passes of %d calls: expected at most %d calls per "+
			"rank, %d in total; use fewer --passes", l.world, b.passes, perRank, maxOps, maxAllOps/8)
	}
	const opBytes = 32
	if err := memory.Check(o.Context, "ops", opBytes, int64(l.world), perRank*int64(b.passes)); err != nil {
		return nil, &format.FileError{File: in.Name, Err: err}
	}
	for rank := range l.world {
		s := 0
		if len(sections) > 1 {
			s = int(l.stage[rank])
		}
		if err := b.build(int32(rank), sections[s].calls, own.NoInit); err != nil {
			return nil, err
		}
	}
	b.warn()
	if l.world == 1 && perRank > 0 {
		o.Warn("%s: the log does not state the number of ranks; read for 1; set it with --ranks", in.Name)
	}
	t := b.all.Trace()
	return t, b.all.Err()
}

// dropUnmatched drops the collectives of groups across stages that not all of these stages call equally often.
func dropUnmatched(file string, sections []logSection, o format.ReadOptions) {
	for _, group := range []string{"pp_group", "embedding_group", "all", "all_nodes"} {
		of := func(c *logCall) bool { return c.kind == logColl && c.group == group }
		least, most := int64(math.MaxInt64), int64(0)
		for i := range sections {
			if group == "embedding_group" && i > 0 && i < len(sections)-1 {
				continue
			}
			n := int64(0)
			for k := range sections[i].calls {
				if c := &sections[i].calls[k]; of(c) {
					n += c.count
				}
			}
			least, most = min(least, n), max(most, n)
		}
		if least == most {
			continue
		}
		o.Warn("%s: the stages call between %d and %d collectives of %s, which all of its members must call: they are "+
			"discarded", file, least, most, group)
		for i := range sections {
			sections[i].calls = slices.DeleteFunc(sections[i].calls, func(c logCall) bool { return of(&c) })
		}
	}
}

// logBuilder builds the trace of a log.
type logBuilder struct {
	*logLayout
	o      format.ReadOptions
	all    *dag.Builder
	passes int
	comms  map[[2]int32]int32 // by kind of group and first member

	resized, outside int64 // calls with another group size; messages beyond the first or last stage
	odd              logCall
}

// comm returns the communicator of a rank's group and its members.
func (b *logBuilder) comm(group string, rank int32) (int32, []int32) {
	list := b.members(group, rank)
	if len(list) == b.world {
		return 0, list
	}
	key := [2]int32{int32(slices.Index(logGroups, group)), slices.Min(list)}
	c, ok := b.comms[key]
	if !ok {
		c = b.all.AddComm(dag.NewComm(strings.TrimSuffix(group, "_group")+strconv.Itoa(int(key[1])), list))
		b.comms[key] = c
	}
	return c, list
}

// build builds a rank: calls run one after the other; sends do not block.
func (b *logBuilder) build(rank int32, calls []logCall, noInit bool) error {
	rb := b.all.Rank(int(rank))
	watch := par.Watch{Context: b.o.Context}
	var after []int
	step := int32(0)
	ends := 0 // epochs in the log
	for i := range calls {
		if calls[i].kind == logEnd {
			ends++
		}
	}
	cache := make(map[string]int32)
	members := make(map[string][]int32)
	for pass := range b.passes {
		epoch := 0
		for i := range calls {
			c := &calls[i]
			if err := watch.Err(); err != nil {
				return format.FileErrorf(b.file, "%w", err)
			}
			if c.kind == logEnd {
				if epoch++; epoch < ends || ends == 1 {
					step++
					rb.Step(step)
				}
				continue
			}
			if epoch == 0 && ends > 0 && (noInit || pass > 0) {
				continue // initialisation runs once
			}
			op := dag.Op{Name: c.name, Duration: c.time, Bytes: c.bytes}
			blocks := true
			switch c.kind {
			case logCalc:
				op.Kind = dag.Calc
				if op.Bytes = 0; c.time == 0 {
					continue
				}
			case logSend, logRecv:
				peer, ok := b.partner(c, rank)
				if !ok {
					b.outside++
					continue
				}
				op.Kind, op.Peer, op.Tag = dag.Recv, peer, 0
				if blocks = c.kind == logRecv; !blocks {
					op.Kind = dag.Send
				}
				if c.peer == noPeer && c.back == (c.kind == logSend) { // messages to the previous stage
					op.Tag = 1
				}
			default:
				comm, known := cache[c.group]
				if !known {
					comm, members[c.group] = b.comm(c.group, rank)
					cache[c.group] = comm
				}
				list := members[c.group]
				if c.size > 0 && c.size != len(list) {
					if b.resized++; b.odd.line == 0 {
						b.odd = *c
					}
				}
				if !b.collective(c, &op, comm, list) {
					continue
				}
			}
			for range c.count {
				at := rb.Add(op, after...)
				if blocks {
					after = append(after[:0], at)
				}
			}
		}
	}
	meta := b.all.Meta()
	meta.Steps = max(meta.Steps, step)
	return nil
}

// partner returns the partner of a message; ok is false for messages beyond the first or the last stage.
func (b *logBuilder) partner(c *logCall, rank int32) (peer int32, ok bool) {
	if c.peer != noPeer {
		return int32(c.peer), c.peer < int64(b.world) && int32(c.peer) != rank
	}
	stage := b.stage[rank] + 1
	if c.back {
		stage -= 2
	}
	if stage < 0 || int(stage) >= len(b.stages) {
		return 0, false
	}
	return b.stages[stage][b.at[rank]], true
}

// collective completes a collective on a communicator; it returns false if it needs no partner or sends nothing. The
// size of an all-gather is that of the result, that of a reduce-scatter that of the input.
func (b *logBuilder) collective(c *logCall, op *dag.Op, comm int32, members []int32) bool {
	n := int64(len(members))
	if n == 1 || c.bytes == 0 && c.coll != dag.Barrier {
		return false
	}
	op.Kind, op.Subkind, op.Comm = dag.Coll, c.coll, comm
	switch {
	case c.coll == dag.Barrier:
		op.Bytes = 0
	case c.coll == dag.Allgather:
		op.Bytes = (c.bytes-1)/n + 1
		op.RecvBytes = op.Bytes * n
	case c.coll == dag.ReduceScatter && c.bytes%n == 0:
		op.RecvBytes = c.bytes / n
	case c.coll.Rooted():
		op.Peer = members[0]
		if c.peer != noPeer && slices.Contains(members, int32(c.peer)) {
			op.Peer = int32(c.peer)
		}
	}
	return true
}

// warn reports calls that differ from the groups.
func (b *logBuilder) warn() {
	if b.resized > 0 {
		b.o.Warn("%s: line %d: expected %d ranks in %s by the sizes of the other groups, found %d: %d calls state "+
			"another size, which is not used", b.file, b.odd.line, len(b.members(b.odd.group, b.stages[0][0])),
			b.odd.group, b.odd.size, b.resized)
	}
	if b.outside > 0 {
		b.o.Warn("%s: messages beyond the first or last stage or to unknown ranks are discarded: %d", b.file, b.outside)
	}
}
