package format

import (
	"context"
	"encoding/csv"
	"errors"
	"io"

	"github.com/tracedag/tracedag/memory"
)

// CSV reads rows of comma-separated values, as [csv.Reader]. A row may be as long as a line in [EachLines].
type CSV struct {
	*csv.Reader
	file string
	src  rowSource
	line int64 // first line of the last row
}

// NewCSV returns a reader of the content of an input. The context, which may be nil, carries the limit of memory.
func NewCSV(ctx context.Context, name string, r io.Reader) *CSV {
	c := &CSV{file: name, src: rowSource{r: r, most: longestLine(memory.Limit(ctx))}}
	c.Reader = csv.NewReader(&c.src)
	c.ReuseRecord = true
	return c
}

// Read returns the fields of the next row, which are valid until the next call, or [io.EOF] after the last one. Other
// errors are a [*SyntaxError], or a [*FileError] of reading.
func (c *CSV) Read() ([]string, error) {
	c.src.n = 0
	row, err := c.Reader.Read()
	var parse *csv.ParseError
	switch {
	case err == nil:
		line, _ := c.FieldPos(0)
		c.line = int64(line)
	case errors.As(err, &parse):
		return nil, &SyntaxError{File: c.file, Line: int64(parse.Line), Expected: "a row of comma-separated values",
			Found: parse.Err.Error()}
	case errors.Is(err, ErrLongLine):
		return nil, &SyntaxError{File: c.file, Line: c.line + 1, Expected: "a shorter row", Found: err.Error()}
	case err != io.EOF:
		return nil, FileErrorf(c.file, "reading: %w", err)
	}
	return row, err
}

// rowSource is a reader that fails after reading much more than the longest line for one row.
type rowSource struct {
	r       io.Reader
	n, most int
}

func (s *rowSource) Read(b []byte) (int, error) {
	if s.n > s.most {
		return 0, newLongLine(s.most)
	}
	n, err := s.r.Read(b)
	s.n += n
	return n, err
}
