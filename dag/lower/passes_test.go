package lower

import (
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestParse(t *testing.T) {
	p, err := Parse([]string{"collectives=ring", "allreduce=recdoubling", " nodes",
		"roofline:peak-flops=312TFLOPS, mem-bw=2TB/s",
		"nccl:ranks=gpus,channels=8,protocol=simple"})
	if err != nil {
		t.Fatal(err)
	}
	if !p.Collectives || !p.Join || *p.Machine != (Machine{312e12, 2e12}) || !p.NCCL.Apart || p.NCCL.Channels != 8 ||
		p.NCCL.Protocol != "simple" || p.Storage != nil || p.None() {
		t.Errorf("%+v", p)
	}
	if p, err := Parse(nil); err != nil || !p.None() {
		t.Errorf("without rules: %+v, error %v", p, err)
	}
	if p, err := Parse([]string{"directdrive:replicas=3"}); err != nil || p.Storage == nil || p.None() {
		t.Errorf("storage: %+v, error %v", p, err)
	}
	for rule, want := range map[string]string{
		"nosuch":                             "nosuch",
		"ncll":                               `found "ncll"; did you mean "nccl"?`,
		"ncll:channels=8":                    `did you mean "nccl"?`,
		"mpihc":                              `did you mean "mpich"?`,
		"nodes:x":                            `nodes: expected no keys, found "x"`,
		"nccl:protocl=ll":                    `found "protocl"; did you mean "protocol"?`,
		"roofline":                           "roofline: expected both peak-flops and mem-bw",
		"roofline:peak-flops=1TFLOPS":        "roofline: expected both peak-flops and mem-bw",
		"roofline:peak-flops=fast,mem-bw=1":  "roofline: peak-flops: ",
		"nccl:machine=nosuch":                `nccl: machine: expected clariden or ault, found "nosuch"`,
		"nccl:channels=0":                    `nccl: channels: expected a whole number from 1 to 1024, found "0"`,
		"nccl:ranks=all":                     `nccl: ranks: expected gpus or nodes, found "all"`,
		"nccl:colour=red":                    `nccl: expected one of algorithm, protocol, channels, machine, ranks, found "colour"`,
		"directdrive:replicas=0":             "replicas",
		"nccl:machine=alps,channels=1,nccl:": "nccl: ",
	} {
		if p, err := Parse([]string{rule}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, error %v, expected %q", rule, p, err, want)
		}
	}
	for _, rule := range []string{"nccl", "directdrive"} {
		if _, err := Parse([]string{rule, rule}); err == nil || !strings.HasSuffix(err.Error(), "is named twice") {
			t.Errorf("%s twice: error %v", rule, err)
		}
	}
}

// TestPassesOrder checks that calcs get durations before the ranks of a node become one.
func TestPassesOrder(t *testing.T) {
	b := dag.NewBuilder(2)
	b.Meta().Nodes = []int32{0, 0}
	for rank := range 2 {
		b.Rank(rank).Add(dag.Op{Kind: dag.Calc, Flops: 1000})
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: 64}, 0)
	}
	s := dag.FromTrace(b.Trace())
	p, err := Parse([]string{"nodes", "collectives", "roofline:peak-flops=1GFLOPS,mem-bw=1GB/s"})
	if err != nil {
		t.Fatal(err)
	}
	lowered, err := p.Lower(s)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := dag.ReadAll(lowered)
	if err != nil {
		t.Fatal(err)
	}
	timed := 0
	for i, kind := range trace.Ranks[0].Kind {
		if kind == dag.Calc && trace.Ranks[0].Flops.At(i) == 1000 && trace.Ranks[0].Duration.At(i) == dag.Microsecond {
			timed++
		}
		if kind == dag.Coll {
			t.Errorf("op %d is a collective", i)
		}
	}
	if len(trace.Ranks) != 1 || timed != 2 {
		t.Errorf("%d ranks, %d timed calcs: %+v", len(trace.Ranks), timed, trace.Ranks[0])
	}
	none := &Passes{}
	if same, err := none.Lower(s); err != nil || same != s {
		t.Errorf("no passes: %v, error %v", same, err)
	}
}
