// Package param declares the parameters of formats, passes, generators and backends. The owner describes each parameter
// once: name, unit, help, default and range. Flags, --set keys, sweep axes, JSON parameters, --list tables and the
// option tables of the documentation come from that description.
//
// An owner keeps its configuration in a struct and returns the table that describes it:
//
//	func (c *Config) Params() param.Set {
//		return param.Set{
//			param.Size(&c.Queue, "queue", "capacity of a switch queue").Default("set by the transport").Sweep(),
//			param.Choice(&c.Mode, "mode", "contention of messages for links", "unaware", "aware"),
//		}
//	}
//
// The values of the struct at the call of Params are the defaults. [Set.Apply] sets values in the order of the table: a
// parameter that changes the defaults of others, such as a preset, precedes them.
package param

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// Value is the value of a parameter. Set parses and checks a text; String returns the value in a form that Set reads.
type Value interface {
	Set(text string) error
	String() string
	Type() string // placeholder in help, such as "size" or "time"
}

// Number is a Value that a sweep can vary: it converts between texts and exact numbers in the parameter's base unit.
type Number interface {
	Value
	Parse(text string) (*big.Rat, error)
	SetNumber(n *big.Rat) error // rounds half away from zero where the value is a whole number
}

// Param describes one parameter. The constructors of this package return it; its methods return changed copies.
type Param struct {
	Name    string   // of the flag or --set key, such as "control-queue"
	Help    string   // noun phrase without the default
	Arg     string   // placeholder of the value in help; "" for the value's type
	Initial string   // default as printed; "" to print none
	Choices []string // allowed values, for completion and messages
	Shown   []string // further values to offer in completion, such as "strided:"
	Aliases []string // further names of the flag, hidden
	Letter  string   // one-letter form of the flag; "" for none
	Heading string   // heading in help and documentation; "" for none

	Synonyms []Synonym // further names of choices, hidden

	Sweeps   bool   // a sweep can vary it
	Key      bool   // set by NAME=VALUE in the text of another flag, such as --set, and not by a flag of its own
	Hide     bool   // accepted, but not listed in help
	Beside   bool   // names an output beside the trace or result, which does not depend on it
	Reads    bool   // its value may name a file
	Repeated bool   // may be given several times
	Bare     string // value of the flag if none is given; "" if the flag requires a value

	Value Value
}

// Set is an owner's table of parameters.
type Set []Param

// Default returns the parameter with a description of its default, for a default that depends on other parameters.
func (p Param) Default(text string) Param { p.Initial = text; return p }

// Sweep returns the parameter as one that sweeps can vary. It panics if the value is not a [Number].
func (p Param) Sweep() Param {
	if _, ok := p.Value.(Number); !ok {
		panic("param: " + p.Name + " cannot be swept")
	}
	p.Sweeps = true
	return p
}

// Only returns the parameter as a key, which --set, --lower or sweeps set, and no flag.
func (p Param) Only() Param { p.Key = true; return p }

// Hidden returns the parameter as one that help does not list.
func (p Param) Hidden() Param { p.Hide = true; return p }

// Output returns the parameter as one that names an output beside the trace or result.
func (p Param) Output() Param { p.Beside = true; return p }

// OrFile returns the parameter as one whose value may name a file.
func (p Param) OrFile() Param { p.Reads = true; return p }

// Placeholder returns the parameter with another placeholder for its value in help.
func (p Param) Placeholder(text string) Param { p.Arg = text; return p }

// Alias returns the parameter with further names of its flag, which help and completion do not list.
func (p Param) Alias(names ...string) Param {
	p.Aliases = append(slices.Clip(p.Aliases), names...)
	return p
}

// Names returns the name of the parameter's flag and its further names.
func (p *Param) Names() []string { return slices.Concat([]string{p.Name}, p.Aliases) }

// Shorthand returns the parameter with a one-letter form of its flag.
func (p Param) Shorthand(letter string) Param { p.Letter = letter; return p }

