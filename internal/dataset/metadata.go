package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/param"
)

// Metadata describes a set: the keys of dataset.yaml. A zero value is an absent key.
type Metadata struct {
	Name        string // for programs
	Title       string
	Description string // paragraphs
	License     string // SPDX identifier, or "other"
	LicenseURL  string // of the licence "other"
	Creators    []Agent
	Version     string // MAJOR.MINOR.PATCH
	URL         string
	Date        string // of the first publication, YYYY-MM-DD
	Modified    string // date of the last change, YYYY-MM-DD
	Citation    string // BibTeX
	Keywords    []string
	DOI         string // without https://doi.org/
	Funders     []Agent
	Sources     []string        // what the set was made from: URLs or texts
	Tags        []string        // KEY=VALUE, sorted by key; keys are unique
	Traces      []TraceMetadata // sorted by name
}

// TraceMetadata describes a trace of a set. A zero value is an absent key.
type TraceMetadata struct {
	Name     string
	Title    string
	License  string // SPDX identifier, or "other"
	Creators []Agent
	Source   string
	Citation string
	Tags     []string // KEY=VALUE, sorted by key; keys are unique
}

// Agent is a person or an organization.
type Agent struct {
	Name         string
	ORCID        string // 0000-0000-0000-0000
	URL          string
	Affiliation  string
	Organization bool
}

// key is a key of the metadata. One of its functions returns the place of the value.
type key struct {
	name     string
	required string // what the value is, for the message about an absent one
	text     func(m *Metadata) *string
	texts    func(m *Metadata) *[]string
	agents   func(m *Metadata) *[]Agent
	tags     func(m *Metadata) *[]string
	check    check // of a text
	group    bool  // agents without a type are organizations
}

// keys are the keys of the metadata but traces, in the order of dataset.yaml.
var keys = []key{
	{name: "name", text: func(m *Metadata) *string { return &m.Name }, check: checkName},
	{name: "title", text: func(m *Metadata) *string { return &m.Title }, check: checkLine,
		required: "a short name for people"},
	{name: "description", text: func(m *Metadata) *string { return &m.Description }, check: checkProse,
		required: "what the traces are, and how they were made"},
	{name: "license", text: func(m *Metadata) *string { return &m.License }, check: checkLicense,
		required: "an SPDX identifier such as CC-BY-4.0"},
	{name: "license_url", text: func(m *Metadata) *string { return &m.LicenseURL }, check: checkURL},
	{name: "creator", agents: func(m *Metadata) *[]Agent { return &m.Creators },
		required: "a name, or a list of names"},
	{name: "version", text: func(m *Metadata) *string { return &m.Version }, check: checkVersion},
	{name: "url", text: func(m *Metadata) *string { return &m.URL }, check: checkURL},
	{name: "date", text: func(m *Metadata) *string { return &m.Date }, check: checkDate},
	{name: "modified", text: func(m *Metadata) *string { return &m.Modified }, check: checkDate},
	{name: "citation", text: func(m *Metadata) *string { return &m.Citation }, check: checkProse},
	{name: "keywords", texts: func(m *Metadata) *[]string { return &m.Keywords }, check: checkLine},
	{name: "doi", text: func(m *Metadata) *string { return &m.DOI }, check: checkDOI},
	{name: "funder", agents: func(m *Metadata) *[]Agent { return &m.Funders }, group: true},
	{name: "source", texts: func(m *Metadata) *[]string { return &m.Sources }, check: checkLine},
	{name: "tags", tags: func(m *Metadata) *[]string { return &m.Tags }},
}

// traceKey is a key of the metadata of a trace.
type traceKey struct {
	name  string
	text  func(t *TraceMetadata) *string // or creator or tags
	check check
}

var traceKeys = []traceKey{
	{"title", func(t *TraceMetadata) *string { return &t.Title }, checkLine},
	{"license", func(t *TraceMetadata) *string { return &t.License }, checkLicense},
	{name: "creator"},
	{"source", func(t *TraceMetadata) *string { return &t.Source }, checkLine},
	{"citation", func(t *TraceMetadata) *string { return &t.Citation }, checkProse},
	{name: "tags"},
}

// names returns the names of all keys of the metadata.
func names() (all []string) {
	for _, k := range keys {
		all = append(all, k.name)
	}
	return append(all, "traces")
}

// Set sets a key with one text to the text of a flag: title, description, creator, license, citation, version, url,
// date, keyword or tag (KEY=VALUE). Repeated creators, keywords and tags add to the list.
func (m *Metadata) Set(name, text string) error {
	switch name {
	case "keyword":
		name = "keywords"
	case "tag":
		name = "tags"
	}
	at := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
	if at < 0 {
		return fmt.Errorf("expected a key out of %s, found %q%s", strings.Join(names(), ", "), name,
			param.Suggest(name, names()))
	}
	var p parser
	p.set(&keys[at], m, &conf.Node{Kind: conf.Word, Text: text})
	if len(p.problems) > 0 {
		return fmt.Errorf("expected %s, found %s", p.problems[0].Expected, p.problems[0].Found)
	}
	return nil
}

