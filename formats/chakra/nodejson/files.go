// This file finds the files of a trace: one per rank, with the rank number in the name.

package nodejson

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
)

// fileName is the parsed name of a rank's file without folder and endings.
type fileName struct {
	prefix string // includes the character before the number
	rank   int
}

// Rank returns the rank in the name of a file.
func Rank(path string) (int, bool) {
	n, ok := parseName(path)
	return n.rank, ok
}

// rankInName finds the rank in a name that does not end in it, such as rank_3_et.json.
var rankInName = regexp.MustCompile(`(?i)rank[-_.]?([0-9]+)`)

// parseName finds the rank in a name such as PREFIX.3.json, PREFIX_3.json, PREFIX-3.json.gz or rank_3_et.json.
func parseName(path string) (fileName, bool) {
	name := filepath.Base(path)
	for _, ending := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, ending)
	}
	stem, isJSON := strings.CutSuffix(name, ".json")
	at := strings.LastIndexAny(stem, "._-") + 1
	rank, err := strconv.ParseUint(stem[at:], 10, 31)
	if m := rankInName.FindStringSubmatchIndex(stem); err != nil && m != nil {
		if rank, err = strconv.ParseUint(stem[m[2]:m[3]], 10, 31); err == nil {
			return fileName{stem[:m[2]] + stem[m[3]:], int(rank)}, isJSON
		}
	}
	return fileName{stem[:at], int(rank)}, isJSON && err == nil
}

// Files implements format.Format.Files.
func Files(name string, folder []string) ([]string, error) {
	first, ok := parseName(name)
	if name != "" && (!ok || first.rank != 0) {
		return []string{name}, nil
	}
	var found []string
	for _, other := range folder {
		n, ok := parseName(other)
		if !ok {
			continue
		}
		if name == "" && len(found) == 0 {
			first = n
		}
		if n.prefix == first.prefix {
			found = append(found, other)
		} else if name == "" {
			return nil, fmt.Errorf("expected one trace in the folder, found %sN.json and %sN.json: "+
				"name the file of rank 0", first.prefix, n.prefix)
		}
	}
	slices.SortStableFunc(found, func(a, b string) int {
		x, _ := parseName(a)
		y, _ := parseName(b)
		return cmp.Compare(x.rank, y.rank)
	})
	for i := range found {
		if n, _ := parseName(found[i]); n.rank > i {
			if name == "" {
				return nil, &format.MissingError{Rank: i}
			}
			return []string{name}, &format.MissingError{Rank: i}
		}
	}
	return found, nil
}

// byRank returns the inputs in rank order. It returns an error if one is missing. A single input may have any
// name.
func byRank(inputs []*format.Input) ([]*format.Input, error) {
	if len(inputs) == 1 {
		return inputs, nil
	}
	sorted := make([]*format.Input, len(inputs))
	for _, in := range inputs {
		n, ok := parseName(in.Name)
		switch {
		case !ok:
			return nil, format.FileErrorf(in.Name, "expected a file name with a rank number, as in trace.0.json")
		case n.rank >= len(inputs):
			return nil, format.FileErrorf(in.Name, "expected files of the ranks 0..%d, found rank %d", len(inputs)-1,
				n.rank)
		case sorted[n.rank] != nil:
			return nil, format.FileErrorf(in.Name, "expected one file of rank %d, found also %s", n.rank,
				sorted[n.rank].Name)
		}
		sorted[n.rank] = in
	}
	return sorted, nil
}
