// This file finds the communicators of a trace: the groups that a file defines, groups that nodes of metadata
// define, and undefined groups that ops use.

package chakra

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/memory"
)

// group is the definition of a communicator.
type group struct {
	name  string
	ranks []int32 // nil: all
	from  string  // file, for messages
}

// groups numbers the communicators that a rank uses. Those of the file of groups come first.
type groups struct {
	numbers map[string]int32
	names   []string // by number
	known   int      // number of groups equal on all ranks
	used    []bool
	defined []group // by nodes of the rank
}

func newGroups(defined []group) *groups {
	g := &groups{numbers: make(map[string]int32, len(defined)), names: []string{""}}
	for _, d := range defined {
		g.add(d.name)
	}
	g.known = len(g.names)
	return g
}

func (g *groups) add(name string) int32 {
	n := int32(len(g.names))
	g.names = append(g.names, name)
	g.numbers[name] = n
	return n
}

// of returns the number of a communicator, and its name if a file of groups may define it.
func (g *groups) of(name []byte) (int32, string) {
	if len(name) == 0 || string(name) == "0" {
		return 0, "0"
	}
	n, ok := g.numbers[string(name)]
	if !ok {
		n = g.add(string(name))
	}
	for len(g.used) <= int(n) {
		g.used = append(g.used, false)
	}
	g.used[n] = true
	if s := g.names[n]; isGroupNumber(s) {
		return n, s
	}
	return n, ""
}

// readGroups reads a file of groups: {"1": [0, 1], "2": [2, 3]}.
func readGroups(ctx context.Context, in *format.Input) ([]group, error) {
	text, err := memory.ReadContent(ctx, in.Reader)
	if err != nil {
		return nil, &format.FileError{File: in.Name, Err: err}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // a byte order mark, which some editors write
	d := json.NewDecoder(bytes.NewReader(text))
	wrong := func(expected, found string) error {
		return &format.SyntaxError{File: in.Name, Line: (&lineCounter{text: text}).at(d.InputOffset()), Class: inGroups,
			Expected: expected, Found: found}
	}
	const form = `groups in the form {"1": [0, 1], "2": [2, 3]}`
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, wrong(form, "something else")
	}
	var all []group
	seen := make(map[string]bool)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, wrong(form, foundJSON(err))
		}
		g := group{name: t.(string), ranks: []int32{}, from: in.Name}
		if !isGroupNumber(g.name) {
			return nil, wrong("a group number of 1 or more (group 0 is all ranks)", fmt.Sprintf("%.40q", g.name))
		}
		if seen[g.name] {
			return nil, wrong("each group once", "a second group "+g.name)
		}
		seen[g.name] = true
		var ranks []*int32 // null becomes nil
		err = d.Decode(&ranks)
		if err == nil && (ranks == nil || slices.Contains(ranks, nil)) {
			err = errors.New("null")
		}
		if err != nil {
			return nil, wrong("a list of the ranks of group "+g.name, foundJSON(err))
		}
		for _, rank := range ranks {
			g.ranks = append(g.ranks, *rank)
		}
		all = append(all, g)
	}
	if _, err := d.Token(); err != nil {
		return nil, wrong(form, foundJSON(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, wrong("the end of the groups", "more")
	}
	return all, nil
}

// foundJSON returns the found JSON for a message.
func foundJSON(err error) string {
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mistyped):
		return mistyped.Value
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return "the end of the file"
	}
	return err.Error()
}

// processGroups returns the groups that a node of PyTorch metadata defines. Its inputs are a Python list with one
// string, which is JSON with a list of groups.
func processGroups(inputs, from string) ([]group, bool) {
	text, isList := strings.CutPrefix(strings.TrimSpace(inputs), "[")
	text, isWhole := strings.CutSuffix(text, "]")
	if !isList || !isWhole || len(text) < 2 {
		return nil, false
	}
	quote := text[0]
	if quote != '\'' && quote != '"' || text[len(text)-1] != quote {
		return nil, false
	}
	text = strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(text[1 : len(text)-1])
	var list []struct {
		Name  any     `json:"pg_name"`
		Ranks []int32 `json:"ranks"`
	}
	if json.Unmarshal([]byte(text), &list) != nil {
		return nil, false
	}
	var all []group
	for _, g := range list {
		if g.Name == nil {
			return nil, false
		}
		name := fmt.Sprint(g.Name)
		if len(g.Ranks) == 0 {
			g.Ranks = nil
		}
		all = append(all, group{name, g.Ranks, from})
	}
	return all, true
}

