package chakra

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/formats/format"
)

// described prints the nodes of a file, one a line, as JSON.
func described(t *testing.T, content []byte) string {
	f := messages(t, content)
	p := printer{compact: true}
	for i := range f.Nodes {
		p.node(&f.Nodes[i])
		p.b = append(p.b, '\n')
	}
	return string(p.b)
}

// foreignTrace is a trace of two ranks as no file of this format gives it.
func foreignTrace() *dag.Trace {
	b := dag.NewBuilder(2)
	pair := b.AddComm(dag.NewComm("grid", []int32{1, 0}))
	self := b.AddComm(dag.NewComm("1", []int32{0}))
	r := b.Rank(0)
	calc := r.Add(dag.Op{Kind: dag.Calc, Name: "work", Duration: 1500 * dag.Nanosecond, Stream: 3, Release: 1})
	send := r.Send(1, 100, 7, calc)
	onPair := r.Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 200, Tag: 7, Comm: pair, NIC: 1})
	r.RequiresStart(onPair, send)
	large := r.Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 300, Tag: 1 << 40}, onPair)
	r.RequiresStart(large, onPair)
	r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Peer: 1, Bytes: 8, Comm: pair, Tag: 3}, large)
	r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allgather, Bytes: 8, RecvBytes: 16, Comm: self, Priority: 2, Dims: 5})
	r.Add(dag.Op{Kind: dag.Calc, Subkind: dag.Marker, Attrs: `{"id":9}`}, calc, calc)
	r = b.Rank(1)
	r.Recv(0, 1000, 7)
	r.Add(dag.Op{Kind: dag.Recv, Peer: 0, Bytes: 200, Tag: 7, Comm: pair})
	r.Recv(0, 300, 1<<40)
	r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Peer: 1, Bytes: 8, Comm: pair})
	r.Add(dag.Op{Kind: dag.Mem, Subkind: dag.Store, Bytes: 64, Host: 1, Timed: true, MeasuredStart: 5 * dag.Microsecond,
		MeasuredEnd: 6 * dag.Microsecond})
	return b.Trace()
}

// A trace of another format becomes nodes that simulators accept, and its losses are counted.
func TestWriteForeign(t *testing.T) {
	trace := foreignTrace()
	files := encode(t, &Format, trace)
	host := `{"name":"is_cpu_op","boolVal":false}`
	message := func(peer string, rank, size, tag int) string {
		return fmt.Sprintf(`"attr":[%s,{"name":"%s","int32Val":%d},{"name":"comm_size","int64Val":"%d"},`+
			`{"name":"comm_tag","int32Val":%d}]}`, host, peer, rank, size, tag)
	}
	want := `{"name":"work","type":"COMP_NODE","durationMicros":"2","attr":[` + host + `]}
{"id":"1","type":"COMM_SEND_NODE","dataDeps":["0"],` + message("comm_dst", 1, 100, 7) + `
{"id":"2","type":"COMM_SEND_NODE","dataDeps":["0"],` + message("comm_dst", 1, 200, 1) + `
{"id":"3","type":"COMM_SEND_NODE","dataDeps":["2","0"],` + message("comm_dst", 1, 300, 0) + `
{"id":"4","type":"COMM_COLL_NODE","dataDeps":["3"],"attr":[` + host + `,{"name":"comm_type","int64Val":"5"},` +
		`{"name":"comm_size","int64Val":"8"},{"name":"pg_name","stringVal":"2"},{"name":"root","int32Val":1}]}
{"id":"5","type":"COMM_COLL_NODE","attr":[` + host + `,{"name":"comm_type","int64Val":"2"},{"name":"comm_size","int64Val":"8"},` +
		`{"name":"pg_name","stringVal":"1"},{"name":"involved_dim","boolList":{"values":[true,false,true]}},` +
		`{"name":"comm_priority","int32Val":2}]}
{"id":"6","type":"COMP_NODE","dataDeps":["0","0"],"attr":[` + host + `,{"name":"num_ops","int64Val":"0"},` +
		`{"name":"tensor_size","uint64Val":"0"}]}
`
	if got := described(t, files[".0.et"]); got != want {
		t.Errorf("rank 0 is\n%s, want\n%s", got, want)
	}
	want = `{"type":"COMM_RECV_NODE",` + message("comm_src", 0, 100, 7) + `
{"id":"1","type":"COMM_RECV_NODE",` + message("comm_src", 0, 200, 1) + `
{"id":"2","type":"COMM_RECV_NODE",` + message("comm_src", 0, 300, 0) + `
{"id":"3","type":"COMM_COLL_NODE","attr":[` + host + `,{"name":"comm_type","int64Val":"5"},{"name":"comm_size","int64Val":"8"},` +
		`{"name":"pg_name","stringVal":"2"},{"name":"root","int32Val":1}]}
{"id":"4","type":"MEM_STORE_NODE","startTimeMicros":"5","attr":[{"name":"is_cpu_op","boolVal":true},` +
		`{"name":"tensor_size","uint64Val":"64"}]}
`
	if got := described(t, files[".1.et"]); got != want {
		t.Errorf("rank 1 is\n%s, want\n%s", got, want)
	}
	if got, want := string(files[groupsEnding]), `{"2": [1, 0], "1": [0]}`; got != want || len(files) != 3 {
		t.Errorf("%d files, groups %s, want %s", len(files), got, want)
	}
	if f := messages(t, files[".0.et"]); f.Metadata.Version != "0.0.4" || f.Metadata.Attr != nil {
		t.Errorf("metadata %+v", f.Metadata)
	}
	var losses strings.Builder
	for _, l := range Format.Losses(trace) {
		fmt.Fprintln(&losses, l)
	}
	want = `2 ops: dependencies on starts of ops, replaced by the dependencies of those ops
1 op: release times rounded to whole microseconds
1 op: durations rounded to whole microseconds
1 op: markers, which become computations of duration 0
4 ops: tags, renumbered
2 ops: communicators of messages
1 op: sizes of receives, replaced by the sizes of their messages
1 op: received sizes of collectives
2 ops: names of communicators other than numbers
1 op: tags of collectives
11 ops: streams
1 op: NICs
1 op: measured times
1 op: attributes
`
	if losses.String() != want {
		t.Errorf("losses\n%s, want\n%s", losses.String(), want)
	}
	again := decode(t, &Format, files, quiet)
	if l := Format.Losses(again); l != nil {
		t.Errorf("what was written loses %v", l)
	}
	checkSound(t, again)
	if got := encode(t, &Format, again); string(got[".0.et"]) != string(files[".0.et"]) {
		t.Error("what is read is written in another way")
	}
	if problems := dag.Validate(again); len(problems) > 0 {
		t.Error(problems)
	}
}

