package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tracedag/tracedag/internal/par"
)

// Store is the runs of a folder at the time of the last Refresh. Its methods may be called concurrently.
type Store struct {
	folder  Folder
	lock    sync.Mutex
	packs   map[string]*pack // by name; nil for those that are gone
	packed  map[string]place // by run
	doubles map[string][]place
	single  map[string]bool // runs with a file
	recent  []*frame        // texts of frames, the latest last
	size    int             // of recent in bytes
}

// pack is a pack as read.
type pack struct {
	name  string
	at    time.Time
	runs  []found
	spots []spot // by run
	whole bool
}

// spot is the frame of a run.
type spot struct{ at, size int }

// place is a run of a pack.
type place struct {
	pack *pack
	run  int
}

// frame is the text of a frame.
type frame struct {
	pack *pack
	spot spot
	text []byte
}

// recentSize is the largest size of texts of frames in memory in bytes.
const recentSize = 16 << 20

// Open returns the runs of a folder.
func (f Folder) Open() (*Store, error) {
	s := &Store{folder: f, packs: make(map[string]*pack), packed: make(map[string]place),
		doubles: make(map[string][]place)}
	return s, s.Refresh()
}

// Refresh finds runs that processes have written since.
func (s *Store) Refresh() error {
	single, err := s.folder.listFiles() // before packs: a file goes only after its pack has appeared
	if err != nil {
		return err
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.single = single
	for again := true; again; {
		if again, err = s.refreshPacks(); err != nil {
			return err
		}
	}
	return nil
}

// refreshPacks reads new packs. It reports whether one is gone, so that another pack has its runs.
func (s *Store) refreshPacks() (gone bool, err error) {
	names, err := s.folder.listPacks()
	if err != nil {
		return false, err
	}
	there := make(map[string]bool, len(names))
	var fresh []string
	for _, name := range names {
		if there[name] = true; s.packs[name] == nil {
			fresh = append(fresh, name)
		}
	}
	read := make([]*pack, len(fresh))
	err = par.Each(len(fresh), func(i int) (err error) {
		read[i], err = s.folder.readPack(fresh[i])
		return err
	})
	if err != nil {
		return false, err
	}
	for name, p := range s.packs {
		if p != nil && !there[name] {
			s.packs[name] = nil
		}
	}
	for _, p := range read {
		if p == nil {
			gone = true
			continue
		}
		s.packs[p.name] = p
		for run := range p.runs {
			s.add(place{p, run})
		}
	}
	return gone, nil
}

// add adds a run of a pack. If another pack has it, too, a result precedes an error, and a later error an earlier one.
func (s *Store) add(p place) {
	id := p.found().id
	before, twice := s.packed[id]
	switch {
	case !twice || s.packs[before.pack.name] != before.pack:
	case before.found().sum == p.found().sum:
		return
	case before.found().status.failed() != p.found().status.failed():
		if !before.found().status.failed() {
			return
		}
	case before.found().status.failed():
		if before.pack.at.After(p.pack.at) || before.pack.at.Equal(p.pack.at) && before.pack.name > p.pack.name {
			return
		}
	default:
		s.doubles[id] = append(s.doubles[id], before, p)
		if before.pack.name < p.pack.name {
			return
		}
	}
	s.packed[id] = p
}

func (p place) found() *found { return &p.pack.runs[p.run] }

// readPack reads a pack, nil if it is gone.
func (f Folder) readPack(name string) (*pack, error) {
	path := filepath.Join(f.packs(), name)
	info, err := os.Stat(path)
	var data []byte
	if err == nil {
		data, err = os.ReadFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := &pack{name: name, at: info.ModTime()}
	p.whole = frames(data, func(at, size int, text []byte) {
		records(text, func(r found) {
			p.runs = append(p.runs, r)
			p.spots = append(p.spots, spot{at, size})
		})
	})
	return p, nil
}

// listFiles returns the runs that have a file.
func (f Folder) listFiles() (map[string]bool, error) {
	all := make(map[string]bool)
	root := filepath.Join(string(f), "runs")
	folders, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue // a killed process may have left one
		}
		entries, err := os.ReadDir(filepath.Join(root, folder.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if id, is := strings.CutSuffix(e.Name(), ".json"); is && isID(id) {
				all[id] = true
			}
		}
	}
	return all, nil
}

// Status returns the outcome of a run and when its file was written; ok is false if there is none.
func (s *Store) Status(id string) (status Status, at time.Time, ok bool, err error) {
	s.lock.Lock()
	p, packed := s.packed[id]
	single := s.single[id]
	s.lock.Unlock()
	if packed && (!single || !p.found().status.failed()) {
		return p.found().status, p.pack.at, true, nil
	}
	k, err := s.Read(id)
	if k == nil || err != nil {
		return 0, at, false, err
	}
	return k.Status, k.At, true, nil
}

// Read returns a run, or nil if there is none, or none that is whole.
func (s *Store) Read(id string) (k *Kept, err error) {
	for range 100 { // packs may be replaced meanwhile
		s.lock.Lock()
		p, packed := s.packed[id]
		single := s.single[id]
		s.lock.Unlock()
		if single && (!packed || p.found().status.failed()) {
			if k, err = s.folder.readFile(id); err != nil || k != nil && (!packed || !k.Status.failed()) {
				return k, err
			}
		}
		if !packed {
			if !single || k != nil {
				return k, nil
			}
			// A pack may have the run by now.
			_, err := os.Stat(s.folder.path(id))
			if err == nil || !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		} else if text, err := s.text(p); err != nil || text != nil {
			return newest(k, p, text), err
		}
		if err := s.Refresh(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: its packs change all the time", s.folder)
}

// newest returns a run of a pack, or that of a file if both failed and the file is later.
func newest(k *Kept, p place, text []byte) *Kept {
	if text == nil || k != nil && k.At.After(p.pack.at) {
		return k
	}
	r := p.found()
	return &Kept{Line: append([]byte(nil), text[r.begin:r.end]...), Status: r.status, At: p.pack.at}
}

// readFile returns the run of a file, nil if there is none or if it is damaged.
func (f Folder) readFile(id string) (*Kept, error) {
	name := f.path(id)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var k *Kept
	whole := 0
	records(text, func(r found) {
		if whole++; r.id == id && r.begin == 0 {
			k = &Kept{Line: text[:r.end], Status: r.status}
		}
	})
	if k == nil || whole > 1 || len(text) != len(k.Line)+trailerMin+len(statuses[k.Status])+1 {
		return nil, nil
	}
	if info, err := os.Stat(name); err == nil {
		k.At = info.ModTime()
	}
	return k, nil
}

// text returns the text of the frame of a run, nil if its pack is gone.
func (s *Store) text(p place) ([]byte, error) {
	where := p.pack.spots[p.run]
	s.lock.Lock()
	for i := len(s.recent) - 1; i >= 0; i-- {
		if f := s.recent[i]; f.pack == p.pack && f.spot == where {
			s.lock.Unlock()
			return f.text, nil
		}
	}
	s.lock.Unlock()
	path := filepath.Join(s.folder.packs(), p.pack.name)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := make([]byte, where.size)
	if _, err := file.ReadAt(data, int64(where.at)); err != nil {
		return nil, err
	}
	z := newDecoder()
	defer z.Close()
	text, err := z.DecodeAll(data, nil)
	if err == nil && p.found().end > len(text) {
		err = errors.New("it has changed since it was read")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.recent = append(s.recent, &frame{p.pack, where, text})
	for s.size += len(text); s.size > recentSize && len(s.recent) > 1; s.recent = s.recent[1:] {
		s.size -= len(s.recent[0].text)
	}
	return text, nil
}

// Twice returns two results of a run that differ, with the names of their files; nil without such results.
func (s *Store) Twice(id string) (kept []*Kept, names []string, err error) {
	s.lock.Lock()
	places := s.doubles[id]
	p, packed := s.packed[id]
	if single := s.single[id]; packed && len(places) == 0 && single {
		places = []place{p}
	}
	s.lock.Unlock()
	if len(places) == 0 {
		return nil, nil, nil
	}
	for _, p := range places {
		text, err := s.text(p)
		if err != nil || text == nil || p.found().status.failed() {
			return nil, nil, err // another pack has it by now
		}
		kept, names = append(kept, newest(nil, p, text)), append(names, filepath.Join(s.folder.packs(), p.pack.name))
	}
	if len(kept) == 1 {
		k, err := s.folder.readFile(id)
		if k == nil || err != nil || k.Status.failed() {
			return nil, nil, err
		}
		kept, names = append(kept, k), append(names, s.folder.path(id))
	}
	return kept, names, nil
}
