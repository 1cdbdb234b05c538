package packet

// generator is a splitmix64 generator (Steele et al., OOPSLA 2014): eight bytes of state, so that everything that draws
// can have its own, and what one draws does not depend on how many others there are.
type generator uint64

// The purposes of generators.
const (
	forPort = iota + 1
	forSwitch
	forFlow
	forHost
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

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
