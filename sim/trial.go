package sim

import "time"

// Trial finds out whether several threads are faster than one, by trying: how much the threads have to wait for each other
// depends on the trace, the machine, and what else that does. It looks at the clock, so it may decide only how a replay
// is run, not what comes of it.
type Trial struct {
	alone    float64 // nanoseconds an event took on one thread, lately
	patience int64
}

// Patience returns how many times as much as at first to do on one thread before several are tried again.
func (t *Trial) Patience() int64 {
	return 1 << t.patience
}

// Alone notes how long one thread took for some events.
func (t *Trial) Alone(took time.Duration, events int64) {
	if events > 0 {
		t.alone = float64(took) / float64(events)
	}
}

// Several notes how long several threads took for some events, and returns whether to go on with them.
func (t *Trial) Several(took time.Duration, events int64) bool {
	const gain = 1.1 // to be worth their while
	if float64(took)*gain < t.alone*float64(events) {
		t.patience = 0
		return true
	}
	t.patience = min(t.patience+1, 20)
	return false
}
