// This file decodes chunks of windows before the replay needs them.

package sim

import (
	"runtime"
	"sync"
)

// aheadShare is the number of frames for the replay per frame for reading ahead.
const aheadShare = 4

// readAhead brings chunks into frames on another thread while the replay runs: the next chunk of each rank, and one
// that ops far before it refer to. A frame for that does not count as one in use, and frames are assigned whether or
// not the other thread keeps up, so that the replay does not depend on it.
type readAhead struct {
	free  int          // number of frames that may be assigned
	slots []aheadFrame // by frame

	// By rank:
	next  []uint32    // its first chunk that has never been in memory
	end   []uint32    // the end of its chunks
	frame [][2]uint32 // frames for the next chunk and for a far one, plus 1; 0: none

	batch []uint32 // frames to request
	most  int      // length of a batch
}

// aheadFrame is the request to decode a chunk into a frame. Its fields, and until done those of the frame, belong to
// the thread that has the mutex.
type aheadFrame struct {
	mutex  sync.Mutex
	rank   uint32
	wanted bool
	done   bool
}

// mostRequests limits the frames that are requested together: the other thread sleeps between requests.
const mostRequests = 64

func newReadAhead(p *Program, w *opWindows) *readAhead {
	ranks := p.Ranks()
	a := &readAhead{
		free: int(w.most / aheadShare), slots: make([]aheadFrame, len(w.chunk)),
		next: make([]uint32, ranks), end: make([]uint32, ranks), frame: make([][2]uint32, ranks),
	}
	a.most = min(max(min(a.free/2, ranks)/8, 1), mostRequests)
	for rank := range uint32(ranks) {
		a.next[rank] = w.file.chunk(p, rank)
		a.end[rank] = a.next[rank] + uint32((uint64(p.Start[rank+1]-p.Start[rank])+uint64(w.mask))>>w.bits)
	}
	return a
}

// take returns the frame that was assigned to a chunk, and whether the chunk has been decoded into it; false if no
// frame was.
func (w *opWindows) take(rank, chunk uint32) (frame uint32, decoded, ok bool) {
	a := w.ahead
	for k, f := range a.frame[rank] {
		if f == 0 || w.chunk[f-1] != chunk {
			continue
		}
		a.frame[rank][k] = 0
		a.free++
		s := &a.slots[f-1]
		s.mutex.Lock()
		decoded = s.done
		s.wanted, s.done = false, false
		s.mutex.Unlock()
		return f - 1, decoded, true
	}
	return 0, false, false
}

// request asks for chunks of a rank after one that has come into memory: the next one, and the one with the farthest
// dependent of its ops.
func (w *opWindows) request(p *Program, rank, farthest uint32) {
	a := w.ahead
	next := a.next[rank]
	for next < a.end[rank] && w.frameOf[next] != 0 {
		next++
	}
	a.next[rank] = next
	if next == a.end[rank] {
		return
	}
	first := w.file.chunk(p, rank)
	w.assign(rank, 0, first, next)
	if far := first + farthest>>w.bits; far > next && far < a.end[rank] && w.frameOf[far] == 0 {
		w.assign(rank, 1, first, far)
	}
}

// assign assigns a frame to a chunk of a rank, whose first chunk is given, and asks the other thread to decode it.
func (w *opWindows) assign(rank uint32, slot int, first, chunk uint32) {
	a := w.ahead
	frames := &a.frame[rank]
	if other := frames[1-slot]; frames[slot] != 0 || a.free == 0 || other != 0 && w.chunk[other-1] == chunk {
		return
	}
	a.free--
	frame := w.freeFrame()
	frames[slot] = frame + 1
	w.chunk[frame], w.index[frame] = chunk, (chunk-first)<<w.bits
	s := &a.slots[frame]
	s.mutex.Lock()
	s.rank, s.wanted = rank, true
	s.mutex.Unlock()
	if a.batch = append(a.batch, frame); len(a.batch) >= a.most {
		w.file.decode(w, a.batch)
		a.batch = make([]uint32, 0, a.most)
	}
}

// fulfil decodes the chunk of a frame, if that is still wanted.
func (w *opWindows) fulfil(r *chunkReader, frame uint32) {
	s := &w.ahead.slots[frame]
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.wanted {
		s.wanted = false
		s.done = w.fill(r, frame, s.rank) == nil // the replay reads the chunk again, and has the error
	}
}

// aheadBatch is a request to decode chunks into frames of windows.
type aheadBatch struct {
	w      *opWindows
	frames []uint32
}

// aheadThread is the thread that decodes chunks of a file for all replays that read it.
type aheadThread struct {
	batches chan aheadBatch
	closed  chan struct{}
	ended   sync.WaitGroup
}

// mostBatches is the number of batches that wait for the thread.
const mostBatches = 1 << 12

// decode passes a batch on to the thread, unless it is far behind or there is only one processor: then the replay
// decodes the chunks.
func (f *chunkFile) decode(w *opWindows, frames []uint32) {
	if runtime.GOMAXPROCS(0) == 1 {
		return
	}
	f.mutex.Lock()
	t := f.thread
	if t == nil {
		t = &aheadThread{batches: make(chan aheadBatch, mostBatches), closed: make(chan struct{})}
		t.ended.Go(func() { t.run(f.newReader()) })
		f.thread = t
	}
	f.mutex.Unlock()
	select {
	case t.batches <- aheadBatch{w, frames}:
	default:
	}
}

// run decodes batches until the file is closed.
func (t *aheadThread) run(r *chunkReader) {
	for {
		select {
		case <-t.closed:
			return
		case b := <-t.batches:
			for _, frame := range b.frames {
				b.w.fulfil(r, frame)
			}
		}
	}
}

// close ends the thread and removes the file.
func (f *chunkFile) close() error {
	f.mutex.Lock()
	if t := f.thread; t != nil {
		f.thread = nil
		close(t.closed)
		t.ended.Wait()
	}
	f.mutex.Unlock()
	return f.file.Close()
}
