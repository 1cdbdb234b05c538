package attr

import "testing"

func TestMemAccess(t *testing.T) {
	for _, test := range []struct {
		access MemAccess
		want   string
	}{
		{MemAccess{Gather: 16}, `{"gather":16}`}, {MemAccess{Local: true}, `{"local":true}`},
		{MemAccess{Gather: 1, Local: true}, `{"gather":1,"local":true}`},
	} {
		text := object(test.access.Append(nil))
		if got, ok := ParseMemAccess(text); text != test.want || !ok || got != test.access {
			t.Errorf("%+v: text %s, parsed %+v, %v", test.access, text, got, ok)
		}
	}
	for _, attrs := range []string{"", `{"gather":"x"}`, `{"gather":0}`, `{"a":"\"gather\""}`, `{"gather":`} {
		if a, ok := ParseMemAccess(attrs); ok {
			t.Errorf("%s: %+v", attrs, a)
		}
	}
}
