//go:build unix

package exec

import (
	osexec "os/exec"
	"syscall"
)

// separate starts a command in a process group of its own, so that signals of a terminal do not reach it.
func separate(cmd *osexec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func terminate(cmd *osexec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func kill(cmd *osexec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
