package param

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
)

// New declares a parameter with the owner's own type of value. Its current text is the default.
func New(v Value, name, help string) Param { return define(v, name, help, v.String()) }

// define returns the parameter with a value and a default to print, "" for none.
func define(v Value, name, help, initial string) Param {
	return Param{Name: name, Help: help, Initial: initial, Value: v}
}

// number is a Value over T that converts to and from exact numbers.
type number[T any] struct {
	at       *T
	kind     string
	parse    func(string) (T, error)
	exact    func(T) *big.Rat
	from     func(*big.Rat) (T, error)
	text     func(T) string
	least    *big.Rat
	most     *big.Rat
	rangeErr string
	checks
}

func (n *number[T]) Type() string   { return n.kind }
func (n *number[T]) String() string { return n.text(*n.at) }

func (n *number[T]) check(v T, found string) error {
	x := n.exact(v)
	if n.least != nil && x.Cmp(n.least) < 0 || n.most != nil && x.Cmp(n.most) > 0 {
		return &rangeError{fmt.Sprintf("expected %s, found %s", n.rangeErr, found)}
	}
	return nil
}

func (n *number[T]) Set(text string) error {
	v, err := n.parse(text)
	if err != nil {
		return err
	}
	if err := n.check(v, text); err != nil {
		return err
	}
	return n.store(v)
}

// store sets the value and runs the checks. A value that they refuse leaves the one before.
func (n *number[T]) store(v T) error {
	before := *n.at
	*n.at = v
	err := n.run()
	if err != nil {
		*n.at = before
	}
	return err
}

func (n *number[T]) Parse(text string) (*big.Rat, error) {
	v, err := n.parse(text)
	if err != nil {
		return nil, err
	}
	if err := n.check(v, text); err != nil {
		return nil, err
	}
	return n.exact(v), nil
}

func (n *number[T]) SetNumber(x *big.Rat) error {
	v, err := n.from(x)
	if err != nil {
		return err
	}
	return n.store(v)
}

func (n *number[T]) limit(least, most *big.Rat, text string) {
	n.least, n.most, n.rangeErr = least, most, text
}

type limited interface {
	limit(least, most *big.Rat, text string)
}

// rangeError is the error of a number outside its range.
type rangeError struct{ text string }

func (e *rangeError) Error() string { return e.text }

// Range returns the parameter with a range of allowed values in its base unit: 1, bytes or picoseconds.
func (p Param) Range(least, most int64) Param {
	text := fmt.Sprintf("%d to %d", least, most)
	if most == math.MaxInt64 {
		text = fmt.Sprintf("%d or more", least)
	}
	p.Value.(limited).limit(big.NewRat(least, 1), big.NewRat(most, 1), text)
	return p
}

// Between returns the parameter with a range of allowed fractional values.
func (p Param) Between(least, most float64) Param {
	low, high := new(big.Rat).SetFloat64(least), new(big.Rat).SetFloat64(most)
	p.Value.(limited).limit(low, high, fmt.Sprintf("%v to %v", least, most))
	return p
}

func wholeNumber[T ~int | ~int32 | ~int64](at *T, kind string,
	parse func(string) (T, error), text func(T) string) *number[T] {
	return &number[T]{
		at: at, kind: kind, parse: parse, text: text,
		exact: func(v T) *big.Rat { return new(big.Rat).SetInt64(int64(v)) },
		from: func(x *big.Rat) (T, error) {
			n, err := Rounded(x)
			if err == nil && int64(T(n)) != n {
				err = errRange
			}
			return T(n), err
		},
	}
}

// unlessZero returns a text, or "" for a zero value, which help does not print as a default.
func unlessZero(zero bool, text string) string {
	if zero {
		return ""
	}
	return text
}

// Time declares a duration such as 3.7us, kept in picoseconds. A number without a unit is an error.
func Time(at *dag.Time, name, help string) Param { return TimeIn(at, 0, name, help) }

// TimeIn declares a duration. A number without a unit is in units of bare.
func TimeIn(at *dag.Time, bare dag.Time, name, help string) Param {
	parse := func(s string) (dag.Time, error) { return units.ParseTime(s, bare) }
	v := wholeNumber(at, "time", parse, dag.Time.String)
	return define(v, name, help, unlessZero(*at == 0, at.String()))
}

// Size declares a size in bytes such as 4096, 64KiB or 1.5MB.
func Size(at *int64, name, help string) Param {
	v := wholeNumber(at, "size", units.ParseSize, units.FormatSize)
	return define(v, name, help, unlessZero(*at == 0, units.FormatSize(*at)))
}

// Rate declares a transfer rate such as 25GB/s, 400Gbps or 40ps/B, kept as exact picoseconds per byte. The value nil is
// an infinite rate.
func Rate(at **big.Rat, name, help string) Param { return RateIn(at, "", name, help) }

