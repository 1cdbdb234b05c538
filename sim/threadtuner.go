package sim

import "time"

// ThreadTuner decides during a replay whether several threads are faster than one. It alternates between both and
// measures them, since the cost of synchronization depends on the trace, the machine and its load. Its decisions depend
// on the wall clock; they affect the speed of a replay, never the result.
type ThreadTuner struct {
	// MinEvents is the average number of events per window below which one thread runs. If it is 0, several threads run
	// from the first parallel round on.
	MinEvents int
	// MinSpeedup is the speedup from which several threads continue.
	MinSpeedup float64
	// FirstRounds is the least number of single-threaded rounds before a parallel one until several threads have been
	// faster: a trial costs processor time, and short replays gain little.
	FirstRounds int64

	won      bool    // several threads have been faster
	parallel bool    // several threads have run since the last single-threaded round
	single   float64 // nanoseconds per event of the last single-threaded round
	slow     int     // consecutive parallel rounds that were not faster
	fast     int     // parallel rounds that were faster since the last single-threaded round
	patience int     // log2 of the single-threaded rounds before the next parallel one, minus log2 of minSingle
	trust    int     // log2 of the fast rounds before the next single-threaded one, minus log2 of minFast
}

const (
	maxSlow = 2 // consecutive slow rounds that end parallel running

	minSingle    = 2  // the first single-threaded round is slow, since the caches are cold
	minFast      = 4  // minimum number of fast rounds before the next single-threaded one
	maxDoublings = 20 // of minSingle and minFast
)

// SingleRounds returns the number of single-threaded rounds to run, and to report with [ThreadTuner.Single], before the
// next parallel round.
func (t *ThreadTuner) SingleRounds() int64 {
	rounds := int64(minSingle) << t.patience
	if !t.won {
		rounds = max(rounds, t.FirstRounds)
	}
	return rounds
}

// Single records the duration and the number of events of a single-threaded round. Only the last round counts.
func (t *ThreadTuner) Single(took time.Duration, events int64) {
	t.parallel = false
	if events > 0 {
		t.single = float64(took) / float64(events)
	}
}

// Parallel records the duration of a parallel round with its numbers of events and windows, and reports whether to run
// another one. The first round after a single-threaded one does not count, since its caches are cold.
func (t *ThreadTuner) Parallel(took time.Duration, events, windows int64) bool {
	if !t.parallel || t.MinEvents == 0 {
		t.parallel = true
		return true
	}
	return t.faster(took, events) && events >= int64(t.MinEvents)*windows
}

func (t *ThreadTuner) faster(took time.Duration, events int64) bool {
	if float64(took)*t.MinSpeedup < t.single*float64(events) {
		t.won, t.slow, t.patience = true, 0, 0
		if t.fast++; t.fast < minFast<<t.trust {
			return true
		}
		t.fast, t.trust = 0, min(t.trust+2, maxDoublings)
		return false // measure a single thread again
	}
	if t.slow++; t.slow < maxSlow {
		return true
	}
	t.slow, t.fast, t.trust, t.patience = 0, 0, 0, min(t.patience+3, maxDoublings)
	return false
}
