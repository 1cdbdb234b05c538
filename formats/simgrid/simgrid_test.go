package simgrid

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/formats/format"
)

// parseText reads one file of all ranks and returns the warnings, too.
func parseText(text string, o Options) (trace *dag.Trace, warnings []string, err error) {
	in := []*format.Input{{Name: "f", Reader: strings.NewReader(text)}}
	trace, err = Format.Read(in, format.ReadOptions{Own: &o, Warn: func(m string, args ...any) {
		warnings = append(warnings, fmt.Sprintf(m, args...))
	}})
	return trace, warnings, err
}

// written returns the lines of a trace, without comments.
func written(t testing.TB, trace *dag.Trace, own *WriteOptions) string {
	t.Helper()
	var b bytes.Buffer
	var o format.WriteOptions
	if own != nil {
		o.Own = own
	}
	if err := Format.Write(&b, trace, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// actions returns the words of the lines of each rank, numbers in one form.
func actions(text string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		for i, w := range words {
			if f, ok := parseNumber(w); ok {
				words[i] = strconv.FormatFloat(f, 'g', -1, 64)
			}
		}
		all[words[0]] = append(all[words[0]], strings.Join(words, " "))
	}
	return all
}

// ofRank returns a file in which rank 0 has some lines and the others nothing.
func ofRank(ranks int, lines ...string) string {
	text := "0 init\n"
	for _, line := range lines {
		text += "0 " + line + "\n"
	}
	text += "0 finalize\n"
	for rank := 1; rank < ranks; rank++ {
		text += fmt.Sprintf("%d init\n%d finalize\n", rank, rank)
	}
	return text
}

// TestActions works the ops of each action out by hand. Dependencies are on ends, after a colon on starts.
func TestActions(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"compute 2.5e5", "calc flops=250000 deps=0:"},
		{"compute 12.75", "calc flops=13 deps=0:"},
		{"sleep 1.5e-3", "calc duration=1.5ms deps=0:"},
		{"send 1 7 1000 4", "send 8000 to 1 tag 7 deps=0:"},
		{"send 1 7 1000", "send 1000 to 1 tag 7 deps=0:"},
		{"send 1 7 1e3 -1  ", "send 1000 to 1 tag 7 deps=0:"},
		{"recv 2 7 10.9 1", "recv 40 to 2 tag 7 deps=0:"},
		{"isend 1 7 10 6|compute 5", "send 10 to 1 tag 7 deps=0:|calc flops=5 deps=:1"},
		{"irecv -555 -444 10 6|wait 2 0 9", "recv 10 to -1 tag -1 deps=0:|calc deps=1:1"},
		{"irecv 1 7 10|irecv 1 7 20|compute 1|wait 1 0 7|wait 1 0 7", "recv 10 to 1 tag 7 deps=0:|" +
			"recv 20 to 1 tag 7 deps=:1|calc flops=1 deps=:2|calc deps=1,3:|calc deps=2,4:"},
		{"irecv 1 7 10|isend 2 3 4|waitall 9", "recv 10 to 1 tag 7 deps=0:|send 4 to 2 tag 3 deps=:1|calc deps=1,2:2"},
		{"sendRecv 100 1 900 2 4 6|compute 1", "send 800 to 1 tag 0 deps=0:|recv 900 to 2 tag 0 deps=0:|" +
			"calc flops=1 deps=1,2:"},
		{"location a.c 12|test 1 0 2|comm_split 1 2|compute 1", "calc flops=1 deps=0:"},
		{"barrier", "barrier 0/0 root 0 deps=0:"},
		{"bcast 10 0 1", "bcast 40/0 root 0 deps=0:"},
		{"bcast 10 3", "bcast 0/10 root 3 deps=0:"},
		{"reduce 10 0 0 0", "reduce 80/80 root 0 deps=0:"},
		{"reduce 10 7 3 0|compute 1", "reduce 80/0 root 3 deps=0:|calc flops=7 deps=1:|calc flops=1 deps=2:"},
		{"allreduce 10 1e2 0", "allreduce 80/0 root 0 deps=0:|calc flops=100 deps=1:"},
		{"scan 3 0", "scan 3/0 root 0 deps=0:"},
		{"exscan 3 0 3", "exscan 6/0 root 0 deps=0:"},
		{"gather 5 6 0 6 3", "gather 5/48 root 0 deps=0:"},
		{"gather 5 6 1 6 3", "gather 5/0 root 1 deps=0:"},
		{"gatherv 5 1 2 3 4 0 6 3", "gatherv 5/20 root 0 deps=0:"},
		{"gatherv 5 1 2 3 4", "gatherv 5/10 root 0 deps=0:"},
		{"allgather 5 5", "allgather 5/20 root 0 deps=0:"},
		{"allgatherv 5 1 2 3 4 6 3", "allgatherv 5/20 root 0 deps=0:"},
		{"allgatherv 5 1 2 3 4 0 1 3 6", "allgatherv 5/10 root 0 deps=0:"},
		{"allgatherv 5 1 2 3 4 0 1 3 6 3 3", "allgatherv 10/20 root 0 deps=0:"},
		{"scatter 5 6 0 3 6", "scatter 40/6 root 0 deps=0:"},
		{"scatter 5 6 2 3 6", "scatter 0/6 root 2 deps=0:"},
		{"scatterv 1 2 3 4 9 0 3 6", "scatterv 20/9 root 0 deps=0:"},
		{"alltoall 5 6 6 3", "alltoall 20/48 root 0 deps=0:"},
		{"alltoallv 99 1 2 3 4 99 5 6 7 8 3 6", "alltoallv 20/26 root 0 deps=0:"},
		{"reducescatter 1 2 3 4 5 3", "reducescatter 20/2 root 0 deps=0:|calc flops=5 deps=1:"},
	} {
		text := ofRank(4, strings.Split(c.line, "|")...)
		trace, warnings, err := parseText(text, Options{})
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, warnings %q", c.line, err, warnings)
			continue
		}
		var got []string
		r := trace.Ranks[0]
		for i := 1; i < r.Len(); i++ {
			got = append(got, describe(r, i))
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s:\n%s\nexpected\n%s", c.line, strings.Join(got, "|"), c.want)
		}
		if back := written(t, trace, nil); !equalActions(back, text) {
			t.Errorf("%s: written\n%s", c.line, back)
		}
		if l := Format.Losses(trace); len(l) > 0 {
			t.Errorf("%s: loses %v", c.line, l)
		}
	}
}

