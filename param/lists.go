package param

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/units"
)

// OneOf declares a parameter that is one of several named values. Names match regardless of case, "-" and "_".
func OneOf[T fmt.Stringer](at *T, name, help string, values ...T) Param {
	c := &oneOf[T]{at: at, values: values}
	for _, v := range values {
		c.names = append(c.names, v.String())
	}
	p := define(c, name, help, c.String())
	p.Choices = c.names
	return p
}

type oneOf[T fmt.Stringer] struct {
	at     *T
	values []T
	names  []string
}

func (c *oneOf[T]) Type() string   { return "name" }
func (c *oneOf[T]) String() string { return (*c.at).String() }

func (c *oneOf[T]) Set(text string) error {
	word := plain(text)
	for i, name := range c.names {
		if name == word {
			*c.at = c.values[i]
			return nil
		}
	}
	return errors.New("expected one of " + strings.Join(c.names, ", "))
}

// Dims declares integers of at least 0, one per dimension, such as 4x4x2.
func Dims[T ~int | ~int64](at *[]T, name, help string) Param {
	d := &dims[T]{at}
	return define(d, name, help, d.String())
}

type dims[T ~int | ~int64] struct{ at *[]T }

func (d *dims[T]) Type() string { return "dims" }

func (d *dims[T]) String() string {
	parts := make([]string, len(*d.at))
	for i, n := range *d.at {
		parts[i] = formatInt(n)
	}
	return strings.Join(parts, "x")
}

func (d *dims[T]) Set(text string) error {
	var list []T
	for part := range strings.SplitSeq(text, "x") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n < 0 || int64(T(n)) != n {
			return errors.New("expected numbers with x between them, such as 4x4x2")
		}
		list = append(list, T(n))
	}
	*d.at = list
	return nil
}

// Bandwidth declares the finite bandwidth of a memory or link, kept as whole bytes per second; 0 is no bandwidth given.
func Bandwidth(at *int64, name, help string) Param {
	text := func(n int64) string { return unlessZero(n == 0, units.FormatSize(n)+"/s") }
	return define(wholeNumber(at, "rate", units.ParseBandwidth, text), name, help, text(*at))
}
