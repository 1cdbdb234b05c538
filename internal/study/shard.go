package study

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/cluster"
	"github.com/tracedag/tracedag/internal/results"
)

// errAgain ends a shard early.
var errAgain = errors.New("stopped before all runs are done; run the command again")

// shard runs a shard of a study.
type shard struct {
	*Flags
	p       *cli.Program
	plan    *Plan
	engine  Runner
	threads int
	folder  results.Folder
	store   *results.Store
	mine    []bool // runs of the shard
	again   []bool // those that have failed and run again
	stolen  []bool // those to do that another process may run

	packer *results.Packer // nil: a file per run
	claims *results.Claims // nil: no other process runs them
	timing *results.Timing // nil: none

	lock       sync.Mutex // of the following
	ran        []bool     // by this process
	ended, all int
	failed     int
	incomplete int
	refreshed  time.Time // the store
	took       time.Duration
}

// execute runs what is not done yet.
func (f *Flags) execute(p *cli.Program, r Runner, plan *Plan, threads int) (err error) {
	part, err := f.shard.Shard(os.Getenv)
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(part.String(), "/", "-of-")
	s := &shard{Flags: f, p: p, plan: plan, engine: r, threads: threads, folder: results.Folder(f.folder),
		ran: make([]bool, len(plan.Runs)), again: make([]bool, len(plan.Runs))}
	unlock, err := s.folder.Lock(name)
	var locked *results.LockedError
	if errors.As(err, &locked) {
		p.Error("%v", err)
		return cli.Reported(ExitAgain)
	}
	if err != nil {
		return err
	}
	defer unlock()
	if s.store, err = s.folder.Open(); err != nil {
		return err
	}
	s.mine = plan.shard(part)
	todo, tally, err := f.todo(plan, s.store, s.mine)
	if err != nil {
		return err
	}
	s.stolen = todo
	for run := range todo {
		if todo[run] {
			if _, _, s.again[run], err = s.store.Status(plan.Runs[run].About.ID); err != nil {
				return err
			}
		}
	}
	s.failed, s.incomplete = tally.Failed+tally.Limited, tally.Incomplete
	s.open(name)
	err = s.run(todo, tally.Todo)
	if closing := s.close(); err == nil {
		err = closing
	}
	switch {
	case errors.Is(err, errAgain):
		p.Info("%v", errAgain)
		return cli.Reported(ExitAgain)
	case err != nil:
		return err
	}
	p.Info("%s: %d runs of this shard are done, %d failed, %d are incomplete", f.File, tally.Total-s.failed, s.failed,
		s.incomplete)
	if s.failed+s.incomplete > 0 {
		return cli.Reported(cli.ExitFailed)
	}
	return nil
}

// open opens what the flags ask for.
func (s *shard) open(name string) {
	if s.stealing {
		s.claims = s.folder.NewClaims()
	}
	if s.pack {
		own := make(map[string]bool)
		for run, mine := range s.mine {
			if mine {
				own[s.plan.Runs[run].About.ID] = true
			}
		}
		var written func(ids []string)
		if s.claims != nil {
			written = func(ids []string) { s.claims.Release(ids...) }
		}
		noSync, _ := s.flags.GetBool("no-sync")
		s.packer = s.store.NewPacker(name, !noSync, func(id string) bool { return own[id] }, written)
	}
	if s.Timing {
		s.timing = s.folder.NewTiming(name)
	}
}

// close writes what is still in memory.
func (s *shard) close() (err error) {
	if s.packer != nil {
		err = s.packer.Close()
	}
	if s.claims != nil {
		s.claims.Close()
	}
	if s.timing != nil {
		err = errors.Join(err, s.timing.Close())
	}
	return err
}

// run runs the selected runs, and those of other shards with --steal.
func (s *shard) run(todo []bool, count int) error {
	ctx, stopping, done := s.signals(s.p.Context())
	defer done()
	progress := s.p.Progress("running", int64(count), "runs")
	defer progress.Close()
	s.all = count
	x := Execution{
		Context: ctx, Engine: s.engine, Threads: s.threads, Bare: true, Done: func() { progress.Add(1) },
		Todo: func(run int) bool { return todo[run] }, Stop: func() bool { return stopping.Load() }, Each: s.keep,
	}
	if s.timing != nil {
		x.Took = func(run int, wall time.Duration) error { return s.timing.Add(s.plan.Runs[run].About.ID, wall) }
	}
	if s.claims != nil {
		x.Take = s.take
	}
	err := s.plan.Execute(x)
	if err == nil && s.claims != nil {
		err = s.steal(x)
	}
	if err != nil && stopping.Load() {
		err = errAgain
	}
	return err
}

