package compose

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/param"
)

// policyNames are the policies without arguments, by name and synonym.
var policyNames = map[string]Policy{
	"packed": Packed, "linear": Packed, "roundrobin": RoundRobin, "round-robin": RoundRobin, "round_robin": RoundRobin,
	"rr": RoundRobin, "random": Random, "nodes": OwnNodes,
}

// Policies lists the texts that [ParsePlacement] accepts.
const Policies = "packed, roundrobin, strided:N, random, random:SEED, nodes, file:PATH"

// ParsePlacement parses packed, roundrobin, strided:N, random, random:SEED, nodes or file:PATH. Synonyms: linear for
// packed; rr, round-robin and round_robin for roundrobin.
func ParsePlacement(text string) (Placement, error) {
	if policy, ok := policyNames[text]; ok {
		return Placement{Policy: policy}, nil
	}
	name, argument, found := strings.Cut(text, ":")
	switch {
	case name == "random":
		seed, err := strconv.ParseInt(argument, 10, 64)
		if err != nil {
			return Placement{}, fmt.Errorf("expected random:SEED, where SEED is a whole number, found %.60q", text)
		}
		return Placement{Policy: Random, Seed: seed, Seeded: true}, nil
	case name == "strided" && found:
		stride, err := strconv.ParseUint(argument, 10, 31)
		if err != nil || stride == 0 {
			return Placement{}, fmt.Errorf("strided: expected a whole number from 1, found %.60q", argument)
		}
		return Placement{Policy: Strided, Stride: int(stride)}, nil
	case name == "file" && argument != "":
		return Placement{Policy: Given, File: argument}, nil
	}
	return Placement{}, fmt.Errorf("expected one of %s, found %.60q%s", Policies, text,
		param.Suggest(name, []string{"packed", "roundrobin", "strided", "random", "nodes", "file"}))
}

// Load reads the file of a placement with one. Each line has one node number, below nodes unless nodes is 0.
func (p *Placement) Load(nodes int) error {
	if p.File == "" || p.Nodes != nil {
		return nil
	}
	f, err := os.Open(p.File)
	if err != nil {
		return err
	}
	defer f.Close()
	p.Nodes, err = readNodes(f, p.File, nodes)
	return err
}

// readNodes reads one node number per line, below nodes unless nodes is 0.
func readNodes(r io.Reader, name string, nodes int) ([]int32, error) {
	last := math.MaxInt32
	if nodes > 0 {
		last = nodes - 1
	}
	list := []int32{}
	wrong := func(found string) error {
		return &conf.Error{File: name, Line: int64(len(list)) + 1, Found: found,
			Expected: fmt.Sprintf("the number of a node, 0..%d", last)}
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		node, err := strconv.ParseUint(line, 10, 31)
		if err != nil || node > uint64(last) {
			return nil, wrong(fmt.Sprintf("%.40q", line))
		}
		list = append(list, int32(node))
	}
	switch err := lines.Err(); err {
	case nil:
		return list, nil
	case bufio.ErrTooLong:
		return nil, wrong("a very long line")
	default:
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, &fileError{name, fmt.Errorf("reading: %w", err)}
	}
}
