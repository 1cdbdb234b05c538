package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	lineWindow = 256 << 10 // bytes read at a time
	maxLine    = 64 << 20  // longest line, so that an input without line ends cannot exhaust the memory
)

// ErrLongLine reports a line longer than the 64 MiB that EachLines accepts.
var ErrLongLine = fmt.Errorf("more than %d MiB", maxLine>>20)

// ErrStop stops [EachLines] without an error when parse returns it.
var ErrStop = errors.New("stop reading lines")

// EachLines reads a text in blocks of whole lines and calls parse with each block. Every line ends with a line
// feed; EachLines appends a missing one to the last line. It returns the first error of parse or of reading, or
// ErrLongLine.
func EachLines(src io.Reader, parse func(lines []byte) error) error {
	window := make([]byte, lineWindow)
	n, idle := 0, 0
	for {
		if n == len(window) {
			if n >= maxLine {
				return ErrLongLine
			}
			window = append(window, make([]byte, n)...)
		}
		count, err := src.Read(window[n:])
		n += count
		last := err == io.EOF
		switch {
		case last && n == 0:
			return nil
		case last && window[n-1] != '\n':
			window = append(window[:n], '\n')
			n++
			count = n
		case last:
			count = n
		case err != nil:
			return fmt.Errorf("reading: %w", err)
		}
		if idle++; count > 0 {
			idle = 0
		}
		if idle == 100 {
			return fmt.Errorf("reading: %w", io.ErrNoProgress)
		}
		lines := bytes.LastIndexByte(window[n-count:n], '\n') + 1
		if lines > 0 {
			lines += n - count
			if err := parse(window[:lines]); err != nil {
				if err == ErrStop {
					return nil
				}
				return err
			}
			n = copy(window, window[lines:n])
		}
		if last {
			return nil
		}
	}
}