// warningsOf returns the warnings of writing a trace.
func warningsOf(t *testing.T, trace *dag.Trace) string {
	var warnings []string
	err := Format.WriteFiles(func(string) (io.Writer, error) { return io.Discard, nil }, trace,
		format.WriteOptions{Warn: options(&warnings).Warn})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(warnings, "\n")
}

// Each kind of data that ASTRA-sim misinterprets causes one warning, unless it was in the files read.
func TestWriteWarnings(t *testing.T) {
	b := dag.NewBuilder(3)
	for rank := range 2 {
		for _, subkind := range []dag.Subkind{dag.Barrier, dag.Reduce, dag.Gather, dag.Scatter, dag.Bcast, dag.Allreduce,
			dag.Allgather, dag.ReduceScatter, dag.Alltoall} {
			b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: subkind, Bytes: 8})
		}
	}
	b.Rank(0).Send(1, 0, 7)
	b.Rank(0).Send(0, 8, 8)
	b.Rank(0).Recv(0, 8, 8)
	b.Rank(1).Recv(0, 0, 7)
	trace := b.Trace()
	want := `1 idle ranks get a computation of duration 0, because ASTRA-sim refuses files without nodes
1 messages have 0 bytes, which ASTRA-sim refuses
1 messages go from a rank to itself, which ASTRA-sim refuses
8 ops of barriers, reduces, gathers or scatters, which ASTRA-sim refuses: lower them (--lower collectives)
2 ops of bcasts, for which ASTRA-sim takes their recorded duration or 1 ns, unless they are lowered ` +
		`(--lower collectives)`
	if got := warningsOf(t, trace); got != want {
		t.Errorf("warnings\n%s, want\n%s", got, want)
	}
	if got := warningsOf(t, decode(t, &Format, encode(t, &Format, trace), quiet)); got != "" {
		t.Errorf("of what was written, warnings\n%s", got)
	}
	plain := dag.NewBuilder(1)
	plain.Rank(0).Calc(1)
	if got := warningsOf(t, plain.Trace()); got != "" {
		t.Errorf("of a calc, warnings\n%s", got)
	}
}

