// This file finds the files of a trace and the ranks of files.

package kineto

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// endings are the endings of compressed and plain files.
var endings = []string{".json", ".json.gz", ".json.zst"}

// rankInName finds the rank in a name: the number after one of the usual words.
var rankInName = regexp.MustCompile(`(?i)(?:rank|worker|kineto_|trace_)[-_.]?([0-9]+)`)

// parseRank returns the rank in the name of a file.
func parseRank(path string) (int64, bool) {
	m := rankInName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 32)
	return n, err == nil
}

// files implements format.Format.Files: a file is a trace of its own, a folder is the files of a job. If names in the
// folder have ranks or the ending of the profiler, only those are its files.
func files(name string, folder []string) ([]string, error) {
	if name != "" {
		return []string{name}, nil
	}
	var all, named []string
	for _, other := range slices.Sorted(slices.Values(folder)) {
		if !slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(other, e) }) {
			continue
		}
		all = append(all, other)
		if _, ok := parseRank(other); ok || strings.Contains(other, ".pt.trace.json") {
			named = append(named, other)
		}
	}
	if len(named) > 0 {
		return named, nil
	}
	return all, nil
}

// ranksByName returns the ranks of files by the only number that differs between their names, nil if there is none.
func ranksByName(names []string) []int64 {
	numbers := make([][]string, len(names))
	for i, name := range names {
		numbers[i] = digits.FindAllString(filepath.Base(name), -1)
		if len(numbers[i]) != len(numbers[0]) {
			return nil
		}
	}
	varying := -1
	for k := range numbers[0] {
		for i := range names {
			if numbers[i][k] != numbers[0][k] {
				if varying >= 0 && varying != k {
					return nil
				}
				varying = k
			}
		}
	}
	if varying < 0 {
		return nil
	}
	ranks := make([]int64, len(names))
	for i := range names {
		n, err := strconv.ParseInt(numbers[i][varying], 10, 32)
		if err != nil {
			return nil
		}
		ranks[i] = n
	}
	return ranks
}

var digits = regexp.MustCompile(`[0-9]+`)
