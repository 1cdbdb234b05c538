package tracecat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/golden"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// everything is a trace with every kind of content.
func everything() *dag.Trace {
	b := dag.NewBuilder(4)
	seed := int64(42)
	*b.Meta() = dag.Meta{
		Title: "a bit of \x1b[31meverything",
		Jobs:  []string{"train", "serve"},
		Nodes: []int32{0, 0, 1, 1},
		Attrs: `{"tool": "some <tracer>"}`,
		Provenance: []dag.Provenance{
			{Program: "tracegen", Version: "v1.2.3", Command: []string{"tracegen", "horovod"}, Seed: &seed},
			{Program: "traceconv", Version: "v1.2.4", Command: []string{"traceconv", "it's here.goal", "-o", "x"},
				Inputs: []dag.Input{{Name: "it's here.goal", SHA256: strings.Repeat("0123456789abcdef", 4)}}},
		},
	}
	even := b.AddComm(dag.NewComm("even", []int32{0, 2}))
	b.AddComm(dag.NewComm("", []int32{3, 1, 0}))

	r := b.Rank(0)
	first := r.Add(dag.Op{Kind: dag.Calc, Duration: 1500 * dag.Nanosecond, Flops: 9000, Name: "forward"})
	send := r.Add(dag.Op{Kind: dag.Send, Peer: 1, Bytes: 123_456_789, Tag: 7, NIC: 1}, first)
	r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1 << 20, Comm: even, Stream: 2}, first, send)
	r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Bytes: 64, Peer: 2, Comm: even, Name: "tab\there"}, 2)
	last := r.Add(dag.Op{Kind: dag.IO, Subkind: dag.Write, Bytes: 4096, Duration: 12, Release: dag.Millisecond, Job: 1})
	r.RequiresStart(last, first)
	r.RequiresStart(first, last)

	r = b.Rank(1)
	r.Add(dag.Op{Kind: dag.Recv, Peer: dag.AnySource, Bytes: 123_456_789, Tag: dag.AnyTag, Attrs: `{"a": [1,
		2]}`, Timed: true, MeasuredStart: 5, MeasuredEnd: 6 * dag.Second})
	r.Add(dag.Op{Kind: dag.Mem, Subkind: dag.Load, Bytes: 64, Attrs: "no JSON", Name: "-"}, 0)

	r.Measure(1, dag.Unmeasured, 0)

	r = b.Rank(2)
	r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1 << 20, RecvBytes: 2 << 20, Comm: even, Dims: 0b101})
	r.Add(dag.Op{Kind: dag.Send, Peer: 3, Bytes: 1, Tag: -5}, 0)
	r.Add(dag.Op{Kind: dag.Calc, Subkind: dag.Marker, Host: 1})
	r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Reduce, Bytes: 8, Comm: even, Peer: dag.UnknownRoot, Priority: -2})
	return b.Trace()
}

// ring is a trace with nothing unusual.
func ring() *dag.Trace {
	b := dag.NewBuilder(3)
	for rank := range 3 {
		r := b.Rank(rank)
		calc := r.Calc(dag.Microsecond)
		r.Send(int32((rank+1)%3), 1000, 0, calc)
		r.Recv(int32((rank+2)%3), 1000, 0, calc)
	}
	return b.Trace()
}

// session returns a session in which the input of tracecat is a trace of the test.
func session(t *dag.Trace) clitest.Session {
	return clitest.Session{
		Stdin: strings.NewReader("something"),
		Formats: formats.List{{
			Name:   "test",
			Detect: func([]byte) bool { return true },
			Read:   func([]*format.Input, format.ReadOptions) (*dag.Trace, error) { return t, nil },
		}},
	}
}

func TestGolden(t *testing.T) {
	empty := &dag.Trace{Comms: []dag.Comm{{}}}
	for _, c := range []struct {
		file   string
		trace  *dag.Trace
		args   string
		status int
	}{
		{"everything", everything(), "", 0},
		{"everything.stats", everything(), "--stats", 0},
		{"everything.json", everything(), "--json", 0},
		{"everything.ops", everything(), "--ops", 0},
		{"everything.ops.jsonl", everything(), "--ops --json", 0},
		{"everything.ops.rank2", everything(), "--ops --rank 2", 0},
		{"everything.check", everything(), "--check", 1},
		{"everything.check.jsonl", everything(), "--check --json", 1},
		{"ring", ring(), "", 0},
		{"ring.ops", ring(), "--ops", 0},
		{"ring.matrix", ring(), "--matrix", 0},
		{"ring.matrix.jsonl", ring(), "--matrix --json", 0},
		{"ring.check", ring(), "--check", 0},
		{"empty", empty, "", 0},
		{"empty.stats", empty, "--stats", 0},
		{"empty.json", empty, "--json", 0},
		{"empty.ops", empty, "--ops", 0},
	} {
		t.Run(c.file, func(t *testing.T) {
			got := session(c.trace).Run(New, strings.Fields(c.args)...)
			if got.Status != c.status {
				t.Errorf("exit status %d, want %d; stderr %q", got.Status, c.status, got.Stderr)
			}
			golden.Check(t, filepath.Join("testdata", c.file+".golden"), got.Stdout)
		})
	}
}