func equalActions(a, b string) bool {
	return fmt.Sprint(actions(a)) == fmt.Sprint(actions(b))
}

// describe returns an op as text.
func describe(r *dag.Rank, i int) string {
	op := r.Op(i)
	text := op.Kind.String()
	switch op.Kind {
	case dag.Calc:
		if op.Flops > 0 {
			text += fmt.Sprint(" flops=", op.Flops)
		}
		if op.Duration > 0 {
			text += fmt.Sprint(" duration=", op.Duration)
		}
	case dag.Coll:
		text = fmt.Sprintf("%v %d/%d root %d", op.Subkind, op.Bytes, op.RecvBytes, op.Peer)
	default:
		text += fmt.Sprintf(" %d to %d tag %d", op.Bytes, op.Peer, op.Tag)
	}
	list := func(offsets []int32) string {
		var all []int
		for _, off := range offsets {
			all = append(all, i-int(off))
		}
		slices.Sort(all)
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(all), "[]"), " ", ",")
	}
	return text + " deps=" + list(r.Deps.Of(i)) + ":" + list(r.StartDeps.Of(i))
}

// TestSizes checks receives that take the size of their message, the default datatype and the speed of a host.
func TestSizes(t *testing.T) {
	trace, _, err := parseText("0 init 1\n0 send 1 5 3\n0 sendRecv 7 1 99 1 6 6\n0 finalize\n"+
		"1 init\n1 recv 0 -444 -1\n1 sendRecv 8 0 100 0\n1 compute 1e6\n1 finalize\n", Options{Speed: 1e9})
	if err != nil {
		t.Fatal(err)
	}
	a, b := trace.Ranks[0], trace.Ranks[1]
	if a.Bytes.At(1) != 24 || b.Bytes.At(1) != 24 || a.Bytes.At(3) != 8 || b.Bytes.At(3) != 7 {
		t.Errorf("sizes %v and %v", a.Bytes, b.Bytes)
	}
	if b.Duration.At(4) != dag.Millisecond {
		t.Errorf("durations %v", b.Duration)
	}
}

