package timeline_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
	"github.com/tracedag/tracedag/sim/timeline"
)

// A message between two ranks on a LogGOPS network.
func Example() {
	b := dag.NewBuilder(2)
	b.Rank(0).Send(1, 4096, 7)
	b.Rank(1).Recv(0, 4096, 7)
	trace := b.Trace()
	replay, err := backends.Compile(trace, "loggops", backends.Set("L=1us", "o=500ns", "G=100Gbps"))
	if err != nil {
		fmt.Println(err)
		return
	}
	var file bytes.Buffer
	w := timeline.New(&file, ".json", timeline.Options{Trace: trace})
	if _, err := replay.Run(sim.RunOptions{Timeline: w}); err != nil {
		fmt.Println(err)
		return
	}
	if err := w.End(); err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(file.String()) {
		if strings.Contains(line, `"ph":"X"`) {
			fmt.Print(line)
		}
	}
	// Output:
	// {"ph":"X","pid":0,"tid":0,"ts":0,"dur":0.5,"cat":"send","name":"send to 1","args":{"op":0,"peer":1,"bytes":4096,"tag":7}},
	// {"ph":"X","pid":1,"tid":1048576,"ts":0,"dur":1.8276,"cat":"wait","name":"recv from 0","args":{"op":0,"peer":0,"bytes":4096,"tag":7}},
	// {"ph":"X","pid":0,"tid":1048576,"ts":0.5,"dur":1.3276,"cat":"message","name":"message to 1","args":{"op":0,"peer":1,"bytes":4096,"tag":7}},
	// {"ph":"X","pid":1,"tid":0,"ts":1.8276,"dur":0.5,"cat":"recv","name":"recv from 0","args":{"op":0,"peer":0,"bytes":4096,"tag":7}},
}
