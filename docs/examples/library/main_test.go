package main

import (
	"os"
	"testing"

	"github.com/tracedag/tracedag/internal/golden"
)

// The how-to page shows what the program prints.
func TestRun(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := run("../../../testdata/mpi", out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	golden.Section(t, "../../howto/use-from-go.md", "```text\n", "```", string(text))
}