// TestErrors checks that errors name file, line, the expected and the found.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"0 compute 5\n", `f:1: expected init, the first action of a rank, found "compute"`},
		{ofRank(1, "sendrecv 1 2 3 4"),
			`f:2: expected an action of SimGrid, such as send, allreduce or compute, found "sendrecv"`},
		{ofRank(1, "send 1 7 5"), "f:2: expected the destination in 0..0, found 1"},
		{ofRank(1, "send 0 7"), "f:2: expected a count, found the end of the line"},
		{ofRank(1, "send 0 7 x"), `f:2: expected a count, found "x"`},
		{ofRank(1, "send 0 7 0x5"), `f:2: expected a count, found "0x5"`},
		{ofRank(1, "send 0 7 -2"), "f:2: expected a count of 0 or more, found -2"},
		{ofRank(1, "send 0 7 5 55"), "f:2: expected the number of a datatype, 0..54 or 57..59, or -1, found 55"},
		{ofRank(1, "send 0 7 5 60"), "f:2: expected the number of a datatype, 0..54 or 57..59, or -1, found 60"},
		{ofRank(1, "send 0 7 5 6 6"), `f:2: expected the end of the line, found "6"`},
		{ofRank(1, "compute -5"), "f:2: expected the flops of the computation, 0 or more and below 9.2e18, found -5"},
		{ofRank(1, "compute nan"), `f:2: expected the flops of the computation, found "nan"`},
		{ofRank(2, "gatherv 5 1"), "f:2: expected a count for each rank, found the end of the line"},
		{ofRank(1, "init"), "f:2: expected one init per rank, found another one"},
		{"0 init\n0 finalize\n0 compute 4\n", `f:3: expected nothing after finalize, found "compute"`},
		{ofRank(3, "wait 1 2 0"), `f:2: expected a request of rank 0, found "wait 1 2 0"`},
		{"0 init\n2 init\n2 finalize\n", "f: expected actions of rank 1, the first of them init, found none"},
		{"0 init\n9999999 init\n", "f: expected actions of every rank, found 10000000 ranks in 3 lines"},
		{"0 init\nx compute 3\n", `f:2: expected rank 0, found "x"`},
		{"", "f: expected actions of rank 0, the first of them init, found none"},
	} {
		_, _, err := parseText(c.text, Options{})
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, expected %s", c.text, err, c.want)
		}
	}
}

// TestStaleWaits checks that a wait for a request that is over does nothing but a warning.
func TestStaleWaits(t *testing.T) {
	text := ofRank(2, "irecv 1 3 8", "waitall 1", "wait 1 0 3", "wait 1 0 3", "compute 1")
	trace, warnings, err := parseText(text, Options{})
	if err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0], "f:4: a wait for a request that is over") {
		t.Fatalf("%v, warnings %q", err, warnings)
	}
	if trace.Ranks[0].Len() != 4 || !equalActions(written(t, trace, nil), text) {
		t.Errorf("%d ops, written\n%s", trace.Ranks[0].Len(), written(t, trace, nil))
	}
}

