package dataset

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// sample returns metadata with a value of every key.
func sample() *Metadata {
	m, err := ParseMetadata("f", []byte(`
name: example
title: "Two small traces: 50 % | <b>"
description: |
  A ring of 16 ranks.

  And four Horovod workers, "both" generated.
license: cc-by-4.0
creator:
  - The tracedag authors
  - {name: Josiah Carberry, orcid: "https://orcid.org/0000-0002-1825-0097", affiliation: Brown University}
  - {name: Laboratory, type: organization, url: "https://example.org/lab"}
version: 1.2.3
url: https://example.org/traces
date: 2026-11-22
modified: 2026-11-23
citation: "@misc{example,\n  title={Two small traces}}"
keywords: [network traces, simulation, "no", "1e3"]
doi: https://doi.org/10.5281/zenodo.1234
funder: [A Foundation, {name: A Person, type: person}]
source: [https://example.org/raw, measurements]
tags: {system: "1", site: b}
traces:
  ring16: {title: Ring, license: CC0-1.0, creator: Somebody, source: a model, citation: "@misc{r}", tags: [site=c]}
  "null": {tags: {z: null, k: x}}
`))
	if err != nil {
		panic(err)
	}
	if err := m.Validate(); err != nil {
		panic(err)
	}
	return m
}

