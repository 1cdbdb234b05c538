package collective

// folded is a power of two of members, the others being left out. Where the communicator has more, its first 2 extra
// members are pairs of which one sits out.
type folded struct {
	extra int // members that sit out
	power int // members that take part
	sits  int // which of a pair sits out: 0, the first, or 1
}

func fold(n, sits int) folded {
	power := floorPower(n)
	return folded{extra: n - power, power: power, sits: sits}
}

// part returns the number of member v among those that take part; or, if it sits out, false and its partner's.
func (f folded) part(v int) (number int, takesPart bool) {
	if v < 2*f.extra {
		return v / 2, v%2 != f.sits
	}
	return v - f.extra, true
}

// member is the inverse of part for one that takes part.
func (f folded) member(number int) int {
	if number < f.extra {
		return 2*number + 1 - f.sits
	}
	return number + f.extra
}

// sitter returns which member sits out for the one that takes part under this number, if there is one.
func (f folded) sitter(number int) (v int, is bool) {
	return 2*number + f.sits, number < f.extra
}

// halve is recursive halving, the reduce-scatter over the members that take part: partners whose numbers differ in one
// bit exchange the halves of what they still reduce, the highest bit first, so that in the end member q has part q.
// Data gives the parts first to last-1, absolute the position of a member.
func (f folded) halve(x *exchange, me int, data func(first, last int) span, absolute func(v int) int) {
	first, last := 0, f.power
	for bit := f.power / 2; bit > 0; bit /= 2 {
		partner, middle := absolute(f.member(me^bit)), first+bit
		low, high := data(first, middle), data(middle, last)
		if me&bit == 0 {
			x.reduce(partner, high, partner, low)
			last = middle
		} else {
			x.reduce(partner, low, partner, high)
			first = middle
		}
	}
}