// RateIn declares a transfer rate. A number without a unit is in units of bare, such as "ns/B" or "Gbps".
func RateIn(at **big.Rat, bare, name, help string) Param {
	text := func(r *big.Rat) string {
		if r == nil {
			return ""
		}
		return units.Rate{Num: r.Num().Int64(), Den: r.Denom().Int64()}.String()
	}
	v := &number[*big.Rat]{
		at: at, kind: "rate", text: text,
		parse: func(s string) (*big.Rat, error) {
			r, err := units.ParseRate(s, bare)
			if err != nil {
				return nil, err
			}
			return r.PerByte(), nil
		},
		exact: func(r *big.Rat) *big.Rat { return r },
		from:  func(x *big.Rat) (*big.Rat, error) { return x, nil },
	}
	return define(v, name, help, text(*at))
}

// BitRate declares a transfer rate, kept as whole bits per second, at least 1; an infinite rate is math.MaxInt64.
func BitRate(at *int64, name, help string) Param {
	return perSecond(at, name, help, func(r units.Rate) (int64, bool) { return r.BitsPerSecond() }, 8)
}

// ByteRate declares a transfer rate, kept as whole bytes per second.
func ByteRate(at *int64, name, help string) Param {
	return perSecond(at, name, help, func(r units.Rate) (int64, bool) { return r.BytesPerSecond() }, 1)
}

func perSecond(at *int64, name, help string, convert func(units.Rate) (int64, bool), factor int64) Param {
	parse := func(s string) (int64, error) {
		r, err := units.ParseRate(s, "")
		if err != nil {
			return 0, err
		}
		if r.Num == 0 {
			return math.MaxInt64, nil
		}
		n, _ := convert(r)
		return max(1, n), nil
	}
	text := func(n int64) string {
		if n == 0 || n == math.MaxInt64 {
			return ""
		}
		perByte := big.NewRat(int64(dag.Second), n)
		perByte.Mul(perByte, big.NewRat(factor, 1))
		return units.Rate{Num: perByte.Num().Int64(), Den: perByte.Denom().Int64()}.String()
	}
	return define(wholeNumber(at, "rate", parse, text), name, help, text(*at))
}

// FLOPS declares a rate of floating-point operations such as 312TFLOPS, kept as whole operations per second.
func FLOPS(at *int64, name, help string) Param {
	text := func(n int64) string { return unlessZero(n == 0, units.FormatFLOPS(n)) }
	return define(wholeNumber(at, "rate", units.ParseFLOPS, text), name, help, text(*at))
}

func parseInt[T ~int | ~int32 | ~int64](bits int) func(string) (T, error) {
	return func(s string) (T, error) {
		n, err := strconv.ParseInt(s, 0, bits)
		if err != nil {
			return 0, intError(s, err)
		}
		return T(n), nil
	}
}

func intError(s string, err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("expected a smaller number, found %q", s)
	}
	return fmt.Errorf("expected a whole number, found %q", s)
}

func formatInt[T ~int | ~int32 | ~int64](v T) string { return strconv.FormatInt(int64(v), 10) }

// Int declares a whole number.
func Int[T ~int | ~int32 | ~int64](at *T, name, help string) Param {
	bits := 64
	var zero T
	if _, narrow := any(zero).(int32); narrow {
		bits = 32
	}
	v := wholeNumber(at, "int", parseInt[T](bits), formatInt[T])
	return define(v, name, help, unlessZero(*at == 0, formatInt(*at)))
}

// Count declares a whole number from 1 to most, in decimal digits.
func Count[T ~int | ~int32 | ~int64](at *T, name, help string, most T) Param {
	parse := func(s string) (T, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 1 || n > int64(most) {
			return 0, fmt.Errorf("expected a whole number from 1 to %d, found %q", most, s)
		}
		return T(n), nil
	}
	return define(wholeNumber(at, "count", parse, formatInt[T]), name, help, unlessZero(*at == 0, formatInt(*at)))
}

// Given declares a fractional number that is nil unless it is given.
func Given(at **float64, name, help string) Param {
	var v float64
	p := Float(&v, name, help)
	n := p.Value.(*number[float64])
	n.text = func(float64) string {
		if *at == nil {
			return ""
		}
		return strconv.FormatFloat(**at, 'g', -1, 64)
	}
	return p.Check(func() error {
		*at = &v
		return nil
	})
}

// Float declares a fractional number.
func Float(at *float64, name, help string) Param {
	format := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	v := &number[float64]{
		at: at, kind: "float", text: format,
		parse: func(s string) (float64, error) {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return 0, fmt.Errorf("expected a number, found %q", s)
			}
			return v, nil
		},
		exact: func(v float64) *big.Rat { return new(big.Rat).SetFloat64(v) },
		from:  func(x *big.Rat) (float64, error) { v, _ := x.Float64(); return v, nil },
	}
	return define(v, name, help, unlessZero(*at == 0, format(*at)))
}

