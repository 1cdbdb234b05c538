package attr

import (
	"reflect"
	"testing"
)

// TestCounts checks the text of counts, that parsing returns them, and that other members remain.
func TestCounts(t *testing.T) {
	c := Counts{Send: []int64{3, 0, 5}, Recv: []int64{3, 1, 1 << 40}}
	text := WithCounts("", &c)
	if want := `{"counts":{"send":[3,0,5],"recv":[3,1,1099511627776]}}`; text != want {
		t.Errorf("got %s, expected %s", text, want)
	}
	for _, attrs := range []string{"", `{"x":1}`, `{"x":{"counts":1}}`} {
		got, ok := ParseCounts(WithCounts(attrs, &c))
		if !ok || !reflect.DeepEqual(got, c) {
			t.Errorf("%s: %v", attrs, got)
		}
	}
	for _, attrs := range []string{
		"", `{"counts":1}`, `{"counts":{"send":[-1]}}`, `{"counts":{"recv":["1"]}}`, `{"x":1}`,
	} {
		if got, ok := ParseCounts(attrs); ok {
			t.Errorf("%s: %v", attrs, got)
		}
	}
	if c.Even() || !(&Counts{Send: []int64{2, 2}, Recv: []int64{2, 2}}).Even() ||
		(&Counts{Send: []int64{2, 2}, Recv: []int64{2, 3}}).Even() || !(&Counts{}).Even() ||
		!(&Counts{Send: []int64{2, 2}, Recv: []int64{3, 3}}).Even() {
		t.Error("even counts")
	}
}
