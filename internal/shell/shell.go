// Package shell quotes the words of commands for a POSIX shell, and splits command lines into words.
package shell

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain are the characters that a shell reads as they are.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,=@%"

// Quote returns a word in the quotes that a POSIX shell needs to read it as one word, in single quotes where possible.
// A word with control characters or invalid UTF-8 gets the form $'...' of POSIX.1-2024, which has no line ends.
func Quote(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	unprintable := func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }
	if !strings.ContainsFunc(word, unprintable) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(word) {
		switch {
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

// Join returns a command line of the words.
func Join(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Quote(word)
	}
	return strings.Join(quoted, " ")
}

// Split returns the words of a command line in the syntax of a POSIX shell, without expansions: words are separated by
// spaces and tabs; single quotes, double quotes and backslashes quote characters. The error describes a missing quote.
func Split(line string) (words []string, err error) {
	var word []byte
	begun := false
	quote := byte(0) // open quote; 0: none
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote == '\'' && c != '\'':
			word = append(word, c)
		case c == quote && quote != 0:
			quote = 0
		case c == '\\':
			if i++; i == len(line) {
				return nil, fmt.Errorf("expected a character after the backslash at the end, found none")
			}
			if quote == '"' && !strings.ContainsRune("$`\"\\", rune(line[i])) {
				word = append(word, c)
			}
			word, begun = append(word, line[i]), true
		case quote != 0:
			word = append(word, c)
		case c == '\'' || c == '"':
			quote, begun = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if begun {
				words = append(words, string(word))
			}
			word, begun = word[:0], false
		default:
			word, begun = append(word, c), true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("expected a closing %c, found the end", quote)
	}
	if begun {
		words = append(words, string(word))
	}
	return words, nil
}
