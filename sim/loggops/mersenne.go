package loggops

// mersenneTwister is the generator MT19937 (Matsumoto, Nishimura: Mersenne Twister, ACM TOMACS 8(1), 1998), which the
// reference simulator places its noise with.
type mersenneTwister struct {
	state [624]uint32
	at    int
}

func newMersenneTwister(seed uint32) *mersenneTwister {
	m := &mersenneTwister{at: 624}
	m.state[0] = seed
	for i := 1; i < len(m.state); i++ {
		prev := m.state[i-1]
		m.state[i] = 1812433253*(prev^prev>>30) + uint32(i)
	}
	return m
}

// next returns the next output, uniform over all 32-bit numbers.
func (m *mersenneTwister) next() uint32 {
	if m.at == len(m.state) {
		m.twist()
	}
	y := m.state[m.at]
	m.at++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

func (m *mersenneTwister) twist() {
	n := len(m.state)
	for i := range m.state {
		y := m.state[i]&0x80000000 | m.state[(i+1)%n]&0x7fffffff
		v := m.state[(i+397)%n] ^ y>>1
		if y&1 != 0 {
			v ^= 0x9908b0df
		}
		m.state[i] = v
	}
	m.at = 0
}
