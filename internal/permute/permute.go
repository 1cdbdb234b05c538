// Package permute defines the permutations of hosts that are the traffic patterns of textbooks (Dally and Towles,
// Principles and Practices of Interconnection Networks, 2004, section 3.2). The flit backend sends random packets to
// these targets, and the pattern generator messages.
package permute

import (
	"errors"
	"fmt"
	"math/bits"
)

// Shape is the arrangement of the hosts. At most one of Dims and Groups is given; without both, the hosts are a line.
type Shape struct {
	Hosts  int   // 1 to 2^31
	Dims   []int // routers per dimension of a mesh or torus, of which the first one is the fastest
	Each   int   // hosts per router; with Dims
	Groups int   // groups of a dragonfly, of Hosts/Groups hosts each
}

// Permutation is a pattern with one target per host.
type Permutation struct {
	Name  string
	Title string // the targets, in one line
	// Bits limits the pattern to powers of two, and Even moreover to those with an even exponent.
	Bits, Even bool

	to   func(s *Shape, host uint32) uint32
	from func(s *Shape, host uint32) uint32 // inverse of to
}

// All returns the permutations in the order of lists. In their titles, b bits number the hosts, and k routers are in a
// dimension.
func All() []Permutation {
	bitwise := func(to, from func(x uint32, b int) uint32) (forward, back func(s *Shape, host uint32) uint32) {
		return func(s *Shape, host uint32) uint32 { return to(host, s.bits()) },
			func(s *Shape, host uint32) uint32 { return from(host, s.bits()) }
	}
	half := func(x uint32, b int) uint32 { return rotate(x, b, b/2) }
	left := func(x uint32, b int) uint32 { return rotate(x, b, 1) }
	right := func(x uint32, b int) uint32 { return rotate(x, b, b-1) }
	invert := func(x uint32, b int) uint32 { return ^x & (1<<b - 1) }
	reverse := func(x uint32, b int) uint32 { return uint32(uint64(bits.Reverse32(x)) >> (32 - b)) }
	all := []Permutation{
		{Name: "transpose", Title: "bit i of the source is bit i + b/2 mod b of the target", Bits: true, Even: true},
		{Name: "bitcomplement", Title: "all bits of the source inverted", Bits: true},
		{Name: "bitreverse", Title: "the bits of the source in reverse order", Bits: true},
		{Name: "shuffle", Title: "the bits of the source rotated to the left", Bits: true},
		{Name: "bitrotation", Title: "the bits of the source rotated to the right", Bits: true},
		{Name: "tornado", Title: "ceil(k/2) - 1 further per dimension; half of the groups of a dragonfly",
			to:   func(s *Shape, host uint32) uint32 { return s.shift(host, tornado, s.Groups/2, 1) },
			from: func(s *Shape, host uint32) uint32 { return s.shift(host, tornado, s.Groups/2, -1) }},
		{Name: "neighbor", Title: "the next router in each dimension; the next group of a dragonfly",
			to:   func(s *Shape, host uint32) uint32 { return s.shift(host, neighbor, 1, 1) },
			from: func(s *Shape, host uint32) uint32 { return s.shift(host, neighbor, 1, -1) }},
	}
	all[0].to, all[0].from = bitwise(half, half)
	all[1].to, all[1].from = bitwise(invert, invert)
	all[2].to, all[2].from = bitwise(reverse, reverse)
	all[3].to, all[3].from = bitwise(left, right)
	all[4].to, all[4].from = bitwise(right, left)
	return all
}

// Check returns an error if the permutation is not defined for the number of hosts.
func (p *Permutation) Check(s *Shape) error {
	switch {
	case s.Hosts < 1 || s.Hosts > 1<<31:
		return fmt.Errorf("expected 1 to 2^31, found %d", s.Hosts)
	case s.Groups > 0 && s.Hosts%s.Groups > 0:
		return fmt.Errorf("expected groups of equal size, found %d hosts in %d groups", s.Hosts, s.Groups)
	case !p.Bits:
		return s.checkGrid()
	}
	b := s.bits()
	if p.Even {
		b += b % 2
	}
	if s.Hosts != 1<<b {
		power := "a power of two"
		if p.Even {
			power = "a power of four"
		}
		return fmt.Errorf("expected %s, found %d; the next one is %d", power, s.Hosts, uint64(1)<<b)
	}
	return nil
}

// checkGrid returns an error if the dimensions do not contain all hosts.
func (s *Shape) checkGrid() error {
	if len(s.Dims) == 0 {
		return nil
	}
	all := s.Each
	for _, k := range s.Dims {
		if k < 1 || all > s.Hosts {
			return errors.New("expected dimensions of at least 1 that contain all hosts")
		}
		all *= k
	}
	if all != s.Hosts {
		return fmt.Errorf("expected dimensions that contain all %d hosts, found %d", s.Hosts, all)
	}
	return nil
}

// To returns the target of a host, which may be the host itself. Check accepts the shape.
func (p *Permutation) To(s *Shape, host uint32) uint32 { return p.to(s, host) }

// From returns the host whose target is the given one.
func (p *Permutation) From(s *Shape, host uint32) uint32 { return p.from(s, host) }

// bits returns the bits of the highest host number.
func (s *Shape) bits() int { return bits.Len32(uint32(s.Hosts - 1)) }

// rotate rotates the lowest b bits of x to the left.
func rotate(x uint32, b, by int) uint32 {
	if b == 0 {
		return x
	}
	by %= b
	return (x<<by | x>>(b-by)) & uint32(uint64(1)<<b-1)
}

// tornado returns the distance of the tornado pattern in a ring of k routers, almost half of it.
func tornado(k int) int { return (k+1)/2 - 1 }

func neighbor(int) int { return 1 }

// shift moves a host in the given direction: by a number of groups, or by a distance in each dimension.
func (s *Shape) shift(host uint32, distance func(k int) int, groups, direction int) uint32 {
	move := func(x, k, by int) int { return ((x+direction*by)%k + k) % k }
	x := int(host)
	switch {
	case s.Groups > 0:
		each := s.Hosts / s.Groups
		return uint32(move(x/each, s.Groups, groups)*each + x%each)
	case len(s.Dims) == 0:
		return uint32(move(x, s.Hosts, distance(s.Hosts)))
	}
	to, stride := x%s.Each, s.Each
	for _, k := range s.Dims {
		to += move(x/stride%k, k, distance(k)) * stride
		stride *= k
	}
	return uint32(to)
}
