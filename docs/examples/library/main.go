// Library reads a trace, counts the messages of each rank, and simulates it on two networks.
package main

import (
	"fmt"
	"io"
	"log"
	"os"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/sim/backends"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: library TRACE")
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run reports on the trace in a file or folder.
func run(path string, w io.Writer) error {
	trace, err := formats.Read(path, formats.Options{Warn: log.Printf})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d ranks, %d ops\n", len(trace.Ranks), trace.Ops())

	for rank := range trace.Ranks {
		r := trace.Ranks[rank]
		var messages, bytes int64
		for op, kind := range r.Kind {
			if kind == dag.Send {
				messages++
				bytes += r.Bytes.At(op)
			}
		}
		fmt.Fprintf(w, "rank %d sends %d messages, %d bytes\n", rank, messages, bytes)
	}

	for _, latency := range []string{"1us", "10us"} {
		result, err := backends.Run(trace, "loggops", backends.Set("params=ai", "L="+latency))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "L=%s: makespan %v\n", latency, result.Makespan)
	}
	return nil
}