// Every line of a JSON list, and the whole of the summary, is valid JSON.
func TestJSONIsValid(t *testing.T) {
	for _, args := range []string{"--json", "--json --ops", "--json --matrix", "--json --check"} {
		got := session(everything()).Run(New, strings.Fields(args)...)
		lines := strings.SplitAfter(got.Stdout, "\n")
		if args == "--json" {
			lines = []string{got.Stdout}
		}
		for _, line := range lines {
			if line != "" && !json.Valid([]byte(line)) {
				t.Errorf("tracecat %s: not JSON: %s", args, line)
			}
		}
		if len(lines) == 0 {
			t.Errorf("tracecat %s prints nothing", args)
		}
	}
}

func TestListSelection(t *testing.T) {
	const columns = "rank\top\tkind\tsubkind\tbytes\tpeer\ttag\tcomm\tduration\tstream\tnic\tdeps\tstart_deps\n"
	calc := func(rank int) string {
		return fmt.Sprintf("%d\t0\tcalc\t-\t-\t-\t-\t-\t1us\t0\t0\t-\t-\n", rank)
	}
	send := func(rank int) string {
		return fmt.Sprintf("%d\t1\tsend\t-\t1000\t%d\t0\t0\t-\t0\t0\t0\t-\n", rank, (rank+1)%3)
	}
	recv := func(rank int) string {
		return fmt.Sprintf("%d\t2\trecv\t-\t1000\t%d\t0\t0\t-\t0\t0\t0\t-\n", rank, (rank+2)%3)
	}
	of := func(rank int) string { return calc(rank) + send(rank) + recv(rank) }
	for args, want := range map[string]string{
		"--ops":                            columns + of(0) + of(1) + of(2),
		"--ops --rank 1":                   columns + of(1),
		"--ops --rank 2 --rank 0":          columns + of(0) + of(2),
		"--ops --rank 1-2,1":               columns + of(1) + of(2),
		"--ops --head 0":                   columns,
		"--ops --head 2":                   columns + calc(0) + send(0),
		"--ops --head 4 --rank 1-2":        columns + of(1) + calc(2),
		"--ops --head 99 --rank 0":         columns + of(0),
		"--matrix --head 1":                "src\tdst\tmessages\tbytes\n0\t1\t1\t1000\n",
		"--ops --json --rank 2 --head 1":   `{"rank":2,"op":0,"kind":"calc","duration_ps":1000000}` + "\n",
		"--matrix --json --head 1":         `{"src":0,"dst":1,"messages":1,"bytes":1000}` + "\n",
		"--check":                          "",
		"--check --json":                   "",
		"--check --head 3":                 "",
		"--matrix --head 9223372036854775": "src\tdst\tmessages\tbytes\n0\t1\t1\t1000\n1\t2\t1\t1000\n2\t0\t1\t1000\n",
	} {
		if got := session(ring()).Run(New, strings.Fields(args)...); got.Status != 0 || got.Stdout != want {
			t.Errorf("tracecat %s: exit status %d, stdout\n%s\nwant\n%s", args, got.Status, got.Stdout, want)
		}
	}
}

