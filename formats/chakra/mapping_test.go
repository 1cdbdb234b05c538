package chakra

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// build1 makes a trace of one rank of nodes, which get the numbers 0, 1, ... where they have none.
func build1(t *testing.T, o format.ReadOptions, nodes ...Node) (*dag.Trace, error) {
	t.Helper()
	for i := range nodes {
		if nodes[i].ID == 0 {
			nodes[i].ID = uint64(i)
		}
	}
	return Build([]File{{Nodes: nodes}}, o, []string{"rank0"})
}

func int32s(name string, v ...uint64) Attr {
	return Attr{Name: name, Kind: Int32Val + listOf, nums: v}
}

// Every type of node becomes its op, whatever integers its attributes are, and is written as it was.
func TestMapping(t *testing.T) {
	size, coll := Int64(sizeName, 4096), func(n int64, more ...Attr) Node {
		return Node{Type: CommCollNode, Attr: append([]Attr{Bool(hostName, false), Int64(collectiveName, n), Int64(sizeName, 64)}, more...)}
	}
	for _, c := range []struct {
		name    string
		node    Node
		want    string
		plain   bool // it needs no attributes
		warning string
	}{
		{"computation", Node{Type: CompNode, DurationMicros: 7, Attr: []Attr{Bool(hostName, false)}}, "calc 7us", true, ""},
		{"roofline", Node{Type: CompNode, Attr: []Attr{Bool(hostName, false), Int64(flopsName, 9), Uint64(tensorName, 5)}},
			"calc bytes=5 flops=9", true, ""},
		{"on the host", Node{Type: CompNode, DurationMicros: 7, Attr: []Attr{Bool(hostName, true)}}, "calc stream=1 host=1 7us",
			true, ""},
		{"host as a number", Node{Type: CompNode, Attr: []Attr{Int32(hostName, 5)}}, "calc stream=1 host=1", false, ""},
		{"nothing to compute", Node{Type: CompNode, Attr: []Attr{Bool(hostName, false), Int64(flopsName, 0), Uint64(tensorName, 0)}},
			"calc", true, ""},
		{"nothing marked", Node{Type: CompNode, Attr: []Attr{Bool(hostName, false), Int64(flopsName, 0), Uint64(tensorName, 0),
			Bool("marker", true)}}, "calc", false, ""},
		{"root of another", coll(5, String(rootName, "me")), "coll bcast bytes=64 peer=-1 stream=2", false, ""},
		{"load", Node{Type: MemLoadNode, Attr: []Attr{Bool(hostName, false), Uint64(tensorName, 5)}}, "mem load bytes=5 stream=2",
			true, ""},
		{"store", Node{Type: MemStoreNode, Attr: []Attr{Bool(hostName, false), Uint64(tensorName, 5)}},
			"mem store bytes=5 stream=2", true, ""},
		{"send", Node{Type: CommSendNode, Attr: []Attr{Bool(hostName, false), Int32(destName, 0), size, Int32(tagName, 7)}},
			"send bytes=4096 tag=7 stream=2", true, ""},
		{"receive", Node{Type: CommRecvNode, Attr: []Attr{Bool(hostName, false), Int32(sourceName, 0), size, Int32(tagName, 7)}},
			"recv bytes=4096 tag=7 stream=2", true, ""},
		{"tag below 0", Node{Type: CommSendNode, Attr: []Attr{Bool(hostName, false), Int32(destName, 0), size, Int32(tagName, -1)}},
			"send bytes=4096 tag=4294967295 stream=2", true, ""},
		{"receive from -1", Node{Type: CommRecvNode, Attr: []Attr{Int32(sourceName, -1), size, Int32(tagName, 7)}},
			"recv bytes=4096 peer=2147483647 tag=7 stream=2", false,
			"node 0 has a number out of range; the nearest number in range is used\n" +
				"rank0: node 0 is a recv with rank 2147483647, but the trace has 1 ranks (1 such nodes in all)"},
		{"all-reduce", coll(AllReduce), "coll allreduce bytes=64 stream=2", true, ""},
		{"reduce", coll(Reduce), "coll reduce bytes=64 peer=-1 stream=2", true, ""},
		{"all-gather", coll(AllGather), "coll allgather bytes=64 stream=2", true, ""},
		{"gather", coll(Gather), "coll gather bytes=64 peer=-1 stream=2", true, ""},
		{"scatter", coll(Scatter), "coll scatter bytes=64 peer=-1 stream=2", true, ""},
		{"broadcast with a root", coll(Broadcast, Int32(rootName, 0)), "coll bcast bytes=64 stream=2", true, ""},
		{"all-to-all", coll(AllToAll), "coll alltoall bytes=64 stream=2", true, ""},
		{"reduce-scatter", coll(ReduceScatter), "coll reducescatter bytes=64 stream=2", true, ""},
		{"reduce-scatter block", coll(ReduceScatterBlock), "coll reducescatter bytes=64 stream=2", false, ""},
		{"barrier", coll(Barrier), "coll barrier bytes=64 stream=2", true, ""},
		{"dimensions", coll(AllReduce, Bools(dimsName, false, true)), "coll allreduce bytes=64 stream=2 dims=2", true, ""},
		{"dimensions and more", coll(AllReduce, Bools(dimsName, true, false)), "coll allreduce bytes=64 stream=2 dims=1", false, ""},
		{"no dimensions", coll(AllReduce, Bools(dimsName, false)), "coll allreduce bytes=64 stream=2 dims=1073741824", true, ""},
		{"priority", coll(AllReduce, Int32(priorityName, -3)), "coll allreduce bytes=64 stream=2 priority=-3", true, ""},
		{"all in every order", coll(AllReduce, Int32(priorityName, 3), Bools(dimsName, true)),
			"coll allreduce bytes=64 stream=2 dims=1 priority=3", false, ""},
		{"group 0", coll(AllReduce, String(groupName, "0")), "coll allreduce bytes=64 stream=2", false, ""},
		{"no group", coll(AllReduce, String(groupName, "")), "coll allreduce bytes=64 stream=2", false, ""},
		{"a group", coll(AllReduce, String(groupName, "7")), "coll allreduce bytes=64 comm=1 stream=2", true,
			`communicator "7" is undefined; its members are assumed to be the ranks that use it ` +
				`(1 undefined communicators in all)`},
		{"a named group", coll(AllReduce, String(groupName, "tp")), "coll allreduce bytes=64 comm=1 stream=2", false,
			`communicator "tp" is undefined; its members are assumed to be the ranks that use it ` +
				`(1 undefined communicators in all)`},
		{"an old group", coll(AllReduce, Int32(oldGroupName, 7)), "coll allreduce bytes=64 comm=1 stream=2", false,
			`communicator "7" is undefined; its members are assumed to be the ranks that use it ` +
				`(1 undefined communicators in all)`},
		{"on the host, too", coll(AllReduce, Bool(hostName, true)), "coll allreduce bytes=64 stream=2", false, ""},
		{"communication on the host", Node{Type: CommCollNode, Attr: []Attr{Bool(hostName, true), Int64(collectiveName, 0), size}},
			"coll allreduce bytes=4096 stream=2", false, "node 0 is communication with is_cpu_op; it is assigned to the accelerator"},
		{"a call on the host", Node{Type: CommCollNode, DurationMicros: 3, Attr: []Attr{size, Bool(hostName, true)}},
			"calc stream=1 host=1 3us", false, ""},
		{"replay", Node{Type: CommCollNode, DurationMicros: 3, StartTimeMicros: 2, Attr: coll(AllReduce).Attr},
			"coll allreduce bytes=64 stream=2 3us [2us 5us]", true, ""},
		{"metadata", Node{Type: MetadataNode, DurationMicros: 3, Attr: []Attr{Bool(hostName, true)}},
			"calc marker stream=1 host=1 3us", false, ""},
		{"nothing", Node{}, "calc marker stream=2", false, ""},
		{"sizes of other kinds", Node{Type: CommCollNode, Attr: []Attr{{Name: collectiveName, Kind: Fixed64Val, num: 2},
			{Name: sizeName, Kind: Uint64Val, num: 1 << 40}, {Name: priorityName, Kind: Sint64Val, num: 1}}},
			"coll allgather bytes=1099511627776 stream=2 priority=1", false, ""},
		{"a size below 0", Node{Type: CompNode, Attr: []Attr{Int64(tensorName, -1)}}, "calc", false,
			"node 0 has a number out of range; the nearest number in range is used"},
		{"a size above all", Node{Type: CompNode, Attr: []Attr{Uint64(tensorName, math.MaxUint64)}},
			"calc bytes=9223372036854775807", false,
			"node 0 has a number out of range; the nearest number in range is used"},
		{"a long time", Node{Type: CompNode, DurationMicros: math.MaxUint64}, "calc 9223372.036854s", false,
			"node 0 has a time of more than 106 days; a duration is limited to that, a start is skipped"},
		{"twice", Node{Type: CompNode, Attr: []Attr{Int64(flopsName, 3), Int64(flopsName, 4)}}, "calc flops=3", false, ""},
		{"lists", Node{Type: CompNode, Attr: []Attr{int32s("x", 1, 2), Strings("y", "a", ""), Strings("z")}}, "calc", false, ""},
		{"descriptions", Node{Type: CompNode, Attr: []Attr{{Name: flopsName, Doc: "how many", Kind: Int64Val, num: 3}}},
			"calc flops=3", false, ""},
		{"odd NaN", Node{Type: CompNode, Attr: []Attr{{Name: "x", Kind: FloatVal, num: 0x7fc00001}}}, "calc", false,
			"node 0 has fields outside Chakra's schema; they are kept"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var warnings []string
			trace, err := build1(t, options(&warnings), c.node)
			if err != nil {
				t.Fatal(err)
			}
			r := trace.Ranks[0]
			if got := strings.TrimSuffix(lines(r), "\n"); got != "0 "+c.want {
				t.Errorf("read %s, want 0 %s", got, c.want)
			}
			if plain := r.Attrs.Len() == 0; plain != c.plain {
				t.Errorf("attributes %q", r.Attrs.At(0))
			}
			if got := strings.TrimPrefix(strings.Join(warnings, "\n"), "rank0: "); got != c.warning {
				t.Errorf("warnings %q, want %q", got, c.warning)
			}
			want := wire(&File{Nodes: []Node{c.node}})
			if got := encode(t, &Format, throughStore(t, trace))[".0.et"]; string(got) != string(want) {
				t.Errorf("written as %q, want %q", got, want)
			}
		})
	}
}

