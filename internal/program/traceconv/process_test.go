// Tests with real processes: pipes, signals, exit statuses.

package traceconv

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tracedag/tracedag/dag/gen"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/base"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/program/tracecat"
	"github.com/tracedag/tracedag/internal/program/tracegen"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func() int{
		"traceconv": func() int { return cli.Main(New, formats.All) },
		"tracecat":  func() int { return cli.Main(tracecat.New, formats.All) },
		"tracegen":  func() int { return cli.Main(tracegen.New(gen.All), base.Formats) },
	})
}

func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("runs programs built without the race detector")
	}
	programs := clitest.Link(t, "traceconv", "tracecat", "tracegen")
	program := func(name string, args ...string) *exec.Cmd {
		return exec.Command(filepath.Join(programs, name), args...)
	}
	in(t, map[string]string{"x.goal": pingpong, "bad.goal": "num_ranks 1\nrank 0 {\n l1: dance\n}\n"})
	t.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH"))

	t.Run("shell", func(t *testing.T) {
		for _, c := range []struct {
			script string
			status int
			stdout string // or a part of it
		}{
			{"tracegen pattern ring --ranks 3 --iterations 1 | tracecat --matrix", 0, "0\t1\t4\t"},
			{"tracegen horovod --lower collectives | traceconv --to goal | tracecat | head -n 2", 0, "ranks"},
			{"traceconv --from goal --to goalbin < x.goal > x.bin && tracecat --ops x.bin | wc -l", 0, "4"},
			{"gzip -c x.goal | tracecat --ops --rank 1", 0, "recv"},
			{"traceconv x.goal -o /dev/stdout --to goal | tracecat --json", 0, `"format": "goal"`},
			{"traceconv < bad.goal", 1, ""},
			{"traceconv bad.goal --to goal", 1, ""},
			{"traceconv --nonsense", 2, ""},
			{"traceconv <&-", 1, ""},
			{"tracegen", 2, ""},
			{"tracegen nothing", 2, ""},
			{"tracecat --version", 0, "tracecat "},
			{"tracecat missing 2>&1", 1, "tracecat: missing: no such file or directory\n"},
			{"traceconv bad.goal -o out.parquet 2>/dev/full; exit $?", 1, ""},
		} {
			cmd := exec.Command("sh", "-c", c.script)
			stdout, err := cmd.Output()
			if got := cmd.ProcessState.ExitCode(); got != c.status || !strings.Contains(string(stdout), c.stdout) ||
				c.stdout == "" && len(stdout) > 0 {
				t.Errorf("%s: exit status %d (%v), stdout %.200q; want %d, %q", c.script, got, err, stdout, c.status, c.stdout)
			}
		}
		if got := files(t, "."); !slices.Equal(got, []string{"bad.goal", "x.bin", "x.goal"}) {
			t.Errorf("files are left: %q", got)
		}
	})

	t.Run("closed pipe", func(t *testing.T) {
		cmd := program("tracegen", "pattern", "alltoall", "--ranks", "64", "--to", "goal")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(stdout, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		stdout.Close()
		cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != 141 || stderr.Len() > 0 {
			t.Errorf("exit status %d, stderr %q; want 141 and nothing", got, stderr.String())
		}
	})

	t.Run("interrupt", func(t *testing.T) {
		if signal.Ignored(os.Interrupt) {
			t.Skip("the signal is ignored, as in a background job, and programs inherit that")
		}
		before := files(t, ".")
		cmd := program("traceconv", "-o", "interrupted.parquet")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer stdin.Close()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// More than a pipe holds: when it is written, the program reads, with its signal handlers in place.
		if _, err := io.WriteString(stdin, "num_ranks 1\n"+strings.Repeat("// nothing\n", 1<<15)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != 130 {
			t.Errorf("exit status %d, want 130", got)
		}
		if got := files(t, "."); !slices.Equal(got, before) {
			t.Errorf("there are the files %q, want %q", got, before)
		}
	})
}
