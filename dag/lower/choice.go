package lower

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// Choice says which algorithm carries out which collective. The zero value is [Defaults].
type Choice struct {
	rules [dag.NumSubkinds][]rule // the first that fits holds
}

// rule is an algorithm for the instances of a collective whose size is in min..max.
type rule struct {
	algorithm *algorithm
	min, max  int64
}

var defaults = func() Choice {
	c, err := ParseChoice(Defaults)
	if err != nil {
		panic(err) // a test parses Defaults
	}
	return c
}()

func (c *Choice) algorithm(kind dag.Subkind, size int64) *algorithm {
	for _, r := range c.rules[kind] {
		if r.min <= size && size <= r.max {
			return r.algorithm
		}
	}
	return defaults.algorithm(kind, size)
}

// ParseChoice reads a choice such as
//
//	allreduce=ring:>1MiB,recdoubling;bcast=binomial
//
// A collective is followed by its rules, tried in this order; where none fits, [Defaults] does. A rule is the name of
// an algorithm, then, if it is not for every size, ":" and a bound: one of > >= < <= and a size, a whole number with
// an optional unit (B kB MB GB TB KiB MiB GiB TiB). The size of an instance is the largest amount that one member
// contributes or receives (docs/lowering.md). "collectives" stands for all collectives that have the algorithms named
// and no entry of their own. Both "," and ";" may separate anything; spaces do not matter. "" is Defaults.
func ParseChoice(text string) (Choice, error) {
	var choice, general Choice
	current := &choice
	var kinds []dag.Subkind // the collectives that the rules at hand are for
	seen := map[string]bool{}
	for item := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' }) {
		name, bound, bounded := strings.Cut(item, ":")
		if collective, first, found := strings.Cut(name, "="); found {
			collective = strings.TrimSpace(collective)
			if collective == "collectives" {
				current, kinds = &general, allCollectives
			} else if kind, ok := dag.ParseSubkind(collective); ok && kind.Of(dag.Coll) {
				current, kinds = &choice, []dag.Subkind{kind}
			} else {
				return Choice{}, fmt.Errorf("collective algorithms %q: expected a collective such as allreduce, "+
					"or collectives, found %q", text, collective)
			}
			if seen[collective] {
				return Choice{}, fmt.Errorf("collective algorithms %q: %s is there twice", text, collective)
			}
			seen[collective] = true
			name = first
		}
		if kinds == nil {
			return Choice{}, fmt.Errorf("collective algorithms %q: expected COLLECTIVE=ALGORITHM, found %q", text, item)
		}
		r := rule{min: 0, max: math.MaxInt64}
		if bounded {
			if err := r.parseBound(strings.TrimSpace(bound)); err != nil {
				return Choice{}, fmt.Errorf("collective algorithms %q: %w", text, err)
			}
		}
		if err := current.add(kinds, strings.TrimSpace(name), r); err != nil {
			return Choice{}, fmt.Errorf("collective algorithms %q: %w", text, err)
		}
	}
	for kind, rules := range general.rules {
		if len(choice.rules[kind]) == 0 {
			choice.rules[kind] = rules
		}
	}
	return choice, nil
}

var allCollectives = func() (all []dag.Subkind) {
	for k := range dag.Subkind(dag.NumSubkinds) {
		if k.Of(dag.Coll) {
			all = append(all, k)
		}
	}
	return all
}()

// add appends the rule, with the algorithm of that name, to those of the collectives that have one.
func (c *Choice) add(kinds []dag.Subkind, name string, r rule) error {
	found := false
	var problem error
	for _, k := range kinds {
		a, err := find(k, name)
		if err != nil {
			problem = err
			continue
		}
		found = true
		r.algorithm = a
		c.rules[k] = append(c.rules[k], r)
	}
	switch {
	case found:
		return nil
	case len(kinds) > 1:
		return fmt.Errorf("no collective has an algorithm %q", name)
	}
	return problem
}

func (r *rule) parseBound(text string) error {
	digits := strings.TrimLeft(text, "<>=")
	size, err := parseSize(strings.TrimSpace(digits))
	if err != nil {
		return fmt.Errorf("expected a bound such as >1MiB, found %q: %w", text, err)
	}
	switch text[:len(text)-len(digits)] {
	case ">":
		if size == math.MaxInt64 {
			return fmt.Errorf("expected a bound such as >1MiB, found %q: no size is larger", text)
		}
		r.min = size + 1
	case ">=":
		r.min = size
	case "<":
		r.max = size - 1
	case "<=":
		r.max = size
	default:
		return fmt.Errorf("expected a bound such as >1MiB, found %q", text)
	}
	return nil
}

var units = map[string]int64{
	"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

func parseSize(text string) (int64, error) {
	digits := text
	if end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = text[:end]
	}
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("expected a whole number of bytes up to %d", int64(math.MaxInt64))
	}
	unit, ok := units[strings.TrimSpace(text[len(digits):])]
	if !ok {
		return 0, fmt.Errorf("expected a unit such as kB or MiB, found %q", text[len(digits):])
	}
	if number > math.MaxInt64/unit {
		return 0, fmt.Errorf("expected at most %d bytes", int64(math.MaxInt64))
	}
	return number * unit, nil
}
