package units

import (
	"fmt"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// Window is a flag with a window of time: "1ms..5ms", "1ms..", "..5ms". Both ends belong to it. The zero value contains
// all times.
type Window struct {
	set      bool
	From, To dag.Time
}

// Set sets the window.
func (w *Window) Set(text string) (err error) {
	from, to, ok := strings.Cut(text, "..")
	if !ok || from == "" && to == "" {
		return fmt.Errorf("expected FROM..TO such as 1ms..5ms, 1ms.. or ..5ms, found %.40q", text)
	}
	*w = Window{set: true, To: dag.MaxTime}
	if from != "" {
		if w.From, err = ParseTime(from, 0); err != nil {
			return err
		}
	}
	if to != "" {
		if w.To, err = ParseTime(to, 0); err != nil {
			return err
		}
	}
	if w.To < w.From {
		return fmt.Errorf("expected an end after the start %v, found %v", w.From, w.To)
	}
	return nil
}

// String returns the window in the syntax of Set.
func (w *Window) String() string {
	if !w.set {
		return ""
	}
	return w.From.String() + ".." + w.To.String()
}

// Type returns the placeholder in help.
func (w *Window) Type() string { return "FROM..TO" }

// IsSet reports whether the window was set.
func (w *Window) IsSet() bool { return w.set }

// Overlaps reports whether the window and a time from start to end have a common instant.
func (w *Window) Overlaps(start, end dag.Time) bool {
	return !w.set || start <= w.To && end >= w.From
}
