package cluster

import (
	"errors"
	"fmt"
	"strings"
)

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
