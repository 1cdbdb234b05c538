package dataset

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// DataPackage returns the description of a set as a Frictionless data package: https://specs.frictionlessdata.io. It
// lists the stores of at most MaxListed traces.
func DataPackage(s *Set) []byte {
	m := s.Meta
	var licenses, sources, contributors []object
	for _, id := range s.licenses() {
		licenses = append(licenses, object{{"name", id}, {"path", m.licenseURL(id)}})
	}
	for _, source := range m.Sources {
		o := object{{"title", source}}
		if _, wrong, _ := checkURL(source); wrong == "" {
			o = append(o, member{"path", source})
		}
		sources = append(sources, o)
	}
	for i := range m.Creators {
		a := &m.Creators[i]
		contributors = append(contributors, object{{"title", a.Name}, {"path", a.agentURL()}, {"role", "author"},
			{"organization", a.Affiliation}})
	}
	return object{
		{"profile", "data-package"},
		{"name", m.Name},
		{"id", m.doiURL()},
		{"title", m.Title},
		{"description", m.Description},
		{"homepage", m.URL},
		{"version", m.Version},
		{"created", m.Date + "T00:00:00Z"},
		{"licenses", licenses},
		{"contributors", contributors},
		{"sources", sources},
		{"keywords", s.keywords()},
		{"resources", s.resources()},
	}.indented()
}

// resources returns the files of a set.
func (s *Set) resources() []object {
	catalogue, store := schemaObject(CatalogueColumns(), "array"), schemaObject(s.StoreColumns, "array")
	all := []object{resource("catalogue", s.Catalogue, "One row per trace.", catalogue)}
	if s.listed() {
		for i := range s.Rows {
			r := &s.Rows[i]
			all = append(all, resource("traces/"+r.Trace, File{Path: r.Path, Bytes: r.Bytes, SHA256: r.SHA256}, r.Title,
				store))
		}
	}
	return all
}

func resource(name string, f File, description string, schema any) object {
	return object{{"name", name}, {"path", f.Path}, {"description", description}, {"format", "parquet"},
		{"mediatype", "application/vnd.apache.parquet"}, {"bytes", f.Bytes}, {"hash", "sha256:" + f.SHA256},
		{"schema", schema}}
}

// fieldTypes are the types of columns for Frictionless and Kaggle.
var fieldTypes = map[string]string{"string": "string", "bool": "boolean", "int32": "integer", "int64": "integer"}

// schemaObject returns the fields of a table, encoded because many files share them. list is the type of lists.
func schemaObject(columns []Column, list string) json.RawMessage {
	var fields []object
	for _, c := range columns {
		kind := fieldTypes[c.Type]
		if c.List {
			kind = list
		}
		fields = append(fields, object{{"name", c.Name}, {"type", kind}, {"description", c.Description}})
	}
	return object{{"fields", fields}}.indented()
}

var kaggleID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}/[a-z0-9][a-z0-9-]{2,49}$`)

// Limits of Kaggle in characters.
const (
	minKaggleTitle, maxKaggleTitle       = 6, 50
	minKaggleSubtitle, maxKaggleSubtitle = 20, 80
)

// Kaggle returns the description of a set for Kaggle, dataset-metadata.json:
// https://github.com/Kaggle/kaggle-cli/wiki/Dataset-Metadata. id is OWNER/SLUG, with a slug of 3 to 50 characters. A
// title beyond 50 characters is cut; the subtitle is the beginning of the description.
func Kaggle(s *Set, id string) ([]byte, error) {
	m := s.Meta
	if !kaggleID.MatchString(id) {
		return nil, fmt.Errorf("expected OWNER/SLUG with a slug of 3 to 50 characters out of a-z, 0-9 and -, "+
			"found %.120q", id)
	}
	if utf8.RuneCountInString(m.Title) < minKaggleTitle {
		return nil, fmt.Errorf("title: expected at least %d characters for Kaggle, found %q; set a longer title",
			minKaggleTitle, m.Title)
	}
	catalogue, store := schemaObject(CatalogueColumns(), "string"), schemaObject(s.StoreColumns, "string")
	resources := []object{{{"path", s.Catalogue.Path}, {"description", "One row per trace."}, {"schema", catalogue}}}
	if s.listed() {
		for i := range s.Rows {
			resources = append(resources, object{{"path", s.Rows[i].Path}, {"description", s.Rows[i].Title},
				{"schema", store}})
		}
	}
	return object{
		{"title", shorten(m.Title, maxKaggleTitle)},
		{"subtitle", s.subtitle()},
		{"id", id},
		{"licenses", []object{{{"name", s.kaggleLicense()}}}},
		{"description", m.Description},
		{"keywords", s.keywords()},
		{"resources", resources},
	}.indented(), nil
}

// kaggleLicense returns the one licence of a set, "other" if its traces have several.
func (s *Set) kaggleLicense() string {
	if len(s.licenses()) > 1 {
		return otherLicense
	}
	return kaggleLicense(s.Meta.License)
}

// subtitle returns the first line of the description, or the number of traces if that is too short.
func (s *Set) subtitle() string {
	line, _, _ := strings.Cut(s.Meta.Description, "\n")
	if line = strings.TrimSpace(line); utf8.RuneCountInString(line) < minKaggleSubtitle {
		line = fmt.Sprintf("%d traces, %.0f ops, in Parquet files", len(s.Rows), s.ops())
	}
	return shorten(line, maxKaggleSubtitle)
}

// shorten cuts a text to a number of characters, behind a word if there is one.
func shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	short := string([]rune(text)[:most-3])
	if at := strings.LastIndexByte(short, ' '); at > most/2 {
		short = short[:at]
	}
	return strings.TrimRight(short, " ,.;:") + "..."
}
