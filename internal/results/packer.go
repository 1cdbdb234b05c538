package results

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// flushEvery is the time after which finished runs are written to a small pack. Together with the write, a run is on
// the disk in 0.2 s.
const flushEvery = 100 * time.Millisecond

// pendingSize is the largest text of finished runs in memory in bytes.
const pendingSize = 16 << 20

// Packer writes the runs of a shard to packs: first small ones, as they finish, then packs of 1,000 runs, after which
// the small ones go. Its methods may be called concurrently.
type Packer struct {
	folder  Folder
	shard   string // begin of the names of its packs
	sync    bool
	written func(ids []string)

	lock    sync.Mutex // of the following
	pending [][]byte   // records
	ids     []string
	size    int
	err     error

	writing sync.Mutex // of parts
	parts   []part
	runs    int             // of parts
	made    map[string]bool // packs of this packer
	wake    chan struct{}
	ended   chan struct{}
	closed  chan struct{}
}

// part is a small pack, or the file of a run.
type part struct {
	name string
	runs int
}

// NewPacker returns a packer of a shard, whose name has no "/". sync writes packs to the disk before they appear.
// written receives runs when they are in a pack; it may be nil. The packer gathers the small packs that earlier
// processes have left, and the files of the runs that own selects.
func (s *Store) NewPacker(shard string, sync bool, own func(id string) bool, written func(ids []string)) *Packer {
	p := &Packer{folder: s.folder, shard: shard, sync: sync, written: written, wake: make(chan struct{}, 1),
		made:  make(map[string]bool),
		ended: make(chan struct{}), closed: make(chan struct{})}
	s.lock.Lock()
	for name, pack := range s.packs {
		if pack != nil && pack.whole && len(pack.runs) < packRuns && strings.HasPrefix(name, shard+"-") &&
			len(name) == len(shard)+1+idDigits+len(ending) {
			p.parts = append(p.parts, part{filepath.Join(s.folder.packs(), name), len(pack.runs)})
			p.runs += len(pack.runs)
		}
	}
	for id := range s.single {
		if own(id) {
			p.parts = append(p.parts, part{s.folder.path(id), 1})
			p.runs++
		}
	}
	s.lock.Unlock()
	go p.run()
	return p
}

// run writes pending runs until the packer is closed.
func (p *Packer) run() {
	defer close(p.closed)
	for {
		select {
		case <-p.ended:
			p.flush()
			return
		case <-p.wake:
		}
		select {
		case <-time.After(flushEvery):
		case <-p.ended:
		}
		p.flush()
	}
}

// Add adds a run. It returns errors of earlier runs, too.
func (p *Packer) Add(id string, line []byte, status Status) error {
	record := appendRecord(make([]byte, 0, len(line)+trailerMin+16), line, id, status)
	p.lock.Lock()
	p.pending, p.ids = append(p.pending, record), append(p.ids, id)
	p.size += len(record)
	large, err := p.size > pendingSize || len(p.pending) >= packRuns, p.err
	p.lock.Unlock()
	if err != nil {
		return err
	}
	if large {
		return p.flush()
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return nil
}

// Close writes all runs. Runs of small packs are gathered.
func (p *Packer) Close() error {
	close(p.ended)
	<-p.closed
	p.writing.Lock()
	defer p.writing.Unlock()
	p.lock.Lock()
	err := p.err
	p.lock.Unlock()
	if err == nil && len(p.parts) > 1 {
		err = p.gather()
	}
	return err
}

// flush writes pending runs to a pack.
func (p *Packer) flush() error {
	p.writing.Lock()
	defer p.writing.Unlock()
	p.lock.Lock()
	records, ids := p.pending, p.ids
	p.pending, p.ids, p.size = nil, nil, 0
	err := p.err
	p.lock.Unlock()
	if len(records) == 0 || err != nil {
		return err
	}
	if err = p.write(records); err == nil && p.runs >= packRuns {
		err = p.gather()
	}
	if err != nil {
		p.lock.Lock()
		p.err = err
		p.lock.Unlock()
		return err
	}
	if p.written != nil {
		p.written(ids)
	}
	return nil
}

// write writes records to packs.
func (p *Packer) write(records [][]byte) error {
	for len(records) > 0 {
		w, err := p.folder.newPack()
		if err != nil {
			return err
		}
		for len(records) > 0 && !w.full() && err == nil {
			err = w.add(records[0])
			records = records[1:]
		}
		if err == nil {
			err = p.commit(w)
		}
		w.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// commit commits a pack and adds it to the parts, unless it is full.
func (p *Packer) commit(w *packWriter) error {
	name, err := w.commit(p.shard, p.sync)
	if err != nil {
		return err
	}
	name = filepath.Join(p.folder.packs(), name)
	if p.made[name] = true; !w.full() {
		p.parts = append(p.parts, part{name, w.runs})
		p.runs += w.runs
	}
	return nil
}

// gather writes the runs of all parts to packs, and then removes the parts.
func (p *Packer) gather() (err error) {
	parts := p.parts
	p.parts, p.runs = nil, 0
	p.made = make(map[string]bool) // an earlier pack is a part now
	var w *packWriter
	var done []part // in the pack at hand, or in an earlier one
	defer func() {
		if w != nil {
			w.close()
		}
	}()
	finish := func() error {
		err := p.commit(w)
		w.close()
		w = nil
		if err == nil {
			p.remove(done)
		}
		done = nil
		return err
	}
	for _, of := range parts {
		each := func(record []byte) error {
			if w == nil {
				if w, err = p.folder.newPack(); err != nil {
					return err
				}
			}
			if err := w.add(record); err != nil || !w.full() {
				return err
			}
			return finish()
		}
		runs, err := of.records(each)
		if err != nil {
			return err
		}
		if runs == of.runs { // else it is damaged, or gone
			done = append(done, of)
		}
	}
	if w != nil {
		err = finish()
	} else {
		p.remove(done)
	}
	return err
}

// remove removes parts whose runs are in packs. A pack of the same runs has the same name, and stays.
func (p *Packer) remove(parts []part) {
	for _, of := range parts {
		if !p.made[of.name] {
			os.Remove(of.name)
		}
	}
}

// records calls do with all records of a part, and returns their number. A part that is gone has none: another process
// has gathered it.
func (of part) records(do func(record []byte) error) (runs int, err error) {
	data, err := os.ReadFile(of.name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	each := func(text []byte) {
		records(text, func(r found) {
			if runs++; err == nil {
				err = do(text[r.begin : r.end+trailerMin+len(statuses[r.status])+1])
			}
		})
	}
	if strings.HasSuffix(of.name, ending) {
		frames(data, func(_, _ int, text []byte) { each(text) })
	} else {
		each(data)
	}
	return runs, err
}
