package collective

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
)

// Choice selects the algorithm of each collective. The zero value selects by the table "default".
type Choice struct {
	rules [dag.NumSubkinds][]rule // the first rule that fits applies
	table *Choice                 // rules if none fits; nil: the table "default"
	// non-blocking collectives have the algorithms in the variable of that name, whatever the rules are
	direct bool
	// collectives that send nothing if they have no data
	idle [dag.NumSubkinds]bool
	// time that the receiver takes per byte of data that it reduces; 0, in either form: none
	reduction units.Rate
}

// rule selects an algorithm for the instances of a collective that meet its conditions.
type rule struct {
	selection
	size, block, elements, ranks bounds
	blockUp                      bounds    // block, rounded up
	power                        condition // number of members is a power of two
	evenRanks                    condition // number of members is even
	even                         condition // members have equal blocks
	perNode                      bounds    // members per node; 0: nodes differ in it
	shared                       condition // a node has several members
	levels                       levels    // 0: all
}

// traits are the properties of an instance to which the conditions of rules refer.
type traits struct {
	size    int64 // largest number of bytes that one member contributes or receives
	members int
	element int64 // bytes of one element; 0: unknown, defaultElement
	uneven  bool  // blocks differ
	later   bool  // non-blocking: ops wait for its start
	layout  layout
	level   levels // 0: levelWhole
}

// defaultElement is the size in bytes of an element of unknown datatype.
const defaultElement = 8

// bounds is an inclusive range.
type bounds struct{ min, max int64 }

// condition is a condition on a boolean property.
type condition uint8

const (
	either condition = iota
	yes
	no
)

// fits reports whether the rule applies to an instance. Algorithms that depend on nodes apply to all members only.
func (r *rule) fits(t *traits) bool {
	return r.size.contains(t.size) && r.ranks.contains(int64(t.members)) &&
		r.block.contains(t.size/int64(t.members)) &&
		r.blockUp.contains(t.size/int64(t.members)+min(t.size%int64(t.members), 1)) &&
		r.elements.contains(t.size/cmp.Or(t.element, defaultElement)) &&
		r.power.fits(t.members&(t.members-1) == 0) && r.evenRanks.fits(t.members%2 == 0) && r.even.fits(!t.uneven) &&
		r.perNode.contains(int64(t.layout.perNode())) && r.shared.fits(t.layout.shared) &&
		r.levels.fits(t.level) && !(r.nodes && t.level > levelWhole)
}

func (c condition) fits(property bool) bool {
	return c == either || (c == yes) == property
}

func (b bounds) contains(x int64) bool {
	return b.min <= x && x <= b.max
}

// isDirect reports whether non-blocking collectives have the algorithms in [direct].
func (c *Choice) isDirect() bool {
	return c != nil && (c.direct || c.table.isDirect())
}

// find returns the selection for an instance.
func (c *Choice) find(kind dag.Subkind, t traits) *selection {
	if t.later && c.isDirect() {
		return &direct[kind]
	}
	for ; c != nil; c = c.table {
		if t.size == 0 && c.idle[kind] {
			return &idle[kind]
		}
		for i := range c.rules[kind] {
			if r := &c.rules[kind][i]; r.fits(&t) {
				return &r.selection
			}
		}
	}
	return tables[0].choice().find(kind, t)
}

// UsesNodes reports whether the choice has algorithms that depend on the nodes of the ranks ([dag.Meta].Nodes).
func (c *Choice) UsesNodes() bool {
	for ; c != nil; c = c.table {
		for _, rules := range c.rules {
			if slices.ContainsFunc(rules, func(r rule) bool { return r.usesNodes() }) {
				return true
			}
		}
	}
	return false
}

// usesNodes reports whether conditions or algorithm of the rule depend on the nodes of the ranks.
func (r *rule) usesNodes() bool {
	return r.nodes || r.perNode != everything || r.shared != either
}

// needsElements reports whether the messages of a collective depend on the size of an element: the choice has rules for
// it that depend on their number, or algorithms that divide the vector into whole elements. A phase of an allreduce may
// be a reduce.
func (c *Choice) needsElements(kind dag.Subkind) bool {
	if kind == dag.Allreduce && c.needsElements(dag.Reduce) {
		return true
	}
	for ; c != nil; c = c.table {
		if slices.ContainsFunc(c.rules[kind], func(r rule) bool {
			return r.elements != everything || r.dividesElements
		}) {
			return true
		}
	}
	return false
}

// reductionKey is the name of the entry of a choice that sets the time of reductions.
const reductionKey = "reduction"

// reductionTime returns the time to reduce bytes, rounded up to picoseconds, and false if it exceeds the range of
// [dag.Time].
func (c *Choice) reductionTime(bytes int64) (dag.Time, bool) {
	high, low := bits.Mul64(uint64(bytes), uint64(c.reduction.Num))
	den := uint64(max(c.reduction.Den, 1))
	if high >= den {
		return 0, false
	}
	time, rest := bits.Div64(high, low, den)
	if rest > 0 {
		time++
	}
	return dag.Time(time), time <= math.MaxInt64
}

