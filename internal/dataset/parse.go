package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/param"
)

// MaxMetadataSize is the largest size of a file of metadata in bytes. YAML has the limits of package conf, too.
const MaxMetadataSize = 1 << 23

// maxProblems is the largest number of problems in a message.
const maxProblems = 20

// parser reads metadata and collects problems.
type parser struct {
	file     string
	problems []*conf.Error
	more     bool // there are more problems
}

// fail adds a problem.
func (p *parser) fail(line int64, key, expected, found string) {
	if len(p.problems) == maxProblems {
		p.more = true
		return
	}
	p.problems = append(p.problems, &conf.Error{File: p.file, Line: line, Key: key, Expected: expected, Found: found})
}

// err returns all problems as one error, a line each.
func (p *parser) err() error {
	all := make([]error, len(p.problems))
	for i, problem := range p.problems {
		all[i] = problem
	}
	if p.more {
		all = append(all, fmt.Errorf("%s: there are more problems after these %d", p.file, maxProblems))
	}
	return errors.Join(all...)
}

// ParseMetadata reads a file of metadata in YAML, or in JSON if it begins with a brace. The error has a line for each
// problem, with file, line, key, what was expected and what was found.
func ParseMetadata(file string, data []byte) (*Metadata, error) {
	if len(data) > MaxMetadataSize {
		return nil, fmt.Errorf("%s: expected at most %d bytes of metadata, found %d", file, MaxMetadataSize, len(data))
	}
	root, err := conf.Read(data, file)
	if err != nil {
		return nil, err
	}
	p := &parser{file: file}
	m := new(Metadata)
	p.members(&root, "", names(), func(member *conf.Member) {
		if member.Key == "traces" {
			p.traces(m, &member.Value)
			return
		}
		p.set(&keys[slices.IndexFunc(keys, func(k key) bool { return k.name == member.Key })], m, &member.Value)
	})
	if err := p.err(); err != nil {
		return nil, err
	}
	return m, nil
}

// members calls do with each member of a mapping that has a value. Keys are unique and, if known is not nil, among it.
func (p *parser) members(n *conf.Node, key string, known []string, do func(m *conf.Member)) {
	if n.Kind == conf.Null {
		return
	}
	if n.Kind != conf.Map {
		p.fail(n.Line, key, "a mapping", n.Found())
		return
	}
	seen := make(map[string]bool, len(n.Members))
	for i := range n.Members {
		m := &n.Members[i]
		switch {
		case p.more: // each further problem takes time
			return
		case known != nil && !slices.Contains(known, m.Key):
			p.fail(m.Line, key, "a key out of "+strings.Join(known, ", "), fmt.Sprintf("%.60q", m.Key)+
				param.Suggest(m.Key, known))
		case seen[m.Key]:
			p.fail(m.Line, key, "each key once", fmt.Sprintf("a second %.60q", m.Key))
		case m.Value.Kind != conf.Null:
			do(m)
		}
		seen[m.Key] = true
	}
}

// traces reads the metadata of traces.
func (p *parser) traces(m *Metadata, n *conf.Node) {
	m.Traces = nil
	p.members(n, "traces", nil, func(member *conf.Member) {
		t := TraceMetadata{Name: member.Key}
		if !validTraceName(t.Name) {
			p.fail(member.Line, "traces", expectedTraceName, fmt.Sprintf("%.60q", t.Name))
			return
		}
		p.members(&member.Value, "traces: "+t.Name, traceKeyNames(), func(member *conf.Member) {
			p.traceKey(&t, member)
		})
		m.Traces = append(m.Traces, t)
	})
	sortTraces(m.Traces)
}

const expectedTraceName = "the name of a trace, at most 100 characters out of a-z, 0-9, -, . and _, the first a letter"

func traceKeyNames() (all []string) {
	for _, k := range traceKeys {
		all = append(all, k.name)
	}
	return all
}

// traceKey reads a key of a trace.
func (p *parser) traceKey(t *TraceMetadata, member *conf.Member) {
	key := "traces: " + t.Name + ": " + member.Key
	switch member.Key {
	case "creator":
		t.Creators = p.agents(key, &member.Value, false)
	case "tags":
		t.Tags = p.tags(key, &member.Value)
	default:
		for _, k := range traceKeys {
			if k.name == member.Key {
				*k.text(t), _ = p.text(key, &member.Value, k.check)
			}
		}
	}
}

