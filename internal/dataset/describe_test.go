package dataset

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/tracedag/tracedag/internal/golden"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// pointer returns a pointer to a number.
func pointer(n int64) *int64 { return &n }

// exampleSet returns a set of two traces.
func exampleSet() *Set {
	return &Set{
		Meta: &Metadata{Name: "example", Title: "Two small traces", License: "CC0-1.0", Version: "1.0.0",
			Description: "A ring of 16 ranks and four Horovod workers, both generated.", Date: "2026-11-22",
			Creators: []Agent{{Name: "The tracedag authors", Organization: true}}, URL: "https://example.org/traces",
			Keywords: []string{"network traces", "simulation"},
			Citation: "@misc{example, title={Two small traces}, year={2026}}"},
		Rows: []Row{
			{Trace: "horovod4", Path: "traces/workload=horovod/trace=horovod4/horovod4.parquet", Bytes: 6720,
				SHA256:   "469fda4bd8c1d38114358104a20afacaf65f0e49dffe379d9354273616831fbb",
				Workload: "horovod", Ranks: 4, Ops: 6844, BytesSent: pointer(0), CriticalPathPS: 621180000000,
				License: "CC0-1.0"},
			{Trace: "ring16", Path: "traces/workload=pattern/trace=ring16/ring16.parquet", Bytes: 4386,
				SHA256:   "51bedd606c50489a509f9b35d024a4fcd24487b056cd5af8833a01ffaad3db8e",
				Workload: "pattern", Ranks: 16, Ops: 9760, BytesSent: pointer(314572800), CriticalPathPS: 1000000000,
				License: "CC0-1.0", Title: "ring, 16 ranks"},
		},
		Catalogue: File{Path: CatalogueName, Bytes: 5391,
			SHA256: "54aa00ba770e669bba09471d8af08db1719f77131c0237e8c861c9ca1c58475e"},
		StoreColumns: []Column{
			{Name: "rank", Type: "int32", Description: "rank of the op, from 0"},
			{Name: "kind", Type: "string", Description: "calc, send, recv, coll, mem, io"},
			{Name: "deps", Type: "int32", List: true, Description: "ops that must finish first"},
			{Name: "measured_end_ps", Type: "int64", Description: "recorded end of the op"},
		},
	}
}

// hostileSet returns a set whose texts have markup of all outputs.
func hostileSet() *Set {
	s := exampleSet()
	s.Meta = sample()
	s.Meta.Title = "a | b\\ `c` <b> # *d* : \"'[x](y) <!-- mine -->"
	s.Meta.Description = "First.\n\n<!-- mine -->\n```\n  ~~~\n---\n> ```x\n\ttab <script>x</script>"
	s.Meta.Citation = "@misc{x,\n\n  title={<!-- /mine -->}}\n<!-- mine -->"
	s.Meta.Keywords = []string{"no", "1e3", "- x", "a: b", "#c", "null", "'", "\"", "é\u00a0ü", "2026-01-01", "{a}",
		"e0"}
	s.Meta.Creators[0].Name = "A | B\u200d"
	s.Rows[0].Workload = "a|b"
	s.Rows[1].License, s.Rows[1].BytesSent = "other", nil
	return s
}

func TestGolden(t *testing.T) {
	for name, s := range map[string]*Set{"example": exampleSet(), "hostile": hostileSet()} {
		card, err := Card(s, []byte("x\n<!-- mine -->\n\nkept | <b>\r\n<!-- /mine -->\ny"))
		if err != nil {
			t.Fatal(err)
		}
		s.Meta.Title += " for Kaggle and others, that is longer than a title may be"
		kaggle, err := Kaggle(s, "someone/two-traces")
		if err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{CroissantName: Croissant(s), CardName: card, PackageName: DataPackage(s),
			KaggleName: kaggle, MetadataName: s.Meta.YAML()}
		s.CroissantVersion = Croissant11
		files["croissant-1.1.json"] = Croissant(s)
		for file, content := range files {
			golden.Check(t, filepath.Join("testdata", name, file), string(content))
			if strings.HasSuffix(file, ".json") && !json.Valid(content) {
				t.Errorf("%s: no JSON", file)
			}
		}
	}
}

