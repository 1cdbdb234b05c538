package study

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tracedag/tracedag/internal/grid"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/internal/results"
	"github.com/tracedag/tracedag/memory"
	"github.com/tracedag/tracedag/sim/measure"
)

// RunOptions are the options of a run of a session.
type RunOptions struct {
	Context context.Context
	Threads int
	Limits  grid.Limits
}

// Execution is how the runs of a plan run.
type Execution struct {
	Context context.Context
	Engine  Engine
	Threads int                // worker threads in all
	Todo    func(run int) bool // selects runs; nil: all
	// Each receives the line of each run, a JSON object with a line end. With Ordered, calls are in the order of the
	// grid, one at a time; otherwise they are concurrent.
	Each    eachFunc
	Ordered bool
	Bare    bool        // lines lack the place of the run in the study
	Stop    func() bool // ends the execution before the next run; nil: never
	Done    func()      // called when a run ends; nil: none
	// Take decides before each run whether it runs. It may be called concurrently; nil: all run.
	Take    func(run int) (bool, error)
	Took    func(run int, wall time.Duration) error // receives the wall-clock time of each run; nil: none
	Reverse bool                                    // runs the last configurations and runs first
}

// eachFunc receives the line of a run, its outcome and its error.
type eachFunc = func(run int, line []byte, status results.Status, failed error) error

// errTaken is the outcome of a run that is not taken.
var errTaken = errors.New("another process has the run")

// Execute runs the selected runs of an identified plan. Runs of one configuration share its compiled trace. A run that
// fails does not stop others; an error of Each and the end of the context do.
func (p *Plan) Execute(x Execution) error {
	var groups []*group
	var runs [][]int
	for i := range p.groups {
		g := &p.groups[i]
		todo := slices.Clone(g.runs)
		if x.Todo != nil {
			todo = slices.DeleteFunc(todo, func(run int) bool { return !x.Todo(run) })
		}
		if len(todo) > 0 {
			groups, runs = append(groups, g), append(runs, todo)
			if g.input != nil {
				g.input.users.Add(1)
			}
		}
	}
	if x.Reverse {
		slices.Reverse(groups)
		slices.Reverse(runs)
		for _, list := range runs {
			slices.Reverse(list)
		}
	}
	if x.Ordered {
		var all []int
		for _, list := range runs {
			all = append(all, list...)
		}
		slices.Sort(all)
		x.Each = inOrder(all, x.Each)
	}
	threads := max(1, x.Threads/max(1, p.Study.Threads))
	outer := max(1, min(threads, len(groups)))
	return par.EachOn(outer, len(groups), func(i int) error {
		return p.executeGroup(&x, groups[i], runs[i], max(1, threads/outer))
	})
}

// inOrder returns a function that passes calls on in the order of a sorted list of runs.
func inOrder(runs []int, each eachFunc) eachFunc {
	type call struct {
		line   []byte
		status results.Status
		failed error
	}
	var lock sync.Mutex
	waiting := make(map[int]call)
	next := 0
	return func(run int, line []byte, status results.Status, failed error) error {
		lock.Lock()
		defer lock.Unlock()
		waiting[run] = call{line, status, failed}
		for next < len(runs) {
			c, there := waiting[runs[next]]
			if !there {
				return nil
			}
			delete(waiting, runs[next])
			next++
			if err := each(runs[next-1], c.line, c.status, c.failed); err != nil {
				return err
			}
		}
		return nil
	}
}

// outcome is the end of a run.
type outcome struct {
	run    int
	line   []byte
	status results.Status
	failed error // of the run
	err    error // ends the study
}

