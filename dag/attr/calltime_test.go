package attr

import "testing"

// TestCallTime checks the text of the attribute, and texts without a time.
func TestCallTime(t *testing.T) {
	text := CallTime(1 << 40)
	if want := `{"mpi":{"calls_ps":1099511627776}}`; text != want {
		t.Errorf("got %s, expected %s", text, want)
	}
	for attrs, want := range map[string]int64{
		text: 1 << 40, `{"x":1,"mpi":{"mode":"ready","calls_ps":5}}`: 5,
		"": 0, `{"mpi":1}`: 0, `{"mpi":{"mode":"ready"}}`: 0, `{"mpi":{"calls_ps":-5}}`: 0, `{"calls_ps":7}`: 0,
	} {
		if got := ParseCallTime(attrs); got != want {
			t.Errorf("%s: %d ps, expected %d", attrs, got, want)
		}
	}
}
