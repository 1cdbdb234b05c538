// This file collects what cannot be understood.

package mpi

import (
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
)

// problem is a kind of thing that cannot be understood.
type problem struct {
	what, class string
	file        string // of the first
	line        int64
	count       int64
}

// problems are those of a file, or of a trace.
type problems struct {
	list []problem
}

// maxProblems is how many kinds are told apart; a hostile input could have any number.
const maxProblems = 100

func (p *problems) add(line int64, class, what string) {
	p.merge(problem{what: what, class: class, line: line, count: 1})
}

func (p *problems) merge(q problem) {
	if len(p.list) >= maxProblems-1 {
		known := false
		for i := range p.list {
			known = known || p.list[i].what == q.what
		}
		if !known {
			q.what = "other things"
		}
	}
	for i := range p.list {
		if p.list[i].what == q.what {
			p.list[i].count += q.count
			return
		}
	}
	p.list = append(p.list, q)
}

// collect takes over the problems of a file.
func (p *problems) collect(file string, of *problems) {
	for _, q := range of.list {
		q.file = file
		p.merge(q)
	}
}

// err returns an error about all problems, nil if there are none.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	first := p.list[0]
	var others []string
	for i, q := range p.list {
		const most = 5
		if i == most {
			others = append(others, fmt.Sprintf("and %d other kinds", len(p.list)-most))
			break
		}
		others = append(others, fmt.Sprintf("%s (%s)", q.what, times(q.count)))
	}
	return &format.SyntaxError{File: first.file, Line: first.line, Class: first.class,
		Expected: "what this reader understands (--lenient leaves out the rest)", Found: strings.Join(others, ", ")}
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// warn reports each problem as something left out.
func (p *problems) warn(warn func(message string, args ...any)) {
	for _, q := range p.list {
		warn("%s:%d: left out: %s, %s", q.file, q.line, q.what, times(q.count))
	}
}