// Repeats returns the parameter as one that may be given several times.
func (p Param) Repeats() Param { p.Repeated = true; return p }

// Among returns the parameter with its allowed values, for help and completion; the owner's function checks them.
func (p Param) Among(names ...string) Param { p.Choices = names; return p }

// Offer returns the parameter with values that completion offers beside any others.
func (p Param) Offer(values ...string) Param {
	p.Shown = append(slices.Clip(p.Shown), values...)
	return p
}

// Check returns the parameter with an additional check, which runs after each successful Set and returns an error about
// the value.
func (p Param) Check(check func() error) Param {
	if n, ok := p.Value.(interface{ then(func() error) }); ok {
		n.then(check)
	} else {
		p.Value = &checked{p.Value, check}
	}
	return p
}

// checked is a Value with an additional check.
type checked struct {
	Value
	check func() error
}

func (c *checked) Set(text string) error {
	before := c.String()
	if err := c.Value.Set(text); err != nil {
		return err
	}
	err := c.check()
	if err != nil && before != "" {
		c.Value.Set(before) // a value that is refused leaves the one before
	}
	return err
}

// Expect returns the parameter with a description of its values that replaces the reason of every error.
func (p Param) Expect(values string) Param {
	p.Value = &expecting{p.Value, values}
	return p
}

// expecting is a Value with a description of the values that it accepts.
type expecting struct {
	Value
	values string
}

func (e *expecting) Set(text string) error {
	if e.Value.Set(text) != nil {
		return fmt.Errorf("expected %s, found %q", e.values, text)
	}
	return nil
}

// checks run after each change of a number.
type checks []func() error

func (c *checks) then(check func() error) { *c = append(*c, check) }

