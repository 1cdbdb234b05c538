// This file finds dependencies between NCCL kernels on different streams: one stream records a CUDA event and the
// other waits for it.

package nsys

import (
	"cmp"
	"database/sql/driver"
	"slices"
)

// contextStream identifies a stream in a process. (The device in rows of waits is unreliable.)
type contextStream struct {
	context, stream int64
}

// syncRow is a wait of a stream for an event, or the recording of an event.
type syncRow struct {
	proc   uint64
	host   int64 // time of the host call
	stream contextStream
	event  int64
	wait   bool
}

// streamWait is the type of synchronization rows in which a stream waits for an event.
const streamWait = 2

// readSyncs reads the waits of streams, and the recordings of the events that they wait for.
func (r *report) readSyncs(d *database) error {
	read := func(table, time string, wait bool) error {
		columns := []string{time, "contextId", "streamId", "correlationId", "globalPid", "eventId", "syncType"}
		return d.each(table, columns, "", "", func(v []driver.Value) error {
			if wait && asInt(v[6], 0) != streamWait {
				return nil
			}
			r.syncs = append(r.syncs, syncRow{proc: processKey(asInt(v[4], 0)), host: asInt(v[0], 0),
				stream: contextStream{asInt(v[1], 0), asInt(v[2], 0)}, event: asInt(v[5], -1), wait: wait})
			r.syncCalls[correlationKey{processKey(asInt(v[4], 0)), asInt(v[3], -1)}] = int32(len(r.syncs) - 1)
			return nil
		})
	}
	r.syncCalls = make(map[correlationKey]int32)
	if err := read(tableSync, "start", true); err != nil {
		return err
	}
	if err := read(tableCUDAEvent, "timestamp", false); err != nil {
		return err
	}
	if len(r.syncs) == 0 {
		return nil
	}
	err := d.each(tableRuntime, []string{"start", "globalTid", "correlationId"}, "", "", func(v []driver.Value) error {
		if i, ok := r.syncCalls[correlationKey{processKey(asInt(v[1], 0)), asInt(v[2], -1)}]; ok {
			r.syncs[i].host = asInt(v[0], 0)
		}
		return nil
	})
	r.syncCalls = nil
	slices.SortStableFunc(r.syncs, func(a, b syncRow) int { return cmp.Compare(a.host, b.host) })
	return err
}

// frontier maps each stream with NCCL kernels to the number of its kernels that have ended at a point of another
// stream, by stream order and waits.
type frontier map[contextStream]int

func (f frontier) merge(g frontier) {
	for s, n := range g {
		f[s] = max(f[s], n)
	}
}

// waits returns, for events of the GPU, the events on other streams that they wait for. If a CUDA event is
// recorded several times, a wait refers to the last recording before it.
func (g *gpu) waits() map[int32][]int32 {
	r := g.report
	key := r.procs[g.proc].key
	kernels := make(map[contextStream][]int32) // events so far
	at := make(map[contextStream]frontier)
	of := func(s contextStream) frontier {
		f, ok := at[s]
		if !ok {
			f = make(frontier)
			at[s] = f
		}
		return f
	}
	recorded := make(map[int64]frontier)
	var last frontier
	waits := make(map[int32][]int32)
	waited := make(map[[2]contextStream]int) // number of the second stream's kernels that the first already waits for
	rest := r.syncs
	for _, i := range g.events {
		e := &r.events[i]
		for ; len(rest) > 0 && rest[0].host <= e.host; rest = rest[1:] {
			sync := &rest[0]
			switch {
			case sync.proc != key:
			case !sync.wait:
				last = make(frontier)
				last.merge(of(sync.stream))
				recorded[sync.event] = last
			default:
				f, ok := recorded[sync.event]
				if !ok {
					f = last
				}
				of(sync.stream).merge(f)
			}
		}
		s := contextStream{int64(r.streams[e.stream].context), r.streams[e.stream].stream}
		f := of(s)
		for other, n := range f {
			if pair := [2]contextStream{s, other}; other != s && n > waited[pair] {
				waited[pair] = n
				waits[i] = append(waits[i], kernels[other][n-1])
			}
		}
		slices.Sort(waits[i])
		kernels[s] = append(kernels[s], i)
		f[s] = len(kernels[s])
	}
	return waits
}