// keep writes a run to the folder.
func (s *shard) keep(run int, line []byte, status results.Status, failure error) (err error) {
	a := s.plan.Runs[run].About
	if len(s.plan.Study.Keep) > 0 {
		if line, err = s.folder.KeepFlows(a.ID, line); err != nil {
			return err
		}
	}
	if s.packer != nil {
		err = s.packer.Add(a.ID, line, status)
	} else if err = s.folder.Write(a.ID, line, status); err == nil && s.claims != nil {
		s.claims.Release(a.ID)
	}
	if err != nil {
		return err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.ran[run] = true
	s.ended++
	text := func() string {
		return fmt.Sprintf("run %s (%d of %d): %s seed=%d", a.ID, s.ended, s.all, strings.Join(factors(a), " "), a.Seed)
	}
	switch {
	case failure != nil:
		if s.mine[run] {
			s.failed++
		}
		s.p.Error("%s: %v", text(), failure)
	case status == results.Incomplete:
		if s.mine[run] {
			s.incomplete++
		}
		s.p.Info("%s: incomplete", text())
	case !s.quiet():
		s.p.Info("%s", text())
	}
	return nil
}

// quiet reports whether runs that succeed have no line on stderr.
func (s *shard) quiet() bool {
	quiet, _ := s.flags.GetBool("quiet")
	return quiet || cli.IsTerminal(s.p.Stderr)
}

// take claims a run. It reports false if another process has run it or runs it.
func (s *shard) take(run int) (bool, error) {
	s.lock.Lock()
	err := s.refresh()
	s.lock.Unlock()
	if err != nil {
		return false, err
	}
	id := s.plan.Runs[run].About.ID
	if !s.again[run] {
		if _, _, there, err := s.store.Status(id); there || err != nil {
			return false, err
		}
	}
	return s.claims.Take(id)
}

// refresh finds runs of other processes, each second at most and in a tenth of the time.
func (s *shard) refresh() error {
	began := time.Now()
	if began.Sub(s.refreshed) < max(time.Second, 10*s.took) {
		return nil
	}
	err := s.store.Refresh()
	s.refreshed, s.took = time.Now(), time.Since(began)
	return err
}

// stealPoll is the time between looks at the runs that others have claimed.
const stealPoll = time.Second

// steal runs what no shard has run or claimed, and waits for claimed runs of the own shard.
func (s *shard) steal(x Execution) error {
	x.Reverse = true // others run theirs from the beginning
	for {
		if err := s.store.Refresh(); err != nil {
			return err
		}
		states, err := s.plan.states(s.store)
		if err != nil {
			return err
		}
		left, own, count := make([]bool, len(states)), false, 0
		for run := range states {
			if left[run] = !states[run].there && !s.ran[run]; left[run] {
				count++
				own = own || s.mine[run]
			}
		}
		before := s.ended
		s.all = before + count
		x.Todo = func(run int) bool { return left[run] }
		if err := s.plan.Execute(x); err != nil {
			return err
		}
		switch {
		case s.ended > before:
			continue
		case !own:
			s.count(states)
			return nil
		case x.Stop():
			return errAgain
		}
		select {
		case <-time.After(stealPoll):
		case <-x.Context.Done():
			return context.Cause(x.Context)
		}
	}
}

// count counts the failed and incomplete runs of the shard that other processes have run.
func (s *shard) count(states []state) {
	for run, state := range states {
		switch {
		case !s.mine[run] || s.ran[run] || !s.stolen[run]:
		case state.status == results.Incomplete:
			s.incomplete++
		case state.status != results.Done:
			s.failed++
		}
	}
}

// shard selects the runs of a shard.
func (p *Plan) shard(part cluster.Shard) []bool {
	mine := make([]bool, len(p.Runs))
	for place, run := range p.byID() {
		mine[run] = part.Has(place)
	}
	return mine
}

// todo selects the runs of a shard that are not done, and counts the runs of the shard.
func (f *Flags) todo(plan *Plan, store *results.Store, mine []bool) (todo []bool, t Tally, err error) {
	states, err := plan.states(store)
	if err != nil {
		return nil, t, err
	}
	todo = make([]bool, len(plan.Runs))
	for run, s := range states {
		if !mine[run] {
			continue
		}
		t.Total++
		if f.retry && s.there && (s.status == results.Failed || s.status == results.Limited) {
			s.there = false
		}
		if s.there && len(plan.Study.Keep) > 0 {
			id := plan.Runs[run].About.ID
			k, err := store.Read(id)
			if err != nil {
				return nil, t, err
			}
			s.there = k != nil && !results.Folder(f.folder).LacksFlows(id, k)
		}
		todo[run] = !s.there
		t.add(s)
	}
	return todo, t, nil
}

// byID returns the runs in the order of their identities, which does not change when a study grows otherwise.
func (p *Plan) byID() []int {
	order := make([]int, len(p.Runs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(p.Runs[a].About.ID, p.Runs[b].About.ID) })
	return order
}

// signals makes SIGUSR1 end the shard after the runs at hand, or after the grace.
func (f *Flags) signals(parent context.Context) (ctx context.Context, stopping *atomic.Bool, done func()) {
	ctx, cancel := context.WithCancelCause(parent)
	stopping = new(atomic.Bool)
	notified := make(chan os.Signal, 1)
	notifyStop(notified)
	gone := make(chan struct{})
	go func() {
		select {
		case <-notified:
		case <-gone:
			return
		}
		stopping.Store(true)
		select {
		case <-time.After(f.grace):
			cancel(errAgain)
		case <-gone:
		}
	}()
	return ctx, stopping, func() {
		signal.Stop(notified)
		close(gone)
		cancel(nil)
	}
}
