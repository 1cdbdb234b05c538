package vef

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/tracedag/tracedag/formats/format"
)

// program returns a plain trace of an application: in each step every task computes, sends to its neighbours on a ring,
// and takes part in an allreduce now and then.
func program(tasks, steps int) (text []byte, records int) {
	var body bytes.Buffer
	id, g := 0, 0
	last := make([]string, tasks) // dependency of each task's next record
	for i := range last {
		last[i] = "0 %d -1"
	}
	for step := range steps {
		for s := range tasks {
			fmt.Fprintf(&body, "%d %d %d %d "+last[s]+"\n", id+s, s, (s+1)%tasks, 8192, 100000+(step*s)%977)
		}
		for s := range tasks {
			last[s] = fmt.Sprintf("2 %%d %d", id+(s+tasks-1)%tasks)
		}
		id += tasks
		if step%8 == 7 {
			for s := range tasks {
				fmt.Fprintf(&body, "G%d 0 2 %d 8 8 "+last[s]+"\n", g, s, 5000)
				last[s] = fmt.Sprintf("3 %%d G%d", g)
			}
			g++
		}
	}
	text = fmt.Appendf(nil, "VEF3 %d %d 1 %d %d FALSE 1000\nC0", tasks, id, g, g*tasks)
	for s := range tasks {
		text = fmt.Appendf(text, " %d", s)
	}
	return append(append(text, '\n'), body.Bytes()...), id + g*tasks
}

const benchTasks, benchSteps = 64, 10_000

func inputOf(text []byte) []*format.Input {
	return []*format.Input{{Name: "bench.vef", Reader: bytes.NewReader(text), At: bytes.NewReader(text), Size: int64(len(text))}}
}

func BenchmarkRead(b *testing.B) {
	text, records := program(benchTasks, benchSteps)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := read(inputOf(text), format.ReadOptions{Warn: b.Logf}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkWrite(b *testing.B) {
	text, records := program(benchTasks, benchSteps)
	trace := mustRead(b, "bench.vef", text)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := write(io.Discard, trace, format.WriteOptions{Warn: b.Logf}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
