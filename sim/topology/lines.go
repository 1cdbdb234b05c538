// This file splits network files into lines and words.

package topology

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxLine is the longest accepted line, in bytes.
const maxLine = 1 << 16

// lineReader reads the non-empty lines of a file as words.
type lineReader struct {
	name    string // file name for errors
	scanner *bufio.Scanner
	line    int      // number of the current line, from 1
	words   []string // of the current line, at least one
}

func newLineReader(r io.Reader, name string) *lineReader {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 4096), maxLine)
	return &lineReader{name: name, scanner: scanner}
}

// next advances to the next line with words. A # starts a comment.
func (l *lineReader) next() bool {
	for l.scanner.Scan() {
		l.line++
		text, _, _ := strings.Cut(l.scanner.Text(), "#")
		if l.words = strings.Fields(text); len(l.words) > 0 {
			return true
		}
	}
	return false
}

// err returns the error that ended next, or nil at the end of the file.
func (l *lineReader) err() error {
	err := l.scanner.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%s:%d: expected a line of at most %d bytes, found a longer one", l.name, l.line+1, maxLine)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	return nil
}

// expected returns an error about the current line.
func (l *lineReader) expected(want, found string) error {
	return fmt.Errorf("%s:%d: expected %s, found %s", l.name, l.line, want, shorten(found))
}

// shorten quotes a text of a file and shortens it for an error.
func shorten(s string) string {
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return fmt.Sprintf("%q", s)
}
