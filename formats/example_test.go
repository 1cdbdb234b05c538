package formats_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// Read a trace, lower its collectives to messages, and simulate it.
func Example() {
	trace, err := formats.Read("testdata/horovod.parquet", formats.Options{})
	check(err)
	lowered, err := collective.Lower(context.Background(), trace, collective.Choice{})
	check(err)
	replay, err := backends.Named("loggops").New().Compile(dag.FromTrace(lowered), nil)
	check(err)
	result, err := replay.Run(sim.RunOptions{})
	check(err)
	fmt.Println(result.Ops, "ops,", result.Messages, "messages, makespan", result.Makespan)
	// Output: 10201 ops, 4236 messages, makespan 3.526731654s
}

func ExampleRead() {
	trace, err := formats.Read("testdata/horovod.parquet", formats.Options{})
	check(err)
	fmt.Println(len(trace.Ranks), "ranks,", trace.Ops(), "ops")
	// Output: 4 ranks, 6844 ops
}

// Read a trace batch by batch, without having all of it in memory.
func ExampleOpen() {
	trace, err := formats.Open([]string{"testdata/horovod.parquet"}, formats.Options{Warn: log.Printf})
	check(err)
	defer trace.Close()
	header, err := trace.Source.Header() // the source is nil for formats that are read as a whole
	check(err)
	read := trace.Source.NewReader(dag.Replay)
	for _, batch := range header.Batches {
		ranks, err := read(batch)
		check(err)
		fmt.Println(trace.Format.Name, "ranks", batch.First, "to", batch.First+len(ranks)-1)
	}
	// Output: store ranks 0 to 3
}

func ExampleWrite() {
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, 4096, 0)
	b.Rank(1).Recv(0, 4096, 0)
	folder, err := os.MkdirTemp("", "trace")
	check(err)
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "message.goal")
	done, err := formats.Write(path, b.Trace(), formats.WriteOptions{Strict: true})
	check(err)
	fmt.Println(done.Ops, "ops in", done.Format.Name)
	text, err := os.ReadFile(path)
	check(err)
	fmt.Print(string(text))
	// Output:
	// 2 ops in goal
	// num_ranks 2
	//
	// rank 0 {
	// l1: send 4096b to 1 tag 0
	// }
	//
	// rank 1 {
	// l1: recv 4096b from 0 tag 0
	// }
}
