package dag

// ClockError bounds the errors of the clocks of a trace, by its collectives: no member of an allreduce can leave it
// before the last one has entered.
type ClockError struct {
	AtLeast Time // two clocks differ by that much
	AtMost  Time // no clock differs from that of the first rank by more; [Unmeasured]: unknown
}

// ClockErrorOf compares the recorded times of the members of each collective. Only collectives whose members have all
// recorded it count. It returns false if there is none.
func ClockErrorOf(t *Trace) (ClockError, bool) {
	type place struct{ comm, k int32 }
	type entered struct {
		members     int
		whole       bool // all members of the communicator recorded it, and some waited for others
		first, last Time // earliest end, latest start, of the members that wait for others and that others wait for
		zero, left  Time // start and end of the first rank
	}
	instances := map[place]*entered{}
	each := func(visit func(rank int, e *entered, kind Subkind, root bool, start, end Time)) {
		for rank, r := range t.Ranks {
			next := map[int32]int32{}
			for i, kind := range r.Kind {
				if kind != Coll {
					continue
				}
				comm := r.Comm.At(i)
				at := place{comm, next[comm]}
				next[comm]++
				e := instances[at]
				if e == nil {
					e = &entered{first: MaxTime, last: Unmeasured, zero: Unmeasured, left: Unmeasured}
					instances[at] = e
				}
				start, end := r.Measured(i)
				if start != Unmeasured && end != Unmeasured {
					visit(rank, e, r.Subkind.At(i), r.Peer.At(i) == int32(rank), start, end)
				}
			}
		}
	}
	each(func(rank int, e *entered, kind Subkind, root bool, start, end Time) {
		e.members++
		leaves, enters := kind.Waits(root)
		if leaves {
			e.first = min(e.first, end)
		}
		if enters {
			e.last = max(e.last, start)
		}
		if rank == 0 {
			e.zero, e.left = start, end
		}
	})
	found := ClockError{AtMost: Unmeasured}
	ok := false
	for at, e := range instances {
		e.whole = at.comm >= 0 && int(at.comm) < len(t.Comms) && e.members > 1 &&
			e.members == t.Comms[at.comm].Size() && e.first != MaxTime && e.last != Unmeasured
		if e.whole {
			ok = true
			found.AtLeast = max(found.AtLeast, e.last-e.first)
		}
	}
	if !ok {
		return found, false
	}
	// The clock of a rank is ahead of that of the first one by at most ahead, and behind it by at most behind.
	ahead, behind := make([]Time, len(t.Ranks)), make([]Time, len(t.Ranks))
	for i := range ahead {
		ahead[i], behind[i] = MaxTime, MaxTime
	}
	each(func(rank int, e *entered, kind Subkind, _ bool, start, end Time) {
		if leaves, enters := kind.Waits(false); e.whole && e.zero != Unmeasured && leaves && enters {
			ahead[rank] = min(ahead[rank], end-e.zero)
			behind[rank] = min(behind[rank], e.left-start)
		}
	})
	for rank := 1; rank < len(t.Ranks); rank++ {
		if ahead[rank] == MaxTime || behind[rank] == MaxTime {
			found.AtMost = Unmeasured
			return found, true
		}
		found.AtMost = max(found.AtMost, ahead[rank], behind[rank])
	}
	return found, true
}

// Waits returns whether a member of a collective, or its root, cannot leave it before others have entered it, and
// whether others wait for it to enter. Both are false for other ops.
func (s Subkind) Waits(root bool) (leaves, enters bool) {
	switch s {
	case Barrier, Allreduce, Allgather, Allgatherv, Alltoall, Alltoallv, ReduceScatter:
		return true, true
	case Bcast, Scatter, Scatterv:
		return !root, root
	case Reduce, Gather, Gatherv:
		return root, !root
	}
	return false, false
}