// executeGroup runs runs of one configuration, up to threads at a time.
func (p *Plan) executeGroup(x *Execution, g *group, runs []int, threads int) error {
	if g.input != nil {
		defer func() {
			if g.input.users.Add(-1) == 0 {
				x.Engine.Release(g.input)
			}
		}()
	}
	if err := par.Interrupted(x.Context); err != nil {
		return err
	}
	session, err := p.open(x, g)
	if err != nil {
		if stop := par.Interrupted(x.Context); stop != nil {
			return stop
		}
		if x.Ordered && len(p.groups) == 1 {
			return err // no point can run
		}
		return p.failAll(x, g, runs, err)
	}
	defer session.Close()
	if err := p.complete(g, session, runs); err != nil {
		return err
	}
	work := func(run int) outcome {
		o := p.one(x, session, run)
		if o.err == nil && !x.Ordered {
			o.err = x.Each(o.run, o.line, o.status, o.failed)
			o.line = nil
		}
		return o
	}
	for o := range par.Ordered(slices.Values(runs), min(threads, len(runs)), 4*threads,
		func() func(int) outcome { return work }) {
		if errors.Is(o.err, errTaken) {
			continue
		}
		if o.err != nil {
			return o.err
		}
		if x.Ordered {
			if err := x.Each(o.run, o.line, o.status, o.failed); err != nil {
				return err
			}
		}
	}
	return nil
}

// open opens the session of a group. It generates the trace if necessary.
func (p *Plan) open(x *Execution, g *group) (Session, error) {
	if g.input != nil && g.input.generated {
		g.input.once.Do(func() { g.input.err = x.Engine.Generate(g.input) })
		if g.input.err != nil {
			return nil, g.input.err
		}
	}
	config, err := x.Engine.Configure(g.args, g.input)
	if err != nil {
		return nil, err
	}
	return config.Open(p.Study.Threads)
}

// complete completes the descriptions of runs by that of the trace as read.
func (p *Plan) complete(g *group, session Session, runs []int) error {
	base, err := session.Base()
	if err != nil {
		return err
	}
	if g.input != nil && !g.input.Main {
		base.Trace.Name, base.Trace.SHA256 = g.input.Name, g.input.SHA256
	}
	for _, run := range runs {
		p.Runs[run].About.Complete(base)
	}
	return nil
}

// one runs a run.
func (p *Plan) one(x *Execution, session Session, run int) (o outcome) {
	o.run = run
	if o.err = par.Interrupted(x.Context); o.err != nil {
		return o
	}
	if x.Stop != nil && x.Stop() {
		o.err = errAgain
		return o
	}
	if x.Take != nil {
		if mine, err := x.Take(run); err != nil || !mine {
			o.err = cmp.Or(err, errTaken)
			return o
		}
	}
	r := &p.Runs[run]
	about := *r.About
	if x.Bare {
		about = bare(about)
	}
	var b bytes.Buffer
	began := time.Now()
	o.status, o.failed, o.err = session.Run(&about, r.Overrides, RunOptions{Context: x.Context,
		Threads: p.Study.Threads, Limits: p.Study.Limits}, &b)
	o.line = b.Bytes()
	if o.err == nil {
		o.err = par.Interrupted(x.Context)
	}
	if o.err == nil && x.Took != nil {
		o.err = x.Took(run, time.Since(began))
	}
	if x.Done != nil {
		x.Done()
	}
	return o
}

// StatusOf returns the status of a run that failed: Limited if it needs too much memory.
func StatusOf(failed error) results.Status {
	var tooMuch *memory.Error
	if errors.As(failed, &tooMuch) {
		return results.Limited
	}
	return results.Failed
}

// failAll reports runs whose trace or configuration cannot be opened.
func (p *Plan) failAll(x *Execution, g *group, runs []int, failed error) error {
	for _, run := range runs {
		if x.Take != nil {
			if mine, err := x.Take(run); err != nil || !mine {
				if err != nil {
					return err
				}
				continue
			}
		}
		var b bytes.Buffer
		backend := backendOf(p.Study.Set, g.args)
		about := *p.Runs[run].About
		if x.Bare {
			about = bare(about)
		}
		failure := measure.FailureOf(backend, nil, failed)
		if StatusOf(failed) == results.Limited {
			failure.Status = results.LimitStatus
		}
		if err := about.WriteLine(&b, failure); err != nil {
			return err
		}
		if err := x.Each(run, b.Bytes(), StatusOf(failed), failed); err != nil {
			return err
		}
		if x.Done != nil {
			x.Done()
		}
	}
	return nil
}