// A rank that does nothing gets a node, unless its file had none.
func TestIdleRank(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Rank(0).Calc(dag.Microsecond)
	trace := b.Trace()
	for _, f := range []*format.Format{&Format, &JSON} {
		files := encode(t, f, trace)
		again := decode(t, f, files, quiet)
		if got := lines(again.Ranks[1]); got != "0 calc\n" || again.Ranks[1].Name.At(0) != "idle" {
			t.Errorf("%s: the rank became %s", f.Name, got)
		}
	}
	files := encode(t, &Format, trace)
	want := `{"name":"idle","type":"COMP_NODE","attr":[{"name":"is_cpu_op","boolVal":false},` +
		`{"name":"num_ops","int64Val":"0"},{"name":"tensor_size","uint64Val":"0"}]}` + "\n"
	if got := described(t, files[".1.et"]); got != want {
		t.Errorf("the rank is\n%s, want\n%s", got, want)
	}
	files[".1.et"] = wire(&File{Metadata: Metadata{Version: "x"}})
	again := encode(t, &Format, throughStore(t, decode(t, &Format, files, quiet)))
	if !bytes.Equal(again[".1.et"], files[".1.et"]) {
		t.Errorf("a file of metadata becomes %q", again[".1.et"])
	}
}

// Members of a collective may state its size differently; the files have one size, which gives the same
// messages come.
func TestSizesOfRooted(t *testing.T) {
	const x, n, root = 12, 3, 1
	for _, c := range []struct {
		subkind      dag.Subkind
		root, others dag.Op
		want         [2]int64 // the root's comm_size, and that of the others
		received     int      // by how many ops, as losses have it
	}{
		{dag.Bcast, dag.Op{Bytes: x}, dag.Op{RecvBytes: x}, [2]int64{x, x}, 0},
		{dag.Reduce, dag.Op{RecvBytes: x}, dag.Op{Bytes: x}, [2]int64{x, x}, 0},
		{dag.Reduce, dag.Op{Bytes: x, RecvBytes: x}, dag.Op{Bytes: x}, [2]int64{x, x}, 0},
		{dag.Gather, dag.Op{Bytes: x, RecvBytes: n * x}, dag.Op{Bytes: x}, [2]int64{x, x}, 1},
		{dag.Scatter, dag.Op{Bytes: n * x, RecvBytes: x}, dag.Op{RecvBytes: x}, [2]int64{n * x, 0}, n},
	} {
		b := dag.NewBuilder(n)
		for rank := range n {
			op := c.others
			if rank == root {
				op = c.root
			}
			op.Kind, op.Subkind, op.Peer = dag.Coll, c.subkind, root
			b.Rank(rank).Add(op)
		}
		trace := b.Trace()
		again := decode(t, &Format, encode(t, &Format, trace), quiet)
		for rank := range n {
			want := c.want[1]
			if rank == root {
				want = c.want[0]
			}
			if op := again.Ranks[rank].Op(0); op.Bytes != want || op.Peer != root {
				t.Errorf("%v: rank %d has %d bytes, root %d, want %d, %d", c.subkind, rank, op.Bytes, op.Peer, want, root)
			}
		}
		if got, want := loweredLines(t, again), loweredLines(t, trace); got != want {
			t.Errorf("%v: becomes the messages\n%s, want\n%s", c.subkind, got, want)
		}
		want := "[]"
		if c.received > 0 {
			want = fmt.Sprint([]format.Loss{{Kind: "received sizes of collectives", Count: int64(c.received)}})
		}
		losses := slices.DeleteFunc(Format.Losses(trace), func(l format.Loss) bool { return l.Kind == "streams" })
		if got := fmt.Sprint(losses); got != want {
			t.Errorf("%v: losses %s, want %s", c.subkind, got, want)
		}
	}
}

// loweredLines prints the messages that the collectives of a trace become.
func loweredLines(t *testing.T, trace *dag.Trace) string {
	choice, err := collective.ParseChoice("")
	if err != nil {
		t.Fatal(err)
	}
	source, err := collective.LowerSource(context.Background(), dag.FromTrace(trace), choice)
	if err != nil {
		t.Fatal(err)
	}
	lowered, err := dag.ReadAll(source)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for rank := range lowered.Ranks {
		r := lowered.Ranks[rank]
		for i, kind := range r.Kind {
			if kind == dag.Send || kind == dag.Recv {
				fmt.Fprintf(&b, "%d: %v %d, %d bytes\n", rank, kind, r.Peer.At(i), r.Bytes.At(i))
			}
		}
	}
	return b.String()
}

