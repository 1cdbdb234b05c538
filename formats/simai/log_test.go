package simai

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

const logHeader = "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count\n"

// readLogText reads a text, and returns the trace and the warnings.
func readLogText(text string, own *Options) (*dag.Trace, []string, error) {
	var warnings []string
	in := &format.Input{Name: "log.csv", Reader: strings.NewReader(text)}
	trace, err := read([]*format.Input{in}, format.ReadOptions{Own: own, Warn: func(message string, args ...any) {
		warnings = append(warnings, fmt.Sprintf(message, args...))
	}})
	return trace, warnings, err
}

// describe lists the ops of a rank.
func describe(t *dag.Trace, rank int) string {
	var list []string
	r := t.Ranks[rank]
	for i := range r.Len() {
		op := r.Op(i)
		text := fmt.Sprint(op.Kind)
		switch op.Kind {
		case dag.Calc:
			text += fmt.Sprint(" ", op.Duration)
		case dag.Coll:
			members := t.Comms[op.Comm].Members()
			text = fmt.Sprint(op.Subkind, " ", op.Bytes, " of ", members)
			if op.Subkind.Rooted() {
				text += fmt.Sprint(" root ", op.Peer)
			}
		default:
			text += fmt.Sprint(" ", op.Peer, " ", op.Bytes, " tag ", op.Tag)
		}
		list = append(list, fmt.Sprint(text, " ", r.Deps.Of(i)))
	}
	return strings.Join(list, "; ")
}

// A log with a section per stage has messages between equal positions of neighboring stages. Sends do not block.
func TestLogStages(t *testing.T) {
	line := func(kind, group string, size, bytes int, extra string) string {
		return fmt.Sprintf("CommType.%s,CommGroup.%s,%d,%d,step,None,None,%s,None,None,None,1\n", kind, group, size, bytes,
			extra)
	}
	text := "[ pp_stage0: [rank0, rank1, rank2, rank3] ]\n" + logHeader +
		line("broadcast", "tp_group", 2, 8, "") + "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n" +
		"CommType.computation,None,None,\"((2, 3), (3, 4))\",f,None,None,,1.5,None,None,2\n" +
		line("isend", "pp_group", 1, 100, "send_next") + line("irecv", "pp_group", 1, 100, "recv_next") +
		line("all_gather", "dp_group", 2, 9, "") + line("all_reduce", "embedding_group", 2, 4, "") +
		"[ pp_stage1: [rank4, rank5, rank6, rank7] ]\n" + logHeader +
		line("broadcast", "tp_group", 2, 8, "") + "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n" +
		line("irecv", "pp_group", 1, 100, "recv_prev") + line("isend", "pp_group", 1, 100, "send_prev") +
		line("reduce_scatter", "dp_group", 2, 10, "") + line("all_reduce", "embedding_group", 2, 4, "")
	trace, warnings, err := readLogText(text, &Options{})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Error(problems)
	}
	for rank, want := range map[int]string{
		1: "bcast 8 of [0 1] root 0 []; calc 1.5ms [1]; calc 1.5ms [1]; send 5 100 tag 0 [1]; recv 5 100 tag 1 [2]; " +
			"allgather 5 of [1 3] [1]; allreduce 4 of [1 5] [1]",
		6: "bcast 8 of [6 7] root 6 []; recv 2 100 tag 0 [1]; send 2 100 tag 1 [1]; reduce_scatter 10 of [4 6] [2]; " +
			"allreduce 4 of [2 6] [1]",
	} {
		if got := strings.ReplaceAll(describe(trace, rank), "reducescatter", "reduce_scatter"); got != want {
			t.Errorf("rank %d: %s, want %s", rank, got, want)
		}
	}
	if trace, _, err = readLogText(text, &Options{NoInit: true, Passes: 2}); err != nil || trace.Ranks[0].Len() != 12 ||
		trace.Steps != 2 {
		t.Errorf("%v: %d ops, %d steps", err, trace.Ranks[0].Len(), trace.Steps)
	}
	last := strings.LastIndex(text, "CommType.all_reduce")
	_, warnings, err = readLogText(text[:last], &Options{})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "between 0 and 1 collectives of embedding_group") {
		t.Error(err, warnings)
	}
}

// Groups of experts divide the data parallel ranks.
func TestLogGroups(t *testing.T) {
	l := &logLayout{tp: 2, ep: 2, world: 16, stages: [][]int32{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}}
	for r := range int32(16) {
		l.stage, l.at = append(l.stage, r/8), append(l.at, r%8)
	}
	for group, want := range map[string][]int32{
		"tp_group": {12, 13}, "dp_group": {9, 11, 13, 15}, "ep_group": {13, 15}, "ep_dp_group": {9, 13},
		"ep_tp_group": {12, 13, 14, 15}, "pp_group": {5, 13}, "embedding_group": {5, 13},
	} {
		if got := l.members(group, 13); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", group, got, want)
		}
	}
}