func (c checks) run() error {
	for _, check := range c {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// ArgName returns the placeholder of the value in help.
func (p *Param) ArgName() string {
	if p.Arg != "" {
		return p.Arg
	}
	return p.Value.Type()
}

// SetNamed sets parameters, each a name and its value, such as a backend derives from a file. The names must exist.
func (s Set) SetNamed(settings [][2]string) error {
	for _, to := range settings {
		if err := s.Find(to[0]).Value.Set(to[1]); err != nil {
			return fmt.Errorf("%s: %w", to[0], err)
		}
	}
	return nil
}

// Find returns the parameter with a name or alias, or nil.
func (s Set) Find(name string) *Param {
	for i := range s {
		if slices.Contains(s[i].Names(), name) {
			return &s[i]
		}
	}
	return nil
}

// Flags returns the parameters that have flags of their own.
func (s Set) Flags() Set {
	return slices.DeleteFunc(slices.Clone(s), func(p Param) bool { return p.Key })
}

// Keys returns the parameters that --set sets.
func (s Set) Keys() Set {
	return slices.DeleteFunc(slices.Clone(s), func(p Param) bool { return !p.Key })
}

// AsKeys returns the parameters as keys below a heading of help and documentation.
func (s Set) AsKeys(heading string) Set {
	for i := range s {
		s[i] = s[i].Only().In(heading)
	}
	return s
}

// Names returns the names in the order of the table.
func (s Set) Names() []string {
	names := make([]string, len(s))
	for i := range s {
		names[i] = s[i].Name
	}
	return names
}

// Error is the error of a parameter's value.
type Error struct {
	Name  string // "" if the error concerns several parameters
	Text  string // the invalid text; "" if Err contains it
	Err   error
	Needs bool // Err names a missing parameter: it reads as a sentence after the name
}

// Error returns the name and the reason.
func (e *Error) Error() string {
	switch {
	case e.Name == "":
		return e.Err.Error()
	case e.Needs:
		return e.Name + " " + e.Err.Error()
	}
	return e.Name + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an [Error] about the named parameter, for checks that involve several parameters.
func Errorf(name, format string, args ...any) error {
	return &Error{Name: name, Err: fmt.Errorf(format, args...)}
}

// Needs returns an [Error] about a parameter that needs another one, such as "--sample, the period".
func Needs(name, other string) error {
	return &Error{Name: name, Err: errors.New("needs " + other), Needs: true}
}

// Exclude returns an [Error] about two mutually exclusive parameters.
func Exclude(name, other string) error {
	return &Error{Err: fmt.Errorf("--%s and --%s exclude each other", name, other)}
}

// Texts are the texts of parameters by name, one per occurrence on the command line.
type Texts map[string][]string

// Apply sets the parameters that have texts, in the order of the table. The error is an [*Error]. Names that the table
// lacks are not an error: several owners may share the texts.
func (s Set) Apply(texts Texts) error {
	for i := range s {
		p := &s[i]
		for _, name := range p.Names() {
			for _, text := range texts[name] {
				err := p.Set(text)
				if err == nil {
					continue
				}
				if own, ok := err.(*Error); ok {
					return own
				}
				if namesText(p.Value, err) {
					return &Error{Name: name, Err: err}
				}
				return &Error{Name: name, Text: text, Err: err}
			}
		}
	}
	return nil
}

// namesText reports whether the error of a value states the found and expected texts itself.
func namesText(v Value, err error) bool {
	switch v := v.(type) {
	case *function, *choice:
		return true
	case *checked:
		return namesText(v.Value, err)
	}
	var outside *rangeError
	return errors.As(err, &outside)
}

// Assign sets the key of a text such as "pipeline=3".
func (s Set) Assign(text string) error {
	name, value, found := strings.Cut(text, "=")
	if !found {
		return fmt.Errorf("expected NAME=VALUE, found %q", text)
	}
	return s.SetKey(name, value)
}

// SetKey sets the key with a name or alias to a text. The error names the key. For an unknown key it lists all keys and
// suggests the nearest.
func (s Set) SetKey(name, text string) error {
	p := s.Find(name)
	if p == nil || !p.Key {
		keys := s.Keys().Names()
		return fmt.Errorf("expected one of %s, found %q%s", strings.Join(keys, ", "), name, Suggest(name, keys))
	}
	err := p.Set(text)
	if own, ok := err.(*Error); ok {
		return own
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// AssignAll sets parameters to texts such as "pipeline=3,speedup=2".
func (s Set) AssignAll(texts string) error {
	for text := range strings.SplitSeq(texts, ",") {
		if err := s.Assign(text); err != nil {
			return err
		}
	}
	return nil
}

// Setting is the number of a parameter at a point of a sweep.
type Setting struct {
	Name   string
	Number *big.Rat // in the parameter's base unit
}

// Override sets parameters to the numbers of a sweep point, in the order of the table.
func (s Set) Override(settings []Setting) error {
	for _, setting := range settings {
		if p := s.Find(setting.Name); p == nil || !p.Sweeps {
			return fmt.Errorf("expected a parameter out of %s, found %q%s", strings.Join(s.Swept(), ", "), setting.Name,
				Suggest(setting.Name, s.Swept()))
		}
	}
	for i := range s {
		for _, setting := range settings {
			if setting.Name != s[i].Name {
				continue
			}
			if err := s[i].Value.(Number).SetNumber(setting.Number); err != nil {
				return &Error{Name: setting.Name, Err: err}
			}
		}
	}
	return nil
}

// Swept returns the names of the parameters that sweeps can vary.
func (s Set) Swept() (names []string) {
	for i := range s {
		if s[i].Sweeps {
			names = append(names, s[i].Name)
		}
	}
	return names
}

// errRange is the error of a number outside the range of its type.
var errRange = errors.New("the number is too large")

// Rounded returns n rounded to the nearest integer, half away from zero. It returns an error if that exceeds an int64.
func Rounded(n *big.Rat) (int64, error) {
	half := big.NewRat(1, 2)
	if n.Sign() < 0 {
		half.Neg(half)
	}
	sum := half.Add(half, n)
	whole := new(big.Int).Quo(sum.Num(), sum.Denom())
	if !whole.IsInt64() {
		return 0, errRange
	}
	return whole.Int64(), nil
}
