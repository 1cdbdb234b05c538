// This file has flags whose values are one number for each dimension, such as 4x4x2.

package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// dimsVar defines a flag for numbers that may be one for each dimension.
func dimsVar[T int | int64](flags *pflag.FlagSet, p *[]T, name string, value []T, usage string) {
	*p = value
	flags.Var(&dims[T]{p}, name, usage)
}

type dims[T int | int64] struct{ p *[]T }

func (d *dims[T]) Type() string { return "dims" }

func (d *dims[T]) String() string {
	if d.p == nil { // as pflag makes it to learn what the zero value looks like
		return ""
	}
	var parts []string
	for _, n := range *d.p {
		parts = append(parts, strconv.FormatInt(int64(n), 10))
	}
	return strings.Join(parts, "x")
}

func (d *dims[T]) Set(s string) error {
	var list []T
	for part := range strings.SplitSeq(s, "x") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n < 0 || int64(T(n)) != n {
			return errors.New("expected numbers with x between them, such as 4x4x2")
		}
		list = append(list, T(n))
	}
	*d.p = list
	return nil
}
