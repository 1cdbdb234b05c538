package backends_test

import (
	"fmt"
	"log"
	"os"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
	"github.com/tracedag/tracedag/sim/measure"
)

// pingPong returns a trace in which two ranks exchange a message of the given size.
func pingPong(bytes int64) *dag.Trace {
	b := dag.NewBuilder(2)
	first, second := b.Rank(0), b.Rank(1)
	sent := first.Send(1, bytes, 0, first.Calc(5*dag.Microsecond))
	first.Recv(1, bytes, 1, sent)
	second.Send(0, bytes, 1, second.Recv(0, bytes, 0))
	return b.Trace()
}

// A trace runs on a model of the network, and on none, which gives a lower bound.
func ExampleRun() {
	trace := pingPong(1 << 20)
	for _, name := range []string{"loggops", "ideal"} {
		result, err := backends.Run(trace, name)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %v, %d messages\n", name, result.Makespan, result.Messages)
	}
	// Output:
	// loggops: 12.6089ms, 2 messages
	// ideal: 5us, 2 messages
}

// Parameters are texts as the flags of simulate take them.
func ExampleRun_parameters() {
	result, err := backends.Run(pingPong(1<<20), "loggops", backends.Set("params=ai", "L=1us", "G=400Gbps"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Settings)
	fmt.Println(result.Params.Get("L_ps"), result.Makespan)
	// Output:
	// L=1us o=200ns g=5ns G=0.02ns/B O=0ns/B S=0B
	// 1000000 53.743us
}

// The section "flows" of a run of the packet backend is a table with the time of each message.
func ExampleRun_flows() {
	result, err := backends.Run(pingPong(100_000), "packet",
		backends.Set("topology=star:hosts=2,rate=100Gbps,latency=1us", "transport=ndp"))
	if err != nil {
		log.Fatal(err)
	}
	result.Section("flows").Value.(*sim.Table).WriteCSV(os.Stdout)
	// Output:
	// src,dst,bytes,start_ps,fct_ps_at_sender,delivered_ps_after_start,flow,retransmits,nacks,ideal_ps
	// 0,1,100000,5000000,12471040,10460800,1,0,0,10460800
	// 1,0,100000,15460800,12476160,10465920,2,0,0,10460800
}

// A sweep compiles a trace once and runs it with all combinations of parameters.
func ExampleCompile() {
	replay, err := backends.Compile(pingPong(1<<20), "loggops", backends.Set("params=hpc"))
	if err != nil {
		log.Fatal(err)
	}
	points, err := measure.ParseGrid("L=1us..3us:3;G=0.04,0.08", backends.Named("loggops").New().Params())
	if err != nil {
		log.Fatal(err)
	}
	sweep := measure.Sweep{Replay: replay, Points: points}
	err = sweep.Run(func(_ int, result *sim.Result, err error) error {
		if err != nil {
			return err
		}
		p := result.Params
		fmt.Printf("L %v ps, G %v ps/B: %v\n", p.Get("L_ps"), p.Get("G_ps_per_byte"), result.Makespan)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// L 1000000 ps, G 40 ps/B: 118.886us
	// L 1000000 ps, G 80 ps/B: 202.772us
	// L 2000000 ps, G 40 ps/B: 124.886us
	// L 2000000 ps, G 80 ps/B: 208.772us
	// L 3000000 ps, G 40 ps/B: 130.886us
	// L 3000000 ps, G 80 ps/B: 214.772us
}