// TestWriteAny works out the lines of traces of other formats.
func TestWriteAny(t *testing.T) {
	b := dag.NewBuilder(2)
	r := b.Rank(0)
	calc := r.Calc(2 * dag.Microsecond)
	send := r.Send(1, 100, 7, calc)
	r.RequiresStart(r.Recv(1, 50, 8), send)
	r.RequiresStart(r.Calc(dag.Microsecond), 2)
	wait := r.Calc(0, send, 2, 3)
	r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 16}, wait)
	r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Alltoallv, Bytes: 5}, wait+1)
	other := b.Rank(1)
	other.Recv(0, 100, 7)
	other.Send(0, 50, 8, 0)
	other.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 16}, 1)
	other.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Alltoallv, Bytes: 2}, 2)
	want := `# compute: durations at 1000000000 flops per second
0 init
0 compute 2000
0 isend 1 7 100 6
0 irecv 1 8 50 6
0 compute 1000
0 waitall 2
0 allreduce 2 0 0
0 alltoallv 5 3 2 4 3 1 6 6
0 finalize
1 init
1 recv 0 7 100 6
1 send 0 8 50 6
1 allreduce 2 0 0
1 alltoallv 2 1 1 3 2 1 6 6
1 finalize
`
	part := b.Trace()
	if got := written(t, part, nil); got != want {
		t.Errorf("written\n%s\nexpected\n%s", got, want)
	}
	low := dag.NewBuilder(2)
	low.Rank(0).Send(1, 8, -2)
	low.Rank(1).Calc(0, low.Rank(1).Recv(0, 8, -2))
	if got := written(t, low.Trace(), nil); !strings.Contains(got, "0 send 1 2147483646 8 6\n") ||
		!strings.Contains(got, "1 recv 0 2147483646 8 6\n") {
		t.Errorf("tags of lowered collectives:\n%s", got)
	}
	slept := written(t, part, &WriteOptions{Speed: 1e9, Sleep: true})
	if !strings.Contains(slept, "0 sleep 2e-06\n") && !strings.Contains(slept, "0 sleep 1.9999999999999999e-06\n") {
		t.Errorf("with sleeps:\n%s", slept)
	}
	part.Comms = append(part.Comms, dag.NewComm("one", []int32{0}))
	part.Ranks[0].Comm = dag.NewNarrow([]uint8{0, 0, 0, 0, 0, 1}, nil)
	if err := Format.Write(io.Discard, part, format.WriteOptions{}); err == nil ||
		!strings.Contains(err.Error(), "rank 0: op 5: expected collectives of all ranks, found allreduce") {
		t.Errorf("a collective of part of the ranks: %v", err)
	}
}

// TestVectors reads the recorded and written traces of SimGrid: without warnings except those that SimGrid itself
// cannot replay, with as many messages and bytes as an independent count, and writes them back line for line.
func TestVectors(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS is not set: the traces of other projects are not read")
	}
	archives, _ := filepath.Glob(filepath.Join(folder, "simgrid-ti", "*.tgz"))
	if len(archives) == 0 {
		t.Skip("TRACEDAG_VECTORS has no folder simgrid-ti")
	}
	for _, archive := range archives {
		name := strings.TrimSuffix(filepath.Base(archive), ".tgz")
		t.Run(name, func(t *testing.T) {
			files := unpack(t, archive)
			var warnings []string
			o := format.ReadOptions{
				Warn: func(m string, args ...any) { warnings = append(warnings, fmt.Sprintf(m, args...)) },
				OpenFile: func(path string) *format.Input {
					text, ok := files[path]
					if !ok {
						t.Errorf("no file %s", path)
					}
					return &format.Input{Name: path, Reader: strings.NewReader(text)}
				},
			}
			list := filepath.Join(name, name+".txt")
			head := []byte(files[list])
			if !detectList(head, func(file string) []byte { return []byte(files[filepath.Join(name, file)]) }) || detect(head) {
				t.Error("the list is not detected")
			}
			trace, err := Format.Read([]*format.Input{{Name: list, Reader: strings.NewReader(files[list])}}, o)
			if err != nil {
				t.Fatal(err)
			}
			if stale := name == "ti-lulesh-8"; stale != (len(warnings) > 0) {
				t.Errorf("warnings %q", warnings)
			}
			if problems := dag.Validate(trace); len(problems) > 0 {
				t.Errorf("%v", problems[0])
			}
			text := ""
			for path, content := range files {
				if path != list {
					text += content
				}
			}
			if !equalActions(written(t, trace, nil), text) {
				t.Error("the lines that are written differ from those read")
			}
			if l := Format.Losses(trace); len(l) > 0 {
				t.Errorf("loses %v", l)
			}
			checkCount(t, trace, text)
		})
	}
}

