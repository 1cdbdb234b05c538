// This file finds which kernels of NCCL wait for which on other streams, through events of CUDA that one stream records
// and another waits for.

package nsys

import (
	"cmp"
	"database/sql/driver"
	"slices"
)

// contextStream identifies a stream in a process. (The device that rows of waits have is not reliable.)
type contextStream struct {
	context, stream int64
}

// syncRow is a wait of a stream for an event, or the recording of one.
type syncRow struct {
	proc   uint64
	host   int64 // when the host asked for it
	stream contextStream
	event  int64
	wait   bool
}

// streamWait is the type of synchronization rows of waits of streams for events.
const streamWait = 2

// readSyncs reads the waits of streams, and the records of events that they wait for.
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

// frontier is, for each stream with kernels of NCCL, the number of kernels there that are over at a point of another
// stream, by the order of the streams and of what they waited for.
type frontier map[contextStream]int

func (f frontier) merge(g frontier) {
	for s, n := range g {
		f[s] = max(f[s], n)
	}
}

// waits returns, for events of the GPU, the events on other streams that they wait for. Of an event that is recorded
// several times, a wait means the last record before it, and of one that is not there the last of any.
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
	waited := make(map[[2]contextStream]int) // what the first waits for of the second already
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
