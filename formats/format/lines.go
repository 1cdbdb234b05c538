package format

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/memory"
)

const (
	lineWindow = 256 << 10 // bytes read at a time
	maxLine    = 64 << 20  // longest line, so that an input without line ends cannot exhaust the memory
	lineShare  = 16        // part of the limit of memory that the longest line may take
)

// ErrLongLine reports a line longer than EachLines accepts.
var ErrLongLine = errors.New("a long line")

// longLine is an ErrLongLine.
type longLine struct {
	most    int
	limited bool // by the limit of memory
}

func newLongLine(most int) error { return &longLine{most, most < maxLine} }

// longestLine returns the length of the longest line under a limit of memory in bytes.
func longestLine(limit int64) int {
	most := maxLine
	for int64(most) > limit/lineShare && most > lineWindow {
		most /= 2
	}
	return most
}

func (e *longLine) Is(target error) bool { return target == ErrLongLine }

func (e *longLine) Error() string {
	text := fmt.Sprintf("more than %s", units.FormatSize(int64(e.most)))
	if e.limited {
		text += fmt.Sprintf(", 1/%d of the limit of memory; set a higher limit with --max-memory", lineShare)
	}
	return text
}

// ErrStop stops [EachLines] without an error when parse returns it.
var ErrStop = errors.New("stop reading lines")

// EachLines reads a text in blocks of whole lines and calls parse with each block. Every line ends with a line
// feed; EachLines appends a missing one to the last line. It returns the first error of parse or of reading, or an
// ErrLongLine for a line of more than 64 MiB, or less if the limit of memory of the context, which may be nil, is low.
func EachLines(ctx context.Context, src io.Reader, parse func(lines []byte) error) error {
	most := longestLine(memory.Limit(ctx))
	window := make([]byte, lineWindow)
	n, idle := 0, 0
	for {
		if n == len(window) {
			if n >= most {
				return newLongLine(most)
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
