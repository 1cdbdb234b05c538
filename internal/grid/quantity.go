package grid

import (
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
)

// quantity is a number with a unit.
type quantity struct {
	kind  quantityKind
	value *big.Rat // in ps, B, bit/s or 1
}

type quantityKind uint8

const (
	number quantityKind = iota
	duration
	size
	rate
)

// parseQuantity parses a number, a time, a size or a rate in bits or bytes per second.
func parseQuantity(text string) (q quantity, ok bool) {
	value, unit, err := units.CutNumber(text)
	if err != nil {
		return q, false
	}
	if unit == "" {
		return quantity{number, value}, true
	}
	if t, err := units.ParseTime(text, 0); err == nil {
		return quantity{duration, big.NewRat(int64(t), 1)}, true
	}
	if r, err := units.ParseRate(text, ""); err == nil {
		if bits, exact := r.BitsPerSecond(); exact {
			return quantity{rate, big.NewRat(bits, 1)}, true
		}
		return q, false
	}
	if n, err := units.ParseSize(text); err == nil {
		return quantity{size, big.NewRat(n, 1)}, true
	}
	return q, false
}

// format returns the text of a quantity of a kind. Times, sizes and rates are rounded to 1 ps, 1 B and 1 bit/s.
func (k quantityKind) format(value *big.Rat) (string, error) {
	if k == number {
		if value.IsInt() {
			return value.Num().String(), nil
		}
		f, _ := value.Float64()
		return strconv.FormatFloat(f, 'g', -1, 64), nil
	}
	n, err := param.Rounded(value)
	if err != nil {
		return "", err
	}
	switch k {
	case duration:
		return dag.Time(n).String(), nil
	case size:
		return units.FormatSize(n), nil
	}
	return units.FormatBitRate(n), nil
}

// scale is a set of values that FROM..TO:N divides: that of a parameter, or of a kind of quantity.
type scale struct {
	number param.Number // nil: a kind of quantity
}

// ends returns the numbers at both ends of a range, and a function that describes numbers between them.
func (s scale) ends(from, to string) (first, last *big.Rat, describe func(*big.Rat) (Setting, error), err error) {
	if s.number != nil {
		if first, err = s.number.Parse(from); err == nil {
			last, err = s.number.Parse(to)
		}
		return first, last, s.describe, err
	}
	a, okA := parseQuantity(from)
	b, okB := parseQuantity(to)
	if !okA || !okB || a.kind != b.kind {
		return nil, nil, nil, fmt.Errorf("expected two numbers, times, sizes or rates, found %q and %q", from, to)
	}
	return a.value, b.value, func(r *big.Rat) (v Setting, err error) {
		v.Text, err = a.kind.format(r)
		return v, err
	}, nil
}

// describe returns the text of a number of a parameter, and the number. A parameter with more digits than a float64
// keeps those of the float64 for numbers that have no end.
func (s scale) describe(r *big.Rat) (v Setting, err error) {
	v.Number = r
	if r.Denom().BitLen() > 64 {
		f, _ := r.Float64()
		if short, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64)); ok && !s.rounds(r) {
			v.Number = short
		}
	}
	if err := s.number.SetNumber(v.Number); err != nil {
		return v, err
	}
	v.Text = s.number.String()
	return v, nil
}

// rounds reports whether a parameter rounds a number, as those of whole numbers do.
func (s scale) rounds(r *big.Rat) bool {
	if s.number.SetNumber(r) != nil {
		return false
	}
	kept, err := s.number.Parse(s.number.String())
	if err != nil {
		return false
	}
	off := new(big.Rat).Sub(kept, r)
	return off.Abs(off).Cmp(new(big.Rat).Mul(r, big.NewRat(1, 1e15))) > 0
}