// communicators creates the communicators of the trace from those that the ranks use and define, and renumbers the
// communicators of ops. It returns the names of undefined communicators.
func communicators(t *dag.Trace, defined []group, ranks []*groups, shared bool, o *format.ReadOptions) (
	[]string, error) {
	n := len(t.Ranks)
	t.Comms = []dag.Comm{dag.World(n)}
	numbers := make(map[string]int32)
	byName := make(map[string]*group)
	add := func(g *group) error {
		members := g.ranks
		if members == nil {
			members = everyone(n)
		}
		c := dag.NewComm(g.name, members)
		if err := c.Check(n); err != nil {
			return format.FileErrorf(g.from, "%s: group %s: %w", inGroups, g.name, err)
		}
		numbers[g.name] = int32(len(t.Comms))
		byName[g.name] = g
		t.Comms = append(t.Comms, c)
		return nil
	}
	for i := range defined {
		if err := add(&defined[i]); err != nil {
			return nil, err
		}
	}
	for _, r := range ranks {
		for i := range r.defined {
			g := &r.defined[i]
			number, known := numbers[g.name]
			switch {
			case g.name == "" || g.name == "0":
				number, known = 0, true
				if g.ranks == nil {
					continue
				}
			case !known:
				if err := add(g); err != nil {
					return nil, err
				}
				continue
			}
			members := g.ranks
			if members == nil {
				members = everyone(n)
			}
			if c := dag.NewComm("", members); !sameMembers(&c, &t.Comms[number]) {
				other := "all ranks"
				if first := byName[g.name]; first != nil {
					other = "that of " + first.from
				}
				if number != 0 && int(number) > len(defined) && !o.Lenient {
					return nil, format.FileErrorf(g.from, "%s: process group %s differs from %s", inGroups,
						g.name, other)
				}
				o.Warn("%s: process group %s differs from %s, which is used", g.from, g.name, other)
			}
		}
	}
	undefined, err := usersOf(t, numbers, ranks, shared)
	if err != nil {
		return nil, err
	}
	for i, r := range ranks {
		renumber(t.Ranks[i], r, numbers)
	}
	if shared {
		for i := range t.Ranks {
			t.Ranks[i] = t.Ranks[0]
		}
	}
	return undefined, nil
}

func everyone(ranks int) []int32 {
	world := dag.World(ranks)
	return world.Members()
}

func sameMembers(c, d *dag.Comm) bool {
	return c.Equal(&dag.Comm{Ranges: d.Ranges})
}

// usersOf adds the undefined communicators that ranks use. Their members are those ranks, or all ranks if one file
// describes all.
func usersOf(t *dag.Trace, numbers map[string]int32, ranks []*groups, shared bool) ([]string, error) {
	var names []string
	users := make(map[string][]int32)
	for rank, r := range ranks {
		for n, used := range r.used {
			name := r.names[n]
			if !used {
				continue
			}
			if _, known := numbers[name]; known {
				continue
			}
			if users[name] == nil {
				names = append(names, name)
			}
			users[name] = append(users[name], int32(rank))
		}
	}
	for _, name := range names {
		members := users[name]
		if shared {
			members = everyone(len(t.Ranks))
		}
		numbers[name] = int32(len(t.Comms))
		comm := dag.NewComm(name, members)
		comm.Undefined = true
		t.Comms = append(t.Comms, comm)
	}
	return names, nil
}

// renumber replaces the communicator numbers of a rank by those of the trace.
func renumber(rank *dag.Rank, g *groups, numbers map[string]int32) {
	same := true
	for n, used := range g.used {
		same = same && (!used || numbers[g.names[n]] == int32(n))
	}
	if same || rank.Len() == 0 {
		return
	}
	comms := make([]int32, rank.Comm.Len())
	rank.Comm.Copy(comms, 0)
	for i, n := range comms {
		if n != 0 {
			comms[i] = numbers[g.names[n]]
		}
	}
	rank.Comm = dag.Narrow{}
	rank.Comm.SetRange(0, comms)
}
