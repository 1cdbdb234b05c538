package sim

import "time"

// Trial finds out whether several threads are faster than one, by trying: how much the threads have to wait for each other
// depends on the trace, the machine, and what else that does. It looks at the clock, so it may decide only how a replay
// is run, not what comes of it.
type Trial struct {
	// Busy is how many events a window must have on average for several threads to be worth their while; 0: they are kept
	// once they are tried.
	Busy int

	underWay bool    // several threads are, since one was last tried
	alone    float64 // nanoseconds an event took on one thread, lately
	slow     int     // how often in a row several threads were not faster
	fast     int     // how often they were, since one was last tried
	patience int
	trust    int // log2 of how often they may be until one is tried again
}

const (
	gain     = 1.1 // how many times faster several threads must be to be worth their while
	mostSlow = 3   // how often in a row they may fail to be

	leastWait  = 2  // the least patience: the first that a thread does is slow, for the memory is not in the cache
	firstTrust = 4  // the least trust
	doublings  = 20 // how often either is doubled at most
)

// Patience returns how often to do something on one thread, and note it, before several are tried.
func (t *Trial) Patience() int64 {
	return leastWait << t.patience
}

// Alone notes how long one thread took for some events. Only the last time counts.
func (t *Trial) Alone(took time.Duration, events int64) {
	t.underWay = false
	if events > 0 {
		t.alone = float64(took) / float64(events)
	}
}

// Several notes how long several threads took for some events in some windows, and returns whether to go on with them.
// The first time does not count: it is slow, too.
func (t *Trial) Several(took time.Duration, events, windows int64) bool {
	if !t.underWay || t.Busy == 0 {
		t.underWay = true
		return true
	}
	return t.faster(took, events) && events >= int64(t.Busy)*windows
}

func (t *Trial) faster(took time.Duration, events int64) bool {
	if float64(took)*gain < t.alone*float64(events) {
		t.slow, t.patience = 0, 0
		if t.fast++; t.fast < firstTrust<<t.trust {
			return true
		}
		t.fast, t.trust = 0, min(t.trust+2, doublings)
		return false // to see how fast one is by now
	}
	if t.slow++; t.slow < mostSlow {
		return true
	}
	t.slow, t.fast, t.trust, t.patience = 0, 0, 0, min(t.patience+2, doublings)
	return false
}
