package kineto

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/formats/format"
)

// TestCompressedDamage reads files whose compressed data or events are damaged: each gives the events that are whole, and a warning with the offset.
func TestCompressedDamage(t *testing.T) {
	content, err := os.ReadFile("../../testdata/kineto/rank0.json")
	if err != nil {
		t.Fatal(err)
	}
	half := content[:len(content)/2]
	category := bytes.Index(content, []byte(`"cat"`))
	broken := errors.New("checksum")
	for _, c := range []struct {
		name    string
		reader  io.Reader
		warning string // "": none
	}{
		{"whole", bytes.NewReader(content), ""},
		{"truncated", bytes.NewReader(half), "the file ends early"},
		{"compressed", io.MultiReader(bytes.NewReader(half), failing{&format.DamagedError{Err: broken}}),
			"decompressed data: checksum"},
		{"checksum", io.MultiReader(bytes.NewReader(content), failing{&format.DamagedError{Err: broken}}),
			fmt.Sprintf("offset %d of the decompressed data: checksum", len(content))},
		{"phase", bytes.NewReader(slices.Concat(content[:category], []byte(`@@@@`), content[category+4:])),
			"damaged events were skipped: 1 in all"},
		{"duration", bytes.NewReader(bytes.Replace(content, []byte(`"dur": 40.25`), []byte(`"dur": NaN`), 1)),
			"1 events whose duration is no number"},
		{"failing", io.MultiReader(bytes.NewReader(half), failing{broken}), "error"},
	} {
		o := &readOptions{own: newOptions(), steps: []string{stepName}}
		r, err := readRecording(&format.Input{Name: "rank0.json", Reader: c.reader}, o)
		if err != nil {
			if c.warning != "error" || !errors.Is(err, broken) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		var warnings []string
		r.warnDamage(func(message string, args ...any) { warnings = append(warnings, fmt.Sprintf(message, args...)) })
		if c.warning == "" && len(warnings) > 0 || !strings.Contains(fmt.Sprint(warnings), c.warning) ||
			r.damage.read == 0 || r.damaged() != (c.warning != "" && c.name != "duration") {
			t.Errorf("%s: %d events, warnings %q, expected %q", c.name, r.damage.read, warnings, c.warning)
		}
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
