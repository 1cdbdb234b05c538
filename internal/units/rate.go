package units

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// Rate is a transfer rate as the exact time per byte: Num/Den picoseconds, in lowest terms. Num is 0 for an infinite
// rate.
type Rate struct {
	Num, Den int64
}

const errRate = unitError("expected a rate such as 25GB/s or 400Gbps, or a time for each byte such as 40ps/B")

// ParseRate parses a transfer rate: bytes per second such as 25GB/s or 1.5GiB/s, bits per second such as 400Gbps,
// 400Gb/s or 400Gbit/s, or a time per byte such as 40ps/B. bare is the unit of a number without one, such as "ns/B" or
// "Gbps"; if it is "", the unit is required.
func ParseRate(text, bare string) (Rate, error) {
	n, unit, err := cutQuantity(text)
	if err != nil {
		return Rate{}, quantityError("rate", text, err)
	}
	if unit == "" {
		unit = bare
	}
	perByte, err := picosecondsPerByte(n, unit)
	if err != nil {
		return Rate{}, quantityError("rate", text, err)
	}
	if !perByte.Num().IsInt64() || !perByte.Denom().IsInt64() {
		return Rate{}, quantityError("rate", text, errors.New("expected less extreme a rate or fewer digits"))
	}
	return Rate{perByte.Num().Int64(), perByte.Denom().Int64()}, nil
}

func picosecondsPerByte(n *big.Rat, unit string) (*big.Rat, error) {
	if name, ok := strings.CutSuffix(unit, "/B"); ok {
		size, ok := findUnit(timeUnits, name)
		if !ok {
			return nil, errRate
		}
		return n.Mul(n, big.NewRat(size, 1)), nil
	}
	amount, ok := strings.CutSuffix(unit, "/s")
	bits := false
	if !ok {
		amount, ok = strings.CutSuffix(unit, "ps") // as in Gbps
		bits = true
	}
	size, bytes := findUnit(sizeUnits, amount)
	if bits || !bytes {
		var isBits bool
		size, isBits = findUnit(bitUnits, amount)
		ok, bytes = ok && isBits, false
	}
	if !ok {
		return nil, errRate
	}
	if n.Sign() == 0 {
		return nil, errors.New("expected a rate above 0")
	}
	perSecond := n.Mul(n, big.NewRat(size, 1))
	if !bytes {
		perSecond.Quo(perSecond, big.NewRat(8, 1))
	}
	return perSecond.Quo(big.NewRat(int64(dag.Second), 1), perSecond), nil
}

// PerByte returns the exact time per byte in picoseconds.
func (r Rate) PerByte() *big.Rat {
	if r.Num == 0 {
		return new(big.Rat)
	}
	return big.NewRat(r.Num, r.Den)
}

// BytesPerSecond returns the rate in bytes per second, rounded down and at most math.MaxInt64. exact is true if it is
// not rounded.
func (r Rate) BytesPerSecond() (n int64, exact bool) {
	return r.perSecond(int64(dag.Second))
}

// BitsPerSecond returns the rate in bits per second, rounded down and at most math.MaxInt64. exact is true if it is
// not rounded.
func (r Rate) BitsPerSecond() (n int64, exact bool) {
	return r.perSecond(8 * int64(dag.Second))
}

// perSecond returns factor bytes divided by the time per byte.
func (r Rate) perSecond(factor int64) (n int64, exact bool) {
	if r.Num == 0 {
		return math.MaxInt64, false
	}
	total, rest := new(big.Int).Mul(big.NewInt(factor), big.NewInt(r.Den)), new(big.Int)
	if total.QuoRem(total, big.NewInt(r.Num), rest); !total.IsInt64() {
		return math.MaxInt64, false
	}
	return total.Int64(), rest.Sign() == 0
}

// String formats the rate exactly, as ParseRate reads it: in bytes per second if that is a decimal number of fewer
// characters than the time per byte. A rate without an exact decimal form, which ParseRate never returns, is
// formatted as a fraction of picoseconds.
func (r Rate) String() string {
	if r.Num == 0 {
		return "0s/B"
	}
	perByte := r.PerByte()
	text, exact := decimal(perByte)
	text += "ps/B"
	if perByte.IsInt() {
		text = dag.Time(r.Num/r.Den).String() + "/B"
	}
	perSecond := new(big.Rat).Quo(big.NewRat(int64(dag.Second), 1), perByte)
	for _, u := range sizeUnits {
		if strings.Contains(u.name, "i") {
			continue
		}
		amount := new(big.Rat).Quo(perSecond, big.NewRat(u.size, 1))
		if number, finite := decimal(amount); finite && (!exact || len(number+u.name)+2 <= len(text)) {
			text, exact = number+u.name+"/s", true
		}
	}
	if !exact {
		return fmt.Sprintf("%d/%dps/B", r.Num, r.Den)
	}
	return text
}

// FormatBitRate formats a rate in bits per second exactly, with the largest unit without decimal places, such as
// 100Gbps.
func FormatBitRate(bits int64) string {
	best := unit{"b", 1}
	for _, u := range bitUnits {
		if u.size > best.size && bits%u.size == 0 && strings.HasSuffix(u.name, "b") {
			best = u
		}
	}
	return strconv.FormatInt(bits/best.size, 10) + best.name + "ps"
}

var flopUnits = []unit{
	{"", 1}, {"FLOPS", 1}, {"MFLOPS", 1e6}, {"GFLOPS", 1e9}, {"TFLOPS", 1e12}, {"PFLOPS", 1e15}, {"EFLOPS", 1e18},
}

// ParseBandwidth parses a rate such as 2TB/s, in whole bytes per second from 1 to 2^63-1.
func ParseBandwidth(text string) (int64, error) {
	rate, err := ParseRate(text, "")
	if err != nil {
		return 0, err
	}
	if rate.Num == 0 {
		return 0, errors.New("expected a rate of a memory")
	}
	perSecond, exact := rate.BytesPerSecond()
	if perSecond == 0 || perSecond == math.MaxInt64 && !exact {
		return 0, errors.New("expected 1 to 2^63-1 bytes in a second")
	}
	return perSecond, nil
}

// ParseFLOPS parses a number of floating-point operations per second such as 312TFLOPS or 312e12, from 1 to 10^18. It
// rounds to a whole number, half up.
func ParseFLOPS(text string) (int64, error) {
	n, name, err := cutQuantity(text)
	size, ok := findUnit(flopUnits, name)
	if err == nil && ok {
		n.Mul(n, big.NewRat(size, 1)).Add(n, big.NewRat(1, 2))
		rounded := new(big.Int).Quo(n.Num(), n.Denom())
		if rounded.Sign() > 0 && rounded.Cmp(big.NewInt(1e18)) <= 0 {
			return rounded.Int64(), nil
		}
	}
	return 0, errors.New("expected 1 to 10^18 operations in a second, such as 312TFLOPS or 312e12")
}

// FormatFLOPS formats a number of floating-point operations per second in TFLOPS.
func FormatFLOPS(perSecond int64) string {
	return strconv.FormatFloat(float64(perSecond)/1e12, 'g', -1, 64) + "TFLOPS"
}
