package sim

import (
	"errors"
	"fmt"
	"os"
)

// Scratch is a temporary file of a replay that exceeds the limit of memory. It has no name, so that no file remains in
// any case, if the system supports that.
type Scratch struct {
	*os.File
	purpose string
	linked  bool // it still has a name
}

// NewScratch returns an empty file in the folder of temporary files, with a name after a pattern of [os.CreateTemp].
// The purpose follows "temporary file" in errors.
func NewScratch(pattern, purpose string) (*Scratch, error) {
	s := &Scratch{purpose: purpose}
	var err error
	if s.File, err = os.CreateTemp("", pattern); err != nil {
		return nil, s.Fail(err)
	}
	s.linked = os.Remove(s.Name()) != nil
	return s, nil
}

// Fail adds to an error that it is about the file, and the remedy.
func (s *Scratch) Fail(err error) error {
	return fmt.Errorf("temporary file %s (set TMPDIR to a folder with more space, or a higher --max-memory): %w",
		s.purpose, err)
}

// Close closes and removes the file.
func (s *Scratch) Close() error {
	err := s.File.Close()
	if s.linked {
		s.linked = false
		return errors.Join(err, os.Remove(s.Name()))
	}
	return err
}