// Merge adds over, whose values win. Lists replace lists; tags and traces are merged by name.
func (m *Metadata) Merge(over *Metadata) {
	for _, k := range keys {
		switch {
		case k.text != nil:
			mergeText(k.text(m), *k.text(over))
		case k.texts != nil:
			mergeList(k.texts(m), *k.texts(over))
		case k.agents != nil:
			mergeList(k.agents(m), *k.agents(over))
		default:
			*k.tags(m) = mergeTags(*k.tags(m), *k.tags(over))
		}
	}
	m.mergeTraces(over.Traces)
}

// mergeTraces merges the metadata of traces.
func (m *Metadata) mergeTraces(over []TraceMetadata) {
	m.Traces = slices.Clone(m.Traces)
	at := make(map[string]int, len(m.Traces))
	for i := range m.Traces {
		at[m.Traces[i].Name] = i
	}
	for i := range over {
		from := &over[i]
		if _, ok := at[from.Name]; !ok {
			at[from.Name] = len(m.Traces)
			m.Traces = append(m.Traces, TraceMetadata{Name: from.Name})
		}
		t := &m.Traces[at[from.Name]]
		for _, k := range traceKeys {
			if k.text != nil {
				mergeText(k.text(t), *k.text(from))
			}
		}
		mergeList(&t.Creators, from.Creators)
		t.Tags = mergeTags(t.Tags, from.Tags)
	}
	sortTraces(m.Traces)
}

func sortTraces(traces []TraceMetadata) {
	slices.SortFunc(traces, func(a, b TraceMetadata) int { return strings.Compare(a.Name, b.Name) })
}

func mergeText(to *string, over string) {
	if over != "" {
		*to = over
	}
}

func mergeList[T any](to *[]T, over []T) {
	if len(over) > 0 {
		*to = slices.Clone(over)
	}
}

// mergeTags returns the sorted union of two lists of tags. Those of over replace others of their key.
func mergeTags(tags, over []string) (all []string) {
	for _, tag := range tags {
		sameKey := func(other string) bool { return tagKey(other) == tagKey(tag) }
		if !slices.ContainsFunc(over, sameKey) {
			all = append(all, tag)
		}
	}
	all = append(all, over...)
	slices.Sort(all)
	return all
}

func tagKey(tag string) string {
	key, _, _ := strings.Cut(tag, "=")
	return key
}

func (m *Metadata) find(name string) (at int, found bool) {
	return slices.BinarySearchFunc(m.Traces, name, func(t TraceMetadata, name string) int {
		return strings.Compare(t.Name, name)
	})
}

// Trace returns the metadata of a trace. License, Creators, Source and Citation default to those of the set; Tags
// include those of the set.
func (m *Metadata) Trace(name string) TraceMetadata {
	t := TraceMetadata{Name: name}
	if at, found := m.find(name); found {
		t = m.Traces[at]
	}
	if t.License == "" {
		t.License = m.License
	}
	if len(t.Creators) == 0 {
		t.Creators = m.Creators
	}
	if t.Source == "" {
		t.Source = strings.Join(m.Sources, "; ")
	}
	if t.Citation == "" {
		t.Citation = m.Citation
	}
	t.Tags = mergeTags(m.Tags, t.Tags)
	return t
}

// Creator returns the names of the creators with semicolons in between.
func (t *TraceMetadata) Creator() string {
	return agentNames(t.Creators, "; ")
}

func agentNames(agents []Agent, separator string) string {
	all := make([]string, len(agents))
	for i, a := range agents {
		all[i] = a.Name
	}
	return strings.Join(all, separator)
}

// Complete fills in default values: the name from that of the folder, version 1.0.0, a URL, and the date today
// (YYYY-MM-DD). before is the metadata of the set as published, nil if there is none: a new date becomes Modified, and
// Date remains that of the first publication. It returns warnings.
func (m *Metadata) Complete(before *Metadata, folder, today string) (warnings []string) {
	if m.Name == "" {
		m.Name = nameOf(folder)
	}
	mergeDefault(&m.Version, "1.0.0")
	if m.URL == "" {
		m.URL = "https://example.org/" + m.Name
		warnings = append(warnings, "the set has no url: Croissant requires one, and "+m.URL+
			" stands in for it; set url in the metadata, or --url")
	}
	if before != nil && before.Date != "" {
		mergeDefault(&m.Date, before.Date)
		if m.Date != before.Date {
			m.Date, m.Modified = before.Date, m.Date
		}
	}
	mergeDefault(&m.Date, today)
	return warnings
}

func mergeDefault(to *string, text string) {
	if *to == "" {
		*to = text
	}
}

// Bump returns the next version. part is major, minor or patch; the parts after it become 0.
func Bump(version, part string) (string, error) {
	if _, expected, _ := checkVersion(version); expected != "" {
		return "", fmt.Errorf("expected %s, found %.60q", expected, version)
	}
	parts := []string{"major", "minor", "patch"}
	at := slices.Index(parts, part)
	if at < 0 {
		return "", fmt.Errorf("expected major, minor or patch, found %.60q%s", part, param.Suggest(part, parts))
	}
	numbers := strings.Split(version, ".")
	n, err := strconv.ParseUint(numbers[at], 10, 32) // checkVersion limits the digits
	if err != nil {
		return "", err
	}
	numbers[at] = strconv.FormatUint(n+1, 10)
	for i := at + 1; i < len(numbers); i++ {
		numbers[i] = "0"
	}
	return strings.Join(numbers, "."), nil
}
