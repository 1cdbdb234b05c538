package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/tracedag/tracedag/internal/dataset"
	"github.com/tracedag/tracedag/internal/disk"
)

// A set changes through its folder .tracedag, which holds
//
//	lock     locked by the publisher
//	work/    stores that are being converted
//	new/     files to be put in place, under their paths in the set
//	removed  paths of files to be removed, a line each
//	commit   empty: everything above is complete and on the disk
//
// Before commit appears, the set is unchanged, and the next publisher removes new. After it, a publisher that finds the
// folder finishes the renames and removals. SHA256SUMS is renamed last, so it never precedes a file that it names.
const (
	stateFolder = ".tracedag"
	lockName    = "lock"
	newFolder   = "new"
	removedName = "removed"
	commitName  = "commit"
)

// lockedSet is the folder of a set that this process changes.
type lockedSet struct {
	folder string
	lock   *os.File
	made   bool     // the set's folder was created
	before *setTime // modification time of the folder before the lock
	flush  bool     // files to the disk

	ending sync.Mutex // held while the change is committed or discarded
	ended  bool
}

// setTime is the modification time of a folder.
type setTime struct{ info fs.FileInfo }

// LockedError reports that another process publishes the set.
type LockedError struct{ Folder string }

// Error returns the message.
func (e *LockedError) Error() string {
	return e.Folder + ": another process publishes this set; wait for it, or omit --no-wait"
}

// lockSet locks the set, which it creates if it is missing, and finishes or undoes an interrupted change. With wait, it
// waits for another publisher; otherwise it returns a [*LockedError].
func lockSet(folder string, wait, flush bool) (*lockedSet, error) {
	s := &lockedSet{folder: folder, flush: flush}
	switch info, err := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist):
		s.made = true
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s: expected a folder for the set, found a file", folder)
	default:
		s.before = &setTime{info}
	}
	if err := s.acquire(wait); err != nil {
		return nil, err
	}
	if err := s.recover(); err != nil {
		s.unlock()
		return nil, err
	}
	return s, nil
}

// acquire creates and locks the lock file.
func (s *lockedSet) acquire(wait bool) error {
	name := s.state(lockName)
	for {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return err
		}
		file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o666)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another publisher removed the folder just now
		}
		if err != nil {
			return err
		}
		locked, err := disk.Lock(file, wait)
		if err != nil || !locked {
			file.Close()
			if err == nil {
				err = &LockedError{s.folder}
			}
			return err
		}
		ours, err := file.Stat()
		now, errNow := os.Stat(name)
		if err == nil && errNow == nil && os.SameFile(ours, now) {
			s.lock = file
			return nil
		}
		file.Close() // another publisher removed it before we had the lock
	}
}

// state returns the path of a name in the folder of the state.
func (s *lockedSet) state(name string) string {
	return filepath.Join(s.folder, stateFolder, name)
}

// staged returns the path under which a file of the set is prepared.
func (s *lockedSet) staged(path string) string {
	return filepath.Join(s.state(newFolder), filepath.FromSlash(path))
}

// stop undoes a change that is not committed, for a process that is about to exit; it waits for the end of a committed
// one. Afterwards, all other methods that end the change block forever.
func (s *lockedSet) stop() {
	s.ending.Lock()
	if s.ended {
		return
	}
	for range 10 { // others may be adding files
		if s.discard() == nil {
			break
		}
	}
	s.release()
}

// unlock removes the state, which must be finished or undone, and the lock.
func (s *lockedSet) unlock() {
	s.ending.Lock()
	defer s.ending.Unlock()
	s.release()
}

// release is unlock for a caller that holds s.ending.
func (s *lockedSet) release() {
	s.ended = true
	os.RemoveAll(s.state(workFolder))
	os.Remove(s.state(lockName))
	os.Remove(filepath.Join(s.folder, stateFolder))
	s.lock.Close()
	if s.made {
		os.Remove(s.folder) // if it is empty
	}
}

// unlockUnchanged is unlock for a set that did not change: its folder keeps its modification time.
func (s *lockedSet) unlockUnchanged() {
	s.unlock()
	if s.before != nil {
		os.Chtimes(s.folder, s.before.info.ModTime(), s.before.info.ModTime())
	}
}

