package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// everything returns a trace with something in every column of schema version 1.0.
func everything() *dag.Trace {
	b := dag.NewBuilder(4)
	b.Meta().Title, b.Meta().Attrs, b.Meta().Jobs = "of version 1.0", `{"x":1}`, []string{"a", "b"}
	comm := b.AddComm(dag.NewComm("back", []int32{3, 2, 1, 0}))
	for rank := range int32(4) {
		r := b.Rank(int(rank))
		r.KeepOrder()
		if rank == 2 {
			continue // without ops
		}
		for i := range int32(100 * (rank + 1)) {
			op := dag.Op{Kind: dag.Send, Peer: i % 4, Bytes: int64(i) << 20, Tag: int64(i) - 9, Comm: comm, NIC: i % 3, Job: i % 2}
			switch i % 5 {
			case 1:
				op = dag.Op{Kind: dag.Recv, Peer: dag.AnySource, Tag: dag.AnyTag, Stream: 7 * i, Release: dag.Time(i)}
			case 2:
				op = dag.Op{Kind: dag.Coll, Subkind: dag.Bcast, Peer: 1, Bytes: 64, RecvBytes: int64(i), Name: fmt.Sprint("op ", i)}
			case 3:
				op = dag.Op{Duration: dag.Time(i) * dag.Nanosecond, Flops: int64(i * i), Attrs: fmt.Sprintf(`{"id":%d}`, i)}
			case 4:
				op = dag.Op{Kind: dag.IO, Subkind: dag.Write, Bytes: 512, Timed: true, MeasuredStart: dag.Time(i), MeasuredEnd: 999}
			}
			r.Add(op)
			if i > 2 {
				r.Requires(int(i), int(i-1))
				r.Requires(int(i)-1, int(i)-3)
				r.RequiresStart(int(i)-1, int(i)-3)
				r.RequiresStart(int(i), int(i)-2)
			}
		}
	}
	return b.Trace()
}

// A file of version 1.0, which has fewer columns, reads as one of today does.
func TestVersion10(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("testdata", "version-1.0.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	want := everything()
	sameTrace(t, mustDecode(t, file), want)
	sameTrace(t, mustDecode(t, encode(t, want)), want)
	f, err := openBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	sameBatches(t, f, want.Ranks, rand.New(rand.NewPCG(1, 10)))
	newer := bytes.Replace(file, []byte("tracedag.version\x18\x031.0"), []byte("tracedag.version\x18\x031.1"), 1)
	const missing = "trace.parquet: expected a column host, found none"
	if _, err := decode(newer); err == nil || err.Error() != missing {
		t.Errorf("a file of version %s without a column of it: error %v, want %q", Version, err, missing)
	}
}

// All files have the same version and columns, also those of traces without steps.
func TestSteps(t *testing.T) {
	trace := everything()
	plain := encode(t, trace)
	if !bytes.Contains(plain, []byte("tracedag.version\x18\x03"+Version)) || !bytes.Contains(plain, []byte("step\x00")) {
		t.Errorf("a trace without steps is not of version %s", Version)
	}
	for i, r := range trace.Ranks {
		for op := range r.Len() {
			trace.Change(i).Step.Set(op, int32(op/7))
		}
	}
	trace.Steps = 60
	file := encode(t, trace)
	if !bytes.Contains(file, []byte("tracedag.version\x18\x03"+Version)) {
		t.Error("a trace with steps has another version")
	}
	sameTrace(t, mustDecode(t, file), trace)
	f, err := openBytes(file)
	if err != nil {
		t.Fatal(err)
	}
	sameBatches(t, f, trace.Ranks, rand.New(rand.NewPCG(1, 13)))
	stepped, err := f.NewReader(dag.Stepped)(f.batches()[0])
	if err != nil || stepped[0].Step.At(99) != 14 || stepped[0].Name.Len() > 0 {
		t.Errorf("a reader of steps: step %d of op 99, %d names, error %v", stepped[0].Step.At(99), stepped[0].Name.Len(), err)
	}
	for steps, want := range map[int32]string{
		56: "rank 3: op 399: step: expected 0..56, found 57", 0: "rank 0: op 7: step: expected 0..0, found 1",
	} {
		trace.Steps = steps
		if err := Write(new(bytes.Buffer), trace); err == nil || err.Error() != want {
			t.Errorf("%d steps: error %v, want %q", steps, err, want)
		}
	}
}