// checkCount compares messages and collectives with a count of the words of lines.
func checkCount(t *testing.T, trace *dag.Trace, text string) {
	words, sent := map[string]int{}, int64(0)
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		words[w[1]]++
		switch w[1] {
		case "send", "isend":
			n, _ := strconv.ParseInt(w[4], 10, 64)
			kind, _ := strconv.Atoi(w[5])
			sent += n * sizes[kind]
		case "sendRecv":
			n, _ := strconv.ParseInt(w[2], 10, 64)
			kind, _ := strconv.Atoi(w[6])
			sent += n * sizes[kind]
		}
	}
	kinds, bytes := map[dag.Kind]int{}, int64(0)
	for _, r := range trace.Ranks {
		for i, k := range r.Kind {
			kinds[k]++
			if k == dag.Send {
				bytes += r.Bytes.At(i)
			}
		}
	}
	collective := 0
	for name := range collectives {
		collective += words[name]
	}
	if kinds[dag.Send] != words["send"]+words["isend"]+words["sendRecv"] ||
		kinds[dag.Recv] != words["recv"]+words["irecv"]+words["sendRecv"] || kinds[dag.Coll] != collective || bytes != sent {
		t.Errorf("ops %v, %d bytes sent, expected the actions %v and %d bytes", kinds, bytes, words, sent)
	}
}

func unpack(t *testing.T, archive string) map[string]string {
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for in := tar.NewReader(z); ; {
		h, err := in.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			files[filepath.Clean(h.Name)] = string(text)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, lines := range []string{
		"compute 1.5|send 1 2 3 4|recv 1 2 -1|allreduce 5 6 0",
		"irecv -555 -444 9|isend 1 2 3|test 1 0 2|wait 1 0 2|waitall 7",
		"sendRecv 1 1 2 1|alltoallv 9 1 2 9 3 4 6 6|allgatherv 1 1 2 0 1|reducescatter 1 2 5", "wait 1 0 5|location a 1",
		"bcast 1 1 1|gather 1 2 1 3 4|gatherv 1 1 2 1|scatter 5 5|scatterv 1 2 1|sleep 1e-3|barrier|scan 1 2",
	} {
		f.Add(ofRank(2, strings.Split(lines, "|")...))
	}
	f.Fuzz(func(t *testing.T, text string) {
		trace, _, err := parseText(text, Options{})
		if err != nil {
			if !errors.As(err, new(*format.SyntaxError)) && !errors.As(err, new(*format.FileError)) {
				t.Fatalf("error %v does not say where", err)
			}
			return
		}
		for i, r := range trace.Ranks {
			if err := r.CheckReferences(); err != nil {
				t.Fatalf("rank %d: %v", i, err)
			}
		}
		var first bytes.Buffer
		if Format.Write(&first, trace, format.WriteOptions{}) != nil {
			return
		}
		again, _, err := parseText(first.String(), Options{})
		if err != nil {
			t.Fatalf("%v, reading what was written:\n%s", err, first.String())
		}
		var second bytes.Buffer
		err = Format.Write(&second, again, format.WriteOptions{})
		if err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("%v: written\n%s\nthen\n%s", err, first.String(), second.String())
		}
	})
}

