// Package masterworker generates traces of a master that hands out tasks to workers and collects their results.
//
// docs/reference/generators/masterworker.md defines the model.
package masterworker

import (
	"fmt"
	"math/rand/v2"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/rankwise"
)

// Params describe a run.
type Params struct {
	Workers     int      // 1..2^24 - 1; the master is rank 0
	Tasks       int64    // 0..2^28
	TaskBytes   int64    // of the message with a task: 0..2^38
	ResultBytes int64    // of the message with a result: 0..2^38
	Compute     dag.Time // of a worker for a task: 0..2^61 ps
	Spread      float64  // largest deviation from Compute as a part of it: 0..1
	Handle      dag.Time // computation of the master per result: 0 or more
	AnySource   bool     // the master receives from any worker, not from one worker after the other
}

// Default returns 15 workers that compute 600 tasks of 1 ms +- 50 %.
func Default() Params {
	return Params{
		Workers: 15, Tasks: 600, TaskBytes: 4 << 10, ResultBytes: 16 << 10, Compute: dag.Millisecond, Spread: 0.5,
		Handle: 5 * dag.Microsecond, AnySource: true,
	}
}

// Limits that keep sizes and counts in range.
const (
	maxWorkers = 1<<24 - 1
	maxTasks   = 1 << 28
	maxBytes   = 1 << 38
	maxCompute = 1 << 61
)

// The tags of messages.
const (
	taskTag   = 0
	resultTag = 1
)

// NewSource returns the trace of a run. The seed determines the durations of the computations.
func NewSource(p Params, seed int64) (*rankwise.Source, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("masterworker: %w", err)
	}
	s, err := rankwise.NewSource(rankwise.Model{
		Title: fmt.Sprintf("masterworker, %d workers, %d tasks", p.Workers, p.Tasks),
		Ranks: p.Workers + 1,
		Kinds: []dag.Kind{dag.Calc, dag.Send, dag.Recv},
		Count: func(rank int) (ops, deps int64) {
			n := 3 * p.Tasks
			if rank > 0 {
				n = 3 * p.tasksOf(rank)
			}
			return n, 2 * n
		},
		Fill: func(rank int, b *dag.RankBuilder) {
			if rank == 0 {
				p.master(b)
			} else {
				p.worker(rank, seed, b)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("masterworker: %w", err)
	}
	return s, nil
}

func (p *Params) check() error {
	switch {
	case p.Workers < 1 || p.Workers > maxWorkers:
		return fmt.Errorf("workers is %d, expected 1..%d", p.Workers, maxWorkers)
	case p.Tasks < 0 || p.Tasks > maxTasks:
		return fmt.Errorf("tasks is %d, expected 0..%d", p.Tasks, maxTasks)
	case p.TaskBytes < 0 || p.TaskBytes > maxBytes:
		return fmt.Errorf("task bytes is %d, expected 0..%d", p.TaskBytes, int64(maxBytes))
	case p.ResultBytes < 0 || p.ResultBytes > maxBytes:
		return fmt.Errorf("result bytes is %d, expected 0..%d", p.ResultBytes, int64(maxBytes))
	case p.Compute < 0 || p.Compute > maxCompute:
		return fmt.Errorf("compute time is %v, expected 0..%v", p.Compute, dag.Time(maxCompute))
	case !(p.Spread >= 0 && p.Spread <= 1):
		return fmt.Errorf("spread is %v, expected 0..1", p.Spread)
	case p.Handle < 0:
		return fmt.Errorf("handle time is %v, expected 0 or more", p.Handle)
	}
	return nil
}

// tasksOf returns the number of tasks of a worker: they are handed out round robin.
func (p *Params) tasksOf(worker int) int64 {
	n := p.Tasks / int64(p.Workers)
	if int64(worker) <= p.Tasks%int64(p.Workers) {
		n++
	}
	return n
}

// master generates rank 0. It sends every worker a task; for each result, in the order of receipt, it computes and
// sends the next task.
func (p *Params) master(b *dag.RankBuilder) {
	workers := int64(p.Workers)
	send := func(task int64, after ...int) { b.Send(int32(1+task%workers), p.TaskBytes, taskTag, after...) }
	for task := range min(p.Tasks, workers) {
		send(task)
	}
	last := -1
	for task := range p.Tasks {
		from := int32(dag.AnySource)
		if !p.AnySource {
			from = int32(1 + task%workers)
		}
		recv := b.Recv(from, p.ResultBytes, resultTag)
		if last >= 0 {
			b.Requires(recv, last)
		}
		last = b.Calc(p.Handle, recv)
		if task+workers < p.Tasks {
			send(task+workers, last)
		}
	}
}

// worker generates another rank: it receives a task, computes, sends the result, and receives the next task when the
// result is sent.
func (p *Params) worker(rank int, seed int64, b *dag.RankBuilder) {
	random := rand.New(rand.NewPCG(uint64(seed), uint64(rank)))
	spread := int64(float64(p.Compute) * p.Spread)
	last := -1
	for range p.tasksOf(rank) {
		recv := b.Recv(0, p.TaskBytes, taskTag)
		if last >= 0 {
			b.Requires(recv, last)
		}
		time := p.Compute
		if spread > 0 {
			time += dag.Time(random.Int64N(2*spread+1) - spread)
		}
		last = b.Send(0, p.ResultBytes, resultTag, b.Calc(time, recv))
	}
}
