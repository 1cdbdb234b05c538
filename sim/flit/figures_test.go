package flit

import (
	"context"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/dcnw"
	"github.com/tracedag/tracedag/dag/gen/flows"
	"github.com/tracedag/tracedag/dag/gen/horovod"
	"github.com/tracedag/tracedag/dag/gen/openloop"
	"github.com/tracedag/tracedag/dag/lower/collective"
)

// figure is what the paper's figures 1 to 3 show of a run: time, end-to-end and network latency of flits, throughput.
type figure struct{ t, e, n, x float64 }

// seeds returns how many runs a point of a figure is the mean of: few, or 5 with TRACEDAG_LONG.
func seeds(few int) int {
	if os.Getenv("TRACEDAG_LONG") != "" {
		return 5
	}
	return few
}

// variant is a workload on a switch with the given number of ports, each with the given number of tasks.
type variant struct {
	ports string
	cores int
	make  func(seed int64) (dag.Source, error)
}

// mean returns the mean figures of a variant over the given number of seeds, whose runs are concurrent.
func (v *variant) mean(t *testing.T, seeds int) figure {
	t.Helper()
	preset, err := FindPreset("vef-switch")
	if err != nil {
		t.Fatal(err)
	}
	all := make([]figure, seeds)
	var wait sync.WaitGroup
	turn := make(chan bool, runtime.GOMAXPROCS(0))
	for seed := range all {
		wait.Go(func() {
			turn <- true
			defer func() { <-turn }()
			source, err := v.make(int64(seed + 1))
			if err != nil {
				t.Error(err)
				return
			}
			c, err := Compile(source)
			if err != nil {
				t.Error(err)
				return
			}
			result, report, err := c.Run(Options{Network: mustParse(t, "star:latency=1ns,hosts="+v.ports), Params: preset.Params,
				Placement: Placement{Cores: v.cores}})
			if err != nil || !result.Complete {
				t.Errorf("not complete, error %v", err)
				return
			}
			all[seed] = figure{float64(report.Cycles), report.FlitLatency, report.FlitNetworkLatency, report.Accepted}
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
	var sum figure
	n := float64(len(all))
	for _, f := range all {
		sum.t += f.t / n
		sum.e += f.e / n
		sum.n += f.n / n
		sum.x += f.x / n
	}
	return sum
}

// over returns a figure as parts of another.
func (f figure) over(g figure) figure {
	return figure{f.t / g.t, f.e / g.e, f.n / g.n, f.x / g.x}
}

// within checks that a ratio is in a range, ends included.
func within(t *testing.T, what string, got, least, most float64) {
	t.Helper()
	if !(got >= least && got <= most) {
		t.Errorf("%s is %.4f, want %.4g to %.4g", what, got, least, most)
	}
}

// TestFigure1: DCNW with 20 000 messages.
func TestFigure1(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	run := func(ports string, change func(p *dcnw.Params)) figure {
		v := variant{ports, 16, func(seed int64) (dag.Source, error) {
			p := dcnw.Default()
			p.Messages, p.Load, p.Destination = 20_000, 1, openloop.DestinationPolicy{}
			change(&p)
			return dcnw.NewSource(p, seed)
		}}
		return v.mean(t, seeds(2))
	}
	ref := run("8", func(*dcnw.Params) {})
	tasks := run("16", func(p *dcnw.Params) { p.Tasks = 256 }).over(ref)
	gauss := run("8", func(p *dcnw.Params) { p.Destination = dcnw.Default().Destination }).over(ref)
	load := run("8", func(p *dcnw.Params) { p.Load = 0.5 }).over(ref)
	t.Logf("ref %.4g, task256 %.3f, gauss %.3f, load %.3f", ref, tasks, gauss, load)
	within(t, "1.1 T(task256)", tasks.t, 0.4, 0.65)
	within(t, "1.2 N(task256)", tasks.n, 0.995, 1.3)
	within(t, "1.2 E(task256)", tasks.e, 0.995, 1.3)
	// 15 of 127 messages of 128 tasks stay on their hosts, and 15 of 255 of 256 tasks. This alone raises the throughput
	// of the network by 1.067, which the longer end compensates.
	within(t, "1.3 X(task256)", tasks.x, 0.95, 1.05)
	within(t, "1.3 X(task256) of equal traffic", tasks.x/((1-15./255)/(1-15./127)), 0.9, 1)
	within(t, "1.4 T(gauss)", gauss.t, 0.995, 1.1)
	within(t, "1.5 N(gauss)", gauss.n, 1.2, 10)
	within(t, "1.5 E(gauss)", gauss.e, 1.1, 10)
	within(t, "1.6 X(gauss)", gauss.x, 0.5, 1)
	within(t, "1.7 T(load)", load.t, 1.8, 2.1)
	within(t, "1.8 N(load)", load.n, 0.1, 0.85)
	within(t, "1.8 E(load)", load.e, 0.1, 0.9)
}

// TestFigure2: FLOWS with 2000 flows of a twentieth of their size.
func TestFigure2(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	const messages, ticks, part = 2000, 200_000, 20
	run := func(ports string, change func(p *flows.Params)) figure {
		v := variant{ports, 16, func(seed int64) (dag.Source, error) {
			p := flows.Default()
			p.Messages, p.Ticks = messages, ticks
			for i := range p.Classes {
				p.Classes[i].Destination = openloop.DestinationPolicy{}
			}
			change(&p)
			s, err := flows.NewSource(p, seed)
			if err != nil {
				return nil, err
			}
			tr, err := dag.ReadAll(s)
			if err != nil {
				return nil, err
			}
			b := dag.NewBuilder(len(tr.Ranks))
			for r := range tr.Ranks {
				for i := range tr.Ranks[r].Len() {
					op := tr.Ranks[r].Op(i)
					op.Bytes /= part
					b.Rank(r).Add(op)
				}
			}
			return dag.FromTrace(b.Trace()), b.Err()
		}}
		return v.mean(t, seeds(1))
	}
	ref := run("8", func(*flows.Params) {})
	tasks := run("16", func(p *flows.Params) { p.Tasks = 256 }).over(ref)
	gauss := run("8", func(p *flows.Params) {
		for i := range p.Classes {
			p.Classes[i].Destination = openloop.DestinationPolicy{Distribution: openloop.Gauss, Sigma: openloop.DefaultSigma}
		}
	}).over(ref)
	perc := run("8", func(p *flows.Params) { p.Classes[0].Percent, p.Classes[1].Percent = 50, 50 }).over(ref)
	t.Logf("ref %.4g, task256 %.3f, gauss %.3f, perc %.3f", ref, tasks, gauss, perc)
	within(t, "2.1 T(ref) / generation", ref.t/ticks, 2, 100)
	within(t, "2.1 X(ref)", ref.x, 0.4, 0.65)
	within(t, "2.2 T(task256)", tasks.t, 0.4, 0.75)
	within(t, "2.3 X(task256)", tasks.x, 0.5, 1)
	within(t, "2.3 E(task256)", tasks.e, 0.9, 1.1)
	within(t, "2.3 N(task256)", tasks.n, 0.9, 1.1)
	within(t, "2.4 T(gauss)", gauss.t, 1.5, 10)
	within(t, "2.4 X(gauss)", gauss.x, 0.1, 0.7)
	within(t, "2.4 E(gauss)", gauss.e, 1.3, 10)
	within(t, "2.4 N(gauss)", gauss.n, 1.3, 10)
	within(t, "2.5 T(perc)", perc.t, 2, 2.7)
	within(t, "2.6 E(perc)", perc.e, 0.9, 1.1)
	within(t, "2.6 N(perc)", perc.n, 0.9, 1.1)
	within(t, "2.6 X(perc)", perc.x, 0.9, 1.1)
}

// TestFigure3: HOROVOD with 98 tasks, one layer of a hundredth of the size and a tenth of the loop time, and fewer iterations.
func TestFigure3(t *testing.T) {
	if testing.Short() {
		t.Skip("computes long on one thread")
	}
	run := func(change func(l *horovod.Layer)) figure {
		v := variant{"7", 14, func(seed int64) (dag.Source, error) {
			p := horovod.Default()
			p.Workers, p.Batches, p.Layers = 98, 1, 1
			p.Layer.Compute, p.Layer.NegotiationLoop = 20*dag.Microsecond, 140*dag.Microsecond
			p.Layer.GathervProbability, p.Layer.AllreduceBytes = 0.25, 512<<10
			change(&p.Layer)
			tr, err := readAll(horovod.NewSource(p, seed))
			if err != nil {
				return nil, err
			}
			tr, err = collective.Lower(context.Background(), tr, collective.Choice{})
			return dag.FromTrace(tr), err
		}}
		return v.mean(t, seeds(1))
	}
	ref := run(func(*horovod.Layer) {})
	allreduce := run(func(l *horovod.Layer) { l.AllreduceBytes *= 2 }).over(ref)
	compute := run(func(l *horovod.Layer) { l.Compute /= 10 }).over(ref)
	loop := run(func(l *horovod.Layer) { l.NegotiationLoop /= 2 }).over(ref)
	t.Logf("ref %.4g, allreduce %.3f, compute %.3f, loop %.3f", ref, allreduce, compute, loop)
	within(t, "3.1 T(allreduce)", allreduce.t, 1.0001, 2)
	within(t, "3.1 E(allreduce)", allreduce.e, 1.0001, 2)
	within(t, "3.1 N(allreduce)", allreduce.n, 1.0001, 2)
	within(t, "3.1 X(allreduce)", allreduce.x, 1.1, 2)
	within(t, "3.2 T(compute)", compute.t, loop.t, 1)
	within(t, "3.2 E(compute)", compute.e, 0.98, 1.05)
	within(t, "3.2 N(compute)", compute.n, 0.98, 1.05)
	within(t, "3.3 T(loop)", loop.t, 0.5, 0.65)
	within(t, "3.3 X(loop)", loop.x, 1.6, 2.05)
	within(t, "3.3 E(loop)", loop.e, 0.95, 1.05)
	within(t, "3.3 N(loop)", loop.n, 0.95, 1.05)
	within(t, "3.4 X(loop) / X(allreduce)", loop.x/allreduce.x, 0.75, 1.25)
}

// readAll returns the trace of a source, or the error of making the source.
func readAll[S dag.Source](s S, err error) (*dag.Trace, error) {
	if err != nil {
		return nil, err
	}
	return dag.ReadAll(s)
}
