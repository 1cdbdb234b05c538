package schedgen_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/schedgen"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/goal"
)

// TestVectors: binaries of the patterns are those that the reference makes of them.
func TestVectors(t *testing.T) {
	files, err := filepath.Glob("../../../formats/goal/testdata/vectors/sg*.expected.json")
	if err != nil || len(files) < 75 {
		t.Fatalf("%d vectors, error %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".expected.json")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want struct {
				Upstream string `json:"schedgen"`
				ATLAHS   string `json:"schedgen_atlahs"`
				SHA256   string `json:"bin_sha256"`
			}
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			p := schedgen.Default()
			options := want.Upstream
			if options == "" {
				p.Variant, options = schedgen.ATLAHS, want.ATLAHS
			}
			pattern := parse(t, options, &p)
			s, err := schedgen.NewSource(pattern, p, timeSeed)
			if err != nil {
				t.Fatal(err)
			}
			tr, err := dag.ReadAll(s)
			if err != nil {
				t.Fatal(err)
			}
			if sum := sha256.Sum256(binary(t, tr)); hex.EncodeToString(sum[:]) != want.SHA256 {
				t.Errorf("the binary of %s %s differs", p.Variant, options)
			}
		})
	}
}

// timeSeed is the time, in seconds, at which the reference made the random bisections.
const timeSeed = 1795167356

// parse reads the options of Schedgen, as its user writes them, and returns the pattern.
func parse(t *testing.T, options string, p *schedgen.Params) (pattern string) {
	t.Helper()
	nanoseconds := func(to *dag.Time) func(string) error {
		return func(s string) error {
			var n int64
			_, err := fmt.Sscan(s, &n)
			*to = dag.Time(n) * dag.Nanosecond
			return err
		}
	}
	flags := pflag.NewFlagSet("schedgen", pflag.ContinueOnError)
	flags.StringVarP(&pattern, "ptrn", "p", "binomialtreebcast", "")
	flags.IntVarP(&p.Ranks, "commsize", "s", p.Ranks, "")
	flags.Int64VarP(&p.Bytes, "datasize", "d", p.Bytes, "")
	flags.Int64Var(&p.SegmentSize, "segmentsize", p.SegmentSize, "")
	flags.IntVar(&p.NWay, "nway", p.NWay, "")
	flags.IntVar(&p.Root, "root", p.Root, "")
	flags.IntVar(&p.CPU, "cpu", p.CPU, "")
	flags.Func("nb", "", nanoseconds(&p.NB))
	flags.Func("nb-poll", "", nanoseconds(&p.NBPoll))
	flags.Func("rpl-dep-cmp", "", nanoseconds(&p.RplDepCmp))
	flags.Int64Var(&p.SkewRatio, "a2av-skew-ratio", p.SkewRatio, "")
	flags.BoolVar(&p.Outcast, "outcast", p.Outcast, "")
	if err := flags.Parse(strings.Fields(options)); err != nil {
		t.Fatal(err)
	}
	return pattern
}

func binary(t *testing.T, tr *dag.Trace) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := goal.Binary.Write(&out, tr, format.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
