package tracegen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestOutputOfFlags checks that a store depends on the flags that shape the trace and the contents of their files, not on
// outputs, paths, the order of flags or the working directory.
func TestOutputOfFlags(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "private", "deep"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "private", "sizes.txt"), []byte(sizeTable), 0o666); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, c := range []struct{ folder, args string }{
		{".", "cdcnw private/sizes.txt --tasks 10 --messages 700 --seed 3 -o a.parquet"},
		{"private", "cdcnw --messages 700 -q --seed 3 sizes.txt --tasks 10 --output deep/b.parquet --no-sync"},
		{"private/deep", "cdcnw --tasks=10 --seed 3 --messages 700 ROOT/private/sizes.txt -o ROOT/c.parquet --to store"},
	} {
		t.Chdir(filepath.Join(root, c.folder))
		args := strings.Fields(strings.ReplaceAll(c.args, "ROOT", root))
		if got := clitest.Run(newCommand, args...); got.Status != 0 {
			t.Fatalf("%q: %+v", args, got)
		}
	}
	for _, name := range []string{"a.parquet", "private/deep/b.parquet", "c.parquet"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = string(content)
		}
		if string(content) != want {
			t.Errorf("%s differs from a.parquet", name)
		}
	}
	for _, private := range []string{root, "private", "deep", ".parquet"} {
		if strings.Contains(want, private) {
			t.Errorf("the store has %q", private)
		}
	}
}
