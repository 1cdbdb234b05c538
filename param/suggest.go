// This file matches the spellings of names.

package param

import (
	"fmt"
	"slices"
	"strings"
)

// Synonym is a choice and its further names. Completion does not offer them.
type Synonym struct {
	Choice string
	Names  []string
}

// Synonym returns the parameter with further names of one of its choices.
func (p Param) Synonym(choice string, names ...string) Param {
	p.Synonyms = append(slices.Clip(p.Synonyms), Synonym{choice, names})
	return p
}

// Set sets the value to a text. It accepts synonyms of choices, and any case, hyphens and underscores in them. The
// error about an unknown choice names the nearest one.
func (p *Param) Set(text string) error {
	err := p.Value.Set(Resolve(text, p.Choices, p.Synonyms...))
	if _, own := err.(*Error); own || err == nil || strings.Contains(err.Error(), didYouMean) {
		return err
	}
	if near := Suggest(text, slices.Concat(p.Choices, p.Shown)); near != "" {
		return &suggestion{err, near}
	}
	return err
}

// suggestion is the error of a value and the nearest choice.
type suggestion struct {
	err  error
	near string
}

func (s *suggestion) Error() string { return s.err.Error() + s.near }
func (s *suggestion) Unwrap() error { return s.err }

// plain removes the differences between spellings of a name: case, hyphens, underscores and spaces.
func plain(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

// Resolve returns the choice that a text names: the text itself if it is a choice, else the choice with that synonym or
// with another case, other hyphens or underscores. It returns a text that names no choice unchanged.
func Resolve(text string, choices []string, synonyms ...Synonym) string {
	if slices.Contains(choices, text) {
		return text
	}
	word := plain(text)
	if word == "" {
		return text
	}
	for _, choice := range choices {
		if plain(choice) == word {
			return choice
		}
	}
	for _, s := range synonyms {
		for _, name := range s.Names {
			if plain(name) == word {
				return s.Choice
			}
		}
	}
	return text
}

const didYouMean = "; did you mean "

// Suggest returns a clause for the end of an error message about an unknown name, such as `; did you mean "ring"?`. It
// is empty if no candidate is near.
func Suggest(name string, candidates []string) string {
	near := Nearest(name, candidates)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("%s%q?", didYouMean, near)
}

// Nearest returns the candidate with the smallest edit distance to the name, the first of equals. It returns "" if the
// distance of all of them exceeds a third of the name's length.
func Nearest(name string, candidates []string) string {
	if len(name) > 64 { // not a misspelled name
		return ""
	}
	best, least := "", max(1, (len(name)+1)/3)+1
	if len(name) < 2 {
		return ""
	}
	for _, candidate := range candidates {
		if candidate == name {
			continue
		}
		if d := editDistance(plain(name), plain(candidate)); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// editDistance returns the optimal string alignment distance: the number of insertions, deletions, replacements and
// swaps of adjacent bytes that turn a into b.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
