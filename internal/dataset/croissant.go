package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Versions of Croissant.
const (
	Croissant10 = "1.0" // of 2024-03-01
	Croissant11 = "1.1" // of 2026-01-29
)

// MaxListed is the largest number of traces whose files descriptions list one by one.
const MaxListed = 10_000

// storePattern matches the stores of a set.
const storePattern = TracesName + "/**/*.parquet"

// Set is a set of traces for the writers of descriptions.
type Set struct {
	Meta             *Metadata // complete and valid
	Rows             []Row     // in the order of the catalogue
	Catalogue        File
	StoreColumns     []Column // of the stores
	CroissantVersion string   // default: 1.0
}

// object is a JSON object whose keys keep their order.
type object []member

type member struct {
	key   string
	value any // string, bool, int64, object, []string, []object or json.RawMessage
}

// MarshalJSON writes the members in their order. Nil lists and empty strings are absent.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	first := true
	for _, m := range o {
		if isAbsent(m.value) {
			continue
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		if err := e.Encode(m.key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := e.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func isAbsent(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case []string:
		return len(v) == 0
	case []object:
		return len(v) == 0
	case object:
		return v == nil
	}
	return value == nil
}

// indented returns an object as JSON with lines and a newline at the end.
func (o object) indented() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(o); err != nil {
		panic(err) // the values have no other types than those of member
	}
	return b.Bytes()
}

// Terms of the JSON-LD context that are the same as in the namespace of Croissant, in the order of appendix 1 of the
// specification.
const (
	croissantTerms = "extract field fileProperty fileObject fileSet format includes isLiveDataset jsonPath key md5 " +
		"parentField path recordSet references regex repeated replace separator source subField transform"
	removedTerms = "path repeated replace" // in 1.1
	addedTerms   = "annotation arrayShape containedIn equivalentProperty excludes isArray readLines sdVersion " +
		"unArchive value" // in 1.1
)

// context returns the JSON-LD context. @vocab is https in both versions: the reader mlcroissant 1.1.0 refuses the http
// of the specification of 1.1, and the data sets of MLCommons have https.
func (s *Set) context() object {
	o := object{{"@language", "en"}, {"@vocab", "https://schema.org/"}, {"sc", "https://schema.org/"},
		{"cr", "http://mlcommons.org/croissant/"}, {"rai", "http://mlcommons.org/croissant/RAI/"},
		{"dct", "http://purl.org/dc/terms/"}, {"citeAs", "cr:citeAs"}, {"column", "cr:column"},
		{"conformsTo", "dct:conformsTo"}, {"data", object{{"@id", "cr:data"}, {"@type", "@json"}}},
		{"dataType", object{{"@id", "cr:dataType"}, {"@type", "@vocab"}}},
		{"examples", object{{"@id", "cr:examples"}, {"@type", "@json"}}}}
	terms := strings.Fields(croissantTerms)
	if s.is11() {
		removed := strings.Fields(removedTerms)
		terms = slices.DeleteFunc(terms, func(term string) bool { return slices.Contains(removed, term) })
		terms = append(terms, strings.Fields(addedTerms)...)
	}
	for _, term := range terms {
		o = append(o, member{term, "cr:" + term})
	}
	return o
}

func (s *Set) is11() bool {
	return s.CroissantVersion == Croissant11
}

// listed reports whether descriptions list every store.
func (s *Set) listed() bool {
	return len(s.Rows) <= MaxListed
}

// Croissant returns the Croissant description of a set: https://docs.mlcommons.org/croissant. It lists the digest of
// each store of at most MaxListed traces; of more, the catalogue has them.
func Croissant(s *Set) []byte {
	m := s.Meta
	version := Croissant10
	if s.is11() {
		version = Croissant11
	}
	return object{
		{"@context", s.context()},
		{"@type", "sc:Dataset"},
		{"name", m.Name},
		{"alternateName", m.Title},
		{"description", m.Description},
		{"conformsTo", "http://mlcommons.org/croissant/" + version},
		{"license", oneOrMany(s.licenseURLs())},
		{"url", m.URL},
		{"version", m.Version},
		{"datePublished", m.Date},
		{"dateModified", m.Modified},
		{"keywords", s.keywords()},
		{"citeAs", s.citation()},
		{"creator", agentObjects(m.Creators)},
		{"funder", agentObjects(m.Funders)},
		{"identifier", m.doiURL()},
		{"isBasedOn", sourceObjects(m.Sources)},
		{"isLiveDataset", false},
		{"distribution", s.distribution()},
		{"recordSet", []object{
			{{"@type", "cr:RecordSet"}, {"@id", "catalogue"}, {"name", "catalogue"},
				{"description", "One record per trace."}, {"key", object{{"@id", "catalogue/trace"}}},
				{"field", s.fieldObjects("catalogue", CatalogueColumns(),
					member{"fileObject", object{{"@id", s.Catalogue.Path}}})}},
			{{"@type", "cr:RecordSet"}, {"@id", "ops"}, {"name", "ops"},
				{"description", "One record per op of a trace."},
				{"field", s.fieldObjects("ops", s.StoreColumns, member{"fileSet", object{{"@id", "stores"}}})}},
		}},
	}.indented()
}

// oneOrMany returns the only text of a list, otherwise the list.
func oneOrMany(list []string) any {
	if len(list) == 1 {
		return list[0]
	}
	return list
}

// licenses returns the licences of the set and of its traces, that of the set first. All have a URL.
func (s *Set) licenses() []string {
	all := []string{s.Meta.License}
	for i := range s.Rows {
		if id := s.Rows[i].License; id != "" && s.Meta.licenseURL(id) != "" &&
			!slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	slices.Sort(all[1:])
	return all
}

func (s *Set) licenseURLs() (urls []string) {
	for _, id := range s.licenses() {
		urls = append(urls, s.Meta.licenseURL(id))
	}
	return urls
}

// keywords returns the keywords of the set, and those of every set of traces if it has none.
func (s *Set) keywords() []string {
	if len(s.Meta.Keywords) == 0 {
		return []string{"network traces", "simulation"}
	}
	return s.Meta.Keywords
}

// citation returns the citation of the set, otherwise one made from its metadata.
func (s *Set) citation() string {
	m := s.Meta
	if m.Citation != "" {
		return m.Citation
	}
	plain := strings.NewReplacer("{", "", "}", "", "\\", "")
	year, _, _ := strings.Cut(m.Date, "-")
	text := fmt.Sprintf("@misc{%s, title={%s}, author={%s}, year={%s}, version={%s}",
		strings.ReplaceAll(m.Name, "/", "-"), plain.Replace(m.Title), plain.Replace(agentNames(m.Creators, " and ")),
		year, m.Version)
	if m.DOI != "" {
		text += ", doi={" + m.DOI + "}"
	}
	return text + ", url={" + m.URL + "}}"
}

// doiURL returns the URL of the DOI, "" if there is none.
func (m *Metadata) doiURL() string {
	if m.DOI == "" {
		return ""
	}
	return "https://doi.org/" + m.DOI
}

// agentURL returns the URL of a person or an organization, "" if there is none.
func (a *Agent) agentURL() string {
	if a.ORCID != "" {
		return "https://orcid.org/" + a.ORCID
	}
	return a.URL
}

func agentObjects(agents []Agent) (all []object) {
	for i := range agents {
		a := &agents[i]
		o := object{{"@type", "sc:Person"}, {"name", a.Name}, {"url", a.agentURL()}}
		if a.Organization {
			o[0].value = "sc:Organization"
		}
		if a.ORCID != "" && a.URL != "" {
			o = append(o, member{"sameAs", a.URL})
		}
		if a.Affiliation != "" {
			o = append(o, member{"affiliation", object{{"@type", "sc:Organization"}, {"name", a.Affiliation}}})
		}
		all = append(all, o)
	}
	return all
}

// sourceObjects returns the works that a set is based on.
func sourceObjects(sources []string) (all []object) {
	for _, source := range sources {
		what := "name"
		if _, wrong, _ := checkURL(source); wrong == "" {
			what = "url"
		}
		all = append(all, object{{"@type", "sc:CreativeWork"}, {what, source}})
	}
	return all
}

// parquetFormat is the encoding format of Parquet files: mlcroissant reads no other name of it.
const parquetFormat = "application/x-parquet"

// distribution returns the files of a set. croissant.json cannot have the digest of SHA256SUMS, which has that of
// croissant.json: it is a set of one file.
func (s *Set) distribution() []object {
	all := []object{fileObject(s.Catalogue.Path, s.Catalogue.SHA256, s.Catalogue.Bytes, "One row per trace.")}
	description := "All traces."
	if s.listed() {
		for i := range s.Rows {
			r := &s.Rows[i]
			all = append(all, fileObject(r.Path, r.SHA256, r.Bytes, "A trace, one row per op."))
		}
	} else {
		description = "All traces. The catalogue and SHA256SUMS have their digests."
		all = append(all, fileSet("manifest", "Digests of all files.", "text/plain", ManifestName))
	}
	return append(all, fileSet("stores", description, parquetFormat, storePattern))
}

func fileObject(name, sha256 string, size int64, description string) object {
	return object{{"@type", "cr:FileObject"}, {"@id", name}, {"name", path.Base(name)}, {"description", description},
		{"contentUrl", name}, {"contentSize", fmt.Sprintf("%d B", size)}, {"encodingFormat", parquetFormat},
		{"sha256", sha256}}
}

func fileSet(id, description, format, includes string) object {
	return object{{"@type", "cr:FileSet"}, {"@id", id}, {"name", id}, {"description", description},
		{"encodingFormat", format}, {"includes", includes}}
}

// fieldObjects returns the fields of a record set.
func (s *Set) fieldObjects(set string, columns []Column, source member) (all []object) {
	types := map[string]string{"string": "sc:Text", "bool": "sc:Boolean", "int32": "sc:Integer",
		"int64": "sc:Integer"}
	for _, c := range columns {
		o := object{{"@type", "cr:Field"}, {"@id", set + "/" + c.Name}, {"name", c.Name},
			{"description", c.Description}, {"dataType", types[c.Type]}}
		switch {
		case c.List && s.is11():
			o = append(o, member{"isArray", true}, member{"arrayShape", "-1"})
		case c.List:
			o = append(o, member{"repeated", true})
		}
		all = append(all, append(o, member{"source", object{source, {"extract", object{{"column", c.Name}}}}}))
	}
	return all
}
