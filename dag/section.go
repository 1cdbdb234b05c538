package dag

// Section is a part of a trace that a program reads on its own: consecutive ops in the order of ranks. A rank may
// begin in an earlier section and end in a later one.
type Section struct {
	First, Last int // ranks First to Last-1 have ops in it
	Ops         int
}

// Bounds describe the values of a field in a section without reading them.
type Bounds struct {
	Known    bool // the rest is valid
	Min, Max Time // of a field of integers or times; absent measured times do not count
	None     bool // no op has a value
	All      bool // every op has a value
}

// Sectioned is implemented by sources that deliver parts of ranks, so that a program reads the part of a trace that it
// needs.
type Sectioned interface {
	// Outline returns the header without Kinds. It reads nothing.
	Outline() *Header
	// Sections returns all sections, in order. Every rank with ops is in one at least. It is empty if the source has
	// no sections that can be trusted without reading.
	Sections() []Section
	// Bounds returns the bounds of a field in a section.
	Bounds(section int, id FieldID) Bounds
	// NewSectionReader returns a reader, for one goroutine.
	NewSectionReader() SectionReader
}

// SectionReader reads sections one after the other, column by column.
type SectionReader interface {
	// Open begins a section and returns the runs of its ranks from first to last-1, whose columns are empty. They are
	// valid until the next call of Open.
	Open(section, first, last int) ([]Run, error)
	// Kinds returns the kinds of op that the section may have.
	Kinds() []Kind
	// Read reads a field of all runs. The kinds must be read first. A call for a field that was read does nothing.
	Read(id FieldID) error
	// Check checks the fields that were read.
	Check() error
}

// Run is ops of one rank in a section. The offsets of their dependencies may lead out of the run.
type Run struct {
	Rank  int
	First int // number of the first op within its rank
	Ops   *Rank
}

// Parted is implemented by sources that deliver long ranks in parts, to consumers that need no whole rank.
type Parted interface {
	// InParts reports whether a batch of the header is one rank that ReadParts reads.
	InParts(Batch) bool
	// ReadParts reads such a batch and calls take with its ops, part by part in order. A run is valid until take
	// returns. The offsets of its dependencies may lead out of it. ReadParts may be called concurrently.
	ReadParts(b Batch, take func(Run) error) error
}

// PartsOf returns the parts of a source, also of one from [WithHeader] or [WithContext]. It is nil if the source has
// none.
func PartsOf(s Source) Parted {
	switch s := s.(type) {
	case Parted:
		return s
	case *headed:
		return PartsOf(s.Source)
	case *cancellable:
		if p := PartsOf(s.Source); p != nil {
			return &cancellableParts{p, s}
		}
	}
	return nil
}

// cancellableParts fails once a context has ended.
type cancellableParts struct {
	Parted
	of *cancellable
}

func (c *cancellableParts) ReadParts(b Batch, take func(Run) error) error {
	return c.Parted.ReadParts(b, func(r Run) error {
		if err := c.of.err(); err != nil {
			return err
		}
		return take(r)
	})
}
