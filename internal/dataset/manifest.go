package dataset

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tracedag/tracedag/formats/format"
)

// Names of the files of a set.
const (
	ManifestName  = "SHA256SUMS"
	CatalogueName = "catalogue.parquet"
	CroissantName = "croissant.json"
	CardName      = "README.md"
	MetadataName  = "dataset.yaml"
	PackageName   = "datapackage.json"
	KaggleName    = "dataset-metadata.json"
	TracesName    = "traces" // folder of the stores
)

// File is a file of a set. Path is relative to the set, with slashes; SHA256 is in lower-case hexadecimal.
type File struct {
	Path   string
	Bytes  int64 // -1: unknown, as in a manifest
	SHA256 string
}

// AppendManifest appends the lines of SHA256SUMS: digest, two spaces and path, sorted by the bytes of the path, in the
// form of sha256sum of GNU coreutils.
func AppendManifest(b []byte, files []File) []byte {
	sorted := slices.SortedFunc(slices.Values(files), func(x, y File) int { return cmp.Compare(x.Path, y.Path) })
	for _, f := range sorted {
		b = fmt.Appendf(b, "%s  %s\n", f.SHA256, f.Path)
	}
	return b
}

// ParseManifest parses SHA256SUMS. Errors name file and line. Paths are relative, clean, inside the set, and in
// ascending order of their bytes.
func ParseManifest(file string, data []byte) ([]File, error) {
	var files []File
	for line := 1; len(data) > 0; line++ {
		text, rest, ended := bytes.Cut(data, []byte{'\n'})
		wrong := func(expected, found string) error {
			return &format.SyntaxError{File: file, Line: int64(line), Expected: expected, Found: found}
		}
		if !ended {
			return nil, wrong("a line feed at the end of the line", "the end of the file")
		}
		digest, name, found := strings.Cut(string(text), "  ")
		if _, err := hex.DecodeString(digest); !found || err != nil || len(digest) != 64 ||
			digest != strings.ToLower(digest) {
			return nil, wrong("64 hexadecimal digits, two spaces and a path", fmt.Sprintf("%.80q", text))
		}
		if !SafePath(name) {
			return nil, wrong("a path inside the set", fmt.Sprintf("%.200q", name))
		}
		if n := len(files); n > 0 && files[n-1].Path >= name {
			return nil, wrong("paths in ascending order", fmt.Sprintf("%q after %q", name, files[n-1].Path))
		}
		files = append(files, File{Path: name, Bytes: -1, SHA256: digest})
		data = rest
	}
	return files, nil
}

// SafePath reports whether name is a relative path inside a set: clean, with slashes, in UTF-8 and without control
// characters or backslashes.
func SafePath(name string) bool {
	return name != "" && name != "." && name != ".." && !path.IsAbs(name) && path.Clean(name) == name &&
		!strings.HasPrefix(name, "../") && utf8.ValidString(name) &&
		!strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == ':' })
}
