// This file says what a trace was made by.

package cli

import (
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// version is set by the linker (-X) in releases.
var version string

// buildVersion returns the version of the running program: what the linker was told, else the version of the module as
// the go command knows it, else "devel".
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// Provenance records this run of the program for a trace that it makes: seed is nil where nothing random was done. It
// has no times, host or folder names, so that the same work gives the same bytes.
func (p *Program) Provenance(seed *int64, inputs ...dag.Input) dag.Provenance {
	name := strings.TrimSuffix(filepath.Base(p.Args[0]), ".exe")
	return dag.Provenance{
		Program: p.name,
		Version: p.Version,
		Command: append([]string{name}, p.Args[1:]...),
		Seed:    seed,
		Inputs:  inputs,
	}
}