// ParseChoice parses a choice such as
//
//	mpich;allreduce=ring:>1MiB&ranks>=8,recdoubling;bcast=chain(segment=64KiB);reduction=0.25ns/B
//
// docs/reference/lowering.md defines the language. A collective is followed by its rules in order of precedence. A rule
// is the name of an algorithm, optional parameters in parentheses, and optional conditions after ":", joined by "&".
// "collectives" means all collectives that have the named algorithms and no entry of their own. If no rule fits, the
// table at the start of the choice applies, or the table "default". "reduction" sets the time that a receiver takes per
// byte that it reduces. "," and ";" are equivalent separators; spaces are ignored. The empty text is the zero Choice.
func ParseChoice(text string) (Choice, error) {
	c, err := parseChoice(text)
	if err != nil {
		return Choice{}, fmt.Errorf("collective algorithms %q: %w", text, err)
	}
	return c, nil
}

func parseChoice(text string) (Choice, error) {
	var choice, general Choice
	current := &choice
	var kinds []dag.Subkind // collectives of the current rules
	seen := map[string]bool{}
	for i, item := range items(text) {
		if t := findTable(item); t != nil {
			if i > 0 {
				return Choice{}, fmt.Errorf("expected the table %s before everything else", t.name)
			}
			choice.table = t.choice()
			continue
		}
		name, conditions, conditional := strings.Cut(item, ":")
		if collective, first, found := cutCollective(name); found {
			if seen[collective] {
				return Choice{}, fmt.Errorf("%s is listed twice", collective)
			}
			seen[collective] = true
			name = first
			if collective == reductionKey {
				kinds = nil
				if err := choice.setReduction(item); err != nil {
					return Choice{}, err
				}
				continue
			}
			if collective == "collectives" {
				current, kinds = &general, allCollectives
			} else if kind, ok := parseCollective(collective); ok {
				current, kinds = &choice, []dag.Subkind{kind}
			} else {
				return Choice{}, fmt.Errorf("expected a collective such as allreduce, or collectives or reduction, "+
					"found %q%s", collective, param.Suggest(collective, append(collectiveNames(), reductionKey)))
			}
		}
		if kinds == nil {
			return Choice{}, fmt.Errorf("expected COLLECTIVE=ALGORITHM, or first one of the tables %s, found %q",
				strings.Join(Tables(), ", "), item)
		}
		r := unconditional
		if conditional {
			if err := r.parseConditions(conditions); err != nil {
				return Choice{}, err
			}
		}
		if err := current.add(kinds, strings.TrimSpace(name), r); err != nil {
			return Choice{}, err
		}
	}
	for kind, rules := range general.rules {
		if len(choice.rules[kind]) == 0 {
			choice.rules[kind] = rules
		}
	}
	return choice, nil
}

// setReduction sets the time of reductions from an entry such as "reduction=0.25ns/B".
func (c *Choice) setReduction(entry string) (err error) {
	_, text, _ := strings.Cut(entry, "=")
	if c.reduction, err = units.ParseRate(strings.TrimSpace(text), "ns/B"); err != nil {
		return fmt.Errorf("%s: expected a time per byte such as 0.25ns/B, or a rate such as 4GB/s: %w", reductionKey,
			err)
	}
	return nil
}