// TestGPUFlags checks that --gpu refuses flags that it would ignore.
func TestGPUFlags(t *testing.T) {
	for _, flags := range []string{"--keep-host", "--merge-calcs", "--gaps=none", "--replicate", "--straggler=0=2",
		"--only-present", "--seed=2", "--steps=last", "--compat --align-clocks"} {
		args := append(strings.Fields(flags), "--gpu", "../../../testdata/kineto/")
		got := clitest.Session{}.Run(New, args...)
		if got.Status != 2 || !strings.Contains(got.Stderr, "has no effect on --gpu") {
			t.Errorf("--gpu %s: exit status %d, stderr %q", flags, got.Status, got.Stderr)
		}
	}
	got := clitest.Session{}.Run(New, "--gpu", "--align-clocks", "../../../testdata/kineto/")
	if got.Status != 0 || got.Stderr != "" {
		t.Errorf("--gpu --align-clocks: exit status %d, stderr %q", got.Status, got.Stderr)
	}
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]struct {
		status int
		stderr string
	}{
		"--rank 1":                {2, "--rank needs --ops"},
		"--head 1":                {2, "--head needs --ops, --matrix, --check, --verify or the folder of a set"},
		"--ops --head -1":         {2, "--head: expected 0 or more, found -1"},
		"--ops --matrix":          {2, "--matrix and --ops exclude each other"},
		"--ops --rank x":          {2, "expected numbers such as 3 or 0-7,12"},
		"--ops --rank 2-1":        {2, "expected numbers such as 3 or 0-7,12"},
		"--ops --rank -1":         {2, "expected numbers such as 3 or 0-7,12"},
		"--ops --rank 3":          {1, "<stdin>: there is no rank 3, the trace has 3"},
		"--ops --rank 2147483647": {1, "<stdin>: there is no rank 2147483647, the trace has 3"},
		"--ops a b":               {2, "--ops reads one trace, found 2 files"},
		"--check a b":             {2, "--check reads one trace, found 2 files"},
		"--diff a":                {2, "--diff compares two traces, found 1"},
		"--diff a b c":            {2, "--diff compares two traces, found 3"},
		"--json --csv a":          {2, "--csv and --json exclude each other"},
		"--kind send":             {2, "--kind needs --ops"},
		"--name x":                {2, "--name needs --ops"},
		"--ops --kind sent":       {2, "expected kinds of op (calc, send, recv,"},
		"--ops --kind ,":          {2, "expected kinds of op"},
		"--ops --window 5ms":      {2, "expected FROM..TO such as 1ms..5ms, 1ms.. or ..5ms"},
		"--ops --window ..":       {2, "expected FROM..TO such as 1ms..5ms, 1ms.. or ..5ms"},
		"--ops --window 2ms..1ms": {2, "expected an end after the start 2ms, found 1ms"},
		"--ops --window 5..6":     {2, "window"},
		"--ops --color blue":      {2, "expected auto, always or never"},
		"--ops --job 1":           {1, `<stdin>: there is no job "1", the trace has only job 0`},
	} {
		got := session(ring()).Run(New, strings.Fields(args)...)
		if got.Status != want.status || !strings.Contains(got.Stderr, want.stderr) || got.Stdout != "" {
			t.Errorf("tracecat %s: exit status %d, stdout %q, stderr %q; want %d and %q",
				args, got.Status, got.Stdout, got.Stderr, want.status, want.stderr)
		}
	}
}

func TestCheckSaysHowMany(t *testing.T) {
	got := session(everything()).Run(New, "--check", "--head", "1")
	problems, total := dag.ValidateLimit(everything(), 1)
	if want := fmt.Sprintf("tracecat: <stdin>: problems: %d\n", total); got.Stderr != want || got.Status != 1 {
		t.Errorf("exit status %d, stderr %q; want 1, %q", got.Status, got.Stderr, want)
	}
	if want := problems[0].String() + "\n"; got.Stdout != want {
		t.Errorf("stdout %q, want %q", got.Stdout, want)
	}
}

// TestCheckReportsMissingDigest checks that --check reports that a store has no digest; other traces have none anyway.
func TestCheckReportsMissingDigest(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("..", "..", "..", "formats", "store", "testdata", "version-1.0.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "tracecat: <stdin>: the store has no digest that would reveal damage (schema 1.0 has none); traceconv adds one\n"
	s := clitest.Session{Stdin: bytes.NewReader(file), Formats: formats.All}
	if got := s.Run(New, "--check"); !strings.HasPrefix(got.Stderr, want) {
		t.Errorf("stderr %q, want %q", got.Stderr, want)
	}
	var current bytes.Buffer
	if err := store.Write(&current, ring()); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]clitest.Session{
		"a store of this version": {Stdin: &current, Formats: formats.All}, "another format": session(ring()),
	} {
		if got := s.Run(New, "--check"); got.Status != 0 || got.Stdout+got.Stderr != "" {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q", name, got.Status, got.Stdout, got.Stderr)
		}
	}
}

// closedPipe is a pipe whose reader closes it after some bytes.
type closedPipe struct{ left int }

func (p *closedPipe) Write(b []byte) (int, error) {
	if p.left -= len(b); p.left < 0 {
		return 0, syscall.EPIPE
	}
	return len(b), nil
}

func TestClosedPipe(t *testing.T) {
	b := dag.NewBuilder(1)
	for range 100_000 {
		b.Rank(0).Calc(1)
	}
	s := session(b.Trace())
	s.Stdout = &closedPipe{100_000}
	if got := s.Run(New, "--ops"); got.Status != 141 || got.Stderr != "" {
		t.Errorf("exit status %d, stderr %q; want 141 and nothing", got.Status, got.Stderr)
	}
}

// A trace from a hostile file cannot send commands to the terminal.
func TestNoControlCharacters(t *testing.T) {
	for _, args := range []string{"", "--stats", "--ops", "--json", "--ops --json", "--check"} {
		got := session(everything()).Run(New, strings.Fields(args)...)
		if i := bytes.IndexFunc([]byte(got.Stdout), func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' }); i >= 0 {
			t.Errorf("tracecat %s prints the character %q", args, got.Stdout[i])
		}
	}
}
