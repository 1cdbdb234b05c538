package param

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Range is the text of several values: FROM..TO:N, N values at equal distances, or FROM..TO:N:log, at equal ratios.
type Range struct {
	From, To string
	N        int // 0: the text has no number
	Log      bool
}

// ParseRange splits the text of a range of at most most values. is is false for other texts: those without "..", or
// that do not begin with a number.
func ParseRange(text string, most int) (r Range, is bool, err error) {
	from, rest, is := strings.Cut(text, "..")
	if !is || from == "" || strings.Trim(from[:1], "0123456789.+-") != "" {
		return r, false, nil
	}
	to, count, found := strings.Cut(rest, ":")
	r.From, r.To = from, to
	if !found {
		return r, true, nil
	}
	count, mode, hasMode := strings.Cut(count, ":")
	r.Log = hasMode
	r.N, err = strconv.Atoi(count)
	if err != nil || r.N < 2 || r.N > most || hasMode && mode != "log" {
		return r, true, fmt.Errorf("expected FROM..TO:N or FROM..TO:N:log with N from 2 to %d, found %q", most, text)
	}
	return r, true, nil
}

// Spaced returns n numbers, at least 2, from first to last at equal distances, exactly.
func Spaced(first, last *big.Rat, n int) []*big.Rat {
	step := new(big.Rat).Sub(last, first)
	step.Quo(step, big.NewRat(int64(n-1), 1))
	all := make([]*big.Rat, n)
	for i := range all {
		all[i] = new(big.Rat).Mul(step, big.NewRat(int64(i), 1))
		all[i].Add(all[i], first)
	}
	return all
}