// Custom declares a number with its own notation. parse converts a text to an exact number, set stores it, and text
// returns the current value.
func Custom(kind, name, help string, parse func(string) (*big.Rat, error), set func(*big.Rat) error,
	text func() string) Param {
	return define(&custom{kind: kind, parse: parse, set: set, text: text}, name, help, "")
}

type custom struct {
	kind  string
	parse func(string) (*big.Rat, error)
	set   func(*big.Rat) error
	text  func() string
	checks
}

func (c *custom) Type() string                        { return c.kind }
func (c *custom) String() string                      { return c.text() }
func (c *custom) Parse(text string) (*big.Rat, error) { return c.parse(text) }

func (c *custom) SetNumber(n *big.Rat) error {
	before := c.text()
	if err := c.set(n); err != nil {
		return err
	}
	err := c.run()
	if err != nil && before != "" {
		if n, parseErr := c.parse(before); parseErr == nil {
			c.set(n)
		}
	}
	return err
}

func (c *custom) Set(text string) error {
	n, err := c.parse(text)
	if err != nil {
		return err
	}
	return c.SetNumber(n)
}

type boolean struct{ at *bool }

func (b *boolean) Type() string   { return "bool" }
func (b *boolean) String() string { return strconv.FormatBool(*b.at) }

func (b *boolean) Set(text string) (err error) {
	switch text {
	case "on":
		*b.at = true
	case "off":
		*b.at = false
	default:
		var v bool
		if v, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("expected on or off, found %q", text)
		}
		*b.at = v
	}
	return nil
}

// Bool declares a switch: a flag without a value turns it on; "on", "off", "true" and "false" set it.
func Bool(at *bool, name, help string) Param {
	p := define(&boolean{at}, name, help, unlessZero(!*at, "on"))
	p.Bare = "true"
	return p
}

type text struct {
	at   *string
	kind string
}

func (t *text) Type() string          { return t.kind }
func (t *text) String() string        { return *t.at }
func (t *text) Set(text string) error { *t.at = text; return nil }

// String declares a text that its owner parses.
func String(at *string, name, help string) Param {
	return define(&text{at, "string"}, name, help, *at)
}

// File declares the name of a file.
func File(at *string, name, help string) Param {
	return define(&text{at, "file"}, name, help, *at).OrFile()
}

type choice struct {
	at      *string
	choices []string
}

func (c *choice) Type() string   { return "name" }
func (c *choice) String() string { return *c.at }

func (c *choice) Set(text string) error {
	if !slices.Contains(c.choices, text) {
		return fmt.Errorf("expected %s, found %q", list(c.choices), text)
	}
	*c.at = text
	return nil
}

// list joins names: "a, b or c".
func list(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " or " + names[n-1]
	}
	return strings.Join(names, "")
}

// Choice declares one name out of several.
func Choice(at *string, name, help string, choices ...string) Param {
	p := define(&choice{at, choices}, name, help, *at)
	p.Choices = choices
	return p
}

// Textual is a value with its own text form.
type Textual interface {
	encoding.TextUnmarshaler
	encoding.TextMarshaler
}

type textual struct {
	at   Textual
	kind string
}

func (t *textual) Type() string { return t.kind }

func (t *textual) String() string {
	b, err := t.at.MarshalText()
	if err != nil {
		return ""
	}
	return string(b)
}

func (t *textual) Set(text string) error { return t.at.UnmarshalText([]byte(text)) }

// Enum declares one of the named choices, a value with its own text form.
func Enum(at Textual, name, help string, choices ...string) Param {
	v := &textual{at, "name"}
	p := define(v, name, help, v.String())
	p.Choices = choices
	return p
}

type texts struct {
	at    *[]string
	comma bool
}

func (l *texts) Type() string   { return "string" }
func (l *texts) String() string { return strings.Join(*l.at, ",") }

func (l *texts) Set(text string) error {
	if l.comma {
		*l.at = append(*l.at, strings.Split(text, ",")...)
	} else {
		*l.at = append(*l.at, text)
	}
	return nil
}

// Strings declares a text that may be given several times.
func Strings(at *[]string, name, help string) Param {
	p := define(&texts{at: at}, name, help, "")
	p.Repeated = true
	return p
}

// Func declares a parameter that calls a function of its owner with the text.
func Func(kind, name, help string, set func(text string) error) Param {
	return define(&function{kind, set}, name, help, "")
}

type function struct {
	kind string
	set  func(string) error
}

func (f *function) Type() string          { return f.kind }
func (f *function) String() string        { return "" }
func (f *function) Set(text string) error { return f.set(text) }
