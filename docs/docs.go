// Package docs embeds the reference pages. The programs print them as help and as man pages.
package docs

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed reference
var files embed.FS

// shared maps names without an own page to the page that describes them.
var shared = map[string]string{
	"formats/blkparse":      "formats/blocktraces",
	"formats/blktracer":     "formats/blocktraces",
	"formats/chakrajson":    "formats/chakra",
	"formats/disksim":       "formats/blocktraces",
	"formats/goalbin":       "formats/goal",
	"formats/mqsim":         "formats/blocktraces",
	"formats/msr":           "formats/blocktraces",
	"formats/store":         "store",
	"formats/trafpycsv":     "formats/trafpy",
	"formats/workloadgraph": "formats/stg",
}

// added are the reference pages of extensions by name.
var added map[string]string

// Add adds reference pages in Markdown by names such as "formats/edges". It must precede all other calls.
func Add(pages map[string]string) {
	added = pages
}

// Page returns the Markdown of the reference page with a name such as "backends/packet" or "topologies", "" if there is
// none.
func Page(name string) string {
	if text := added[name]; text != "" {
		return text
	}
	for _, name := range []string{name, shared[name]} {
		if text, err := files.ReadFile("reference/" + name + ".md"); err == nil && name != "" {
			return string(text)
		}
	}
	return ""
}

// Has reports whether there is a page with a name, without reading it.
func Has(name string) bool {
	if added[name] != "" {
		return true
	}
	return slices.ContainsFunc([]string{name, shared[name]}, func(name string) bool {
		_, err := fs.Stat(files, "reference/"+name+".md")
		return err == nil && name != ""
	})
}

// General returns the names of the pages about other topics than a format, generator or backend.
func General() (names []string) {
	entries, _ := fs.ReadDir(files, "reference") // embedded: always readable
	for _, e := range entries {
		if name, page := strings.CutSuffix(path.Base(e.Name()), ".md"); page {
			names = append(names, name)
		}
	}
	return names
}
