package attr

import "testing"

func TestElement(t *testing.T) {
	for attrs, want := range map[string]string{"": `{"element":4}`, `{"a":1}`: `{"a":1,"element":4}`} {
		text := WithElement(attrs, 4)
		if bytes, ok := ParseElement(text); text != want || bytes != 4 || !ok {
			t.Errorf("%s: got %s, parsed as %d, %v, expected %s", attrs, text, bytes, ok, want)
		}
	}
	for _, attrs := range []string{"", `{"a":1}`, `{"element":0}`, `{"element":-1}`, `{"element":"x"}`, `{"element":`} {
		if bytes, ok := ParseElement(attrs); ok {
			t.Errorf("%s: got %d", attrs, bytes)
		}
	}
}