// recover finishes a committed change and undoes another one.
func (s *lockedSet) recover() error {
	if _, err := os.Lstat(s.state(commitName)); err == nil {
		return s.finish()
	}
	return s.discard()
}

// discard removes what was prepared for a change that was not committed.
func (s *lockedSet) discard() error {
	return errors.Join(os.RemoveAll(s.state(newFolder)), os.RemoveAll(s.state(workFolder)),
		removeIfThere(s.state(removedName)))
}

// stage writes a file of the set to the folder of new files.
func (s *lockedSet) stage(path string, data []byte) error {
	name := s.staged(path)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	return s.writeFile(name, data)
}

// writeFile writes a file and flushes it to the disk.
func (s *lockedSet) writeFile(name string, data []byte) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil && s.flush {
		err = disk.Supported(file.Sync())
	}
	return errors.Join(err, file.Close())
}

// commit makes the staged files and the removals of the paths the set's, at once for every reader of SHA256SUMS.
func (s *lockedSet) commit(removed []string) error {
	s.ending.Lock()
	defer s.ending.Unlock()
	if err := s.writeFile(s.state(removedName), []byte(strings.Join(append(removed, ""), "\n"))); err != nil {
		return err
	}
	if err := s.syncFolders(s.state(newFolder)); err != nil {
		return err
	}
	if err := s.writeFile(s.state(commitName), nil); err != nil {
		return err
	}
	if err := s.syncFolder(filepath.Join(s.folder, stateFolder)); err != nil {
		return err
	}
	s.made = false
	return s.finish()
}

// finish puts the staged files in place, SHA256SUMS last, and removes the files to be removed. It may be repeated.
func (s *lockedSet) finish() error {
	files, err := filesBelow(s.state(newFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	manifest := slices.Index(files, dataset.ManifestName)
	if manifest >= 0 {
		files = slices.Delete(files, manifest, manifest+1)
	}
	touched := make(map[string]bool)
	for _, path := range files {
		if err := s.place(path, touched); err != nil {
			return err
		}
	}
	list, err := os.ReadFile(s.state(removedName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for path := range strings.Lines(string(list)) {
		if path = strings.TrimSuffix(path, "\n"); dataset.SafePath(path) {
			if err := s.remove(path); err != nil {
				return err
			}
		}
	}
	for folder := range touched {
		if err := s.syncFolder(folder); err != nil {
			return err
		}
	}
	if manifest >= 0 {
		if err := s.place(dataset.ManifestName, touched); err != nil {
			return err
		}
	}
	if err := s.syncFolder(s.folder); err != nil {
		return err
	}
	if err := os.RemoveAll(s.state(newFolder)); err != nil {
		return err
	}
	if err := removeIfThere(s.state(removedName)); err != nil {
		return err
	}
	return removeIfThere(s.state(commitName))
}

// place renames a staged file to its path in the set.
func (s *lockedSet) place(path string, touched map[string]bool) error {
	final := filepath.Join(s.folder, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(final), 0o777); err != nil {
		return err
	}
	for dir := filepath.Dir(final); len(dir) >= len(s.folder); dir = filepath.Dir(dir) {
		touched[dir] = true
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return os.Rename(s.staged(path), final)
}

// remove removes a file of the set, and its folders as far as they are empty.
func (s *lockedSet) remove(path string) error {
	name := filepath.Join(s.folder, filepath.FromSlash(path))
	if err := removeIfThere(name); err != nil {
		return err
	}
	for dir := filepath.Dir(name); dir != s.folder && len(dir) > len(s.folder); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			break // not empty
		}
	}
	return nil
}

func removeIfThere(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncFolders flushes a folder and those below it.
func (s *lockedSet) syncFolders(folder string) error {
	if !s.flush {
		return nil
	}
	return filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil || !e.IsDir():
			return err
		}
		return disk.Sync(name)
	})
}

func (s *lockedSet) syncFolder(folder string) error {
	if !s.flush {
		return nil
	}
	return disk.Sync(folder)
}

// filesBelow returns the paths of the regular files in a folder and below, relative to it, with slashes, sorted.
func filesBelow(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		files = append(files, filepath.ToSlash(relative))
		return err
	})
	slices.Sort(files)
	return files, err
}
