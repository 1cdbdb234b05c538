package sim

import "time"

// ThreadTuner decides during a replay whether several threads are faster than one. It alternates between both and
// measures: the cost of synchronization depends on the trace, the machine and its load. It reads the wall clock, so its
// decisions may affect the speed of a replay only, never the result.
type ThreadTuner struct {
	// MinEvents is the fewest events per window, on average, at which several threads are worth keeping. If it is 0,
	// several threads are kept once they have been tried.
	MinEvents int

	parallel bool    // several threads have run since the last single-threaded round
	single   float64 // nanoseconds per event of the last single-threaded round
	slow     int     // consecutive parallel rounds that were not faster
	fast     int     // parallel rounds that were faster, since the last single-threaded round
	patience int     // log2 of the single-threaded rounds before the next parallel one, less that of minSingle
	trust    int     // log2 of the fast rounds before the next single-threaded one, less that of minFast
}

const (
	minSpeedup = 1.1 // at which several threads are worth keeping
	maxSlow    = 3   // consecutive slow rounds that end parallel running

	minSingle    = 2  // the first single-threaded round is slow, since the caches are cold
	minFast      = 4  // fast rounds before the next single-threaded one, at least
	maxDoublings = 20 // of minSingle and minFast
)

// SingleRounds returns how many single-threaded rounds to run, and report to [ThreadTuner.Single], before the next
// parallel one.
func (t *ThreadTuner) SingleRounds() int64 {
	return minSingle << t.patience
}

// Single records the duration of a single-threaded round of some events. Only the last round counts.
func (t *ThreadTuner) Single(took time.Duration, events int64) {
	t.parallel = false
	if events > 0 {
		t.single = float64(took) / float64(events)
	}
}

// Parallel records the duration of a parallel round of some events in some windows, and reports whether to run another
// one. The first round after a single-threaded one does not count, since its caches are cold too.
func (t *ThreadTuner) Parallel(took time.Duration, events, windows int64) bool {
	if !t.parallel || t.MinEvents == 0 {
		t.parallel = true
		return true
	}
	return t.faster(took, events) && events >= int64(t.MinEvents)*windows
}

func (t *ThreadTuner) faster(took time.Duration, events int64) bool {
	if float64(took)*minSpeedup < t.single*float64(events) {
		t.slow, t.patience = 0, 0
		if t.fast++; t.fast < minFast<<t.trust {
			return true
		}
		t.fast, t.trust = 0, min(t.trust+2, maxDoublings)
		return false // measure a single thread again
	}
	if t.slow++; t.slow < maxSlow {
		return true
	}
	t.slow, t.fast, t.trust, t.patience = 0, 0, 0, min(t.patience+2, maxDoublings)
	return false
}
