// This file prepares the statistics for pages and pictures.

package gpustats

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tracedag/tracedag/dag"
)

// Digest is the statistics as lists of rows for a page or a picture.
type Digest struct {
	Ranks       []RankRow       `json:"ranks"`
	Types       []TypeRow       `json:"types"`
	Idle        []IdleRow       `json:"idle"`
	Queues      []QueueRow      `json:"queues"`
	Launches    []LaunchRow     `json:"launches"`
	Kernels     []KernelRow     `json:"kernels"`     // of all ranks, those with the greatest sums
	Collectives []CollectiveRow `json:"collectives"` // of all ranks, those with the greatest sums
	Stragglers  []StragglerRow  `json:"stragglers"`
	Paths       []PathRow       `json:"paths"`
	PathNames   []PathNameRow   `json:"path_names"` // of all ranks, those with the greatest times
}

// RankRow is the parts of the time of a rank, whose sum is the time.
type RankRow struct {
	Rank       int32    `json:"rank"`
	Time       dag.Time `json:"time_ps"`
	Compute    dag.Time `json:"compute_ps"` // without communication
	Overlapped dag.Time `json:"overlapped_ps"`
	Exposed    dag.Time `json:"exposed_comm_ps"`
	Other      dag.Time `json:"other_ps"` // copies, and waits with Stats.Reference
	Idle       dag.Time `json:"idle_ps"`
}

// TypeRow is a [Type].
type TypeRow struct {
	Name string   `json:"name"`
	Time dag.Time `json:"time_ps"`
}

// IdleRow is the idle time of a stream.
type IdleRow struct {
	Name       string   `json:"name"` // rank and stream
	HostWait   dag.Time `json:"host_wait_ps"`
	KernelWait dag.Time `json:"kernel_wait_ps"`
	Other      dag.Time `json:"other_ps"`
}

// QueueRow is the queue of a stream.
type QueueRow struct {
	Name  string   `json:"name"` // rank and stream
	Count int      `json:"count"`
	Mean  float64  `json:"mean"`
	P50   float64  `json:"p50"`
	Max   float64  `json:"max"`
	Full  dag.Time `json:"full_ps"`
}

// LaunchRow is the launches of a rank.
type LaunchRow struct {
	Rank       int32    `json:"rank"`
	Count      int      `json:"launches"`
	Mean       float64  `json:"mean_ps"`
	P50        float64  `json:"p50_ps"`
	P99        float64  `json:"p99_ps"`
	Max        dag.Time `json:"max_ps"`
	Short      int      `json:"short_ops"`
	LongCalls  int      `json:"long_calls"`
	LongDelays int      `json:"long_delays"`
}

// KernelRow is the kernels of a name.
type KernelRow struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind"`
	Count int64    `json:"ops"`
	Sum   dag.Time `json:"sum_ps"`
	Max   dag.Time `json:"max_ps"`
}

// CollectiveRow is the communication of a kind, group and size.
type CollectiveRow struct {
	Name  string   `json:"name"`
	Count int64    `json:"count"`
	Size  *int64   `json:"size_bytes"` // nil: unknown
	Sum   dag.Time `json:"sum_ps"`
	Max   dag.Time `json:"max_ps"`
	BusBW *float64 `json:"bus_bits_s"` // mean of all; nil: unknown
}

// StragglerRow is a [Straggler].
type StragglerRow struct {
	Rank        int32    `json:"rank"`
	Collectives int      `json:"collectives"`
	Caused      dag.Time `json:"waiting_ps"`
	Worst       string   `json:"worst"`
	WorstCaused dag.Time `json:"worst_waiting_ps"`
}

// PathRow is the parts of a critical path.
type PathRow struct {
	Rank          int32    `json:"rank"`
	Length        dag.Time `json:"length_ps"`
	CPU           dag.Time `json:"cpu_ps"`
	Compute       dag.Time `json:"compute_ps"`
	Communication dag.Time `json:"communication_ps"`
	Gaps          dag.Time `json:"between_kernels_ps"`
	Launches      dag.Time `json:"launches_ps"`
}

// PathNameRow is the time of the events of a name on critical paths.
type PathNameRow struct {
	Name  string   `json:"name"`
	Bound string   `json:"bound"`
	Edges int      `json:"edges"`
	Time  dag.Time `json:"time_ps"`
}

// mostRows is the number of names in a digest.
const mostRows = 20

