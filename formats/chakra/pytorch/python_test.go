package pytorch

import (
	"encoding/json"
	"os"
	"testing"
	"unicode/utf8"
)

// testdata/python.json has JSON values and what Python 3.11 prints for them: str(json.loads(value)).
func TestPython(t *testing.T) {
	text, err := os.ReadFile("testdata/python.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ JSON, Python string }
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 100 {
		t.Errorf("%d cases", len(cases))
	}
	for _, c := range cases {
		if got := python(json.RawMessage(c.JSON)); got != c.Python {
			t.Errorf("python(%s) = %s, want %s", c.JSON, got, c.Python)
		}
	}
}

// Whatever is JSON and UTF-8 can be written.
func FuzzPython(f *testing.F) {
	for _, seed := range []string{`[1,{"a":"\ud800"}]`, `-1.5e-300`, "[\"\\u00e9\u2028\", true]", `{}`, `"x"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		var raw json.RawMessage
		if json.Unmarshal([]byte(value), &raw) != nil || !utf8.ValidString(value) {
			return
		}
		if got := python(raw); !utf8.ValidString(got) {
			t.Errorf("python(%s) = %q", value, got)
		}
	})
}
