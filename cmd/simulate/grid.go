package main

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
)

// parameter is a number that a sweep can vary. parse reads it as its flag does, into picoseconds, picoseconds per byte
// or bytes.
type parameter struct {
	name  string
	parse func(string) (*big.Rat, error)
}

func timeParameter(name string, bare dag.Time) parameter {
	return parameter{name, func(s string) (*big.Rat, error) {
		t, err := units.ParseTime(s, bare)
		return new(big.Rat).SetInt64(int64(t)), err
	}}
}

func rateParameter(name, bare string) parameter {
	return parameter{name, func(s string) (*big.Rat, error) {
		r, err := units.ParseRate(s, bare)
		return r.PerByte(), err
	}}
}

func sizeParameter(name string) parameter {
	return parameter{name, func(s string) (*big.Rat, error) {
		n, err := units.ParseSize(s)
		return new(big.Rat).SetInt64(n), err
	}}
}

// setting gives a parameter a value.
type setting struct {
	name  string
	value *big.Rat
}

// rounded returns the value as the nearest whole number, half away from zero.
func (s setting) rounded() int64 {
	half := big.NewRat(1, 2)
	if s.value.Sign() < 0 {
		half.Neg(half)
	}
	sum := half.Add(half, s.value)
	return new(big.Int).Quo(sum.Num(), sum.Denom()).Int64()
}

// maxPoints is how many points a grid may have.
const maxPoints = 1_000_000

// parseGrid reads a grid such as "L=1us..10us:10;G=0.02,0.04" and returns its points: all combinations of values, those
// of the last parameter changing fastest. a..b:n stands for n values from a to b at equal distances.
func parseGrid(text string, parameters []parameter) ([][]setting, error) {
	points := [][]setting{nil}
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(text, ";") {
		name, values, found := strings.Cut(strings.TrimSpace(part), "=")
		p := findParameter(parameters, name)
		switch {
		case !found:
			return nil, fmt.Errorf("expected NAME=VALUES;..., found %q", part)
		case p == nil:
			return nil, fmt.Errorf("expected a parameter out of %s, found %q", parameterNames(parameters), name)
		case seen[name]:
			return nil, fmt.Errorf("%s is there twice", name)
		}
		seen[name] = true
		axis, err := p.axis(values)
		if err != nil {
			return nil, err
		}
		if len(points)*len(axis) > maxPoints {
			return nil, fmt.Errorf("expected at most %d points, found more", maxPoints)
		}
		grown := make([][]setting, 0, len(points)*len(axis))
		for _, point := range points {
			for _, value := range axis {
				grown = append(grown, append(point[:len(point):len(point)], setting{name, value}))
			}
		}
		points = grown
	}
	return points, nil
}

func findParameter(parameters []parameter, name string) *parameter {
	for i := range parameters {
		if parameters[i].name == name {
			return &parameters[i]
		}
	}
	return nil
}

func parameterNames(parameters []parameter) string {
	names := make([]string, 0, len(parameters))
	for _, p := range parameters {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// axis reads the values of a parameter: items separated by commas, each a value or a range.
func (p *parameter) axis(text string) ([]*big.Rat, error) {
	var values []*big.Rat
	for item := range strings.SplitSeq(text, ",") {
		from, rest, isRange := strings.Cut(item, "..")
		if !isRange {
			v, err := p.parse(item)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			values = append(values, v)
			continue
		}
		to, count, found := strings.Cut(rest, ":")
		n, err := strconv.Atoi(count)
		if !found || err != nil || n < 2 || n > maxPoints {
			return nil, fmt.Errorf("%s: expected FROM..TO:N with N from 2 to %d, found %q", p.name, maxPoints, item)
		}
		first, err := p.parse(from)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		last, err := p.parse(to)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		step := new(big.Rat).Sub(last, first)
		step.Quo(step, big.NewRat(int64(n-1), 1))
		for k := range n {
			v := new(big.Rat).Mul(step, big.NewRat(int64(k), 1))
			values = append(values, v.Add(v, first))
		}
	}
	return values, nil
}
