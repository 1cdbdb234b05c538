// This file records the provenance of traces.

package cli

import (
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// version is set by the linker (-X) in releases.
var version string

// buildVersion returns the version of the running program: that of the linker, else that of the module in the build
// information, else "devel".
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// Provenance returns the record of this run for a trace that it writes. seed is nil without random choices. The record
// has no times, host or folder names, so that the same run writes the same bytes.
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
