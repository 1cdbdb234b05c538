// This file finds the files of a trace: one per rank, with the rank number in the name.

package mpi

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
)

// fileName is the parsed name of a rank's file.
type fileName struct {
	before, after string // the parts around the number, without the ending of a compressor
	rank          int
}

// parseName finds the rank in a name: the number between the last "-" and the ending. In names of liballprof2,
// such as trace-rank-3-of-8.txt, it is the number before "-of-".
func parseName(path string) (fileName, bool) {
	name := filepath.Base(path)
	for _, ending := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, ending)
	}
	if i := strings.LastIndex(name, "-of-"); i >= 0 {
		if n, ok := cutNumber(name[:i]); ok {
			n.after = name[i:]
			return n, true
		}
	}
	stem := strings.TrimSuffix(name, filepath.Ext(name))
	n, ok := cutNumber(stem)
	n.after = name[len(stem):]
	return n, ok
}

// cutNumber splits the number behind the last "-" off the end of a name.
func cutNumber(stem string) (n fileName, ok bool) {
	dash := strings.LastIndexByte(stem, '-')
	if dash < 0 {
		return n, false
	}
	rank, err := strconv.ParseUint(stem[dash+1:], 10, 31)
	if err != nil {
		return n, false
	}
	return fileName{before: stem[:dash+1], rank: int(rank)}, true
}

// files implements format.Format.Files.
func files(name string, folder []string) ([]string, error) {
	first, ok := parseName(name)
	if name != "" && (!ok || first.rank != 0) {
		return []string{name}, nil // Read reports the error
	}
	type rankFile struct {
		fileName
		name string
	}
	var all []rankFile
	for _, other := range folder {
		n, ok := parseName(other)
		if !ok {
			continue
		}
		if name == "" && len(all) == 0 {
			first = n
		}
		if n.before == first.before && n.after == first.after {
			all = append(all, rankFile{n, other})
		} else if name == "" {
			return nil, fmt.Errorf("expected one trace in the folder, found %s*%s and %s*%s: "+
				"name the file of rank 0", first.before, first.after, n.before, n.after)
		}
	}
	slices.SortStableFunc(all, func(x, y rankFile) int { return cmp.Compare(x.rank, y.rank) })
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	return names, nil
}

// byRank returns the inputs in rank order. It returns an error if one is missing. A single input may have any
// name.
func byRank(inputs []*format.Input) ([]*format.Input, error) {
	if len(inputs) == 1 {
		if n, ok := parseName(inputs[0].Name); !ok || n.rank == 0 {
			return inputs, nil
		}
	}
	ranks := 0
	numbers := make([]int, len(inputs))
	for i, in := range inputs {
		n, ok := parseName(in.Name)
		if !ok {
			return nil, format.FileErrorf(in.Name, "%s: expected a file name with a rank number, "+
				"as in trace-rank-0.txt", inFiles)
		}
		numbers[i] = n.rank
		ranks = max(ranks, n.rank+1)
	}
	highest := ranks - 1
	if ranks > len(inputs) { // one of the lowest numbers is missing
		ranks = len(inputs) + 1
	}
	sorted := make([]*format.Input, ranks)
	for i, in := range inputs {
		rank := numbers[i]
		if rank >= ranks {
			continue
		}
		if sorted[rank] != nil {
			return nil, format.FileErrorf(in.Name, "%s: expected one file of rank %d, found also %s", inFiles, rank,
				sorted[rank].Name)
		}
		sorted[rank] = in
	}
	if missing := slices.Index(sorted, nil); missing >= 0 {
		return nil, format.FileErrorf(inputs[0].Name, "%s: the file of rank %d is missing, found %d in all, up to "+
			"rank %d; each rank needs a file with its number behind the last \"-\" of the name", inFiles, missing,
			len(inputs), highest)
	}
	return sorted, nil
}
