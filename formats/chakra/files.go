// This file finds the files of a trace: one per rank, PREFIX.RANK.et or PREFIX.RANK.json, and optionally
// PREFIX.comm_groups.json with its communicators.

package chakra

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
)

// groupsEnding is the ending of the name of a trace's file of groups.
const groupsEnding = ".comm_groups.json"

// fileName is the parsed name of a rank's file.
type fileName struct {
	prefix, ending string // the ending without that of a compressor
	rank           int
}

func uncompressed(name string) string {
	return strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
}

// parseName finds the rank in a name: the number before the ending, without leading zeros.
func parseName(path string) (n fileName, ok bool) {
	name := uncompressed(filepath.Base(path))
	n.ending = filepath.Ext(name)
	stem := strings.TrimSuffix(name, n.ending)
	dot := strings.LastIndexByte(stem, '.')
	if dot < 0 {
		return n, false
	}
	digits := stem[dot+1:]
	rank, err := strconv.ParseUint(digits, 10, 31)
	n.prefix, n.rank = stem[:dot], int(rank)
	return n, err == nil && strconv.Itoa(n.rank) == digits
}

// files implements format.Format.Files for the form with the ending.
func files(name string, folder []string, ending string) ([]string, error) {
	given, ok := parseName(name)
	switch {
	case name == "":
		given = fileName{ending: ending}
	case !ok || given.rank != 0:
		return []string{name}, nil
	}
	type rankFile struct {
		name string
		rank int
	}
	var all []rankFile
	var prefixes []string
	known := make(map[string]bool)
	for _, other := range folder {
		n, ok := parseName(other)
		if !ok || n.ending != given.ending || name != "" && n.prefix != given.prefix {
			continue
		}
		if !known[n.prefix] {
			known[n.prefix] = true
			prefixes = append(prefixes, n.prefix)
		}
		all = append(all, rankFile{other, n.rank})
	}
	if len(prefixes) > 1 {
		slices.Sort(prefixes)
		const named = 8
		list := strings.Join(prefixes[:min(named, len(prefixes))], ", ")
		if len(prefixes) > named {
			list += ", ..."
		}
		return nil, fmt.Errorf("expected one trace in the folder, found %d with the prefixes %s: "+
			"name the file of rank 0", len(prefixes), list)
	}
	slices.SortStableFunc(all, func(x, y rankFile) int { return cmp.Compare(x.rank, y.rank) })
	var names []string
	for i := range all {
		if missing := i; all[i].rank > missing && (i == 0 || all[i-1].rank < missing) {
			if name == "" {
				return nil, &format.MissingError{Rank: missing}
			}
			return []string{name}, &format.MissingError{Rank: missing}
		}
		names = append(names, all[i].name)
	}
	if len(prefixes) == 1 {
		for _, other := range folder {
			if uncompressed(other) == prefixes[0]+groupsEnding {
				return append(names, other), nil
			}
		}
	}
	return names, nil
}

// cutGroups separates the file of groups from the files of a trace.
func cutGroups(inputs []*format.Input) ([]*format.Input, *format.Input) {
	for i, in := range inputs {
		if len(inputs) > 1 && strings.HasSuffix(uncompressed(in.Name), groupsEnding) {
			return slices.Delete(slices.Clone(inputs), i, i+1), in
		}
	}
	return inputs, nil
}

// byRank returns the inputs in rank order. It returns an error if one is missing. A single input may have any
// name.
func byRank(inputs []*format.Input) ([]*format.Input, error) {
	if len(inputs) == 1 {
		return inputs, nil
	}
	type rankInput struct {
		*format.Input
		rank int
	}
	sorted := make([]rankInput, len(inputs))
	for i, in := range inputs {
		n, ok := parseName(in.Name)
		if !ok {
			return nil, format.FileErrorf(in.Name, "%s: expected a file name with a rank number, "+
				"as in PREFIX.0.et", inFiles)
		}
		sorted[i] = rankInput{in, n.rank}
	}
	slices.SortStableFunc(sorted, func(x, y rankInput) int { return cmp.Compare(x.rank, y.rank) })
	inputs = slices.Clone(inputs)
	for i, in := range sorted {
		switch {
		case in.rank > i:
			return nil, format.FileErrorf(inputs[0].Name, "%s: the file of rank %d is missing", inFiles, i)
		case in.rank < i:
			return nil, format.FileErrorf(in.Name, "%s: expected one file of rank %d, found also %s", inFiles, in.rank,
				sorted[i-1].Name)
		}
		inputs[i] = in.Input
	}
	return inputs, nil
}
