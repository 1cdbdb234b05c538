//go:build !unix

package exec

import osexec "os/exec"

func separate(*osexec.Cmd) {}

func terminate(cmd *osexec.Cmd) { cmd.Process.Kill() }

func kill(cmd *osexec.Cmd) { cmd.Process.Kill() }
