package dag

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"
)

// Arguments and names of any bytes survive JSON; those that are UTF-8 are stored as they are.
func TestProvenanceBytes(t *testing.T) {
	words := []string{"", "a b", "café <&>", "caf\xe9.goal", "$'x", "$'caf\\xe9'", "\xff'\\\n\xfe", `\xff`, "$'", "$''", "$'\xff'"}
	for c := range 256 {
		words = append(words, string([]byte{byte(c)}), string([]byte{'x', byte(c), '\xc3'}))
	}
	seed := int64(3)
	want := Provenance{Program: "p", Version: "v", Command: words, Seed: &seed}
	for _, word := range words {
		want.Inputs = append(want.Inputs, Input{Name: word, SHA256: "00"})
	}
	text, err := json.Marshal(want)
	if err != nil || !utf8.Valid(text) {
		t.Fatalf("%q, %v", text, err)
	}
	var got Provenance
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, foreign := range []string{`$'\x`, `$'\xe'`, `$'\`, `$'\'`, `$'a'`, `$'\xZZ'`, `$'é'`, `$'\x41'`} {
		text, err := json.Marshal(map[string][]string{"command": {foreign}})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &got); err != nil || got.Command[0] != foreign {
			t.Errorf("%s is read as %q, %v", foreign, got.Command, err)
		}
	}
	// Valid words give the JSON of a plain struct, whether the encoder escapes HTML or not.
	type plain Provenance
	for _, escape := range []bool{false, true} {
		var a, b bytes.Buffer
		valid := Provenance{Command: []string{"<a>\u2028", "é"}, Inputs: []Input{{Name: "&"}}}
		for out, value := range map[*bytes.Buffer]any{&a: valid, &b: plain(valid)} {
			e := json.NewEncoder(out)
			e.SetEscapeHTML(escape)
			if err := e.Encode(value); err != nil {
				t.Fatal(err)
			}
		}
		if a.String() != b.String() {
			t.Errorf("%s, want %s", &a, &b)
		}
	}
}
