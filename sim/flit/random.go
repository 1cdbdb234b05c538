package flit

import "math"

// generator is a splitmix64 generator (Steele et al., OOPSLA 2014): every interface has its own, so that what one draws
// does not depend on the others.
type generator uint64

// The purposes of generators.
const (
	forRoute = iota + 1
	forTraffic
	forPattern
)

// newGenerator returns the generator of an element for a purpose.
func newGenerator(seed int64, purpose, element uint64) generator {
	return generator(mix(mix(uint64(seed)+purpose*0x9e3779b97f4a7c15) + element))
}

func (g *generator) next() uint64 {
	*g += 0x9e3779b97f4a7c15
	return mix(uint64(*g))
}

// below returns a number of 0 to n-1; n must not be 0.
func (g *generator) below(n uint32) uint32 {
	return uint32((g.next() >> 32) * uint64(n) >> 32)
}

// uniform returns a number above 0 and at most 1.
func (g *generator) uniform() float64 {
	return float64(g.next()>>11+1) / (1 << 53)
}

// gap returns the number of trials up to and with the first that succeeds, where each does with a probability of which
// logFail is log(1 - probability); -Inf is certainty.
func (g *generator) gap(logFail float64) uint64 {
	return 1 + uint64(min(math.Log(g.uniform())/logFail, 1<<62))
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
