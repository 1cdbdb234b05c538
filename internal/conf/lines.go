package conf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxLine is the maximum length of a line of fields, in bytes.
const maxLine = 1 << 16

// EachLine calls read with the fields of each line that is neither empty nor a comment (#). It adds the name of the
// file and the line to an [*Error] of read.
func EachLine(r io.Reader, name string, read func(fields []string) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := int64(1); lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if err := read(fields); err != nil {
			var wrong *Error
			if errors.As(err, &wrong) {
				wrong.File, wrong.Line = name, n
			}
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
