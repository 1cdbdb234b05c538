package traceconv

import (
	"bytes"
	"compress/gzip"
	"os"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestShortDamage checks that a truncated compressed file is read to the damage if its format survives that, also if all
// of its content is within the bytes that identify the format.
func TestShortDamage(t *testing.T) {
	content, err := os.ReadFile("../../../testdata/kineto/rank0.json")
	if err != nil {
		t.Fatal(err)
	}
	compressed := func(content []byte) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(content)
		z.Close()
		return b.String()
	}
	kineto, goal := compressed(content), compressed([]byte("num_ranks 1\nrank 0 {\ncalc 5\n}\n"))
	in(t, map[string]string{"rank0.json.gz": kineto[:len(kineto)*3/4], "checksum/rank0.json.gz": kineto[:len(kineto)-3],
		"x.goal.gz": goal[:len(goal)-4], "nothing/rank0.json.gz": kineto[:12], "other.gz": compressed([]byte("?"))[:14]})
	for _, c := range []struct {
		name, want string
		status     int
	}{
		{"rank0.json.gz", "truncated gzip data; the 10 whole events before were read", 0},
		{"checksum/rank0.json.gz", "truncated gzip data; the ", 0},
		{"nothing/rank0.json.gz", "nothing/rank0.json.gz: reading: truncated gzip data", 1},
		{"x.goal.gz", "x.goal.gz: reading: truncated gzip data", 1},
		{"other.gz", "other.gz: reading: truncated gzip data", 1},
	} {
		got := clitest.Session{}.Run(New, c.name, "--only-present", "-o", "y.parquet")
		if got.Status != c.status || !strings.Contains(got.Stderr, c.want) {
			t.Errorf("%s: exit status %d, stderr %q, expected %d and %q", c.name, got.Status, got.Stderr, c.status, c.want)
		}
	}
}
