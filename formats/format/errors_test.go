package format

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestInFile(t *testing.T) {
	plain := errors.New("plain")
	named := FileErrorf("other", "line %d: %w", 3, plain)
	for _, c := range []struct {
		err  error
		want string
	}{
		{plain, "file: plain"},
		{fmt.Errorf("file: %w", plain), "file: file: plain"}, // a text is no name
		{named, "other: line 3: plain"},
		{fmt.Errorf("rank 2: %w", named), "rank 2: other: line 3: plain"},
		{&SyntaxError{File: "other", Line: 2, Expected: "a number"}, "other:2: expected a number"},
		{&fs.PathError{Op: "open", Path: "other", Err: plain}, "open other: plain"},
	} {
		if got := InFile("file", c.err); got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("%v becomes %v, want %s", c.err, got, c.want)
		}
	}
	if InFile("file", nil) != nil {
		t.Error("no error becomes one")
	}
	if !errors.Is(named, plain) || Cause(&fs.PathError{Err: plain}) != plain || Cause(named) != named {
		t.Error("the cause is lost")
	}
}
