package stdout

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Standard output that a shell closed is not written; /dev/null that a program or a shell passes on is.
func TestClosedStdout(t *testing.T) {
	if os.Getenv("TRACEDAG_TEST_STDOUT") != "" {
		_, err := Open().Write([]byte("x"))
		if err != nil {
			os.Stderr.WriteString(err.Error())
		}
		os.Exit(0)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	const run = `"$0" -test.run='^TestClosedStdout$'`
	for _, c := range []struct {
		command []string
		stdout  *os.File
		closed  bool
	}{
		{[]string{"sh", "-c", run + " >&-; true", self}, nil, true},
		{[]string{"sh", "-c", run + " >&- <&-; true", self}, nil, true},
		{[]string{"sh", "-c", run + " >/dev/null; true", self}, nil, false},
		{[]string{"sh", "-c", run + "; true", self}, null, false},
		{[]string{self, "-test.run=^TestClosedStdout$"}, null, false},
		{[]string{self, "-test.run=^TestClosedStdout$"}, nil, false},
	} {
		cmd := exec.Command(c.command[0], c.command[1:]...)
		var stderr strings.Builder
		cmd.Env = append(os.Environ(), "TRACEDAG_TEST_STDOUT=1")
		cmd.Stderr = &stderr
		if c.stdout != nil {
			cmd.Stdout = c.stdout
		}
		if err := cmd.Run(); err != nil {
			t.Fatalf("%q: %v", c.command, err)
		}
		want := ""
		if c.closed {
			want = "it is closed: bad file descriptor"
		}
		if stderr.String() != want {
			t.Errorf("%q: error %q, want %q", c.command, &stderr, want)
		}
	}
}