// Invalid nodes are errors, unless lenient mode can skip them.
func TestMisfits(t *testing.T) {
	for _, c := range []struct {
		node         Node
		want         string
		lenient, ops string
	}{
		{Node{Type: CommCollNode}, "node: expected the kind of collective of node 0, comm_type from 0 to 9, found none",
			"node 0 is a collective of unknown kind; it becomes computation", "calc"},
		{Node{Type: CommCollNode, Attr: []Attr{Int64(collectiveName, 10), Int64(sizeName, 5)}},
			"node: expected the kind of collective of node 0, comm_type from 0 to 9, found 10",
			"node 0 is a collective of unknown kind; it becomes computation", "calc"},
		{Node{Type: CommCollNode, Attr: []Attr{String(collectiveName, "x")}},
			"node: expected the kind of collective of node 0, comm_type from 0 to 9, found string_val",
			"node 0 is a collective of unknown kind; it becomes computation", "calc"},
		{Node{Type: CompNode, Attr: []Attr{Double(flopsName, 5)}},
			"node: expected a whole number in the attribute num_ops of node 0, found double_val",
			"node 0 has an attribute of an unexpected kind; the attribute is skipped", "calc"},
		{Node{Type: CommCollNode, Attr: []Attr{Int64(collectiveName, 0), Int64(groupName, 1), Int64(sizeName, 1)}},
			"node: expected text in the attribute pg_name of node 0, found int64_val",
			"node 0 has an attribute of an unexpected kind; the attribute is skipped", "coll allreduce bytes=1 stream=2"},
		{Node{Type: CommCollNode, Attr: []Attr{Int64(collectiveName, 0), Bool(dimsName, true), Int64(sizeName, 1)}},
			"node: expected a list of flags in the attribute involved_dim of node 0, found bool_val",
			"node 0 has an attribute of an unexpected kind; the attribute is skipped", "coll allreduce bytes=1 stream=2"},
	} {
		if _, err := build1(t, quiet, c.node); err == nil || err.Error() != "rank0: "+c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
		var warnings []string
		o := options(&warnings)
		o.Lenient = true
		trace, err := build1(t, o, c.node)
		if err != nil {
			t.Errorf("leniently: %v", err)
			continue
		}
		if got := lines(trace.Ranks[0]); got != "0 "+c.ops+"\n" || fmt.Sprint(warnings) != "[rank0: "+c.lenient+"]" {
			t.Errorf("leniently read as %swith warnings %q", got, warnings)
		}
		want := wire(&File{Nodes: []Node{c.node}})
		if got := encode(t, &Format, throughStore(t, trace))[".0.et"]; string(got) != string(want) {
			t.Errorf("written as %q, want %q", got, want)
		}
	}
}

