package dataset

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/golden"
)

const page = "../../docs/reference/datasets.md"

// uses are the meaning and the uses of the keys of metadata, for the table of the documentation.
var uses = map[string][3]string{ // value, default, use
	"name": {"`a-z`, `0-9`, `-`, `.`, `_`, `/`; at most 100 characters", "that of the folder",
		"`name` of Croissant and Frictionless"},
	"title":       {"a line", "", "heading of the card; `alternateName` of Croissant"},
	"description": {"paragraphs", "", "card, Croissant, Frictionless, Kaggle"},
	"license":     {"SPDX identifier, or `other`", "", "all descriptions; `LICENSE`"},
	"license_url": {"URL", "", "the licence `other`"},
	"creator":     {"people and organizations", "", "`creator` of Croissant and of the catalogue"},
	"version":     {"MAJOR.MINOR.PATCH", "1.0.0", "`version`"},
	"url":         {"URL", "`https://example.org/NAME`, with a warning", "`url`, the page of the set"},
	"date":        {"YYYY-MM-DD", "day of the first publication", "`datePublished`"},
	"modified":    {"YYYY-MM-DD", "a `date` that differs from that of the set", "`dateModified`"},
	"citation":    {"BibTeX", "made from other keys", "`citeAs`, card"},
	"keywords":    {"lines", "network traces, simulation", "`keywords`; tags of Hugging Face"},
	"doi":         {"DOI, also as a URL", "", "`identifier`"},
	"funder":      {"people and organizations", "", "`funder`"},
	"source":      {"URLs or lines", "", "`isBasedOn`; `source` of the catalogue"},
	"tags":        {"keys and values", "", "`tags` of the catalogue"},
	"traces":      {"metadata by name of a trace", "", "row of the catalogue"},
}

func TestMetadataKeysPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| key | value | default | use |\n| --- | --- | --- | --- |\n")
	required := map[string]bool{}
	for _, k := range keys {
		required[k.name] = k.required != ""
	}
	for _, name := range names() {
		u, ok := uses[name]
		if !ok {
			t.Errorf("the key %s has no description", name)
		}
		key := "`" + name + "`"
		if required[name] {
			key = "**" + key + "**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", key, u[0], u[1], u[2])
	}
	if len(uses) != len(names()) {
		t.Errorf("%d descriptions of %d keys", len(uses), len(names()))
	}
	golden.Section(t, page, "<!-- metadata keys -->\n", "<!-- end of metadata keys -->", b.String()+"\n")
}

func TestCatalogueColumnsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| column | type | meaning |\n| --- | --- | --- |\n")
	for _, c := range CatalogueColumns() {
		kind := c.Type
		if c.List {
			kind = "list of " + kind
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Name, kind, c.Description)
	}
	golden.Section(t, page, "<!-- catalogue columns -->\n", "<!-- end of catalogue columns -->", b.String()+"\n")
}

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPageExample checks that the example of the page is valid.
func TestPageExample(t *testing.T) {
	_, rest, _ := strings.Cut(readPage(t), "```yaml\n")
	text, _, _ := strings.Cut(rest, "```")
	m, err := ParseMetadata("page", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Validate(); err != nil || len(m.Traces) != 1 {
		t.Errorf("%v: %+v", err, m)
	}
}
