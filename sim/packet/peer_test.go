package packet_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
	"github.com/tracedag/tracedag/sim/packet"
)

// TestMain runs the backend as a peer if the test binary is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "-peer" {
		if err := packet.ServePeer(os.Stdin, os.Stdout, os.Args[2], os.Args[3]); err != nil {
			fmt.Println("error", err)
		}
		return
	}
	os.Exit(m.Run())
}

// mixed returns a trace of messages between random ranks with calcs of odd lengths between, so that no two events have
// the same time by accident.
func mixed(seed uint64, ranks, rounds int, most int64) *dag.Trace {
	random := rand.New(rand.NewPCG(seed, 1))
	b := dag.NewBuilder(ranks)
	last := make([][]int, ranks)
	for round := range rounds {
		order := random.Perm(ranks)
		for k := range order {
			from, to := order[k], order[(k+1)%ranks]
			size := 1 + random.Int64N(most)
			calc := b.Rank(from).Calc(dag.Time(1+random.IntN(10_000_000)), last[from]...)
			send := b.Rank(from).Send(int32(to), size, int64(round), calc)
			recv := b.Rank(to).Recv(int32(from), size, int64(round), last[to]...)
			last[from], last[to] = append(last[from], send), append(last[to], recv)
		}
	}
	return b.Trace()
}

// TestPeer compares the flows of the backend behind a pipe with those in process.
func TestPeer(t *testing.T) {
	const network = "leafspine:hosts=16,tor=4,spines=2,rate=100Gbps,latency=500ns"
	for i, trace := range []*dag.Trace{mixed(1, 16, 20, 100_000), mixed(2, 8, 40, 3_000), mixed(3, 16, 6, 2_000_000)} {
		for _, transport := range []string{"ndp", "dctcp"} {
			o, err := packet.PeerOptions(network, transport, len(trace.Ranks))
			if err != nil {
				t.Fatal(err)
			}
			replay, err := packet.Compile(dag.FromTrace(trace), packet.CompatNone, nil)
			if err != nil {
				t.Fatal(err)
			}
			want, report, err := replay.Run(o)
			if err != nil {
				t.Fatal(err)
			}
			peer := fmt.Sprintf("exec:'%s' -peer %s %s", os.Args[0], network, transport)
			got, err := backends.Run(trace, peer, backends.Set("send-ends=sent"))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Finish, want.Finish) || !got.Complete {
				t.Errorf("trace %d, %s: finish %v, in process %v", i, transport, got.Finish, want.Finish)
			}
			var flows []string
			for _, s := range got.Section("backend_stats").Value.(sim.Values) {
				flows = append(flows, s.Value.(string))
			}
			in := packet.FlowTexts(report)
			slices.Sort(flows)
			slices.Sort(in)
			if !slices.Equal(flows, in) || int64(len(in)) != want.Messages || want.Messages < 96 {
				t.Errorf("trace %d, %s: flows\n%v\nin process\n%v", i, transport, flows, in)
			}
		}
	}
}