func TestParseMetadata(t *testing.T) {
	got := sample()
	want := &Metadata{Name: "example", Title: "Two small traces: 50 % | <b>",
		Description: "A ring of 16 ranks.\n\nAnd four Horovod workers, \"both\" generated.", License: "CC-BY-4.0",
		Creators: []Agent{{Name: "The tracedag authors"},
			{Name: "Josiah Carberry", ORCID: "0000-0002-1825-0097", Affiliation: "Brown University"},
			{Name: "Laboratory", URL: "https://example.org/lab", Organization: true}},
		Version: "1.2.3", URL: "https://example.org/traces", Date: "2026-11-22", Modified: "2026-11-23",
		Citation: "@misc{example,\n  title={Two small traces}}",
		Keywords: []string{"network traces", "simulation", "no", "1e3"}, DOI: "10.5281/zenodo.1234",
		Funders: []Agent{{Name: "A Foundation", Organization: true}, {Name: "A Person"}},
		Sources: []string{"https://example.org/raw", "measurements"}, Tags: []string{"site=b", "system=1"},
		Traces: []TraceMetadata{{Name: "null", Tags: []string{"k=x"}},
			{Name: "ring16", Title: "Ring", License: "CC0-1.0", Creators: []Agent{{Name: "Somebody"}},
				Source: "a model", Citation: "@misc{r}", Tags: []string{"site=c"}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	trace := got.Trace("ring16")
	if trace.Creator() != "Somebody" || strings.Join(trace.Tags, ",") != "site=c,system=1" {
		t.Errorf("trace %+v", trace)
	}
	if other := got.Trace("x"); other.License != "CC-BY-4.0" || other.Creator() !=
		"The tracedag authors; Josiah Carberry; Laboratory" || other.Source != "https://example.org/raw; measurements" {
		t.Errorf("other trace %+v", other)
	}
}

func TestParseMetadataErrors(t *testing.T) {
	for text, want := range map[string]string{
		"titel: x":                              `f:1: expected a key out of name, title, description, license, license_url, creator, version, url, date, modified, citation, keywords, doi, funder, source, tags, traces, found "titel"; did you mean "title"?`,
		"[]":                                    "f:1: expected a mapping, found a list",
		"title: [a]":                            "f:1: title: expected one value, found a list",
		"title: ' '":                            `f:1: title: expected a line of 1 to 1000 bytes of UTF-8 without control characters, found " "`,
		`title: "a\nb"`:                         `f:1: title: expected a line of`,
		`description: "a\u0000b"`:               `f:1: description: expected text of 1 to 65536 bytes`,
		"name: My Set":                          `f:1: name: expected 1 to 100 characters out of a-z, 0-9, -, ., _ and /, the first a letter or digit, found "My Set"; did you mean "my-set"?`,
		"license: CC-BY 4.0":                    `f:1: license: expected an SPDX identifier such as CC-BY-4.0 (https://spdx.org/licenses), or other with license_url, found "CC-BY 4.0"; did you mean "CC-BY-4.0"?`,
		"license: GPL-3.0":                      `f:1: license: expected an SPDX identifier that is not deprecated, found "GPL-3.0"; did you mean "GPL-3.0-only" or "GPL-3.0-or-later"?`,
		"license: cc0":                          `f:1: license: expected an SPDX identifier such as CC-BY-4.0 (https://spdx.org/licenses), or other with license_url, found "cc0"; did you mean "CC0-1.0"?`,
		"license: Apache-2":                     `f:1: license: expected an SPDX identifier such as CC-BY-4.0 (https://spdx.org/licenses), or other with license_url, found "Apache-2"; did you mean "Apache-2.0"?`,
		"license: MIT OR Apache-2.0":            "f:1: license: expected an SPDX identifier",
		"version: 1.0":                          `f:1: version: expected a version MAJOR.MINOR.PATCH such as 1.0.0, found "1.0"`,
		"version: 01.0.0":                       "f:1: version: expected a version",
		"url: ftp://example.org":                `f:1: url: expected a URL such as https://example.org/traces, found "ftp://example.org"`,
		"url: https:///x":                       "f:1: url: expected a URL",
		"url: 'https://a b/'":                   "f:1: url: expected a URL",
		"date: 2026-02-29":                      `f:1: date: expected a day as YYYY-MM-DD, found "2026-02-29"`,
		"date: 26-02-01":                        "f:1: date: expected a day",
		"modified: 2026-2-1":                    "f:1: modified: expected a day",
		"doi: 11.1/x":                           `f:1: doi: expected a DOI such as 10.5281/zenodo.1234, found "11.1/x"`,
		"creator: {orcid: 0000-0002-1825-0097}": "f:1: creator: expected a name, found none",
		"creator: {name: x, orcid: 0000-0002-1825-0098}":                     `f:1: creator: orcid: expected an ORCID iD with the check character 7, found "0000-0002-1825-0098"; one of its digits is wrong`,
		"creator: {name: x, orcid: 1234}":                                    "f:1: creator: orcid: expected an ORCID iD such as",
		"creator: [{name: x, type: robot}]":                                  `f:1: creator: type: expected person or organization, found "robot"`,
		"creator:\n- x\n- {name: x, mail: y}":                                `f:3: creator: expected a key out of type, name, orcid, url, affiliation, found "mail"`,
		"creator: {name: x, type: organization, orcid: 0000-0002-1825-0097}": "f:1: creator: expected the orcid of a person",
		"creator: [[x]]":                "f:1: creator: expected one value, found a list",
		"tags: x":                       "f:1: tags: expected KEY=VALUE",
		"tags: {1a: x}":                 "f:1:",
		"tags: {a b: x}":                "f:1: tags: expected KEY=VALUE",
		"tags: {a: [x]}":                "f:1: tags: expected one value of a tag, found a list",
		"tags: [a=1, a=2]":              `f:1: tags: expected each key once, found a second "a"`,
		"traces: {Ring: {}}":            `f:1: traces: expected the name of a trace`,
		"traces: {a..b: {}}":            `f:1: traces: expected the name of a trace`,
		"traces: {ring: {titel: x}}":    `f:1: traces: ring: expected a key out of title, license, creator, source, citation, tags, found "titel"; did you mean "title"?`,
		"traces: {ring: {license: x1}}": `f:1: traces: ring: license: expected an SPDX identifier`,
		`{"title": "a", "title": "b"}`:  `f:1: expected each key once, found a second "title"`,
		"title: a\ntitle: b":            "f:2: ",
		"a: &x 1":                       "f:1: ",
		"keywords: [a, '']":             "f:1: keywords: expected a line",
		"keywords: [" + strings.Repeat("a,", 1001) + "]": "f:1: keywords: expected at most 1000 elements, found 1001",
	} {
		m, err := ParseMetadata("f", []byte(text))
		if err == nil || m != nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: %v\nwant %s", text, err, want)
		}
	}
	_, err := ParseMetadata("f", []byte("titel: x\nversion: 1\ncreator:\n- {name: x}\n- {nam: y}\ndate: never\n"))
	for _, want := range []string{"f:1: ", "f:2: version: ", "f:5: creator: ", "f:6: date: "} {
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	_, err = ParseMetadata("f", []byte(strings.Repeat("x", 30)+": 1\n"+"keywords:\n"+strings.Repeat("- ''\n", 30)))
	if err == nil || strings.Count(err.Error(), "\n") != maxProblems ||
		!strings.HasSuffix(err.Error(), "f: there are more problems after these 20") {
		t.Errorf("many problems: %v", err)
	}
}

func TestValidate(t *testing.T) {
	err := new(Metadata).Validate()
	want := `the metadata of the set are incomplete or wrong:
  title: expected a short name for people, found none
  description: expected what the traces are, and how they were made, found none
  license: expected an SPDX identifier such as CC-BY-4.0, found none
  creator: expected a name, or a list of names, found none
Write them to a file such as this one, and name it with --meta:

name: traces
`
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
	for want, change := range map[string]func(m *Metadata){
		"license_url: expected the URL of the license other, found none": func(m *Metadata) { m.License = "other" },
		"license_url: expected license: other, or no license_url": func(m *Metadata) {
			m.LicenseURL = "https://example.org"
		},
		`modified: expected a day after the date 2026-11-22, found "2026-11-21"`: func(m *Metadata) {
			m.Modified = "2026-11-21"
		},
		`creator: orcid: expected an ORCID iD`:                    func(m *Metadata) { m.Creators[0].ORCID = "x" },
		`creator: expected a name, found none`:                    func(m *Metadata) { m.Creators[0].Name = "" },
		`traces: expected the name of a trace`:                    func(m *Metadata) { m.Traces[0].Name = "" },
		`traces: ring16: license: expected an SPDX`:               func(m *Metadata) { m.Traces[1].License = "no" },
		`tags: expected each key once, found a second "a"`:        func(m *Metadata) { m.Tags = []string{"a=2", "a=1"} },
		`traces: ring16: tags: expected KEY=VALUE`:                func(m *Metadata) { m.Traces[1].Tags = []string{"="} },
		`traces: expected each trace once, found a second "null"`: func(m *Metadata) { m.Traces[1].Name = "null" },
		`keywords: expected a line of 1 to 1000 bytes`:            func(m *Metadata) { m.Keywords[0] = "\x00" },
		`keywords: expected at most 1000 elements`:                func(m *Metadata) { m.Keywords = make([]string, 1001) },
		`title: expected a line of 1 to 1000 bytes of UTF-8`:      func(m *Metadata) { m.Title = "\xff" },
	} {
		m := sample()
		change(m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), "\n  "+want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

func TestMetadataSize(t *testing.T) {
	m := sample()
	for i := range 130 {
		m.Traces = append(m.Traces, TraceMetadata{Name: fmt.Sprint("t", i), Citation: strings.Repeat("x", maxProse)})
	}
	want := "expected at most 8388608 bytes of metadata in all, found "
	if err := m.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	want = "f: expected at most 8388608 bytes of metadata, found 8388609"
	if _, err := ParseMetadata("f", make([]byte, MaxMetadataSize+1)); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	m.Traces = m.Traces[:100]
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	if again, err := ParseMetadata("f", m.YAML()); err != nil || len(again.Traces) != 100 {
		t.Errorf("large metadata: %v", err)
	}
}

func TestTemplate(t *testing.T) {
	for _, name := range []string{"traces", "", "My Set", "no", "123"} {
		text := Template(name)
		m, err := ParseMetadata("f", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Validate(); err != nil {
			t.Error(err)
		}
		// The optional keys are right, too.
		all := strings.ReplaceAll(text, "\n# ", "\n")
		if m, err = ParseMetadata("f", []byte(strings.ReplaceAll(all, "\n#   ", "\n  "))); err != nil {
			t.Fatal(err)
		}
		if err := m.Validate(); err != nil || len(m.Traces) != 1 {
			t.Errorf("%v, %+v", err, m.Traces)
		}
	}
}

func TestYAML(t *testing.T) {
	m := sample()
	text := m.YAML()
	again, err := ParseMetadata("f", text)
	if err != nil || !reflect.DeepEqual(again, m) {
		t.Errorf("%v: %s\ngot %+v\nwant %+v", err, text, again, m)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil || values["title"] != m.Title || values["date"] != m.Date {
		t.Errorf("%v: %v", err, values)
	}
	m.Description = strings.Repeat("long ", 5000)
	for range 3000 {
		m.Traces = append(m.Traces, TraceMetadata{Name: "x" + strings.Repeat("x", len(m.Traces)/100), Title: "long"})
	}
	m.Traces = m.Traces[:2]
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	text = m.YAML()
	if again, err = ParseMetadata("f", text); err != nil || !reflect.DeepEqual(again, m) || text[0] != '{' {
		t.Errorf("beyond the limits of YAML: %v, %.100s", err, text)
	}
	if err := yaml.Unmarshal(text, &values); err != nil || values["description"] != m.Description {
		t.Errorf("JSON is no YAML: %v", err)
	}
}

// FuzzParseMetadata checks that accepted metadata are valid, or wrong together only, and survive their normal form.
func FuzzParseMetadata(f *testing.F) {
	f.Add(Template("x"))
	f.Add(string(sample().YAML()))
	f.Add("title: a\nlicense: mit\ncreator: [a, {name: b}]\ndescription: |\n  x\n   y\n\n  z\ntags: {a: 1}\n")
	f.Add("{\"title\": \"\\u2028 - # :\", \"traces\": {\"a\": {\"tags\": [\"a=b\"]}}}")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMetadata("f", []byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") {
				t.Error(err)
			}
			return
		}
		again, err := ParseMetadata("f", m.YAML())
		if err != nil {
			t.Fatalf("%v: %s", err, m.YAML())
		}
		if a, b := string(m.YAML()), string(again.YAML()); a != b {
			t.Errorf("%s\nbecomes\n%s", a, b)
		}
		if err := m.Validate(); err != nil {
			return
		}
		if a, b := string(m.YAML()), string(again.YAML()); a != b {
			t.Errorf("Validate makes of\n%s\nthis:\n%s", b, a)
		}
	})
}

func TestMerge(t *testing.T) {
	m := sample()
	m.Merge(&Metadata{Title: "New", Creators: []Agent{{Name: "N"}}, Tags: []string{"a=1", "site=x"},
		Traces: []TraceMetadata{{Name: "new", Title: "N"}, {Name: "ring16", Title: "R", Tags: []string{"b=2"}}}})
	if m.Title != "New" || m.License != "CC-BY-4.0" || len(m.Creators) != 1 ||
		strings.Join(m.Tags, " ") != "a=1 site=x system=1" || len(m.Traces) != 3 || m.Traces[2].Title != "R" ||
		m.Traces[2].License != "CC0-1.0" || strings.Join(m.Traces[2].Tags, " ") != "b=2 site=c" {
		t.Errorf("%+v", m)
	}
	before := sample()
	other := sample()
	other.Merge(&Metadata{Traces: []TraceMetadata{{Name: "ring16", Title: "changed"}}})
	if !reflect.DeepEqual(before, sample()) || other.Traces[1].Title != "changed" {
		t.Error("Merge changes another value")
	}
}

func TestSet(t *testing.T) {
	var m Metadata
	for _, set := range [][2]string{{"title", "T"}, {"creator", "A"}, {"creator", "B"}, {"license", "mit"},
		{"keyword", "k"}, {"keyword", "l"}, {"tag", "a=1"}, {"tag", "a=2"}, {"tag", "b=x=y"}, {"date", "2026-01-01"}} {
		if err := m.Set(set[0], set[1]); err != nil {
			t.Error(err)
		}
	}
	want := Metadata{Title: "T", Creators: []Agent{{Name: "A"}, {Name: "B"}}, License: "MIT",
		Keywords: []string{"k", "l"}, Tags: []string{"a=2", "b=x=y"}, Date: "2026-01-01"}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%+v", m)
	}
	for name, want := range map[string]string{"license": `expected an SPDX identifier`, "tag": "expected KEY=VALUE",
		"titel": "expected a key out of"} {
		if err := m.Set(name, "?"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestComplete(t *testing.T) {
	var m Metadata
	warnings := m.Complete(nil, "My Set", "2026-01-02")
	if m.Name != "my-set" || m.Version != "1.0.0" || m.URL != "https://example.org/my-set" || m.Date != "2026-01-02" ||
		m.Modified != "" || len(warnings) != 1 {
		t.Errorf("%+v, %q", m, warnings)
	}
	for _, c := range []struct{ date, modified, wantModified string }{
		{"", "", ""}, {"2026-01-02", "", ""}, {"2026-03-01", "", "2026-03-01"}, {"", "2026-02-01", "2026-02-01"},
		{"2026-03-01", "2026-02-01", "2026-03-01"},
	} {
		next := Metadata{URL: "https://x.org", Date: c.date, Modified: c.modified}
		warnings := next.Complete(&m, "x", "2026-05-05")
		if next.Date != "2026-01-02" || next.Modified != c.wantModified || warnings != nil {
			t.Errorf("%+v: %+v, %q", c, next, warnings)
		}
	}
}

func TestBump(t *testing.T) {
	for from, want := range map[string]string{"1.2.3 major": "2.0.0", "1.2.3 minor": "1.3.0", "1.2.3 patch": "1.2.4",
		"0.0.999999999 patch": "0.0.1000000000"} {
		version, part, _ := strings.Cut(from, " ")
		if got, err := Bump(version, part); err != nil || got != want {
			t.Errorf("%s: %s, %v", from, got, err)
		}
	}
	for from, want := range map[string]string{"1.2 major": "expected a version MAJOR.MINOR.PATCH",
		"1.2.3 mayor": `expected major, minor or patch, found "mayor"; did you mean "major"?`} {
		version, part, _ := strings.Cut(from, " ")
		if _, err := Bump(version, part); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", from, err)
		}
	}
}
