package sizes

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag/gen/openloop"
)

// FuzzRead reads tables in both layouts. Errors name the line; sizes drawn from an accepted table are in its range.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"size,cdf\n64,0\n256 0.5\n1000,1\n", "10 50\n20 100", "120.5\n64 0.25\n65 1e0\n", "# x\n\n0 1",
		"1,0.5\n1,0.6\n1,1", "1 NaN", "9223372036854775807 1"} {
		f.Add(text, false, uint8(0))
		f.Add(text, true, uint8(1))
	}
	f.Fuzz(func(t *testing.T, text string, cdcnw bool, rule uint8) {
		syntax := CSV
		if cdcnw {
			syntax = CDCNW
		}
		c, err := Read("x", strings.NewReader(text), syntax, Rule(rule%2))
		var wrong *openloop.LineError
		if err != nil {
			if c != nil || !errors.As(err, &wrong) || wrong.Line < 1 || wrong.Line > int64(strings.Count(text, "\n")+1) {
				t.Errorf("%v, error %v", c, err)
			}
			return
		}
		for _, uniform := range []uint64{0, 1, 1 << 32, 1 << 63, math.MaxUint64} {
			if size := c.Draw(uniform); size < 0 || size > max(c.sizes[len(c.sizes)-1], 1) {
				t.Errorf("size %d", size)
			}
		}
		if mean := c.TableMean(); !(mean >= 0 && mean <= openloop.MaxBytes) {
			t.Errorf("mean %v", mean)
		}
	})
}
