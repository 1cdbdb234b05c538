package collective

import "math/bits"

// folded selects a power of two of the members as active. The first 2 * idle members form pairs, and one member of
// each pair is idle: it sends its data to its partner before the algorithm, and receives its result afterwards.
type folded struct {
	idle   int // number of idle members
	power  int // number of active members, a power of two
	idleOf int // idle member of each pair: 0, the first, or 1, the second
}

// fold selects floorPower(n) of n members.
func fold(n, idleOf int) folded {
	power := floorPower(n)
	return folded{idle: n - power, power: power, idleOf: idleOf}
}

// number returns the number of member v among the active members. If v is idle, it returns the number of v's partner
// and false.
func (f folded) number(v int) (number int, active bool) {
	if v < 2*f.idle {
		return v / 2, v%2 != f.idleOf
	}
	return v - f.idle, true
}

// member returns the member with the given number among the active members.
func (f folded) member(number int) int {
	if number < f.idle {
		return 2*number + 1 - f.idleOf
	}
	return number + f.idle
}

// idlePartner returns the idle partner of the active member with the given number, and whether it has one.
func (f folded) idlePartner(number int) (v int, paired bool) {
	return 2*number + f.idleOf, number < f.idle
}

// joinFolded folds the members, and appends to the schedule of an active one that it reduces the data x of its idle
// partner, if it has one. me is the number of the member.
func joinFolded(p *Participant, s *Schedule, x span) (f folded, rounds exchange, me int, active bool) {
	f, rounds = fold(p.Members, 0), newExchange(s, noStep)
	if me, active = f.number(p.Me); !active {
		return f, rounds, me, false
	}
	if idle, paired := f.idlePartner(me); paired {
		rounds.rcvd = s.combine(idle, x)
	}
	return f, rounds, me, true
}

// blocksOf returns a function that returns the blocks of the active members first to last-1. Their idle partners'
// blocks are among them.
func (f folded) blocksOf(p *Participant) func(first, last int) span {
	begin := func(number int) int { return number + min(number, f.idle) }
	return func(first, last int) span { return p.blocks(begin(first), begin(last)-begin(first)) }
}

// reversed returns the number of an active member with its bits in reverse order, the part that halveNear returns.
func (f folded) reversed(number int) int {
	return int(bits.Reverse64(uint64(number)) >> bits.LeadingZeros64(uint64(f.power-1)))
}

// halve appends recursive halving, a reduce-scatter over the active members: partners whose numbers differ in one bit
// exchange the halves of the range that they still reduce, from the highest bit to the lowest. At the end the member
// with number q has part q. data returns parts first to last-1; absolute returns the position of a member.
func (f folded) halve(x *exchange, me int, data func(first, last int) span, absolute func(v int) int) {
	first, last := 0, f.power
	for bit := f.power / 2; bit > 0; bit /= 2 {
		first, last = x.exchangeHalves(absolute(f.member(me^bit)), me&bit == 0, first, last, data)
	}
}

// exchangeHalves appends a round in which a member and its partner exchange the halves of a range. It returns the half
// that the member keeps: the lower or the upper one.
func (x *exchange) exchangeHalves(partner int, lower bool, first, last int, data func(first, last int) span) (from,
	to int) {
	middle := (first + last) / 2
	low, high := data(first, middle), data(middle, last)
	if lower {
		x.reduce(partner, high, partner, low)
		return first, middle
	}
	x.reduce(partner, low, partner, high)
	return middle, last
}

// halveNear is halve from the lowest bit to the highest: nearest partners first. It returns the part that the member
// with number me has at the end, whose number is me with its bits in reverse order.
func (f folded) halveNear(x *exchange, me int, data func(first, last int) span) int {
	first, last := 0, f.power
	for bit := 1; bit < f.power; bit *= 2 {
		first, last = x.exchangeHalves(f.member(me^bit), me&bit == 0, first, last, data)
	}
	return first
}

// sibling returns the first part of the partner's range in the reverse of the round of halveNear with the given bit,
// in which the member has width parts.
func sibling(first, width, me, bit int) int {
	if me&bit == 0 {
		return first + width
	}
	return first - width
}
