package packet

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// TestRandomRuns checks that runs with random parameters end without a panic, and deliver all messages unless packets
// were lost for good.
func TestRandomRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	one := func(list ...string) string { return list[random.IntN(len(list))] }
	for round := range 600 {
		rate, latency, crossing := one("1Gbps", "25Gbps", "400Gbps", "8Tbps"), one("0ns", "1ps", "500ns", "10us"), one("0ns", "300ns")
		var network string
		switch random.IntN(5) {
		case 0:
			network = fmt.Sprintf("star:hosts=%d,rate=%s,latency=%s,switchlatency=%s", 2+random.IntN(10), rate, latency, crossing)
		case 1:
			network = fmt.Sprintf("leafspine:hosts=12,tor=4,spines=%d,rate=%s,latency=%s,switchlatency=%s", 1+random.IntN(4), rate, latency, crossing)
		case 2:
			network = fmt.Sprintf("fattree:k=4,rate=%s,latency=%s", rate, latency)
		case 3:
			network = fmt.Sprintf("dragonfly:p=1,a=2,h=1,rate=%s,latency=%s,globalrate=25Gbps,globallatency=1us", rate, latency)
		default:
			network = fmt.Sprintf("fattree:k=4,rate=%s,latency=%s/1us/0ns", rate, latency)
		}
		net := parse(t, network)
		transport := Transports[random.IntN(len(Transports))]
		compat := Compat(random.IntN(3))
		var list [][3]int
		for range 1 + random.IntN(20) {
			from := random.IntN(net.Hosts)
			to := (from + 1 + random.IntN(net.Hosts-1)) % net.Hosts
			list = append(list, [3]int{from, to, random.IntN(1 << random.IntN(18))})
		}
		var o Options
		rules := Compat(random.IntN(2)) // the ATLAHS coupling is tested elsewhere
		result, report := try{network: network, transport: transport.Name, compat: compat, rules: &rules, set: func(set *Options) {
			p := &set.Params
			p.MSS = []int64{200, 1500, 4096, 9000, 65471}[random.IntN(5)]
			if random.IntN(2) == 0 {
				p.Queue = p.MSS + 64 + random.Int64N(20*p.MSS)
			}
			if p.Balance = Balance(random.IntN(len(balances))); p.Balance >= Valiant && net.Dragonfly == nil {
				p.Balance = Spray
			}
			p.Entropy, p.Seed, p.End = 1+random.Int64N(300), int64(round), dag.Second
			if compat != CompatNone { // EQDS may send pulls forever
				p.End = 20 * dag.Millisecond
			}
			p.Queueing = one(append(Queueings(), "", "")...)
			if p.Check() != nil {
				p.Queueing = ""
			}
			if random.IntN(4) == 0 {
				set.Failures = []Failure{{Links: []int{random.IntN(len(net.Links))}, At: dag.Time(random.Int64N(1e8)), Until: 2e8,
					Rate: int64(random.IntN(2)) * 1e9}}
			}
			o = *set
		}}.run(t, messages(net.Hosts, list...))
		name := fmt.Sprintf("round %d: %s, %s %v %s, mss %d, queue %d, %v", round, network, transport.Name, compat, o.Params.Queueing,
			o.Params.MSS, o.Params.Queue, o.Params.Balance)
		for _, f := range report.Flows {
			if f.Acknowledged != 0 && (f.Delivered == 0 || f.Acknowledged < f.Delivered || f.Delivered < f.Start) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !result.Complete && compat == CompatNone && o.Failures == nil && report.Counters.Drops+report.Counters.ControlDrops == 0 {
			t.Errorf("%s: %d of %d flows: %s", name, report.Incomplete, len(report.Flows), result.Aborted)
		}
	}
}