// groupsFile returns a file of groups.
// namedGroups returns options that name a file of communicators, and its content.
func namedGroups(text string) (*Options, func(string) *format.Input) {
	return &Options{CommGroups: "groups"}, func(name string) *format.Input {
		return &format.Input{Name: name, Reader: strings.NewReader(text)}
	}
}

func collectiveNode(group string) Node {
	return Node{Type: CommCollNode, Attr: []Attr{Bool(hostName, false), Int64(collectiveName, 0), Int64(sizeName, 8),
		String(groupName, group)}}
}

func processGroup(id uint64, json string) Node {
	return Node{ID: id, Name: "## process_group:init ##", Type: MetadataNode, Inputs: &IOInfo{Values: "['" + json + "']"}}
}

// describeComms prints the communicators of a trace, and those of each rank's collectives.
func describeComms(trace *dag.Trace) string {
	var b strings.Builder
	for i := range trace.Comms {
		fmt.Fprintf(&b, "%q%v ", trace.Comms[i].Name, trace.Comms[i].Members())
	}
	for rank := range trace.Ranks {
		r := trace.Ranks[rank]
		for i, kind := range r.Kind {
			if kind == dag.Coll {
				fmt.Fprintf(&b, "%d:%d ", rank, r.Comm.At(i))
			}
		}
	}
	return strings.TrimSpace(b.String())
}

