package main

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

var testLayers = []layer{
	{row: 0, from: 0, to: 400, name: "top", packages: []string{"cmd/..."}},
	{row: 1, from: 60, to: 300, name: "middle", packages: []string{"mid", "mid/..."}},
	{row: 2, from: 0, to: 400, name: "bottom", packages: []string{"dag"}},
}

func packagesOf(imports map[string][]string) (all []pkg) {
	for _, path := range []string{"cmd/a", "cmd/b", "mid", "mid/x", "dag", "other"} {
		list, ok := imports[path]
		if !ok {
			continue
		}
		p := pkg{ImportPath: "example.com/m/" + path, Imports: []string{"fmt"}}
		p.Module.Path = "example.com/m"
		for _, i := range list {
			p.Imports = append(p.Imports, "example.com/m/"+i)
		}
		all = append(all, p)
	}
	return all
}

func TestReducedDropsImpliedEdges(t *testing.T) {
	g, err := newGraph(testLayers, packagesOf(map[string][]string{
		"cmd/a": {"mid"}, "cmd/b": {"dag"}, "mid": {"mid/x"}, "mid/x": {"dag"}, "dag": nil,
	}))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := g.reduced(), [][2]int{{0, 1}, {1, 2}}; !reflect.DeepEqual(got, want) {
		t.Errorf("edges %v, want %v", got, want)
	}
	if want := []string{"mid", "mid/x"}; !reflect.DeepEqual(g.members[1], want) {
		t.Errorf("members %v, want %v", g.members[1], want)
	}
}

func TestNewGraphRefuses(t *testing.T) {
	for _, c := range []struct {
		imports map[string][]string
		want    string
	}{
		{map[string][]string{"mid": nil, "dag": {"mid"}}, "imports point down only"},
		{map[string][]string{"other": nil}, "belongs to no layer"},
		{map[string][]string{"mid": {"other"}}, "belongs to no layer"},
	} {
		if _, err := newGraph(testLayers, packagesOf(c.imports)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.imports, err, c.want)
		}
	}
}

// TestArrowsPassBoxes draws an edge that has no path through the middle layer: its arrow must pass the middle box.
func TestArrowsPassBoxes(t *testing.T) {
	g, err := newGraph(testLayers, packagesOf(map[string][]string{"cmd/a": {"mid", "dag"}, "mid": nil, "dag": nil}))
	if err != nil {
		t.Fatal(err)
	}
	image, err := draw(g)
	if err != nil {
		t.Fatal(err)
	}
	again, err := draw(g)
	if err != nil || !bytes.Equal(image, again) {
		t.Error("two drawings of one graph differ")
	}
	boxes, _ := place(g)
	a, err := route(boxes, 0, 2, nil)
	if err != nil || a.x > 52 && a.x < 308 {
		t.Errorf("arrow at %d, error %v", a.x, err)
	}
}
