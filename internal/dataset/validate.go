package dataset

import (
	"fmt"
	"slices"
	"strings"
)

// Validate checks the metadata and brings them to their normal form. The error names all absent and wrong keys, and
// ends with an example of a file.
func (m *Metadata) Validate() error {
	var p parser
	var absent []string
	for i := range keys {
		k := &keys[i]
		if k.required != "" && m.lacks(k) {
			absent = append(absent, fmt.Sprintf("%s: expected %s, found none", k.name, k.required))
			continue
		}
		p.normalize(k, m)
	}
	sortTraces(m.Traces)
	for i := range m.Traces {
		if p.more {
			break // each further problem takes time
		}
		if i > 0 && m.Traces[i].Name == m.Traces[i-1].Name {
			p.fail(0, "traces", "each trace once", fmt.Sprintf("a second %.60q", m.Traces[i].Name))
		}
		p.normalizeTrace(&m.Traces[i])
	}
	p.together(m)
	for _, problem := range p.problems {
		absent = append(absent, fmt.Sprintf("%s: expected %s, found %s", problem.Key, problem.Expected, problem.Found))
	}
	if p.more {
		absent = append(absent, "more problems after these")
	}
	if len(absent) == 0 {
		return m.checkSize()
	}
	return fmt.Errorf("the metadata of the set are incomplete or wrong:\n  %s\n"+
		"Write them to a file such as this one, and name it with --meta:\n\n%s", strings.Join(absent, "\n  "),
		Template(m.Name))
}

// checkSize returns an error if the metadata are too large to be read again.
func (m *Metadata) checkSize() error {
	if size := len(m.YAML()); size > MaxMetadataSize {
		return fmt.Errorf("expected at most %d bytes of metadata in all, found %d; shorten texts of traces",
			MaxMetadataSize, size)
	}
	return nil
}

// lacks reports whether a key has no value.
func (m *Metadata) lacks(k *key) bool {
	switch {
	case k.text != nil:
		return *k.text(m) == ""
	case k.texts != nil:
		return len(*k.texts(m)) == 0
	case k.agents != nil:
		return len(*k.agents(m)) == 0
	}
	return len(*k.tags(m)) == 0
}

// normalize checks a key with a value.
func (p *parser) normalize(k *key, m *Metadata) {
	switch {
	case m.lacks(k):
	case k.text != nil:
		p.replace(k.name, k.text(m), k.check)
	case k.texts != nil:
		p.replaceAll(k.name, *k.texts(m), k.check)
	case k.agents != nil:
		p.replaceAgents(k.name, *k.agents(m))
	default:
		p.replaceTags(k.name, *k.tags(m))
	}
}

// normalizeTrace checks the metadata of a trace.
func (p *parser) normalizeTrace(t *TraceMetadata) {
	if !validTraceName(t.Name) {
		p.fail(0, "traces", expectedTraceName, fmt.Sprintf("%.60q", t.Name))
		return
	}
	prefix := "traces: " + t.Name + ": "
	for _, k := range traceKeys {
		if k.text != nil && *k.text(t) != "" {
			p.replace(prefix+k.name, k.text(t), k.check)
		}
	}
	p.replaceAgents(prefix+"creator", t.Creators)
	p.replaceTags(prefix+"tags", t.Tags)
}

// replace replaces a text by its normal form.
func (p *parser) replace(key string, text *string, check check) {
	normal, expected, hint := check(*text)
	if expected != "" {
		p.fail(0, key, expected, fmt.Sprintf("%.60q", *text)+hint)
		return
	}
	*text = normal
}

func (p *parser) replaceAll(key string, list []string, check check) {
	if len(list) > maxElements {
		p.fail(0, key, fmt.Sprintf("at most %d elements", maxElements), fmt.Sprint(len(list)))
		return
	}
	for i := range list {
		p.replace(key, &list[i], check)
	}
}

func (p *parser) replaceAgents(key string, agents []Agent) {
	if len(agents) > maxElements {
		p.fail(0, key, fmt.Sprintf("at most %d elements", maxElements), fmt.Sprint(len(agents)))
		return
	}
	for i := range agents {
		before := len(p.problems)
		for _, k := range agentKeys {
			if text := k.text(&agents[i]); *text != "" {
				p.replace(key+": "+k.name, text, k.check)
			}
		}
		if len(p.problems) == before {
			p.checkAgent(0, key, &agents[i])
		}
	}
}

func (p *parser) replaceTags(key string, tags []string) {
	p.replaceAll(key, tags, checkTag)
	slices.Sort(tags)
	for i := range tags[min(1, len(tags)):] {
		if tagKey(tags[i]) == tagKey(tags[i+1]) {
			p.fail(0, key, "each key once", fmt.Sprintf("a second %.60q", tagKey(tags[i])))
		}
	}
}

// together checks keys that depend on others.
func (p *parser) together(m *Metadata) {
	other := m.License == otherLicense
	for i := range m.Traces {
		other = other || m.Traces[i].License == otherLicense
	}
	switch {
	case other && m.LicenseURL == "":
		p.fail(0, "license_url", "the URL of the license other", "none")
	case !other && m.LicenseURL != "" && m.License != "":
		p.fail(0, "license_url", "license: other, or no license_url", fmt.Sprintf("license: %.60s", m.License))
	}
	if m.Date != "" && m.Modified != "" && m.Modified < m.Date {
		p.fail(0, "modified", "a day after the date "+m.Date, fmt.Sprintf("%.60q", m.Modified))
	}
}

// Template returns an example of a file of metadata for a set with a name.
func Template(name string) string {
	if !namePattern.MatchString(name) {
		name = nameOf(name)
	}
	return strings.Replace(template, "NAME", scalar(name), 1)
}

const template = `name: NAME
title: Traces of training jobs            # required
description: |                            # required
  Contents of the traces, how and where they were recorded, and their use.
license: CC-BY-4.0                        # required: an SPDX identifier, or other with license_url
creator:                                  # required: people and organizations
  - name: Josiah Carberry
    orcid: 0000-0002-1825-0097
    affiliation: Brown University
  - name: Example Laboratory
    type: organization
    url: https://example.org
version: 1.0.0
url: https://example.org/traces           # page of the set
keywords: [network traces, simulation]
citation: |                               # BibTeX
  @misc{traces, title={Traces of training jobs}, author={Carberry, Josiah}, year={2026}}
# doi: 10.5281/zenodo.1234
# funder: Example Foundation
# source: [https://example.org/raw]       # what the traces were made from
# date: 2026-01-31                        # of publication
# tags: {system: cluster-a}
# traces:                                 # of single traces: title, license, creator, source, citation, tags
#   ring16: {title: Ring of 16 ranks, license: CC0-1.0, tags: {workload: ring}}
`