func TestLogErrors(t *testing.T) {
	call := "CommType.all_reduce,CommGroup.tp_group,2,8,s,None,None,,None,None,None,1\n"
	for _, c := range []struct{ text, want string }{
		{"[rank0 ~ rank3]\n" + logHeader, "calls for each list of ranks"},
		{"[rank3 ~ rank0]\n" + logHeader + call, "ranks in ascending order"},
		{"[rank0 ~ gpu3]\n" + logHeader + call, "log.csv:1: expected ranks such as"},
		{"[rank0 ~ rank2]\n" + logHeader + call, "a multiple of the 2 ranks of a tp_group"},
		{"[rank1 ~ rank2]\n" + logHeader + call, "expected the ranks 0 to 1 once each, found rank 2"},
		{logHeader + "CommType.gather,CommGroup.tp_group,2,8,s,None,None,,None,None,None,1\n", "a comm_type such as"},
		{logHeader + strings.Replace(call, "tp_group", "xp_group", 1), "a comm_group such as"},
		{logHeader + strings.Replace(call, ",8,", ",-8,", 1), "msg_size of 0 to"},
		{logHeader + strings.Replace(call, ",8,", ",8,8,", 1), "12 fields as in the header, found 13"},
		{logHeader + strings.Replace(call, ",1\n", ",1e9\n", 1), "count of 0 to"},
		{"comm_type,comm_group,bytes\n", "a header with the column msg_size"},
	} {
		_, _, err := readLogText(c.text, &Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %s", c.text, err, c.want)
		}
	}
}

// TestLogVectors compares the calls of published logs with an independent calculation.
func TestLogVectors(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("set TRACEDAG_VECTORS to the folder of vectors")
	}
	content, err := os.ReadFile(filepath.Join(folder, "simai", "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var expected struct {
		CSV map[string]struct {
			Ops, Bytes map[string]int64
		}
	}
	if err := json.Unmarshal(content, &expected); err != nil || len(expected.CSV) < 2 {
		t.Fatal(err, expected)
	}
	for name, want := range expected.CSV {
		text, err := os.ReadFile(filepath.Join(folder, "simai", "csv", name))
		if err != nil {
			t.Fatal(err)
		}
		sections, err := parseLog(name, text)
		if err != nil || len(sections) != 1 || len(sections[0].ranks) != 128 {
			t.Fatal(err)
		}
		ops, sizes := map[string]int64{}, map[string]int64{}
		for _, c := range sections[0].calls {
			kind := map[logKind]string{logEnd: "epoch_end"}[c.kind]
			for text, s := range logColls {
				if c.kind == logColl && s == c.coll && !strings.HasSuffix(text, "tensor") {
					kind = text
				}
			}
			group := c.group
			if group == "" {
				group = "None"
			}
			ops[kind+" "+group] += c.count
			sizes[kind+" "+group] += c.bytes
		}
		if fmt.Sprint(ops) != fmt.Sprint(want.Ops) || fmt.Sprint(sizes) != fmt.Sprint(want.Bytes) {
			t.Errorf("%s: %v %v, want %v %v", name, ops, sizes, want.Ops, want.Bytes)
		}
		trace, _, err := readLogText(string(text), &Options{})
		if err != nil {
			t.Fatal(err)
		}
		if problems := dag.Validate(trace); len(problems) > 0 || len(trace.Ranks) != 128 {
			t.Error(name, problems[:min(len(problems), 3)])
		}
	}
}

func FuzzReadLog(f *testing.F) {
	f.Add("[rank0 ~ rank3]\n" + logHeader + "CommType.all_gather,CommGroup.dp_group,2,8,s,None,None,,1.5,None,None,1\n")
	f.Add("[ pp_stage0: [rank0] ]\n" + logHeader + "CommType.isend,CommGroup.pp_group,1,8,s,None,None,send_next,None,None,None," +
		"1\n[ pp_stage1: [rank1] ]\n" + logHeader + "CommType.irecv,CommGroup.pp_group,1,8,s,None,None,recv_prev,None,None,None,1\n")
	f.Fuzz(func(t *testing.T, text string) {
		if !isLog([]byte(text)) {
			return
		}
		trace, _, err := readLogText(text, &Options{})
		if err != nil {
			return
		}
		for _, r := range trace.Ranks {
			if err := r.CheckReferences(); err != nil {
				t.Error(err)
			}
		}
	})
}
