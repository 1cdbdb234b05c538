package flit

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/golden"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

func TestFlitParameters(t *testing.T) {
	presets := Presets()
	from, to := presets[0].Params, presets[1].Params
	for _, key := range to.keys() {
		if err := from.keys().Assign(key.Name + "=" + key.Value.String()); err != nil {
			t.Errorf("%s: %v", key.Name, err)
		}
	}
	from.Routing, from.Seed = to.Routing, to.Seed
	if !reflect.DeepEqual(from, to) {
		t.Errorf("got %+v, expected %+v", from, to)
	}
}

func TestFlitTopology(t *testing.T) {
	const preset = "dragonfly:p=2,a=4,h=2,arrangement=palmtree,latency=40ns"
	for text, want := range map[string]string{
		"dragonfly:h=4,latency=1ns": "dragonfly:h=4,latency=1ns,p=2,a=4,arrangement=palmtree",
		"torus:dims=4x4":            "torus:dims=4x4,latency=40ns",
		"star:hosts=4,latency=2ns":  "star:hosts=4,latency=2ns",
		"x.topo":                    "x.topo",
	} {
		if got := withDefaults(text, preset); got != want {
			t.Errorf("%s: got %s, expected %s", text, got, want)
		}
	}
}

func TestPresetsPage(t *testing.T) {
	var list strings.Builder
	printPresets(&list)
	golden.Section(t, "../../docs/reference/backends/flit.md", "<!-- simulate --list-presets -->\n", "<!-- end -->",
		"\n```text\n"+list.String()+"```\n\n")
}

func FuzzFlitFlags(f *testing.F) {
	for _, text := range []string{"uniform", "adversarial+3", "hotspot:0.25:3,9", "hotspot:NaN", "pipeline=3", "cycle=1ns",
		"input-arbiter=lrs", "pad-packets=on", "local-vcs=99999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := parsePattern(text); err == nil {
			if again, err := parsePattern(patternName(&a)); err != nil || !reflect.DeepEqual(again, a) {
				t.Errorf("%q: %+v, and again %+v, error %v", text, a, again, err)
			}
		}
		p := Presets()[0].Params
		if p.keys().Assign(text) == nil {
			name, _, _ := strings.Cut(text, "=")
			again := Presets()[0].Params
			if err := again.keys().Assign(name + "=" + p.keys().Find(name).Value.String()); err != nil || !reflect.DeepEqual(again, p) {
				t.Errorf("%q: %+v, and again %+v, error %v", text, p, again, err)
			}
		}
	})
}

func TestPatternDefaults(t *testing.T) {
	if a, err := parsePattern("hotspot"); err != nil || a.Share != defaultHotShare || !slices.Equal(a.Hot, []uint32{0}) {
		t.Errorf("hotspot: got %+v, error %v", a, err)
	}
	if a, err := parsePattern("adversarial"); err != nil || a.Offset != 1 {
		t.Errorf("adversarial: got %+v, error %v", a, err)
	}
}
