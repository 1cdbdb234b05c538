package dataset

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	parquetgo "github.com/parquet-go/parquet-go"
)

// sampleRows returns n rows with all kinds of values.
func sampleRows(n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		r := &rows[i]
		for k, f := range fields {
			switch at := f.of(r).(type) {
			case *string:
				*at = fmt.Sprintf("%s-%d", f.name, i)
			case *int64:
				*at = int64(i*1000 + k)
			case *bool:
				*at = i%3 == 0
			case **string:
				if i%2 == 0 {
					text := f.name
					*at = &text
				}
			case **int64:
				if i%5 != 0 {
					number := int64(-i)
					*at = &number
				}
			case *[]string:
				for t := range i % 4 {
					*at = append(*at, fmt.Sprintf("k%d=%d", t, i))
				}
			}
		}
	}
	return rows
}

func TestCatalogueRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 2, 9, 1000, groupRows + 17} {
		want := sampleRows(n)
		data := AppendCatalogue([]byte("before"), want)[len("before"):]
		got, err := ReadCatalogue("c.parquet", data)
		if err != nil {
			t.Fatalf("%d rows: %v", n, err)
		}
		if len(got) != n || n > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%d rows differ after a round trip", n)
		}
	}
}

// TestCatalogueForeign checks that another implementation reads every value.
func TestCatalogueForeign(t *testing.T) {
	want := sampleRows(100)
	data := AppendCatalogue(nil, want)
	file, err := parquetgo.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	reader := parquetgo.NewReader(file)
	for i := range want {
		row := map[string]any{}
		if err := reader.Read(&row); err != nil && err != io.EOF {
			t.Fatal(err)
		}
		for _, v := range want[i].Values() {
			got := row[v.Name]
			if list, ok := v.Value.([]string); ok {
				if text := fmt.Sprint(got); len(list) > 0 && !strings.Contains(text, list[len(list)-1]) {
					t.Errorf("row %d, %s: found %v, expected %v", i, v.Name, got, list)
				}
				continue
			}
			if text, ok := got.([]byte); ok {
				got = string(text)
			}
			if got != v.Value {
				t.Errorf("row %d, %s: found %v, expected %v", i, v.Name, got, v.Value)
			}
		}
	}
}

func TestCatalogueDamaged(t *testing.T) {
	data := AppendCatalogue(nil, sampleRows(20))
	for n := range data {
		if _, err := ReadCatalogue("c.parquet", data[:n]); err == nil {
			t.Fatalf("no error for the first %d of %d bytes", n, len(data))
		}
	}
	flipped := bytes.Clone(data)
	for i := range flipped {
		flipped[i] ^= 1 << (i % 8)
		ReadCatalogue("c.parquet", flipped) // must not panic
		flipped[i] = data[i]
	}
}

func FuzzReadCatalogue(f *testing.F) {
	f.Add(AppendCatalogue(nil, sampleRows(3)))
	f.Add(AppendCatalogue(nil, nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		if rows, err := ReadCatalogue("c.parquet", data); err == nil && len(rows) > maxRows {
			t.Errorf("%d rows", len(rows))
		}
	})
}

func TestManifest(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	files := []File{{"b", 1, digest}, {"a/c", 2, digest}, {"a-c", 3, digest}}
	text := AppendManifest(nil, files)
	if want := digest + "  a-c\n" + digest + "  a/c\n" + digest + "  b\n"; string(text) != want {
		t.Errorf("found %q, expected %q", text, want)
	}
	parsed, err := ParseManifest("SHA256SUMS", text)
	if err != nil || len(parsed) != 3 || parsed[1].Path != "a/c" || parsed[2].SHA256 != digest {
		t.Errorf("parsed %v, %v", parsed, err)
	}
	for bad, want := range map[string]string{
		digest + "  a":                           "line feed",
		digest + " a\n":                          "two spaces",
		digest[2:] + "  a\n":                     "64 hexadecimal digits",
		strings.ToUpper(digest) + "  a\n":        "64 hexadecimal digits",
		digest + "  ../a\n":                      "inside the set",
		digest + "  /a\n":                        "inside the set",
		digest + "  a//b\n":                      "inside the set",
		digest + "  a\\b\n":                      "inside the set",
		digest + "  b\n" + digest + "  a\n":      "ascending",
		digest + "  b\n" + digest + "  b\n":      "ascending",
		digest + "  \n":                          "inside the set",
		"\n":                                     "64 hexadecimal digits",
		digest + "  a\n" + digest + "  b\x00c\n": "inside the set",
	} {
		if _, err := ParseManifest("SHA256SUMS", []byte(bad)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, expected one with %q", bad, err, want)
		}
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(strings.Repeat("0a", 32) + "  a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if files, err := ParseManifest("SHA256SUMS", data); err == nil {
			if again := AppendManifest(nil, files); !bytes.Equal(again, data) {
				t.Errorf("%q became %q", data, again)
			}
		}
	})
}
