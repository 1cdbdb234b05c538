package packet

import (
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/sim/topology"
)

// TestGPUPorts checks that messages between GPUs avoid failed ports: another NIC, NICs in place of NVLink, and NVLink
// again after the failure.
func TestGPUPorts(t *testing.T) {
	b := dag.NewBuilder(8)
	for rank := range 8 {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 1 << 20})
	}
	lowered, err := collective.Lower(t.Context(), b.Trace(), collective.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	const net = "alibabahpn:gpus=8,server=4,nics=2,psws=2,maxasws=8"
	n := parse(t, net)
	place, err := n.Place(&topology.DefaultPlacement, 8, 1, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := func(failures ...string) (dag.Time, *Report) {
		result, report := try{network: net, set: func(o *Options) {
			o.Placement = Placement{Hosts: place}
			for _, text := range failures {
				f, err := topology.ParseFailure(text, o.Network.LinkByName)
				if err != nil {
					t.Fatal(err)
				}
				o.Failures = append(o.Failures, f)
			}
		}}.run(t, lowered)
		if !result.Complete {
			t.Errorf("%q: incomplete", failures)
		}
		return dag.Time(result.Makespan.Ticks), report
	}
	intact, _ := run()
	slow, _ := run("nvs0@0s")
	between, _ := run("nvs0@0s..30us")
	if slow < 2*intact || between <= intact || between >= slow {
		t.Errorf("intact %v, without NVLink in a server %v, for 30 us %v", intact, slow, between)
	}
	_, report := run("gpu3.nic0-asw3@0s")
	for i := range report.Flows {
		if name := n.Name(report.Flows[i].Source); name == "gpu3.nic0" {
			t.Errorf("flow %d leaves by the failed %s", i, name)
		}
	}
}
