// This file has flags whose values are so much in a second.

package cli

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// FlopRate is a flag whose value is a number of floating-point operations in a second.
type FlopRate int64

// Type returns what help calls the value.
func (r *FlopRate) Type() string { return "rate" }

// String returns the rate as Set takes it, "" for none.
func (r *FlopRate) String() string {
	if *r == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*r)/1e12, 'g', -1, 64) + "TFLOPS"
}

// Set reads a rate such as 312TFLOPS or 312e12.
func (r *FlopRate) Set(s string) error {
	number, factor := s, 1.0
	for unit, size := range map[string]float64{"GFLOPS": 1e9, "TFLOPS": 1e12, "PFLOPS": 1e15} {
		if n, ok := strings.CutSuffix(s, unit); ok {
			number, factor = n, size
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if v = math.Round(v * factor); err != nil || !(v >= 1 && v <= 1e18) {
		return errors.New("expected 1 to 10^18 operations in a second, such as 312TFLOPS or 312e12")
	}
	*r = FlopRate(v)
	return nil
}

// Bandwidth is a flag whose value is a number of bytes in a second.
type Bandwidth int64

// Type returns what help calls the value.
func (b *Bandwidth) Type() string { return "rate" }

// String returns the rate as Set takes it, "" for none.
func (b *Bandwidth) String() string {
	if *b == 0 {
		return ""
	}
	return FormatSize(int64(*b)) + "/s"
}

// Set reads a rate such as 2TB/s.
func (b *Bandwidth) Set(s string) error {
	rate, err := ParseRate(s, 0)
	if err != nil {
		return err
	}
	if rate.Num == 0 {
		return errors.New("expected a rate of a memory")
	}
	perSecond := new(big.Int).Mul(big.NewInt(int64(dag.Second)), big.NewInt(rate.Den))
	if perSecond.Quo(perSecond, big.NewInt(rate.Num)); !perSecond.IsInt64() || perSecond.Sign() == 0 {
		return errors.New("expected 1 to 2^63-1 bytes in a second")
	}
	*b = Bandwidth(perSecond.Int64())
	return nil
}
