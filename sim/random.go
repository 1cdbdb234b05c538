package sim

// Random is a splitmix64 generator (Steele et al., OOPSLA 2014). Its state is eight bytes, so every random element of a
// model has its own random stream, independent of the draws of other elements.
type Random uint64

// NewRandom returns the random stream of an element for a purpose. The model chooses the numbers of both.
func NewRandom(seed int64, purpose, element uint64) Random {
	return Random(Mix(Mix(uint64(seed)+purpose*0x9e3779b97f4a7c15) + element))
}

// Next returns 64 random bits.
func (r *Random) Next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return Mix(uint64(*r))
}

// Below returns a number from 0 to n-1; n must not be 0.
func (r *Random) Below(n uint32) uint32 {
	return uint32((r.Next() >> 32) * uint64(n) >> 32)
}

// Mix returns a 64-bit hash. It is a bijection.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
