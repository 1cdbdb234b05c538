package publish

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/dataset"
	"github.com/tracedag/tracedag/internal/origin"
)

// Published is a set as published.
type Published struct {
	Folder   string
	Meta     *dataset.Metadata
	Rows     []dataset.Row // of the catalogue, sorted by trace
	Identity string        // SHA-256 of SHA256SUMS in hexadecimal
}

// IsSet reports whether the folder is that of a set: it has a catalogue or a manifest.
func IsSet(folder string) bool {
	for _, name := range []string{dataset.CatalogueName, dataset.ManifestName} {
		if info, err := os.Stat(filepath.Join(folder, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// open reads the catalogue, the manifest and the metadata of a set. It returns nil without error if the folder is
// missing or has none of them.
func open(folder string) (*Published, error) {
	p := &Published{Folder: folder}
	manifest, err := os.ReadFile(filepath.Join(folder, dataset.ManifestName))
	switch {
	case errors.Is(err, fs.ErrNotExist) && !IsSet(folder):
		return nil, nil
	case errors.Is(err, fs.ErrNotExist): // publishing writes it anew
	case err != nil:
		return nil, err
	default:
		p.Identity = hexDigest(manifest)
	}
	if _, err := dataset.ParseManifest(filepath.Join(folder, dataset.ManifestName), manifest); err != nil {
		return nil, err
	}
	if p.Rows, err = Catalogue(folder); err != nil {
		return nil, err
	}
	name := filepath.Join(folder, dataset.MetadataName)
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	p.Meta, err = dataset.ParseMetadata(name, text)
	return p, err
}

// Catalogue reads the catalogue of a set. It checks that rows are sorted and name stores inside the set.
func Catalogue(folder string) ([]dataset.Row, error) {
	name := filepath.Join(folder, dataset.CatalogueName)
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	rows, err := dataset.ReadCatalogue(name, data)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		switch r := &rows[i]; {
		case !dataset.SafePath(r.Path):
			return nil, fmt.Errorf("%s: row %d: expected a path inside the set, found %.200q", name, i, r.Path)
		case i > 0 && rows[i-1].Trace >= r.Trace:
			return nil, fmt.Errorf("%s: row %d: expected traces in ascending order, found %q after %q", name, i,
				r.Trace, rows[i-1].Trace)
		}
	}
	return rows, nil
}

// row returns the row of a trace, nil if there is none.
func (p *Published) row(name string) *dataset.Row {
	i, found := slices.BinarySearchFunc(p.Rows, name, func(r dataset.Row, name string) int {
		return cmp.Compare(r.Trace, name)
	})
	if !found {
		return nil
	}
	return &p.Rows[i]
}

// path returns the path of a file of the set.
func (p *Published) path(file string) string {
	return filepath.Join(p.Folder, filepath.FromSlash(file))
}

// madeFrom returns the row of the trace with a base name whose store has the digest, or was made from files with it. It
// returns nil if there is none.
func (p *Published) madeFrom(digest, base string) *dataset.Row {
	for n := 1; ; n++ {
		row := p.row(numbered(base, n))
		if row == nil {
			if n == 1 {
				continue // the first may have been removed
			}
			return nil
		}
		if row.SHA256 == digest {
			return row
		}
		h, err := readHeader(p.path(row.Path))
		if err != nil {
			return nil // converting the input again finds the damage, or mends it with --replace
		}
		for i := range h.Provenance {
			if len(h.Provenance[i].Inputs) > 0 && origin.Digest(h.Provenance[i].Inputs) == digest {
				return row
			}
		}
	}
}

// isOf reports whether a trace has the base name, or its number among traces of that base name.
func isOf(name, base string) bool {
	if name == base {
		return true
	}
	at := strings.LastIndexByte(name, '-')
	n, err := strconv.Atoi(name[at+1:])
	return at > 0 && err == nil && n > 1 && numbered(base, n) == name
}

// croissantVersion returns the version of the set's Croissant description, "" if it has none.
func (p *Published) croissantVersion() string {
	text, err := os.ReadFile(p.path(dataset.CroissantName))
	switch {
	case err != nil:
		return ""
	case bytes.Contains(text, []byte(`"http://mlcommons.org/croissant/1.1"`)):
		return "1.1"
	}
	return "1.0"
}

// kaggleID returns the identifier of the set at Kaggle, "" if it has none.
func (p *Published) kaggleID() string {
	text, err := os.ReadFile(p.path(dataset.KaggleName))
	var described struct{ ID string }
	if err != nil || json.Unmarshal(text, &described) != nil {
		return ""
	}
	return described.ID
}

// otherFiles returns the paths of the files in the folder of a set that are neither the manifest nor the state of a
// publisher nor those of git.
func otherFiles(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		relative, relErr := filepath.Rel(folder, name)
		switch {
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case relative == stateFolder || strings.HasPrefix(relative, ".git"):
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case e.IsDir() || relative == dataset.ManifestName:
			return nil
		}
		files = append(files, filepath.ToSlash(relative))
		return nil
	})
	slices.Sort(files)
	return files, err
}

// digestFile returns size and SHA-256 of a file.
func digestFile(name string) (int64, string, error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return n, hex.EncodeToString(h.Sum(nil)), err
}

func hexDigest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
