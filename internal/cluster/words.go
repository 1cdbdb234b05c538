package cluster

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// plain matches words that a shell reads as they are.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:,+@%=-]+$`)

// quote returns a word in the quotes of bash, without line ends.
func quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	unprintable := func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }
	if !strings.ContainsFunc(word, unprintable) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := range len(word) {
		switch c := word[i]; {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}

// command returns a command line of bash.
func command(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}

// checkCommand returns an error if the words are not those of a command.
func checkCommand(words []string) error {
	if len(words) == 0 || words[0] == "" {
		return errors.New("expected a command, found none")
	}
	for _, word := range words {
		if strings.Contains(word, "\x00") {
			return fmt.Errorf("expected words without a zero byte, found %q", word)
		}
	}
	return nil
}

// Words returns the words of a text. A word is separated by blanks, and may have parts in single or double quotes,
// which have no other special characters.
func Words(text string) (words []string, err error) {
	var word strings.Builder
	inside := false // a word
	open := rune(0) // quote
	for _, r := range text {
		switch {
		case open != 0 && r == open:
			open = 0
		case open != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			open, inside = r, true
		case strings.ContainsRune(" \t\r\n", r):
			if inside {
				words = append(words, word.String())
			}
			word.Reset()
			inside = false
		default:
			word.WriteRune(r)
			inside = true
		}
	}
	if open != 0 {
		return nil, fmt.Errorf("expected %c at the end of a quoted part, found the end of %q", open, text)
	}
	if inside {
		words = append(words, word.String())
	}
	return words, nil
}
