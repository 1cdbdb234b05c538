// Arrival processes of sources.

package workload

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/openloop"
)

// Process is a distribution of the gaps between the flows of a source.
type Process uint8

// Processes of arrivals.
const (
	Poisson   Process = iota // exponential gaps
	Periodic                 // equal gaps; the first flow comes after a random part of one
	Lognormal                // gaps whose logarithm is normal
	OnOff                    // exponential gaps during phases of random length, nothing between them
)

// Processes are all processes.
var Processes = []Process{Poisson, Periodic, Lognormal, OnOff}

// String returns the name of the process.
func (p Process) String() string {
	return [...]string{"poisson", "periodic", "lognormal", "onoff"}[p]
}

// Arrivals are the arrival times of flows. Sources are independent of each other.
type Arrivals struct {
	Process Process
	Sigma   float64  // Lognormal: standard deviation of the logarithm of gaps; above 0, at most MaxSigma
	On, Off dag.Time // OnOff: mean lengths of exponential phases with and without flows; On 1 ps or more
}

// MaxSigma is the largest standard deviation of logarithms of gaps.
const MaxSigma = 4

// maxPhases is the largest mean number of phases in a gap.
const maxPhases = 1000

// check validates the parameters for a mean gap in picoseconds.
func (a *Arrivals) check(gap float64) error {
	switch a.Process {
	case Lognormal:
		if !(a.Sigma > 0 && a.Sigma <= MaxSigma) {
			return &openloop.ParamError{Param: "sigma", Found: fmt.Sprint(a.Sigma),
				Expected: fmt.Sprintf("above 0 and at most %d", MaxSigma)}
		}
	case OnOff:
		if err := openloop.InRange("on", a.On, 1, dag.MaxTime/4); err != nil {
			return err
		}
		if err := openloop.InRange("off", a.Off, 0, dag.MaxTime/4); err != nil {
			return err
		}
		if least := a.gapOn(gap) / maxPhases; float64(a.On) < least {
			return &openloop.ParamError{Param: "on", Found: a.On.String(), Expected: fmt.Sprintf(
				"%.3g us or more, a thousandth of the mean time between flows of a source in such phases", least/1e6)}
		}
	}
	return nil
}

// gapOn returns the mean gap in phases with flows.
func (a *Arrivals) gapOn(gap float64) float64 {
	return gap * (float64(a.On) / (float64(a.On) + float64(a.Off)))
}

// process is the state of a source.
type process struct {
	clock  openloop.Clock
	random rand.PCG
	on     float64 // rest of a phase with flows, in picoseconds
	sent   uint32  // flows so far
}

// first sets the state to that at time 0, and returns the first time. The process is stationary: time 0 is at a random
// position in a gap, and more likely in a long gap than in a short one.
func (p *process) first(a *Arrivals, gap float64) dag.Time {
	switch a.Process {
	case Periodic:
		return p.clock.Advance(float64(gap * unit(p.random.Uint64())))
	case Lognormal: // the logarithm of the gap around time 0 has a mean larger by the variance
		gap *= exp(float64(a.Sigma*normal(&p.random)) + float64(a.Sigma*a.Sigma)/2)
		return p.clock.Advance(float64(gap * unit(p.random.Uint64())))
	case OnOff:
		// Exponential phases are memoryless: the rest of the phase at time 0 is distributed as a whole one.
		p.on = exponential(&p.random, float64(a.On))
		if unit(p.random.Uint64()) > a.gapOn(1) {
			p.clock.Advance(exponential(&p.random, float64(a.Off)))
		}
	}
	return p.next(a, gap)
}

// next returns the next time.
func (p *process) next(a *Arrivals, gap float64) dag.Time {
	switch a.Process {
	case Poisson:
		gap = exponential(&p.random, gap)
	case Lognormal:
		gap *= exp(float64(a.Sigma*normal(&p.random)) - float64(a.Sigma*a.Sigma)/2)
	case OnOff:
		gap = p.throughPhases(a, exponential(&p.random, a.gapOn(gap)))
	}
	return p.clock.Advance(gap)
}

// throughPhases returns the time that contains the given time in phases with flows.
func (p *process) throughPhases(a *Arrivals, on float64) float64 {
	gap := on
	for on > p.on {
		on -= p.on
		gap += exponential(&p.random, float64(a.Off))
		p.on = exponential(&p.random, float64(a.On))
	}
	p.on -= on
	return gap
}

// unit returns a number in (0, 1].
func unit(uniform uint64) float64 {
	return float64(uniform>>11+1) / (1 << 53)
}

// exponential draws an exponential number of a mean.
func exponential(random rand.Source, mean float64) float64 {
	return float64(openloop.Exponential(random.Uint64()) * mean)
}

// normal draws a standard normal number: a random direction in the plane, from a point of the unit disc, and a distance
// whose square is twice an exponential number.
func normal(random rand.Source) float64 {
	for {
		x, y := 2*unit(random.Uint64())-1, 2*unit(random.Uint64())-1
		square := float64(x*x) + float64(y*y)
		if square > 0 && square <= 1 {
			return float64(x*math.Sqrt(2*openloop.Exponential(random.Uint64()))) / math.Sqrt(square)
		}
	}
}

// exp returns e to the power of x, for x from -700 to 700.
func exp(x float64) float64 {
	if x > 0 {
		return 1 / openloop.ExpMinus(x)
	}
	return openloop.ExpMinus(-x)
}
