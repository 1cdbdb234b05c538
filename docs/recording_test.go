package docs_test

import (
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTorchProfilerOnRecording runs the commands of howto/torch-profiler.md on a recording of a job on eight GPUs.
func TestTorchProfilerOnRecording(t *testing.T) {
	vectors := os.Getenv("TRACEDAG_VECTORS")
	if vectors == "" {
		t.Skip("TRACEDAG_VECTORS names no folder of vectors")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	const path = "howto/torch-profiler.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(filepath.Join(vectors, "kineto", "dlrm8"), filepath.Join(folder, "recording")); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.ReplaceAll(string(text), "testdata/kineto", "recording"), "\n")
	p := page{T: t, path: path, lines: lines}
	p.parse()
	for i := range p.commands { // the page shows the outputs of its sample
		p.commands[i].to = p.commands[i].from
	}
	bin := clitest.Link(t, programs...)
	p.run(bash, bin, folder)
	compare := exec.Command(filepath.Join(bin, "simulate"), "-q", "--backend", "ideal", "--replay", "--compare",
		"job.parquet")
	compare.Dir = folder
	out, err := compare.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "largest 0.00%") {
		t.Errorf("the replay of the recording differs from it: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(folder, "slow.parquet")); err != nil {
		t.Error(err)
	}
}
