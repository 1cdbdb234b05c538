package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// pkg is a package as go list prints it.
type pkg struct {
	ImportPath string
	Imports    []string // without imports of tests
	Module     struct{ Path string }
}

// list returns the packages of the module in the working folder.
func list() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Module", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// graph is a graph of layers.
type graph struct {
	layers  []layer
	members [][]string // by layer: package paths relative to the module, ascending
	edges   [][]bool   // edges[a][b]: a package of layer a imports one of layer b; a != b
}

// newGraph assigns packages to layers. It fails if a package has no layer or an import points up.
func newGraph(layers []layer, packages []pkg) (*graph, error) {
	g := &graph{layers: layers, members: make([][]string, len(layers)), edges: make([][]bool, len(layers))}
	for i := range g.edges {
		g.edges[i] = make([]bool, len(layers))
	}
	for _, p := range packages {
		path, _ := below(p.ImportPath, p.Module.Path)
		if matches(unseen, path) {
			continue
		}
		from := g.layerOf(path)
		if from < 0 {
			return nil, fmt.Errorf("package %s belongs to no layer: add it to layers.go", path)
		}
		g.members[from] = append(g.members[from], path)
		for _, name := range p.Imports {
			imported, ok := below(name, p.Module.Path)
			if !ok {
				continue
			}
			to := g.layerOf(imported)
			switch {
			case to < 0:
				return nil, fmt.Errorf("package %s, which %s imports, belongs to no layer", imported, path)
			case to == from:
			case layers[to].row <= layers[from].row:
				return nil, fmt.Errorf("package %s (%s) imports %s (%s): imports point down only", path,
					layers[from].name, imported, layers[to].name)
			default:
				g.edges[from][to] = true
			}
		}
	}
	for _, m := range g.members {
		slices.Sort(m)
	}
	return g, nil
}

// below returns the path of a package below that of its module, "." for the module's own; ok is false for a package of
// another module.
func below(path, module string) (short string, ok bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// layerOf returns the index of the layer of a package, -1 if there is none.
func (g *graph) layerOf(path string) int {
	return slices.IndexFunc(g.layers, func(l layer) bool { return matches(l.packages, path) })
}

func matches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		folder, tree := strings.CutSuffix(pattern, "/...")
		return path == folder || tree && strings.HasPrefix(path, folder+"/")
	})
}

// reduced returns the edges that are not implied by a longer path, by source, then by target.
func (g *graph) reduced() (edges [][2]int) {
	n := len(g.layers)
	reach := make([][]bool, n) // by a path of any length
	for i := range reach {
		reach[i] = slices.Clone(g.edges[i])
	}
	for via := range n {
		for a := range n {
			for b := range n {
				reach[a][b] = reach[a][b] || reach[a][via] && reach[via][b]
			}
		}
	}
	for a := range n {
		for b := range n {
			implied := false
			for via := range n {
				implied = implied || g.edges[a][via] && reach[via][b]
			}
			if g.edges[a][b] && !implied {
				edges = append(edges, [2]int{a, b})
			}
		}
	}
	return edges
}
