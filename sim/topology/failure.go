package topology

import (
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
)

// Failure is a temporary or permanent failure or slowdown of links.
type Failure struct {
	Links     []int    // indices in [Network.Links], or of links of a platform
	At, Until dag.Time // Until 0: permanent
	Rate      int64    // remaining rate of each link in bit/s; 0: none
}

// Mark describes the start or the end of the failure for a timeline. name returns the name of a link.
func (f *Failure) Mark(name func(link int) string, ends bool) string {
	const most = 3 // links by name
	var text strings.Builder
	for i, l := range f.Links {
		if i == most {
			fmt.Fprintf(&text, " and %d more", len(f.Links)-most)
			break
		}
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(name(l))
	}
	switch {
	case ends:
		text.WriteString(" restored")
	case f.Rate > 0:
		text.WriteString(" slowed to " + units.FormatBitRate(f.Rate))
	default:
		text.WriteString(" failed")
	}
	return text.String()
}

// ParseFailure parses a failure such as tor3-agg1, tor3-agg1@2ms, tor3-agg1@2ms..5ms or tor3-agg1@2ms:25Gbps. find
// returns the links with a name; see [Network.LinkByName].
func ParseFailure(text string, find func(name string) ([]int, error)) (f Failure, err error) {
	name, when, timed := text, "", false
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		name, when, timed = text[:at], text[at+1:], true
	}
	if timed {
		if err := f.parseTimes(when); err != nil {
			return f, fmt.Errorf("%s: %w", text, err)
		}
	}
	f.Links, err = find(name)
	return f, err
}

// parseTimes parses the times and the rate of a failure.
func (f *Failure) parseTimes(text string) (err error) {
	when, rate, degraded := strings.Cut(text, ":")
	from, until, ends := strings.Cut(when, "..")
	if f.At, err = units.ParseTime(from, 0); err != nil {
		return err
	}
	if ends {
		if f.Until, err = units.ParseTime(until, 0); err != nil {
			return err
		}
		if f.Until <= f.At {
			return fmt.Errorf("expected an end after %v, found %q", f.At, until)
		}
	}
	if !degraded {
		return nil
	}
	r, err := units.ParseRate(rate, "")
	if err != nil {
		return err
	}
	if r.Num == 0 {
		return fmt.Errorf("expected a rate above 0, found %q", rate)
	}
	bits, _ := r.BitsPerSecond()
	if f.Rate = max(1, bits); f.Rate > maxRate {
		return fmt.Errorf("expected at most 8 Tb/s, found %q", rate)
	}
	return nil
}
