package stdout

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// shells are the programs that close a stream for "command >&-".
var shells = []string{"sh", "ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "mksh", "rbash", "tcsh", "zsh"}

// isClosed reports whether a shell started the process with standard output closed, as in "command >&-". The Go
// runtime then opens /dev/null for reading and writing in its place before any other code runs. Programs other than
// shells open /dev/null so, too, to discard output on purpose; their children inherit it.
func isClosed() bool {
	if !isReadWriteNull("self") {
		return false
	}
	parent := strconv.Itoa(os.Getppid())
	comm, err := os.ReadFile("/proc/" + parent + "/comm")
	return err == nil && slices.Contains(shells, strings.TrimSpace(string(comm))) && !isReadWriteNull(parent)
}

// isReadWriteNull reports whether standard output of a process is /dev/null, opened for reading and writing.
func isReadWriteNull(process string) bool {
	target, err := os.Readlink("/proc/" + process + "/fd/1")
	if err != nil || target != os.DevNull {
		return false
	}
	info, err := os.ReadFile("/proc/" + process + "/fdinfo/1")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(info)) {
		if octal, ok := strings.CutPrefix(line, "flags:"); ok {
			flags, err := strconv.ParseUint(strings.TrimSpace(octal), 8, 64)
			return err == nil && flags&syscall.O_ACCMODE == syscall.O_RDWR
		}
	}
	return false
}

// Open returns standard output of the process. If a shell closed it, writing fails.
func Open() io.Writer {
	if isClosed() {
		return closedStdout{}
	}
	return os.Stdout
}

// closedStdout fails as writing to a closed file does.
type closedStdout struct{}

func (closedStdout) Write([]byte) (int, error) {
	return 0, fmt.Errorf("it is closed: %w", syscall.EBADF)
}