// between returns n numbers from first to last, at equal distances or, for a logarithmic scale, at equal ratios. Those
// of a logarithmic scale are exact to 200 bits.
func between(first, last *big.Rat, n int, logarithmic bool) ([]*big.Rat, error) {
	if !logarithmic {
		return param.Spaced(first, last, n), nil
	}
	if first.Sign() <= 0 || last.Sign() <= 0 {
		return nil, fmt.Errorf("expected numbers above 0 for a logarithmic range, found %s and %s", first.RatString(),
			last.RatString())
	}
	all := make([]*big.Rat, n)
	ratio := root(new(big.Float).SetPrec(precision).SetRat(new(big.Rat).Quo(last, first)), n-1)
	value := new(big.Float).SetPrec(precision).SetRat(first)
	for i := range all {
		all[i] = nearby(value)
		value.Mul(value, ratio)
	}
	all[0], all[n-1] = first, last
	return all, nil
}

// precision of logarithmic ranges in bits. The error of value i is below i+1 units of the last place.
const precision = 320

// root returns the n-th root of a positive number, by Newton's method.
func root(a *big.Float, n int) *big.Float {
	if n == 1 {
		return a
	}
	// Only the mantissa and the exponent fit a float64 in general.
	mantissa := new(big.Float)
	exponent := a.MantExp(mantissa)
	m, _ := mantissa.Float64()
	logarithm := (math.Log2(m) + float64(exponent)) / float64(n)
	whole := math.Floor(logarithm)
	x := new(big.Float).SetPrec(precision).SetFloat64(math.Exp2(logarithm - whole))
	x.SetMantExp(x, int(whole))
	count := new(big.Float).SetPrec(precision).SetInt64(int64(n))
	less := new(big.Float).SetPrec(precision).SetInt64(int64(n - 1))
	for range 8 { // each step doubles the number of correct bits, from about 40
		next := new(big.Float).Quo(a, power(x, n-1))
		next.Add(next, new(big.Float).Mul(less, x))
		x = next.Quo(next, count)
	}
	return x
}

// power returns x^n.
func power(x *big.Float, n int) *big.Float {
	result := new(big.Float).SetPrec(precision).SetInt64(1)
	for square := new(big.Float).Set(x); n > 0; n >>= 1 {
		if n&1 == 1 {
			result.Mul(result, square)
		}
		square = new(big.Float).Mul(square, square)
	}
	return result
}

// nearby returns a number as a rational number. Numbers that the precision cannot tell from a multiple of 1/2 become
// that multiple, so that they are rounded as the exact number is.
func nearby(x *big.Float) *big.Rat {
	r, _ := x.Rat(nil)
	double := new(big.Rat).Add(new(big.Rat).Mul(r, big.NewRat(2, 1)), big.NewRat(1, 2))
	near := new(big.Rat).SetFrac(new(big.Int).Div(double.Num(), double.Denom()), big.NewInt(2))
	off := new(big.Rat).Sub(r, near)
	bound := new(big.Rat).Mul(r, new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Lsh(big.NewInt(1), 200)))
	if off.Abs(off).Cmp(bound) <= 0 {
		return near
	}
	return r
}

// values returns the values that an item of an axis names: one, or those of a range. seeds allows FROM..TO without a
// number, all whole numbers of a range.
func (s scale) values(text string, seeds bool) ([]Setting, error) {
	r, is, err := param.ParseRange(text, MaxRuns)
	if err != nil {
		return nil, err
	}
	if !is {
		return []Setting{{Text: text}}, nil
	}
	first, last, describe, err := s.ends(r.From, r.To)
	if err != nil {
		return nil, err
	}
	n := r.N
	if n == 0 {
		count := new(big.Rat).Sub(last, first)
		if !seeds || !first.IsInt() || !last.IsInt() || count.Sign() < 0 || count.Cmp(big.NewRat(MaxRuns-1, 1)) > 0 {
			return nil, fmt.Errorf("expected FROM..TO:N with N from 2 to %d, found %q", MaxRuns, text)
		}
		if n = int(count.Num().Int64()) + 1; n == 1 {
			return []Setting{{Text: r.From}}, nil
		}
	}
	numbers, err := between(first, last, n, r.Log)
	if err != nil {
		return nil, err
	}
	all := make([]Setting, n)
	for i, number := range numbers {
		if all[i], err = describe(number); err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
	}
	return all, nil
}