// Communicators come from the file of groups, from metadata, or from who uses them, in this order.
func TestGroups(t *testing.T) {
	names := []string{"rank0", "rank1", "rank2"}
	files := []File{
		{Nodes: []Node{collectiveNode("7"), {ID: 1, Type: CommCollNode, Attr: collectiveNode("0").Attr}}},
		{Nodes: []Node{processGroup(0, `[{"pg_name": "9", "ranks": [2, 1]}, {"pg_name": "0", "ranks": []}, {"pg_name": "all", "ranks": []}]`),
			{ID: 1, Type: CommCollNode, Attr: collectiveNode("9").Attr}, {ID: 2, Type: CommCollNode, Attr: collectiveNode("all").Attr}}},
		{Nodes: []Node{collectiveNode("7")}},
	}
	for _, c := range []struct{ groups, want, warning string }{
		{"", `""[0 1 2] "9"[2 1] "all"[0 1 2] "7"[0 2] 0:3 0:0 1:1 1:2 2:3`,
			`rank0: communicator "7" is undefined; its members are assumed to be the ranks that use it ` +
				`(1 undefined communicators in all)`},
		{"\ufeff" + `{"7": [2, 0], "5": [1]}`, `""[0 1 2] "7"[2 0] "5"[1] "9"[2 1] "all"[0 1 2] 0:1 0:0 1:3 1:4 2:1`, ""},
		{` {"9":[0], "7":[0,2]} `, `""[0 1 2] "9"[0] "7"[0 2] "all"[0 1 2] 0:2 0:0 1:1 1:3 2:2`,
			"rank1: process group 9 differs from that of groups, which is used"},
	} {
		var warnings []string
		o := options(&warnings)
		if c.groups != "" {
			o.Own, o.OpenFile = namedGroups(c.groups)
		}
		trace, err := Build(files, o, names)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := describeComms(trace); got != c.want {
			t.Errorf("%s gives %s, want %s", c.groups, got, c.want)
		}
		if got := strings.Join(warnings, "\n"); got != c.warning {
			t.Errorf("%s gives warnings %q, want %q", c.groups, got, c.warning)
		}
		written := encode(t, &Format, throughStore(t, trace))
		for rank := range files {
			if got, want := written[fmt.Sprintf(".%d.et", rank)], wire(&files[rank]); string(got) != string(want) {
				t.Errorf("rank %d is written as %q, want %q", rank, got, want)
			}
		}
		if got, want := membersOfOps(decode(t, &Format, written, quiet)), membersOfOps(trace); got != want {
			t.Errorf("read again, the communicators of the ops are %s, want %s", got, want)
		}
	}
}

