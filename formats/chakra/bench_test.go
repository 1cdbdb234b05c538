package chakra

import (
	"fmt"
	"io"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// training is a trace like that of a training step: on each rank layers of computation, after each of which a collective
// goes on behind, and a stage of a pipeline that gets and sends messages.
func training(ranks, layers int) *dag.Trace {
	b := dag.NewBuilder(ranks)
	pairs := make([]int32, 0, ranks/2)
	for r := 0; r+1 < ranks; r += 2 {
		pairs = append(pairs, b.AddComm(dag.NewComm(fmt.Sprint(r/2+1), []int32{int32(r), int32(r + 1)})))
	}
	for r := range ranks {
		rank := b.Rank(r)
		last, comm := -1, -1
		for layer := range layers {
			op := dag.Op{Kind: dag.Calc, Name: fmt.Sprintf("layer_%d.attention.forward", layer), Flops: int64(layer) << 20,
				Bytes: 1 << 22, Duration: dag.Time(layer+1) * dag.Microsecond}
			var deps []int
			if last >= 0 {
				deps = []int{last, comm}
			}
			last = rank.Add(op, deps...)
			if layer%4 == 3 {
				rank.Add(dag.Op{Kind: dag.Send, Name: "pipeline_send", Peer: int32((r + 1) % ranks), Bytes: 1 << 20,
					Tag: int64(layer), Stream: dataStream}, last)
				last = rank.Add(dag.Op{Kind: dag.Recv, Name: "pipeline_recv", Peer: int32((r + ranks - 1) % ranks),
					Bytes: 1 << 20, Tag: int64(layer), Stream: dataStream}, last)
			}
			coll := dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Name: fmt.Sprintf("layer_%d.gradients", layer),
				Bytes: 1 << 24, Stream: dataStream}
			if layer%2 == 0 && r/2 < len(pairs) {
				coll.Comm = pairs[r/2]
			}
			comm = rank.Add(coll, last)
		}
	}
	return b.Trace()
}

func benchmarkRead(b *testing.B, f *format.Format, ranks, layers int) {
	trace := training(ranks, layers)
	files := encode(b, f, trace)
	size := 0
	for _, content := range files {
		size += len(content)
	}
	ops := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		var inputs []*format.Input
		for suffix, content := range files {
			inputs = append(inputs, input("x"+suffix, content))
		}
		t, err := f.Read(inputs, format.ReadOptions{Warn: func(m string, a ...any) { b.Errorf(m, a...) }})
		if err != nil {
			b.Fatal(err)
		}
		ops = t.Ops()
	}
	b.SetBytes(int64(size))
	b.ReportMetric(float64(ops)*float64(b.N)/b.Elapsed().Seconds(), "nodes/s")
	b.ReportMetric(float64(size)/float64(ops), "B/node")
}

func BenchmarkRead(b *testing.B) {
	b.Run("ranks=1", func(b *testing.B) { benchmarkRead(b, &Format, 1, 40_000) })
	b.Run("ranks=16", func(b *testing.B) { benchmarkRead(b, &Format, 16, 10_000) })
}

// BenchmarkReadAttributes reads nodes as PyTorch's converter makes them, most of whose attributes no op has.
func BenchmarkReadAttributes(b *testing.B) {
	var f File
	for id := range uint64(20_000) {
		n := Node{ID: 2 * id, Name: "aten::empty_strided", Type: CompNode, DurationMicros: id % 97,
			Inputs:  &IOInfo{Values: "[[1024, 1024], [1024, 1], 6, 0, 'cuda:0', False]", Shapes: "[[], [], [], [], [], []]"},
			Outputs: &IOInfo{Values: "[[4, 5, 0, 1048576, 4, 'cuda:0']]", Shapes: "[[1024, 1024]]", Types: "['Tensor(float)']"},
			Attr: []Attr{Int64("rf_id", int64(id)), Int64("fw_parent", 0), Int64("seq_id", -1), Int64("scope", 7),
				Int64("tid", 1), Int64("fw_tid", 0), String("op_schema", "aten::empty_strided(SymInt[] size) -> Tensor"),
				Bool(hostName, true), Int64("stream", 0)}}
		if id > 0 {
			n.CtrlDeps, n.DataDeps = []uint64{2*id - 2}, []uint64{2*id - 2}
		}
		f.Nodes = append(f.Nodes, n)
	}
	content, nodes := wire(&f), float64(len(f.Nodes))
	f = File{} // nothing for the collector to look at
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		if _, err := Format.Read([]*format.Input{input("x.0.et", content)}, quiet); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(nodes*float64(b.N)/b.Elapsed().Seconds(), "nodes/s")
}

func BenchmarkReadJSON(b *testing.B) { benchmarkRead(b, &JSON, 2, 5_000) }

func BenchmarkWrite(b *testing.B) {
	trace := training(16, 10_000)
	size := 0
	for _, content := range encode(b, &Format, trace) {
		size += len(content)
	}
	b.ReportAllocs()
	for b.Loop() {
		err := Format.WriteFiles(func(string) (io.Writer, error) { return io.Discard, nil }, trace, format.WriteOptions{})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(size))
	b.ReportMetric(float64(trace.Ops())*float64(b.N)/b.Elapsed().Seconds(), "nodes/s")
}