// Ops that no node can represent are refused before anything is written.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		op   dag.Op
		want string
	}{
		{dag.Op{Kind: dag.Recv, Peer: dag.AnySource}, "rank 1, op 1: a receive from any source, which Chakra cannot express"},
		{dag.Op{Kind: dag.Recv, Tag: dag.AnyTag}, "rank 1, op 1: a receive with any tag, which Chakra cannot express"},
		{dag.Op{Kind: dag.Send, Peer: -1}, "rank 1, op 1: a send with rank -1"},
		{dag.Op{Kind: dag.Coll, Subkind: dag.Scan}, "rank 1, op 1: Chakra has no scan (1 op); --lower needed sends them as messages"},
		{dag.Op{Kind: dag.Coll, Subkind: dag.Gatherv},
			"rank 1, op 1: Chakra has no gatherv (1 op); --lower needed sends them as messages"},
		{dag.Op{Kind: dag.IO, Subkind: dag.Read}, "rank 1, op 1: Chakra has no storage accesses (1 op); --lower needed sends them as messages"},
		{dag.Op{Kind: dag.Calc, Duration: -1}, "rank 1, op 1: expected a size, time and flops of 0 or more, found a negative one"},
		{dag.Op{Kind: dag.Coll, Subkind: dag.Barrier, Comm: 1}, "rank 1, op 1: expected one of 1 communicators, found 1"},
		{dag.Op{Kind: dag.Mem}, "rank 1, op 1: a mem cannot be of the kind "},
	} {
		b := dag.NewBuilder(2)
		b.Rank(1).Calc(0)
		b.Rank(1).Add(c.op)
		trace := b.Trace()
		err := Format.WriteFiles(func(string) (io.Writer, error) {
			t.Error("a file is begun")
			return io.Discard, nil
		}, trace, format.WriteOptions{})
		if err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
		if l := Format.Losses(trace); l != nil {
			t.Errorf("losses %v", l)
		}
	}
	b := dag.NewBuilder(1)
	b.Rank(0).Calc(0, 1)
	b.Rank(0).Calc(0, 0)
	if err := Format.WriteFiles(nil, b.Trace(), format.WriteOptions{}); err == nil ||
		err.Error() != "rank 0, op 0: cyclic dependency of 2 ops" {
		t.Errorf("error %v for a circle", err)
	}
	if err := Format.WriteFiles(nil, &dag.Trace{}, format.WriteOptions{}); err == nil {
		t.Error("no error for a trace without ranks")
	}
	broken := errors.New("broken")
	err := Format.WriteFiles(func(string) (io.Writer, error) { return nil, broken }, foreignTrace(), format.WriteOptions{})
	if err != broken {
		t.Errorf("error %v, want %v", err, broken)
	}
}

