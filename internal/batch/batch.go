// Package batch reports what became of the inputs of a batch: a line for people, and a line of JSON per input.
package batch

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Status is what became of an input.
type Status string

// The statuses.
const (
	Added     Status = "added"
	Replaced  Status = "replaced"  // an output of the same name was overwritten
	Unchanged Status = "unchanged" // the output is that of an earlier batch
	Skipped   Status = "skipped"
	Failed    Status = "failed"
)

// order is the order of statuses in a summary. Other statuses are not of traces.
var order = [...]Status{Added, Replaced, Unchanged, Skipped, Failed}

// Entry is what became of an input.
type Entry struct {
	Input    string   `json:"input"`            // as named on the command line
	SHA256   string   `json:"sha256,omitempty"` // of its files; "" if they were not read
	Status   Status   `json:"status"`
	Output   string   `json:"output,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Error    string   `json:"error,omitempty"`
	Seconds  float64  `json:"wall_s"`

	// Sizes of the files of the input and the output in bytes; 0 if unknown.
	Read, Written int64 `json:"-"`
}

// Report collects the entries of a batch. Its methods may be called concurrently.
type Report struct {
	lock    sync.Mutex
	entries []Entry
}

// Add adds an entry.
func (r *Report) Add(e Entry) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.entries = append(r.entries, e)
}

// Write writes a line of JSON per entry, in the order of Add.
func (r *Report) Write(w io.Writer) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	for i := range r.entries {
		if err := lines.Encode(&r.entries[i]); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	return nil
}

// Summary returns a line such as "168 traces: 166 added, 1 unchanged, 1 failed; 35.4 MB -> 1.6 MB", with the sizes of
// the inputs and outputs that have both.
func (r *Report) Summary() string {
	r.lock.Lock()
	defer r.lock.Unlock()
	counts := make(map[Status]int)
	traces, read, written := 0, int64(0), int64(0)
	for _, e := range r.entries {
		counts[e.Status]++
		if e.Read > 0 && e.Written > 0 {
			read, written = read+e.Read, written+e.Written
		}
	}
	var parts []string
	for _, s := range order {
		if n := counts[s]; n > 0 {
			traces += n
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	text := fmt.Sprintf("%d traces", traces)
	if traces == 1 {
		text = "1 trace"
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if read > 0 {
		text += fmt.Sprintf("; %s -> %s", Size(read), Size(written))
	}
	return text
}

// Size returns a number of bytes in decimal units, with one digit after the point: "35.4 MB".
func Size(bytes int64) string {
	if bytes < 1000 {
		return fmt.Sprintf("%d B", bytes)
	}
	size, units := float64(bytes)/1000, []string{"kB", "MB", "GB", "TB", "PB", "EB"}
	for size >= 999.95 {
		size, units = size/1000, units[1:]
	}
	return fmt.Sprintf("%.1f %s", size, units[0])
}
