// This file has flags whose value is one of a few names.

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/internal/cli"
)

// choiceVar defines a flag whose value is one of a list, by name. Upper case, - and _ do not matter: ALL_REDUCE is what
// Chakra calls an allreduce.
func choiceVar[T fmt.Stringer](cmd *cobra.Command, p *T, name string, values []T, usage string) {
	var names []string
	for _, v := range values {
		names = append(names, v.String())
	}
	cmd.Flags().Var(&choice[T]{p, values, names}, name, usage+": "+strings.Join(names, ", "))
	cli.CompleteWith(cmd, name, names)
}

type choice[T fmt.Stringer] struct {
	p      *T
	values []T
	names  []string
}

func (c *choice[T]) Type() string { return "name" }

func (c *choice[T]) String() string {
	if c.p == nil { // as pflag makes it to learn what the zero value looks like
		return ""
	}
	return (*c.p).String()
}

func (c *choice[T]) Set(s string) error {
	plain := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
	for i, name := range c.names {
		if name == plain {
			*c.p = c.values[i]
			return nil
		}
	}
	return errors.New("expected one of " + strings.Join(c.names, ", "))
}
