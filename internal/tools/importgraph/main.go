// Importgraph draws the packages of this module and the imports between their layers as an SVG image.
//
//	go run ./internal/tools/importgraph docs/images/packages.svg
//	go run ./internal/tools/importgraph -check docs/images/packages.svg
//
// The bytes depend only on the packages and their imports. It fails if an import points up, or if a package belongs
// to no layer of the table in layers.go. With -check it writes nothing, and fails if the image is out of date.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	check := flag.Bool("check", false, "fail if the image differs, instead of writing it")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: importgraph [-check] FILE.svg")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *check); err != nil {
		fmt.Fprintln(os.Stderr, "importgraph:", err)
		os.Exit(1)
	}
}

func run(path string, check bool) error {
	packages, err := list()
	if err != nil {
		return err
	}
	g, err := newGraph(layers, packages)
	if err != nil {
		return err
	}
	image, err := draw(g)
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(path, image, 0o644)
	}
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if !bytes.Equal(old, image) {
		return fmt.Errorf("%s is out of date: run go run ./internal/tools/importgraph %s", path, path)
	}
	return nil
}
