package horovod

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/tracedag/tracedag/dag"
)

// draws are the random choices of one worker. Each purpose has its own random stream, so that runs that differ in one
// parameter share all other draws.
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

// announcement returns the size of the announcement in an iteration of a worker that is not ready yet; 0: none.
func (d *draws) announcement(l *Layer) int64 {
	if d.announcing.Float64() >= l.GathervProbability {
		return 0
	}
	mean := float64(l.GathervBytes)
	if d.jitter > 0 {
		// The conversion prevents a fused multiply-add, which rounds differently.
		mean += float64(d.jitter * mean * d.size.NormFloat64())
	}
	return max(1, int64(math.Round(mean)))
}

// timeDistribution is a distribution of times: normal with the given mean and deviation, drawn again until positive,
// and rounded to a multiple of step, itself a multiple of tick, the resolution of the clock. All are in picoseconds.
type timeDistribution struct {
	mean, deviation float64
	step, tick      float64
}

// timeDistribution returns the distribution of times with the given mean.
func (p *Params) timeDistribution(mean dag.Time) timeDistribution {
	t := timeDistribution{mean: float64(mean), deviation: p.Jitter * float64(mean), tick: float64(p.tick())}
	t.step = float64(p.TimeStep)
	if p.TimeStep == 0 {
		t.step = t.tick * roundDown(t.deviation/t.tick/stepsPerDeviation)
	}
	switch {
	case t.deviation == 0:
		t.step = t.tick
	case t.step <= t.deviation:
		// Subtract the variance that rounding adds. (A larger step gives another distribution anyway.)
		t.deviation = math.Sqrt(float64(t.deviation*t.deviation) - float64(t.step*t.step)/12)
	}
	return t
}

// stepsPerDeviation is the smallest number of steps of automatic size per standard deviation, if it has as many ticks.
const stepsPerDeviation = 5

// roundDown returns the largest of 1, 2, 5, 10, 20, ... that is at most x, or 1.
func roundDown(x float64) float64 {
	step := 1.0
	for 10*step <= x {
		step *= 10
	}
	switch {
	case 5*step <= x:
		return 5 * step
	case 2*step <= x:
		return 2 * step
	}
	return step
}

// draw returns a time. Without a deviation it takes nothing from the stream.
func (t *timeDistribution) draw(stream *rand.Rand) dag.Time {
	ps := t.mean
	for t.deviation > 0 {
		if ps = t.mean + float64(t.deviation*stream.NormFloat64()); ps > 0 {
			break
		}
	}
	rounded := math.Round(ps/t.step) * t.step
	if rounded == 0 { // every time is positive
		rounded = max(1, math.Round(ps/t.tick)) * t.tick
	}
	return dag.Time(rounded)
}