// membersOfOps prints the members of the collectives of each rank.
func membersOfOps(trace *dag.Trace) string {
	var b strings.Builder
	for rank := range trace.Ranks {
		r := trace.Ranks[rank]
		for i, kind := range r.Kind {
			if kind == dag.Coll {
				fmt.Fprint(&b, rank, ":", trace.Comms[r.Comm.At(i)].Members(), " ")
			}
		}
	}
	return b.String()
}

func TestBadGroups(t *testing.T) {
	two := []File{{Nodes: []Node{collectiveNode("7")}}, {Nodes: []Node{collectiveNode("7")}}}
	for text, want := range map[string]string{
		``:                        `groups:1: groups: expected groups in the form {"1": [0, 1], "2": [2, 3]}, found something else`,
		`[1]`:                     `groups:1: groups: expected groups in the form {"1": [0, 1], "2": [2, 3]}, found something else`,
		"{\n\"0\": [0]}":          `groups:2: groups: expected a group number of 1 or more (group 0 is all ranks), found "0"`,
		`{"-1": [0]}`:             `groups:1: groups: expected a group number of 1 or more (group 0 is all ranks), found "-1"`,
		`{"1": [0], "1": [1]}`:    `groups:1: groups: expected each group once, found a second group 1`,
		`{"1": ["0"]}`:            `groups:1: groups: expected a list of the ranks of group 1, found string`,
		`{"1": [1.5]}`:            `groups:1: groups: expected a list of the ranks of group 1, found number 1.5`,
		`{"1": 1}`:                `groups:1: groups: expected a list of the ranks of group 1, found number`,
		`{"1": null}`:             `groups:1: groups: expected a list of the ranks of group 1, found null`,
		`{"1": [0, null]}`:        `groups:1: groups: expected a list of the ranks of group 1, found null`,
		`{"1": [0, 2]}`:           `groups: groups: group 1: range of 2 ranks from 0 in steps of 2, expected ranks in 0..1`,
		`{"1": [0, 0]}`:           `groups: groups: group 1: rank 0 is listed twice`,
		`{"1": [0]} x`:            `groups:1: groups: expected the end of the groups, found more`,
		`{"1": [0]`:               `groups:1: groups: expected groups in the form {"1": [0, 1], "2": [2, 3]}, found the end of the file`,
		`{"99999999999999": [0]}`: `groups:1: groups: expected a group number of 1 or more (group 0 is all ranks), found "99999999999999"`,
	} {
		o := quiet
		o.Own, o.OpenFile = namedGroups(text)
		if _, err := Build(two, o, []string{"a", "b"}); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	differ := []File{
		{Nodes: []Node{processGroup(0, `[{"pg_name": "1", "ranks": [0]}]`)}},
		{Nodes: []Node{processGroup(0, `[{"pg_name": "1", "ranks": [1]}]`)}},
	}
	if _, err := Build(differ, quiet, []string{"a", "b"}); err == nil ||
		err.Error() != "b: groups: process group 1 differs from that of a" {
		t.Errorf("error %v", err)
	}
	if _, err := Build(differ, format.ReadOptions{Lenient: true, Warn: t.Logf}, []string{"a", "b"}); err != nil {
		t.Error(err)
	}
	var warnings []string
	if _, err := Build([]File{{Nodes: []Node{processGroup(0, `what`)}}}, options(&warnings), []string{"a"}); err != nil ||
		len(warnings) != 1 {
		t.Errorf("error %v, warnings %q", err, warnings)
	}
}

// One file can serve all ranks, which share its columns.
func TestOneFileForAll(t *testing.T) {
	o := quiet
	o.Ranks = 5
	trace, err := Build([]File{{Nodes: []Node{collectiveNode("3")}}, {}}, o, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := describeComms(trace), `""[0 1 2 3 4] "3"[0 1 2 3 4] 0:1 1:1 2:1 3:1 4:1`; got != want {
		t.Errorf("communicators %s, want %s", got, want)
	}
	if len(trace.Ranks) != 5 || trace.Ranks[0].Kind[0] != trace.Ranks[4].Kind[0] {
		t.Error("the ranks do not share their ops")
	}
	if problems := dag.Validate(trace); len(problems) > 0 {
		t.Error(problems)
	}
	files := encode(t, &Format, throughStore(t, trace))
	if len(files) != 6 || string(files[".0.et"]) != string(files[".4.et"]) {
		t.Errorf("%d files", len(files))
	}
}
