// This file collects unsupported input.

package mpi

import (
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
)

// problem is a kind of unsupported input.
type problem struct {
	text, class string
	file        string // of the first
	line        int64
	count       int64
}

// problems are the problems of a file or of a trace.
type problems struct {
	list []problem
}

// maxProblems is the maximum number of kinds; a hostile input could have any number.
const maxProblems = 100

func (p *problems) add(line int64, class, text string) {
	p.merge(problem{text: text, class: class, line: line, count: 1})
}

func (p *problems) merge(q problem) {
	if len(p.list) >= maxProblems-1 {
		known := false
		for i := range p.list {
			known = known || p.list[i].text == q.text
		}
		if !known {
			q.text = "other input"
		}
	}
	for i := range p.list {
		if p.list[i].text == q.text {
			p.list[i].count += q.count
			return
		}
	}
	p.list = append(p.list, q)
}

// collect adds the problems of a file.
func (p *problems) collect(file string, of *problems) {
	for _, q := range of.list {
		q.file = file
		p.merge(q)
	}
}

// err returns an error about all problems, or nil if there are none.
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
		others = append(others, fmt.Sprintf("%s (%s)", q.text, times(q.count)))
	}
	return &format.SyntaxError{File: first.file, Line: first.line, Class: first.class,
		Expected: "supported calls only (--lenient skips others)", Found: strings.Join(others, ", ")}
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// warn reports each problem as skipped input.
func (p *problems) warn(warn func(message string, args ...any)) {
	for _, q := range p.list {
		warn("%s:%d: skipped: %s, %s", q.file, q.line, q.text, times(q.count))
	}
}