// A trace that was read and then changed is written as it is now, with what is left of its attributes.
func TestChanged(t *testing.T) {
	extra := Int64("stream", 7)
	file := File{Nodes: []Node{
		{ID: 3, Type: CompNode, Attr: []Attr{Bool(hostName, false), extra}},
		{ID: 4, Type: CommCollNode, DurationMicros: 5, DataDeps: []uint64{3}, Attr: []Attr{extra, Int64(collectiveName, 8),
			Uint64(sizeName, 64), String(groupName, "tp"), Bools(dimsName, true, false), Int32(priorityName, 1)}},
		{ID: 9, Type: MetadataNode, CtrlDeps: []uint64{77, 4}, Attr: []Attr{extra}},
	}}
	trace, err := Build([]File{file}, quiet, []string{"x"})
	if err != nil {
		t.Fatal(err)
	}
	r := trace.Ranks[0]
	r.Flops.Set(0, 10)
	r.Bytes.Set(1, 128)
	r.Duration[1] = 6 * dag.Microsecond
	r.Subkind[1] = dag.Allreduce
	r.Dims.Set(1, 3)
	r.Comm.Set(1, 0)
	r.Priority.Set(1, 0)
	want := `{"id":"3","type":"COMP_NODE","attr":[{"name":"is_cpu_op","boolVal":false},{"name":"stream","int64Val":"7"},` +
		`{"name":"num_ops","int64Val":"10"}]}
{"id":"4","type":"COMM_COLL_NODE","dataDeps":["3"],"durationMicros":"6","attr":[{"name":"stream","int64Val":"7"},` +
		`{"name":"comm_type","int64Val":"0"},{"name":"comm_size","uint64Val":"128"},{"name":"pg_name","stringVal":"0"},` +
		`{"name":"involved_dim","boolList":{"values":[true,true]}},{"name":"comm_priority","int32Val":0}]}
{"id":"9","type":"METADATA_NODE","ctrlDeps":["77","4"],"attr":[{"name":"stream","int64Val":"7"}]}
`
	if got := described(t, encode(t, &Format, throughStore(t, trace))[".0.et"]); got != want {
		t.Errorf("written\n%s, want\n%s", got, want)
	}
	// An op that is another kind of op now, and ops without numbers of their own between those that have some.
	b := dag.NewBuilder(1)
	*b.Meta() = trace.Meta
	for i := range r.Kind {
		op := r.Op(i)
		if i == 1 {
			op = dag.Op{Kind: dag.Calc, Duration: dag.Microsecond, Attrs: op.Attrs}
			b.Rank(0).Calc(0)
			b.Rank(0).Calc(0)
		}
		b.Rank(0).Add(op)
	}
	b.Rank(0).Add(dag.Op{Kind: dag.Calc, Attrs: `{"id":2}`})
	f := messages(t, encode(t, &Format, b.Trace())[".0.et"])
	for i := range f.Nodes {
		if f.Nodes[i].ID != uint64(i) {
			t.Errorf("node %d has the number %d", i, f.Nodes[i].ID)
		}
	}
	if n := f.Nodes[3]; n.Type != CompNode || len(n.Attr) != 1 {
		t.Errorf("node 3 is %v with %+v", n.Type, n.Attr)
	}
}

// Merged traces keep the data about each job's nodes.
func TestMerged(t *testing.T) {
	trace, err := Build([]File{{Nodes: []Node{{ID: 0, Type: CompNode, Attr: []Attr{Int64("x", 1)}}}}}, quiet, []string{"x"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		job  int32
		want bool
	}{{0, true}, {1, false}} {
		merged := *trace
		merged.Attrs, merged.Jobs = `{"jobs":[{"jobs":[`+trace.Attrs+`,null]},null]}`, []string{"a/x", "a/y", "b"}
		merged.Ranks = []*dag.Rank{trace.Ranks[0].Clone()}
		merged.Ranks[0].Job.Set(0, c.job)
		f := messages(t, encode(t, &Format, &merged)[".0.et"])
		if got := f.Nodes[0].Attr[0].Name == "x"; got != c.want {
			t.Errorf("job %d: attributes %+v", c.job, f.Nodes[0].Attr)
		}
	}
}

// Chains of dependencies on starts take neither time nor memory beyond measure.
func TestLongStarts(t *testing.T) {
	const n = 20_000
	b := dag.NewBuilder(1)
	r := b.Rank(0)
	for i := range n {
		calc := r.Calc(1)
		op := r.Calc(1)
		if i%1000 == 0 { // all that comes before has finished
			r.Requires(op, calc)
			continue
		}
		r.Requires(op, calc)
		r.RequiresStart(op, op-2)
	}
	_, err := inheritStarts(b.Trace().Ranks[0])
	if err == nil || !strings.Contains(err.Error(), "too many dependencies to convert") {
		t.Errorf("error %v", err)
	}
	b = dag.NewBuilder(1)
	r = b.Rank(0)
	r.Calc(1)
	r.Calc(1, 0)
	for i := 2; i < n; i++ {
		r.Calc(1)
		r.RequiresStart(i, i-1)
	}
	starts, err := inheritStarts(b.Trace().Ranks[0])
	if err != nil || fmt.Sprint(starts[n-1]) != "[0]" {
		t.Errorf("op %d waits for %v, error %v", n-1, starts[n-1], err)
	}
}

// The JSON is valid, object by object, whatever text there is.
func TestStrings(t *testing.T) {
	for _, s := range []string{"", "a", "\x00\x1f \x7f", "<&>/\"\\\b\f\n\r\t", "é漢😀\u2028\ufffd", strings.Repeat("x", 100)} {
		var back string
		b := appendString(nil, s)
		if err := json.Unmarshal(b, &back); err != nil || back != s || bytes.ContainsFunc(b, func(r rune) bool { return r > 126 && r != 127 }) {
			t.Errorf("%q becomes %s, which is %q, error %v", s, b, back, err)
		}
	}
}
