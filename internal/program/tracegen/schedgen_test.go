package tracegen

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestSchedgenVectors checks that the options of Schedgen give the binaries of the reference.
func TestSchedgenVectors(t *testing.T) {
	files, err := filepath.Glob("../../../formats/goal/testdata/vectors/sg*.expected.json")
	if err != nil || len(files) < 75 {
		t.Fatalf("%d vectors, error %v", len(files), err)
	}
	for _, file := range files {
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
		options, variant := want.Upstream, "upstream"
		if options == "" {
			options, variant = want.ATLAHS, "atlahs"
		}
		// The seed is the time at which the reference made the random bisections. Names of patterns follow -p.
		args := append([]string{"schedgen", "--variant", variant, "--seed", "1795167356", "--to", "goalbin"},
			strings.Fields(strings.TrimPrefix(options, "-p "))...)
		got := clitest.Run(newCommand, args...)
		if sum := sha256.Sum256([]byte(got.Stdout)); got.Status != 0 || hex.EncodeToString(sum[:]) != want.SHA256 {
			t.Errorf("tracegen %q: exit status %d, stderr %q, another binary than %s has", args, got.Status, got.Stderr, file)
		}
	}
}

func TestSchedgenUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"schedgen", "expected the pattern, as in"},
		{"schedgen ring", `upstream has no pattern "ring", expected one of allreduce_recdoub, `},
		{"schedgen resnet --variant atlahs", `atlahs has no pattern "resnet"`},
		{"schedgen gather --variant mine", "expected upstream or atlahs"},
		{"schedgen gather --root 8", "root is 8, expected 0..7"},
		{"schedgen gather --nb soon", "--nb"},
	} {
		got := clitest.Run(newCommand, strings.Fields(c.args)...)
		if got.Status != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, c.want) {
			t.Errorf("tracegen %s: exit status %d, stderr %q, expected %q", c.args, got.Status, got.Stderr, c.want)
		}
	}
	want, _ := generate(t, "schedgen", "gather")
	got, _ := generate(t, "schedgen", "gather", "--nb", "-1", "--rpl-dep-cmp", "none")
	same(t, got, want)
}
