//go:build unix

package simulate

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestExecInterrupted interrupts a run whose peer does not answer, and checks that no process is left.
func TestExecInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a peer")
	}
	bin, pids := clitest.Link(t, "simulate", "tracegen"), filepath.Join(t.TempDir(), "pids")
	trace := filepath.Join(t.TempDir(), "x.parquet")
	if out, err := exec.Command(filepath.Join(bin, "tracegen"), "pattern", "ring", "--ranks", "2", "-o", trace).
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	peer := "exec:sh -c 'sleep 4000 & echo $! $$ > " + pids + "; exec sleep 4000'"
	simulate := exec.Command(filepath.Join(bin, "simulate"), "--backend", peer, trace)
	if err := simulate.Start(); err != nil {
		t.Fatal(err)
	}
	var text []byte
	for !strings.HasSuffix(string(text), "\n") {
		time.Sleep(10 * time.Millisecond)
		text, _ = os.ReadFile(pids)
	}
	simulate.Process.Signal(os.Interrupt)
	simulate.Wait()
	if status := simulate.ProcessState.ExitCode(); status != 130 {
		t.Errorf("exit status %d, want 130", status)
	}
	for _, field := range strings.Fields(string(text)) {
		pid, _ := strconv.Atoi(field)
		for tries := 0; lives(pid); tries++ { // the system ends a killed process when it gets to it
			if tries == 1000 {
				t.Errorf("process %d is left", pid)
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// lives reports whether a process has not ended. Nobody may have waited for an orphan yet.
func lives(pid int) bool {
	state, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return syscall.Kill(pid, 0) == nil && !strings.Contains(string(state), ") Z ")
}
