package results

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Sizes of files of times.
const (
	timingEvery = 5 * time.Second
	timingRows  = 10_000
)

// Timing writes the wall-clock times of runs to files of the folder timing, apart from the results. A killed process
// loses those of the last 5 s. Its methods may be called concurrently.
type Timing struct {
	folder Folder
	shard  string
	lock   sync.Mutex
	name   string // of the file at hand
	rows   []byte
	count  int
	last   time.Time // when the file was written
}

// NewTiming returns a writer of the times of a shard, whose name has no "/".
func (f Folder) NewTiming(shard string) *Timing {
	return &Timing{folder: f, shard: shard, last: time.Now()}
}

// Add adds the time of a run.
func (t *Timing) Add(id string, took time.Duration) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.count == 0 {
		t.name = fmt.Sprintf("%s-%d-%d.csv", t.shard, time.Now().UnixNano(), os.Getpid())
		t.rows = append(t.rows[:0], "run,wall_s\n"...)
	}
	t.rows = fmt.Appendf(t.rows, "%s,%s\n", id, strconv.FormatFloat(took.Seconds(), 'f', 6, 64))
	t.count++
	if t.count < timingRows && time.Since(t.last) < timingEvery {
		return nil
	}
	err := t.write()
	if t.count >= timingRows {
		t.count = 0
	}
	return err
}

func (t *Timing) write() error {
	t.last = time.Now()
	return replace(filepath.Join(string(t.folder), "timing", t.name), t.rows)
}

// Close writes the times that are not written yet.
func (t *Timing) Close() error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.count == 0 {
		return nil
	}
	return t.write()
}

// Timings returns the wall-clock times of runs in seconds, as text. That of a run that ran several times is the latest.
func (f Folder) Timings() (map[string]string, error) {
	root := filepath.Join(string(f), "timing")
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	at := make(map[string]time.Time, len(entries))
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasSuffix(e.Name(), ".csv") && !strings.HasPrefix(e.Name(), ".") {
			at[e.Name()] = info.ModTime()
			names = append(names, e.Name())
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return at[a].Compare(at[b]) })
	all := make(map[string]string)
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(text) {
			id, seconds, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), ",")
			if _, err := strconv.ParseFloat(seconds, 64); err == nil && isID(id) {
				all[id] = seconds
			}
		}
	}
	return all, nil
}