func BenchmarkRead(b *testing.B) {
	var text strings.Builder
	const ranks, steps = 16, 2000
	for rank := range ranks {
		fmt.Fprintf(&text, "%d init\n", rank)
		for range steps {
			fmt.Fprintf(&text, "%d compute 1.5e+06\n%d irecv %d 3 1024 0\n%d send %d 3 1024 0\n%d waitall 1\n"+
				"%d allreduce 1 0 0\n",
				rank, rank, (rank+1)%ranks, rank, (rank+ranks-1)%ranks, rank, rank)
		}
		fmt.Fprintf(&text, "%d finalize\n", rank)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := parseText(text.String(), Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(ranks*(5*steps+1))*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

// TestElements checks that the size of elements is read, and written as a datatype of that size.
func TestElements(t *testing.T) {
	for _, c := range []struct{ line, attrs, written string }{
		{"allgatherv 5 5 2", `{"element":1}`, "allgatherv 5 5 2 6 6"},
		{"allgatherv 5 5 2 5 5", `{"element":4}`, "allgatherv 5 5 2 1 1"},
		{"allgatherv 5 5 2 4 4", "", "allgatherv 40 40 16 6 6"},
		{"reducescatter 5 2 0 14", `{"element":16}`, "reducescatter 5 2 0 14"},
		{"reducescatter 5 2 0 4", "", "reducescatter 5 2 0 0"},
		{"allreduce 5 0 5", `{"element":4}`, "allreduce 5 0 1"},
		{"allreduce 8 0 6", `{"element":1}`, "allreduce 8 0 6"},
		{"allreduce 5 0 4", "", "allreduce 5 0 0"},
		{"reduce 6 0 1 1", `{"element":4}`, "reduce 6 0 1 1"},
		{"reduce 6 0 0", `{"element":1}`, "reduce 6 0 0 6"},
		{"reduce 6 0 1 7", "", "reduce 6 0 1 0"},
		{"scan 6 0 1", "", "scan 3 0 0"},
	} {
		other := strings.Replace(c.line, "allgatherv 5", "allgatherv 2", 1)
		trace, _, err := parseText("0 init\n1 init\n0 "+c.line+"\n1 "+other+"\n0 finalize\n1 finalize\n", Options{})
		if err != nil {
			t.Fatal(err)
		}
		kept := trace.Ranks[0].Attrs.At(1)
		element, stated := attr.ParseElement(kept)
		plain := ""
		if stated {
			plain = attr.WithElement("", element)
		}
		if plain != c.attrs {
			t.Errorf("%s: attributes %s, expected %s", c.line, kept, c.attrs)
		}
		for _, r := range trace.Ranks { // as from another format
			var all dag.Text
			for i := range r.Len() {
				text := r.Attrs.At(i)
				if i == 1 {
					text = plain
				}
				all.Append(i, text)
			}
			r.Attrs = all
		}
		if text := written(t, trace, nil); !strings.Contains(text, "0 "+c.written+"\n") {
			t.Errorf("%s: written\n%s\nexpected %s", c.line, text, c.written)
		}
		if l := Format.Losses(trace); len(l) > 0 {
			t.Errorf("%s: loses %v", c.line, l)
		}
	}
}

// TestListPlaces checks where the files that a list names are found.
func TestListPlaces(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	for _, path := range []string{"here/a.txt", "work/b_files/1_rank-1.txt", "moved/c_files/1_rank-1.txt"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("0 init\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range [][3]string{
		{"here/list", "a.txt", "here/a.txt"},
		{"here/list", "work/b_files/1_rank-1.txt", "work/b_files/1_rank-1.txt"},
		{"moved/list", "old/c_files/1_rank-1.txt", "moved/c_files/1_rank-1.txt"},
		{"here/list", "none/1_rank-1.txt", "here/none/1_rank-1.txt"},
	} {
		got, err := filepath.Abs(beside(c[0], c[1]))
		want, _ := filepath.Abs(c[2])
		if err != nil || got != want {
			t.Errorf("%v: %s (%v)", c, got, err)
		}
	}
	missing := func(string) []byte { return nil }
	if !detectList([]byte("x/1_rank-1.txt\nx/1_rank-2.txt\n"), missing) {
		t.Error("a list of missing files is not detected")
	}
	for _, text := range []string{"", "x_rank-.txt\n", "x_rank-1.log\n", "x_rank-1.txt\nother.txt\n"} {
		if detectList([]byte(text), missing) {
			t.Errorf("%q is detected as a list", text)
		}
	}
}
