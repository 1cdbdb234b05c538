// This file warns about the modes of reading that no trace's format has.

package cli

import (
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/formats/format"
)

// modes are the flags --compat and --lenient of a command, and whether they had an effect. A nil *modes has none.
type modes struct {
	formats format.List

	mutex         sync.Mutex
	used, ignored [numModes]bool // by some trace or output
}

// Modes.
const (
	compatMode = iota
	lenientMode
	numModes
)

var modeNames = [numModes]string{"compat", "lenient"}

// has reports whether a format has a mode of reading.
func hasMode(f *format.Format, mode int) bool {
	if mode == compatMode {
		return f.Modes.Compat
	}
	return f.Modes.Lenient
}

// newModes makes the command warn of flags without effect after a run.
func newModes(p *Program, cmd *cobra.Command, formats format.List) *modes {
	m := &modes{formats: formats}
	before := cmd.PostRun
	cmd.PostRun = func(cmd *cobra.Command, args []string) {
		if before != nil {
			before(cmd, args)
		}
		m.warnUnused(p)
	}
	return m
}

// reads notes that a trace of a format is read with some flags.
func (m *modes) reads(found *format.Format, f *ReadFlags) {
	if m == nil {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for mode, given := range [numModes]bool{compatMode: f.Compat, lenientMode: f.Lenient} {
		m.used[mode] = m.used[mode] || given && hasMode(found, mode)
		m.ignored[mode] = m.ignored[mode] || given && !hasMode(found, mode)
	}
}

// writes notes that a trace is written in a format with --compat.
func (m *modes) writes(to *format.Format) {
	if m != nil && to.Modes.CompatOutput {
		m.mutex.Lock()
		defer m.mutex.Unlock()
		m.used[compatMode] = true
	}
}

// warnUnused warns about modes that the format of no trace had.
func (m *modes) warnUnused(p *Program) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for mode, name := range modeNames {
		if !m.ignored[mode] || m.used[mode] {
			continue
		}
		var owners []string
		for i := range m.formats {
			if hasMode(&m.formats[i], mode) {
				owners = append(owners, m.formats[i].Name)
			}
		}
		slices.Sort(owners)
		p.Warn("--%s has no effect: no trace of this run has a format with this mode (%s)", name,
			strings.Join(owners, ", "))
	}
}
