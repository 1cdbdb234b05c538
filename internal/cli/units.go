// This file has flags for quantities with units.

package cli

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
)

// quantity is a flag with a unit.
type quantity[T fmt.Stringer] struct {
	p     *T
	kind  string
	parse func(string) (T, error)
}

func (q *quantity[T]) String() string { return (*q.p).String() }
func (q *quantity[T]) Type() string   { return q.kind }

func (q *quantity[T]) Set(s string) error {
	v, err := q.parse(s)
	if err == nil {
		*q.p = v
	}
	return err
}

// size formats the sizes of flags.
type size int64

func (s size) String() string { return units.FormatSize(int64(s)) }

// TimeVar defines a flag for a time that units.ParseTime parses.
func TimeVar(flags *pflag.FlagSet, p *dag.Time, name string, value, bare dag.Time, usage string) {
	*p = value
	parse := func(s string) (dag.Time, error) { return units.ParseTime(s, bare) }
	flags.Var(&quantity[dag.Time]{p, "time", parse}, name, usage)
}

// SizeVar defines a flag for a size in bytes that units.ParseSize parses.
func SizeVar(flags *pflag.FlagSet, p *int64, name string, value int64, usage string) {
	*p = value
	parse := func(s string) (size, error) {
		n, err := units.ParseSize(s)
		return size(n), err
	}
	flags.Var(&quantity[size]{(*size)(p), "size", parse}, name, usage)
}

// RateVar defines a flag for a transfer rate that units.ParseRate parses.
func RateVar(flags *pflag.FlagSet, p *units.Rate, name string, value units.Rate, bare, usage string) {
	*p = value
	parse := func(s string) (units.Rate, error) { return units.ParseRate(s, bare) }
	flags.Var(&quantity[units.Rate]{p, "rate", parse}, name, usage)
}

// Bandwidth is a flag for a number of bytes per second. 0 is none.
type Bandwidth int64

// Type returns the name of the value in help.
func (b *Bandwidth) Type() string { return "rate" }

// String returns the rate as Set reads it, "" for none.
func (b *Bandwidth) String() string {
	if *b == 0 {
		return ""
	}
	return units.FormatSize(int64(*b)) + "/s"
}

// Set reads a rate such as 2TB/s.
func (b *Bandwidth) Set(s string) error {
	v, err := units.ParseBandwidth(s)
	if err == nil {
		*b = Bandwidth(v)
	}
	return err
}
