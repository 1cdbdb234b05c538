package param

import (
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestOneOf(t *testing.T) {
	kind := dag.Bcast
	p := OneOf(&kind, "type", "collective", dag.Allreduce, dag.ReduceScatter, dag.Bcast)
	if p.Initial != "bcast" || !slices.Equal(p.Choices, []string{"allreduce", "reducescatter", "bcast"}) {
		t.Errorf("default %q, choices %v", p.Initial, p.Choices)
	}
	if err := p.Value.Set("REDUCE_SCATTER"); err != nil || kind != dag.ReduceScatter || p.Value.String() != "reducescatter" {
		t.Errorf("%v, %v", kind, err)
	}
	const want = "expected one of allreduce, reducescatter, bcast"
	if err := p.Value.Set("gather"); err == nil || err.Error() != want || kind != dag.ReduceScatter {
		t.Errorf("%v, %v", kind, err)
	}
}

func TestDims(t *testing.T) {
	list := []int64{4, 4}
	p := Dims(&list, "grid", "ranks along each dimension")
	if p.Initial != "4x4" {
		t.Errorf("default %q", p.Initial)
	}
	if err := p.Value.Set("3x0x5"); err != nil || !slices.Equal(list, []int64{3, 0, 5}) || p.Value.String() != "3x0x5" {
		t.Errorf("%v, %v", list, err)
	}
	for _, text := range []string{"", "4xx4", "-4", "4x", "a", "99999999999999999999"} {
		if err := p.Value.Set(text); err == nil || !slices.Equal(list, []int64{3, 0, 5}) {
			t.Errorf("%q: %v, %v", text, list, err)
		}
	}
}

func TestBandwidth(t *testing.T) {
	var rate int64
	p := Bandwidth(&rate, "mem-bw", "bandwidth of the memory")
	if p.Initial != "" {
		t.Errorf("default %q", p.Initial)
	}
	if err := p.Value.Set("2TB/s"); err != nil || rate != 2e12 || p.Value.String() != "2TB/s" {
		t.Errorf("%d, %q, %v", rate, p.Value, err)
	}
	for text, want := range map[string]string{
		"0ps/B":   "expected a rate of a memory",
		"1000s/B": "expected 1 to 2^63-1 bytes in a second",
	} {
		if err := p.Value.Set(text); err == nil || err.Error() != want || rate != 2e12 {
			t.Errorf("%s: %d, %v, want %s", text, rate, err, want)
		}
	}
}

func TestShorthand(t *testing.T) {
	ranks := 8
	if p := Int(&ranks, "ranks", "number of ranks").Shorthand("s"); p.Letter != "s" {
		t.Errorf("letter %q", p.Letter)
	}
}
