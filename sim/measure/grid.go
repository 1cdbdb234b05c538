package measure

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/tracedag/tracedag/param"
)

// maxPoints is the largest number of points of a grid.
const maxPoints = 1_000_000

// ParseGrid parses a grid of sweepable parameters such as "L=1us..10us:10;G=0.02,0.04" and returns its points: all
// combinations of values, with the last parameter changing fastest. A range a..b:n is n equidistant values from a to b.
func ParseGrid(text string, set param.Set) ([][]param.Setting, error) {
	points := [][]param.Setting{nil}
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(text, ";") {
		name, values, found := strings.Cut(strings.TrimSpace(part), "=")
		p := set.Find(name)
		switch {
		case !found:
			return nil, fmt.Errorf("expected NAME=VALUES;..., found %q", part)
		case p == nil || !p.Sweeps:
			return nil, fmt.Errorf("expected one of the parameters %s, found %q", strings.Join(set.Swept(), ", "), name)
		case seen[name]:
			return nil, fmt.Errorf("parameter %s occurs twice, expected once", name)
		}
		seen[name] = true
		axis, err := ParseAxis(name, values, p.Value.(param.Number).Parse)
		if err != nil {
			return nil, err
		}
		if len(points)*len(axis) > maxPoints {
			return nil, fmt.Errorf("expected at most %d points, found more", maxPoints)
		}
		grown := make([][]param.Setting, 0, len(points)*len(axis))
		for _, point := range points {
			for _, value := range axis {
				grown = append(grown, append(point[:len(point):len(point)], param.Setting{Name: name, Number: value}))
			}
		}
		points = grown
	}
	return points, nil
}

// ParseAxis parses the values of a parameter: comma-separated items, each a value or a range FROM..TO:N.
func ParseAxis(name, text string, parse func(string) (*big.Rat, error)) ([]*big.Rat, error) {
	var values []*big.Rat
	for item := range strings.SplitSeq(text, ",") {
		r, isRange, err := param.ParseRange(item, maxPoints)
		if err != nil || isRange && (r.N == 0 || r.Log) {
			return nil, fmt.Errorf("%s: expected FROM..TO:N with N from 2 to %d, found %q", name, maxPoints, item)
		}
		if !isRange {
			v, err := parse(item)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			values = append(values, v)
			continue
		}
		first, err := parse(r.From)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		last, err := parse(r.To)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		values = append(values, param.Spaced(first, last, r.N)...)
	}
	return values, nil
}
