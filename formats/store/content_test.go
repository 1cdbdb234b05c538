package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// naiveDigest computes the content digest by the text of docs/reference/store.md, op by op.
func naiveDigest(t *dag.Trace) string {
	integer := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
	length := func(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }
	text := func(s string) []byte { return append(length(len(s)), s...) }
	optional := func(s string) []byte {
		if s == "" {
			return []byte{0xff, 0xff, 0xff, 0xff}
		}
		return text(s)
	}
	measured := func(v dag.Time) []byte {
		if v == dag.Unmeasured {
			return integer(math.MinInt64)
		}
		return integer(int64(v))
	}
	list := func(offsets []int32) []byte {
		b := length(len(offsets))
		for _, off := range offsets {
			b = append(b, integer(int64(off))...)
		}
		return b
	}
	all := sha256.New()
	for i, c := range Columns() {
		var column bytes.Buffer
		for rank, r := range t.Ranks {
			for op := range r.Len() {
				o := r.Op(op)
				start, end := r.Measured(op)
				column.Write([][]byte{
					integer(int64(rank)), text(o.Kind.String()), text(o.Subkind.String()), integer(o.Bytes),
					integer(o.RecvBytes), integer(int64(o.Peer)), integer(o.Tag), integer(int64(o.Comm)),
					integer(int64(o.Duration)), integer(o.Flops), integer(int64(o.Release)), integer(int64(o.Stream)),
					integer(int64(o.NIC)), integer(int64(o.Job)), integer(int64(r.Host.At(op))),
					integer(int64(r.Dims.At(op))), integer(int64(r.Priority.At(op))), list(r.Deps.Of(op)),
					list(r.StartDeps.Of(op)), list(r.Order.Of(op)), list(r.StartOrder.Of(op)), optional(o.Name),
					optional(o.Attrs), measured(start), measured(end),
					integer(int64(r.Step.At(op))),
				}[i])
			}
		}
		sum := sha256.Sum256(column.Bytes())
		all.Write([]byte(c.Name))
		all.Write([]byte{0})
		all.Write(sum[:])
	}
	all.Write([]byte("ranks\x00"))
	all.Write(integer(int64(len(t.Ranks))))
	return fmt.Sprintf("%x", all.Sum(nil))
}

func contentOf(t *testing.T, s dag.Source) string {
	t.Helper()
	digest, err := ContentSHA256(s)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// TestContentSHA256 checks the digest by its definition, and that it does not depend on how a trace is stored.
func TestContentSHA256(t *testing.T) {
	const known = "b53883e3e73927ff27a1f6d66586e27a70efcb304254c3afe7f949211ac5901a"
	traces := []*dag.Trace{everything(), new(dag.Trace), {Ranks: dag.NewRanks(5)}}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		traces = append(traces, randomTrace(rng, 1+rng.IntN(12), rng.IntN(60)))
	}
	for i, trace := range traces {
		want := naiveDigest(trace)
		if i == 0 && want != known {
			t.Errorf("the digest of a known trace is %s, expected %s", want, known)
		}
		if got := contentOf(t, dag.FromTrace(trace)); got != want {
			t.Errorf("trace %d in memory has digest %s, expected %s", i, got, want)
		}
		for _, file := range [][]byte{encode(t, trace), encodeGroups(t, trace, 7, true), encodeGroups(t, trace, 50, false)} {
			f, err := openBytes(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := contentOf(t, f); got != want {
				t.Errorf("the file of trace %d has digest %s, expected %s", i, got, want)
			}
		}
	}
	file, err := os.ReadFile(filepath.Join("testdata", "version-1.0.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if f, err := openBytes(file); err != nil || contentOf(t, f) != known {
		t.Errorf("the file of version 1.0 has another digest, error %v", err)
	}
}

// TestContentOfChanges checks that each column and the number of ranks are part of the digest, and metadata is not.
func TestContentOfChanges(t *testing.T) {
	seen := map[string]string{contentOf(t, dag.FromTrace(everything())): "nothing"}
	add := func(what string, trace *dag.Trace) {
		t.Helper()
		digest := contentOf(t, dag.FromTrace(trace))
		if other, found := seen[digest]; found {
			t.Errorf("a change of %s gives the digest of that of %s", what, other)
		}
		seen[digest] = what
	}
	for id, f := range dag.Fields {
		trace := everything()
		r := trace.Change(3)
		switch v := f.Of(r).(type) {
		case *dag.Column[dag.Kind]:
			(*v)[5] = dag.Mem
		case *dag.Column[dag.Subkind]:
			v.Set(5, dag.Barrier)
		case *dag.Column[int32]:
			v.Set(5, 77)
		case *dag.Column[int64]:
			v.Set(5, 77)
		case *dag.Column[dag.Time]:
			v.Set(5, 77)
		case *dag.Narrow:
			v.Set(5, 77)
		case *dag.Times:
			*v = []dag.Time{77}
		case *dag.Text:
			*v = dag.Text{}
			v.Append(5, "77")
		case *dag.Edges:
			*v = dag.Edges{}
			v.Append(5, 3)
		}
		add(columns[fieldColumn+id].name, trace)
	}
	more := everything()
	more.Ranks = append(more.Ranks, dag.NewRanks(1)...)
	add("ranks", more)
	titled := everything()
	titled.Title, titled.Attrs, titled.Nodes = "other", "{}", []int32{0, 0, 1, 1}
	if contentOf(t, dag.FromTrace(titled)) != contentOf(t, dag.FromTrace(everything())) {
		t.Error("the digest depends on metadata")
	}
}

func BenchmarkContentSHA256(b *testing.B) {
	for _, name := range benchmarkSchedules {
		b.Run(name, func(b *testing.B) {
			t := family(name).trace(b, benchmarkOps())
			f, err := openBytes(encode(b, t))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ContentSHA256(f); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(t.Ops())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mops/s")
		})
	}
}