// items splits a choice at commas and semicolons outside parentheses.
func items(text string) (items []string) {
	depth := 0
	split := func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth <= 0 && (r == ',' || r == ';')
	}
	for item := range strings.FieldsFuncSeq(text, split) {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// cutCollective splits "allreduce=ring(segment=1MiB)" into the collective and the algorithm.
func cutCollective(text string) (collective, algorithm string, found bool) {
	collective, algorithm, found = strings.Cut(text, "=")
	if !found || strings.Contains(collective, "(") {
		return "", text, false
	}
	return strings.TrimSpace(collective), algorithm, true
}

// Params returns the table of the collectives and of the time of reductions, as keys of --lower and of --collective. A
// value of a collective is its rules. The choices of a collective are its algorithms with their parameters, the default
// ones included.
func (c *Choice) Params() param.Set {
	standard := map[string]string{}
	for entry := range strings.SplitSeq(defaults, ";") {
		name, rules, _ := strings.Cut(strings.TrimSpace(entry), "=")
		standard[name] = rules
	}
	var set param.Set
	for _, kind := range allCollectives {
		var names []string
		for i := range algorithms {
			if a := &algorithms[i]; a.kind == kind {
				names = append(names, a.signature())
			}
		}
		set = append(set, param.Func("rule,...", kind.String(), "algorithms", func(rules string) error {
			one, err := ParseChoice(kind.String() + "=" + rules)
			c.rules[kind] = one.rules[kind]
			return err
		}).Among(names...).Default(standard[kind.String()]))
	}
	set = append(set, param.Func("time/B", reductionKey, "time that the receiver of data to be reduced takes per "+
		"byte, such as 0.25ns/B, or a rate such as 4GB/s; without unit in ns/B", func(text string) error {
		one, err := ParseChoice(reductionKey + "=" + text)
		c.reduction = one.reduction
		return err
	}).Default("0"))
	return set.AsKeys("Collectives and their algorithms")
}

// Completions returns the beginnings of a choice: the tables, and each collective with each of its algorithms.
func Completions() []string {
	all := append(Tables(), reductionKey+"=")
	for _, p := range (&Choice{}).Params() {
		for _, signature := range p.Choices {
			name, _, _ := strings.Cut(signature, "(")
			all = append(all, p.Name+"="+name)
		}
	}
	return all
}

var allCollectives = func() (all []dag.Subkind) {
	for k := range dag.Subkind(dag.NumSubkinds) {
		if k.Of(dag.Coll) {
			all = append(all, k)
		}
	}
	return all
}()

// add appends the rule, with the given algorithm, to the rules of the collectives that have the algorithm.
func (c *Choice) add(kinds []dag.Subkind, algorithm string, r rule) error {
	found := false
	var problem error
	for _, k := range kinds {
		u, err := parseSelection(k, algorithm)
		if err != nil {
			problem = err
			continue
		}
		found = true
		r.selection = u
		c.rules[k] = append(c.rules[k], r)
	}
	switch {
	case found:
		return nil
	case len(kinds) > 1:
		var names []string
		for _, k := range kinds {
			names = append(names, AlgorithmNames(k)...)
		}
		return fmt.Errorf("no collective has an algorithm %q%s", algorithm, param.Suggest(algorithm, names))
	}
	return problem
}

var everything = bounds{math.MinInt64, math.MaxInt64}

// unconditional is a rule without conditions, and without an algorithm.
var unconditional = rule{
	size: everything, block: everything, blockUp: everything, elements: everything, ranks: everything,
	perNode: everything,
}

// property returns the condition of a name that may be negated, such as "pof2" or "!pof2"; nil: none has that name.
func (r *rule) property(name string) *condition {
	switch name {
	case "pof2":
		return &r.power
	case "evenranks":
		return &r.evenRanks
	case "even":
		return &r.even
	case "shared":
		return &r.shared
	}
	return nil
}

// parseConditions parses conditions such as ">1MiB&ranks<=16&pof2".
func (r *rule) parseConditions(text string) error {
	for condition := range strings.SplitSeq(text, "&") {
		condition = strings.TrimSpace(condition)
		name, negated := strings.CutPrefix(condition, "!")
		property, err := r.property(name), error(nil)
		switch {
		case property != nil && negated:
			*property = no
		case property != nil:
			*property = yes
		case condition == "whole":
			r.levels = levelWhole
		case condition == "node":
			r.levels = levelNode
		case condition == "leaders":
			r.levels = levelLeaders
		case strings.HasPrefix(condition, "pernode"):
			err = r.perNode.parse(condition[len("pernode"):], "pernode>=2", parseNumber)
		case strings.HasPrefix(condition, "ranks"):
			err = r.ranks.parse(condition[len("ranks"):], "ranks>=8", parseNumber)
		case strings.HasPrefix(condition, "elements"):
			err = r.elements.parse(condition[len("elements"):], "elements<=81920", parseNumber)
		case strings.HasPrefix(condition, "blockup"):
			err = r.blockUp.parse(condition[len("blockup"):], "blockup<=512", parseSize)
		case strings.HasPrefix(condition, "block"):
			err = r.block.parse(condition[len("block"):], "block>1KiB", parseSize)
		default:
			err = r.size.parse(strings.TrimPrefix(condition, "size"), ">1MiB", parseSize)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parse narrows the bounds by one such as ">=8"; number parses the value.
func (b *bounds) parse(text, example string, number func(string) (int64, error)) error {
	text = strings.TrimSpace(text)
	digits := strings.TrimLeft(text, "<>=")
	x, err := number(strings.TrimSpace(digits))
	if err != nil {
		return fmt.Errorf("expected a bound such as %s, found %q: %w", example, text, err)
	}
	switch text[:len(text)-len(digits)] {
	case ">":
		if x == math.MaxInt64 {
			return fmt.Errorf("expected a bound such as %s, found %q: no larger number exists", example, text)
		}
		b.min = max(b.min, x+1)
	case ">=":
		b.min = max(b.min, x)
	case "<":
		b.max = min(b.max, x-1)
	case "<=":
		b.max = min(b.max, x)
	default:
		return fmt.Errorf("expected a bound such as %s, found %q", example, text)
	}
	return nil
}

// parseSize reads a size in bytes such as 64KiB.
func parseSize(text string) (int64, error) {
	bytes, err := units.ParseSize(text)
	if errors.Is(err, units.ErrUnit) {
		unit := strings.TrimSpace(strings.TrimLeft(text, "0123456789."))
		return 0, fmt.Errorf("expected a unit such as kB or MiB, found %q", unit)
	}
	if err != nil {
		return 0, fmt.Errorf("expected a whole number of bytes up to %d: %w", int64(math.MaxInt64), err)
	}
	return bytes, nil
}

func parseNumber(text string) (int64, error) {
	n, err := parseCount(text)
	return int64(n), err
}

func parseCount(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("expected a whole number up to %d", math.MaxInt32)
	}
	return int(n), nil
}
