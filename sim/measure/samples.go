package measure

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// Limits of the samples of a run, so that a period far below its length causes an error instead of filling a disk.
const (
	MostSamples    = 10_000_000  // times
	MostSampleRows = 100_000_000 // of all ports
)

// SampleCount counts the samples of a run and their rows.
type SampleCount struct {
	Period dag.Time

	taken, rows int64
}

// Take counts a sample at a time, and returns an error if it is one too many.
func (c *SampleCount) Take(at dag.Time) error {
	if c.taken++; c.taken > MostSamples {
		return c.tooMany(MostSamples, "samples", at)
	}
	return nil
}

// Row counts a row of a sample at a time, and returns an error if it is one too many.
func (c *SampleCount) Row(at dag.Time) error {
	if c.rows++; c.rows > MostSampleRows {
		return c.tooMany(MostSampleRows, "rows of samples", at)
	}
	return nil
}

// Taken returns the number of samples.
func (c *SampleCount) Taken() int64 { return c.taken }

func (c *SampleCount) tooMany(most int64, what string, at dag.Time) error {
	return fmt.Errorf("--sample %v: expected at most %d %s, found more at %v of the simulated time; use a longer "+
		"period", c.Period, most, what, at)
}
