package openloop

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Distribution is a family of distributions of destinations.
type Distribution uint8

// The distributions, over the tasks 0..n-1. Draws of the source itself or of no task are repeated.
const (
	UniformTask Distribution = iota // every other task equally likely
	Poisson                         // of mean n/2
	Gauss                           // a normal number of mean n/2, rounded down
)

var distributionNames = [][]string{
	UniformTask: {"UNIFORM", "UNIF"},
	Poisson:     {"POISSON"},
	Gauss:       {"GAUSS", "GAUSSIAN", "NORMAL"},
}

// String returns the distribution's name, such as "UNIFORM".
func (d Distribution) String() string {
	return distributionNames[d][0]
}

// ParseDistribution returns the distribution of a name or alias, in any case.
func ParseDistribution(name string) (Distribution, bool) {
	upper := strings.ToUpper(name)
	for d, names := range distributionNames {
		if slices.Contains(names, upper) {
			return Distribution(d), true
		}
	}
	return 0, false
}

// DefaultSigma is the standard deviation of Gaussian destinations as a part of the number of tasks. With 128 tasks it
// equals that of Poisson destinations.
const DefaultSigma = 1.0 / 16

// DestinationPolicy is a policy of destinations: a distribution and its parameter.
type DestinationPolicy struct {
	Distribution
	Sigma float64 // of Gauss: standard deviation as a part of the number of tasks
}

// leastChance is the smallest allowed probability of a task other than the source, in units of 1/tableUnit: about one
// draw in 10^9. Below it, a table could not distinguish the other tasks.
const leastChance = tableUnit >> 30

// destinations is a distribution of destinations for a number of tasks.
type destinations struct {
	tasks uint64
	table *table // of the distribution that includes the source; nil: uniform
}

func newDestinations(policy DestinationPolicy, tasks int) (*destinations, error) {
	d := &destinations{tasks: uint64(tasks)}
	var weights []float64
	switch policy.Distribution {
	case UniformTask:
		return d, nil
	case Poisson:
		weights = poissonWeights(tasks)
	case Gauss:
		if !(policy.Sigma > 0 && policy.Sigma <= maxSigma) {
			return nil, sigmaError(policy, fmt.Sprintf("above 0 and at most %d", maxSigma))
		}
		weights = gaussWeights(tasks, policy.Sigma)
	}
	d.table = newTable(accumulate(weights))
	for source := range tasks {
		if _, count := d.table.numbers(source); tableUnit-count < leastChance {
			return nil, sigmaError(policy, fmt.Sprintf("so much that task %d finds another of %d tasks", source, tasks))
		}
	}
	return d, nil
}

func sigmaError(policy DestinationPolicy, expected string) error {
	return &ParamError{"gauss-sigma-frac", fmt.Sprint(policy.Sigma), expected}
}

const maxSigma = 1000 // wider ones look uniform

// draw returns the destination that uniform bits select for a message of the source: the distribution conditioned on
// other tasks.
func (d *destinations) draw(uniform uint64, source int32) int32 {
	if d.table == nil {
		other := int32(Scale(uniform, d.tasks-1))
		if other >= source {
			other++
		}
		return other
	}
	first, count := d.table.numbers(int(source))
	number := Scale(uniform, tableUnit-count)
	if number >= first {
		number += count
	}
	return int32(d.table.find(number))
}

// accumulate returns the cumulative probabilities for the weights.
func accumulate(weights []float64) []float64 {
	sum := 0.0
	for i, w := range weights {
		sum += w
		weights[i] = sum
	}
	for i := range weights {
		weights[i] /= sum
	}
	return weights
}

// poissonWeights returns numbers proportional to the Poisson probabilities of 0..n-1 with mean n/2, computed from the
// most likely number up and down.
func poissonWeights(n int) []float64 {
	weights := make([]float64, n)
	mean, mode := float64(n)/2, n/2
	weights[mode] = 1
	for k := mode + 1; k < n; k++ {
		weights[k] = float64(weights[k-1] * mean / float64(k))
	}
	for k := mode; k > 0; k-- {
		weights[k-1] = float64(weights[k] * float64(k) / mean)
	}
	return weights
}

// gaussWeights returns numbers proportional to the probabilities of 0..n-1 for a normal number of mean n/2 and standard
// deviation sigma*n, rounded down. The distribution is symmetric.
func gaussWeights(n int, sigma float64) []float64 {
	weights := make([]float64, n)
	width := 1 / (sigma * float64(n)) // of a task, in standard deviations
	for k := range (n + 1) / 2 {
		distance := float64(n)/2 - float64(k) // from the mean down to the lower end of the task
		weights[k] = normalWeight(float64((distance-1)*width), float64(distance*width))
		weights[n-1-k] = weights[k]
	}
	return weights
}

// Nodes and weights of the Gauss-Legendre rule of five points on -1..1.
var (
	legendreNodes   = [5]float64{-0.9061798459386640, -0.5384693101056831, 0, 0.5384693101056831, 0.9061798459386640}
	legendreWeights = [5]float64{
		0.2369268850561891, 0.4786286704993665, 0.5688888888888889, 0.4786286704993665, 0.2369268850561891,
	}
)

// normalWeight returns the integral of exp(-z*z/2) from a to b, to about 15 digits. It ignores the tails beyond 12
// standard deviations.
func normalWeight(a, b float64) float64 {
	a, b = max(a, -12), min(b, 12)
	if a >= b {
		return 0
	}
	steps := math.Ceil((b - a) * 4) // none wider than a quarter of a standard deviation
	half := (b - a) / steps / 2
	sum := 0.0
	for i := range int(steps) {
		middle := a + float64(half*float64(2*i+1))
		for k, node := range legendreNodes {
			z := middle + float64(half*node)
			sum += float64(legendreWeights[k] * ExpMinus(float64(z*z)/2))
		}
	}
	return float64(sum * half)
}