// Digest returns the rows of the statistics.
func (s *Stats) Digest() *Digest {
	d := &Digest{Types: []TypeRow{}, Ranks: []RankRow{}, Idle: []IdleRow{}, Queues: []QueueRow{},
		Launches: []LaunchRow{}, Stragglers: []StragglerRow{}, Paths: []PathRow{}}
	place := func(rank int32, device, stream int64) string {
		if s.Reference {
			return fmt.Sprintf("rank %d stream %d", rank, stream)
		}
		return fmt.Sprintf("rank %d stream %d:%d", rank, device, stream)
	}
	for _, t := range s.Types {
		d.Types = append(d.Types, TypeRow(t))
	}
	for i := range s.Ranks {
		r := &s.Ranks[i]
		d.Ranks = append(d.Ranks, RankRow{r.Rank, r.KernelTime, r.Compute - r.Overlapped, r.Overlapped, r.Exposed,
			r.NonCompute - r.Exposed, r.Idle})
		for _, x := range r.Streams {
			d.Idle = append(d.Idle, IdleRow{place(r.Rank, x.Device, x.Stream), x.HostWait, x.KernelWait, x.Other})
		}
		for _, q := range r.Queues {
			d.Queues = append(d.Queues, QueueRow{place(r.Rank, q.Device, q.Stream), q.Count, q.Mean, q.P50, q.Max,
				q.Full})
		}
		l := &r.Launches
		d.Launches = append(d.Launches, LaunchRow{r.Rank, l.Count, l.Mean, l.P50, l.P99, l.Max, l.Short, l.LongCalls,
			l.LongDelays})
	}
	for _, x := range s.Stragglers {
		d.Stragglers = append(d.Stragglers, StragglerRow{x.Rank, x.Collectives, x.Caused,
			fmt.Sprintf("%s %d of %s", x.Worst.Kind, x.Worst.Instance, cmp.Or(x.Worst.Group, "all ranks")),
			x.Worst.Caused})
	}
	for _, p := range s.Paths {
		row := PathRow{Rank: p.Rank, Length: p.Length}
		for i, to := range []*dag.Time{&row.CPU, &row.Compute, &row.Communication, &row.Gaps, &row.Launches} {
			*to = p.Parts[i].Time
		}
		d.Paths = append(d.Paths, row)
	}
	d.Kernels, d.Collectives, d.PathNames = s.kernelRows(), s.collectiveRows(), s.pathRows()
	return d
}

// kernelRows returns the kernels with the greatest sums over all ranks.
func (s *Stats) kernelRows() []KernelRow {
	index := make(map[[2]string]int)
	rows := []KernelRow{}
	for i := range s.Ranks {
		for _, k := range s.Ranks[i].Kernels {
			key := [2]string{k.Kind, k.Name}
			n, ok := index[key]
			if !ok {
				n = len(rows)
				index[key] = n
				rows = append(rows, KernelRow{Name: k.Name, Kind: k.Kind})
			}
			rows[n].Count += k.Count
			rows[n].Sum += k.Sum
			rows[n].Max = max(rows[n].Max, k.Max)
		}
	}
	slices.SortStableFunc(rows, func(a, b KernelRow) int { return cmp.Compare(b.Sum, a.Sum) })
	return rows[:min(len(rows), mostRows)]
}

// collectiveRows returns the communication with the greatest sums over all ranks.
func (s *Stats) collectiveRows() []CollectiveRow {
	type key struct {
		kind, group string
		ranks       int
		size        int64
	}
	index := make(map[key]int)
	rows := []CollectiveRow{}
	var factors []float64
	for i := range s.Ranks {
		for _, c := range s.Ranks[i].Collectives {
			k := key{c.Kind, c.Group, c.Ranks, c.Size}
			n, ok := index[k]
			if !ok {
				n = len(rows)
				index[k] = n
				row := CollectiveRow{Name: fmt.Sprintf("%s, %d ranks", c.Kind, c.Ranks)}
				if c.Group != "" {
					row.Name = fmt.Sprintf("%s, group %s, %d ranks", c.Kind, c.Group, c.Ranks)
				}
				if c.Size >= 0 {
					row.Size = &k.size
				}
				rows, factors = append(rows, row), append(factors, c.factor)
			}
			rows[n].Count += c.Count
			rows[n].Sum += c.Sum
			rows[n].Max = max(rows[n].Max, c.Max)
		}
	}
	for i := range rows {
		if r := &rows[i]; r.Size != nil && *r.Size > 0 && r.Sum > 0 && factors[i] > 0 {
			rate := float64(*r.Size) * float64(r.Count) / float64(r.Sum) * 8e12 * factors[i]
			r.BusBW = &rate
		}
	}
	slices.SortStableFunc(rows, func(a, b CollectiveRow) int { return cmp.Compare(b.Sum, a.Sum) })
	return rows[:min(len(rows), mostRows)]
}

// pathRows returns the names with the greatest times on the critical paths of all ranks.
func (s *Stats) pathRows() []PathNameRow {
	index := make(map[[2]string]int)
	rows := []PathNameRow{}
	for _, p := range s.Paths {
		for _, x := range p.Names {
			key := [2]string{x.Name, x.Bound}
			n, ok := index[key]
			if !ok {
				n = len(rows)
				index[key] = n
				rows = append(rows, PathNameRow{Name: x.Name, Bound: x.Bound})
			}
			rows[n].Edges += x.Edges
			rows[n].Time += x.Time
		}
	}
	slices.SortStableFunc(rows, func(a, b PathNameRow) int { return cmp.Compare(b.Time, a.Time) })
	return rows[:min(len(rows), mostRows)]
}