// set sets a key of the metadata to the value of a node. Values of lists are added.
func (p *parser) set(k *key, m *Metadata, n *conf.Node) {
	switch {
	case k.text != nil:
		*k.text(m), _ = p.text(k.name, n, k.check)
	case k.texts != nil:
		list := k.texts(m)
		p.list(k.name, n, func(n *conf.Node) {
			if text, ok := p.text(k.name, n, k.check); ok && !slices.Contains(*list, text) {
				*list = append(*list, text)
			}
		})
	case k.agents != nil:
		*k.agents(m) = append(*k.agents(m), p.agents(k.name, n, k.group)...)
	default:
		*k.tags(m) = mergeTags(*k.tags(m), p.tags(k.name, n))
	}
}

// text returns the text of a scalar.
func (p *parser) text(key string, n *conf.Node, check check) (string, bool) {
	if n.Kind == conf.List || n.Kind == conf.Map {
		p.fail(n.Line, key, "one value", n.Found())
		return "", false
	}
	text, expected, hint := check(n.Text)
	if expected != "" {
		p.fail(n.Line, key, expected, fmt.Sprintf("%.60q", n.Text)+hint)
	}
	return text, expected == ""
}

// list calls do with each element of a list that is not empty, or with the only value.
func (p *parser) list(key string, n *conf.Node, do func(n *conf.Node)) {
	if n.Kind != conf.List {
		do(n)
		return
	}
	if len(n.List) > maxElements {
		p.fail(n.Line, key, fmt.Sprintf("at most %d elements", maxElements), strconv.Itoa(len(n.List)))
		return
	}
	for i := range n.List {
		if n.List[i].Kind != conf.Null && !p.more {
			do(&n.List[i])
		}
	}
}

// agents reads people and organizations: a name, a mapping, or a list of them.
func (p *parser) agents(key string, n *conf.Node, group bool) (all []Agent) {
	p.list(key, n, func(n *conf.Node) {
		a := Agent{Organization: group}
		ok := true
		if n.Kind == conf.Map {
			ok = p.agent(key, n, &a)
		} else {
			a.Name, ok = p.text(key, n, checkLine)
		}
		if ok {
			all = append(all, a)
		}
	})
	return all
}

// agentKeys are the keys of a person or an organization with texts.
var agentKeys = []struct {
	name  string
	text  func(a *Agent) *string
	check check
}{
	{"name", func(a *Agent) *string { return &a.Name }, checkLine},
	{"orcid", func(a *Agent) *string { return &a.ORCID }, checkORCID},
	{"url", func(a *Agent) *string { return &a.URL }, checkURL},
	{"affiliation", func(a *Agent) *string { return &a.Affiliation }, checkLine},
}

// agent reads a mapping.
func (p *parser) agent(key string, n *conf.Node, a *Agent) bool {
	before := len(p.problems)
	known := []string{"type"}
	for _, k := range agentKeys {
		known = append(known, k.name)
	}
	p.members(n, key, known, func(m *conf.Member) {
		if m.Key == "type" {
			a.Organization = m.Value.Text == "organization"
			if !a.Organization && m.Value.Text != "person" {
				p.fail(m.Line, key+": type", "person or organization", m.Value.Found())
			}
			return
		}
		for _, k := range agentKeys {
			if k.name == m.Key {
				*k.text(a), _ = p.text(key+": "+m.Key, &m.Value, k.check)
			}
		}
	})
	if len(p.problems) == before {
		p.checkAgent(n.Line, key, a)
	}
	return len(p.problems) == before
}

// checkAgent checks the keys of an agent together.
func (p *parser) checkAgent(line int64, key string, a *Agent) {
	switch {
	case a.Name == "":
		p.fail(line, key, "a name", "none")
	case a.Organization && a.ORCID != "":
		p.fail(line, key, "the orcid of a person", "that of an organization, which has a url instead")
	}
}

// tags reads a mapping of keys and values, or a list of KEY=VALUE.
func (p *parser) tags(key string, n *conf.Node) (all []string) {
	add := func(n *conf.Node) {
		tag, ok := p.text(key, n, checkTag)
		if ok && slices.ContainsFunc(all, func(other string) bool { return tagKey(other) == tagKey(tag) }) {
			p.fail(n.Line, key, "each key once", fmt.Sprintf("a second %q", tagKey(tag)))
		} else if ok {
			all = append(all, tag)
		}
	}
	if n.Kind != conf.Map {
		p.list(key, n, add)
	} else if len(n.Members) > maxElements {
		p.fail(n.Line, key, fmt.Sprintf("at most %d tags", maxElements), strconv.Itoa(len(n.Members)))
	} else {
		p.members(n, key, nil, func(m *conf.Member) {
			if m.Value.Kind == conf.List || m.Value.Kind == conf.Map {
				p.fail(m.Line, key, "one value of a tag", m.Value.Found())
				return
			}
			add(&conf.Node{Line: m.Line, Kind: conf.Text, Text: m.Key + "=" + m.Value.Text})
		})
	}
	slices.Sort(all)
	return all
}