// frontMatterOf returns the values in the front matter of a card.
func frontMatterOf(t *testing.T, card []byte) (values map[string]any) {
	t.Helper()
	_, rest, _ := bytes.Cut(card, []byte("---\n"))
	front, _, found := bytes.Cut(rest, []byte("\n---\n"))
	if err := yaml.Unmarshal(front, &values); err != nil || !found {
		t.Fatalf("%v: %s", err, card)
	}
	return values
}

func TestFrontMatter(t *testing.T) {
	for _, s := range []*Set{exampleSet(), hostileSet()} {
		card, err := Card(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		var tags []any
		for _, keyword := range s.Meta.Keywords {
			tags = append(tags, keyword)
		}
		want := map[string]any{"license": strings.ToLower(s.Meta.License), "pretty_name": s.Meta.Title, "tags": tags,
			"size_categories": []any{"10K<n<100K"}, "configs": []any{
				map[string]any{"config_name": "catalogue", "data_files": "catalogue.parquet", "default": true},
				map[string]any{"config_name": "ops", "data_files": "traces/**/*.parquet"}}}
		if got := frontMatterOf(t, card); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
		if got, err := findMine(card); err != nil || len(got) > 0 {
			t.Errorf("the card has text of its own: %q, %v", got, err)
		}
	}
	for license, want := range map[string]string{"ODbL-1.0": "odbl", "MIT": "mit", "MulanPSL-2.0": "other",
		"other": "other"} {
		s := exampleSet()
		s.Meta.License, s.Meta.LicenseURL = license, "https://example.org/license"
		card, err := Card(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := frontMatterOf(t, card)
		if got["license"] != want || (got["license_link"] != nil) != (want == "other") {
			t.Errorf("%s: %v", license, got)
		}
	}
}

func TestSizeCategory(t *testing.T) {
	for n, want := range map[float64]string{0: "n<1K", 999: "n<1K", 1000: "1K<n<10K", 1e6 - 1: "100K<n<1M",
		1e6: "1M<n<10M", 1e11: "100B<n<1T", 1e12: "n>1T", 9e30: "n>1T"} {
		if got := sizeCategory(n); got != want {
			t.Errorf("%g: %s, want %s", n, got, want)
		}
	}
}

func TestCardErrors(t *testing.T) {
	for old, want := range map[string]string{
		"# My own\n":                                   "expected a line <!-- mine --> and a line",
		"a\n<!-- mine -->\nb\n":                        "line 3: expected a line <!-- /mine -->, found the end",
		"<!-- /mine -->\n":                             "line 1: expected one line",
		"<!-- mine -->\n<!-- mine -->\n":               "line 2: expected one line",
		"<!-- mine -->\n<!-- /mine -->\n<!-- mine -->": "line 3: expected one line",
	} {
		if _, err := Card(exampleSet(), []byte(old)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", old, err)
		}
	}
}

func TestCardRows(t *testing.T) {
	s := exampleSet()
	for len(s.Rows) < maxCardRows+7 {
		s.Rows = append(s.Rows, s.Rows[0])
	}
	card, err := Card(s, nil)
	if err != nil || bytes.Count(card, []byte("| [")) != maxCardRows ||
		!bytes.Contains(card, []byte("\nThe catalogue lists 7 more.\n")) {
		t.Errorf("%v: %s", err, card)
	}
}

// FuzzCard checks that a card keeps the text of the old one, and that its own card is a fixed point.
func FuzzCard(f *testing.F) {
	f.Add("", "t", "d")
	f.Add("<!-- mine -->\nx\n<!-- /mine -->\n", "a: b", "<!-- mine -->")
	f.Add("<!-- mine -->\r\nx\r\n <!-- /mine --> ", "\"", "```\n<!-- /mine -->")
	f.Fuzz(func(t *testing.T, old, title, description string) {
		s := exampleSet()
		s.Meta.Title, s.Meta.Description = title, description
		if s.Meta.Validate() != nil {
			s.Meta.Title, s.Meta.Description = "t", "d"
		}
		card, err := Card(s, []byte(old))
		if err != nil {
			if !strings.Contains(err.Error(), "expected ") {
				t.Error(err)
			}
			return
		}
		if again, err := Card(s, card); err != nil || !bytes.Equal(again, card) {
			t.Errorf("%v: %s\nbecomes\n%s", err, card, again)
		}
		before, _ := findMine([]byte(old))
		if after, _ := findMine(card); !bytes.Equal(before, after) {
			t.Errorf("%q becomes %q", before, after)
		}
		if got := frontMatterOf(t, card)["pretty_name"]; got != s.Meta.Title {
			t.Errorf("title %q, want %q", got, s.Meta.Title)
		}
	})
}

func TestCroissantLarge(t *testing.T) {
	s := exampleSet()
	for len(s.Rows) <= MaxListed {
		s.Rows = append(s.Rows, s.Rows[0])
	}
	for name, files := range map[string][]byte{"croissant": Croissant(s), "datapackage": DataPackage(s)} {
		if !json.Valid(files) || bytes.Contains(files, []byte("horovod4")) || len(files) > 1<<16 {
			t.Errorf("%s: %d bytes", name, len(files))
		}
	}
	if text := Croissant(s); !bytes.Contains(text, []byte(`"includes": "SHA256SUMS"`)) {
		t.Errorf("%s", text)
	}
}

// TestCroissantExample compares the JSON-LD context and the order of keys with those of a valid example.
func TestCroissantExample(t *testing.T) {
	root := os.Getenv("TRACEDAG_VECTORS")
	if root == "" {
		t.Skip("TRACEDAG_VECTORS is not set")
	}
	for version, name := range map[string]string{Croissant10: "croissant.json", Croissant11: "croissant-1.1.json"} {
		text, err := os.ReadFile(filepath.Join(root, "publish", "example", name))
		if err != nil {
			t.Fatal(err)
		}
		s := exampleSet()
		s.CroissantVersion = version
		want, _, _ := strings.Cut(string(text), `"recordSet": [`)
		got, _, _ := strings.Cut(string(Croissant(s)), `"recordSet": [`)
		want = strings.NewReplacer("One row a trace.", "One row per trace.", "one row an op.",
			"one row per op.").Replace(want)
		if got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", version, got, want)
		}
	}
}

func TestKaggle(t *testing.T) {
	for id, want := range map[string]string{"x": "expected OWNER/SLUG", "a/b": "expected OWNER/SLUG",
		"a/B-C": "expected OWNER/SLUG", "a/" + strings.Repeat("b", 51): "expected OWNER/SLUG"} {
		if _, err := Kaggle(exampleSet(), id); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	s := exampleSet()
	s.Meta.Title, s.Meta.Description = "Ring", "Short"
	if _, err := Kaggle(s, "a/bcd"); err == nil || !strings.HasPrefix(err.Error(), "title: expected at least 6") {
		t.Error(err)
	}
	s.Meta.Title = strings.Repeat("é", 51)
	text, err := Kaggle(s, "a/bcd")
	var got struct {
		Title, Subtitle string
		Licenses        []struct{ Name string }
	}
	if err != nil || json.Unmarshal(text, &got) != nil || got.Title != strings.Repeat("é", 47)+"..." ||
		got.Subtitle != "2 traces, 16604 ops, in Parquet files" || len(got.Licenses) != 1 ||
		got.Licenses[0].Name != "CC0-1.0" {
		t.Errorf("%v: %s", err, text)
	}
}

func TestLicense(t *testing.T) {
	m := &Metadata{License: "MIT", Date: "2026-11-22", Creators: []Agent{{Name: "A <b>"}, {Name: "C"}}}
	name, text, ok := License(m)
	if name != "LICENSE" || !ok || !strings.Contains(string(text), "\nCopyright (c) 2026 A <b>, C\n") {
		t.Errorf("%s %v %s", name, ok, text)
	}
	m.License = "BSD-3-Clause"
	if _, text, ok = License(m); !ok || !strings.HasPrefix(string(text), "Copyright (c) 2026 A <b>, C\n") {
		t.Errorf("%v %s", ok, text)
	}
	m.License = "MulanPSL-2.0"
	if _, text, ok = License(m); !ok || string(text) != "MulanPSL-2.0\nhttps://spdx.org/licenses/MulanPSL-2.0\n" {
		t.Errorf("%v %s", ok, text)
	}
	m.License, m.LicenseURL = "other", "https://x.org"
	if _, text, ok = License(m); !ok || string(text) != "other\nhttps://x.org\n" {
		t.Errorf("%v %s", ok, text)
	}
	if _, _, ok = License(new(Metadata)); ok {
		t.Error("a licence of nothing")
	}
	files, err := licenseFiles.ReadDir("licenses")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		id := strings.TrimSuffix(f.Name(), ".txt")
		if normal, _, _ := checkLicense(id); id != "spdx" && normal != id {
			t.Errorf("%s is no identifier", id)
		}
	}
}
