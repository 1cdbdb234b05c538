package horovod

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/tracedag/tracedag/dag"
)

// draws are the random choices of one worker. Each purpose has a stream of its own, so that runs that differ in one
// parameter have the rest in common.
type draws struct {
	jitter                          float64
	compute, loop, announcing, size *rand.Rand
}

func newDraws(seed int64, worker int, jitter float64) *draws {
	stream := func(purpose string) *rand.Rand {
		var key [32]byte
		binary.LittleEndian.PutUint64(key[0:], uint64(seed))
		binary.LittleEndian.PutUint64(key[8:], uint64(worker))
		copy(key[16:], purpose)
		return rand.New(rand.NewChaCha8(key))
	}
	return &draws{
		jitter: jitter, compute: stream("compute"), loop: stream("loop"), announcing: stream("announcing"),
		size: stream("size"),
	}
}

// announcement returns the size of what a worker that is not ready yet announces in an iteration, 0 if it does not.
func (d *draws) announcement(l *Layer) int64 {
	if d.announcing.Float64() >= l.GathervProbability {
		return 0
	}
	return max(1, int64(math.Round(d.normal(d.size, float64(l.GathervBytes)))))
}

// time returns a positive normal time in whole nanoseconds, but at least one.
func (d *draws) time(stream *rand.Rand, mean dag.Time) dag.Time {
	for {
		ns := d.normal(stream, float64(mean)/float64(dag.Nanosecond))
		if ns > 0 {
			return max(1, dag.Time(math.Round(ns))) * dag.Nanosecond
		}
	}
}

// normal returns a normal number of the given mean. Without jitter it takes nothing from the stream.
func (d *draws) normal(stream *rand.Rand, mean float64) float64 {
	if d.jitter == 0 {
		return mean
	}
	// The conversion keeps processors with a fused multiply-add from another rounding.
	return mean + float64(d.jitter*mean*stream.NormFloat64())
}
