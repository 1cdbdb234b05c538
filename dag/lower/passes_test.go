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
		"nosuch":                            "nosuch",
		"collectives=rng":                   `no collective has an algorithm "rng"; did you mean "ring"?`,
		"ncll":                              `found "ncll"; did you mean "nccl"?`,
		"ncll:channels=8":                   `did you mean "nccl"?`,
		"mpihc":                             `did you mean "mpich"?`,
		"nodes:x":                           `nodes: expected no keys, found "x"`,
		"nccl:protocl=ll":                   `found "protocl"; did you mean "protocol"?`,
		"roofline":                          "roofline: expected both peak-flops and mem-bw",
		"roofline:peak-flops=1TFLOPS":       "roofline: expected both peak-flops and mem-bw",
		"roofline:peak-flops=fast,mem-bw=1": "roofline: peak-flops: ",
		"nccl:machine=nosuch":               `nccl: machine: expected clariden or ault, found "nosuch"`,
		"nccl:channels=0":                   `nccl: channels: expected a whole number from 1 to 1024, found "0"`,
		"nccl:ranks=all":                    `nccl: ranks: expected gpus or nodes, found "all"`,
		"nccl:colour=red": "nccl: expected one of algorithm, protocol, channels, tune, version, gpu, intra, " +
			"nics-per-node, nic-rate, link-rate, cpu, machine, ranks, found \"colour\"",
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

// TestSteps checks that ops that replace others, or join ranks of a node, have the steps of the ops that they replace.
func TestSteps(t *testing.T) {
	for _, rules := range [][]string{{"collectives"}, {"nodes", "collectives"}, {"nccl:channels=2"}, {"directdrive"}} {
		b := dag.NewBuilder(4)
		b.Meta().Nodes, b.Meta().Steps = []int32{0, 0, 1, 1}, 300
		for rank := range 4 {
			r := b.Rank(rank)
			for _, step := range []int32{2, 300} {
				r.Step(step)
				calc := r.Add(dag.Op{Duration: dag.Time(step)})
				if rules[0] == "directdrive" {
					r.Add(dag.Op{Kind: dag.IO, Subkind: dag.Write, Bytes: int64(step) << 10}, calc)
				} else {
					r.Add(dag.Op{Kind: dag.Coll, Subkind: dag.Allreduce, Bytes: int64(step) << 10}, calc)
				}
			}
		}
		p, err := Parse(rules)
		if err != nil {
			t.Fatal(err)
		}
		lowered, err := p.Lower(dag.FromTrace(b.Trace()))
		if err != nil {
			t.Fatal(err)
		}
		trace, err := dag.ReadAll(lowered)
		if err != nil {
			t.Fatal(err)
		}
		messages := make(map[int32]int)
		for rank, r := range trace.Ranks {
			for i, kind := range r.Kind {
				step := r.Step.At(i)
				if kind == dag.Send || kind == dag.Recv {
					messages[step]++
				}
				if d := r.Duration.At(i); step != 2 && step != 300 && d > 0 || (d == 2 || d == 300) && int32(d) != step {
					t.Errorf("%v: op %d of rank %d, of %v, has step %d", rules, i, rank, d, step)
				}
			}
		}
		if trace.Steps != 300 || len(messages) != 2 || messages[2] == 0 || messages[300] == 0 {
			t.Errorf("%v: %d steps, messages by step %v", rules, trace.Steps, messages)
		}
	}
}
