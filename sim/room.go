// This file divides the memory of a trace in windows among the clones that replay it at the same time.

package sim

import (
	"errors"
	"runtime"
	"sync"
)

// Room is the memory for the ops in windows of a replay and its clones, divided into as many equal shares as there are
// processors. A clone has one share, but may need more.
type Room struct {
	total int // number of shares

	mutex sync.Mutex
	freed sync.Cond
	used  int // shares of running clones
	least int // shares that clones need: those with fewer failed
	next  int // shares of the next clone

	cloning sync.Mutex // held from the change of next to the end of the clone's creation
}

func newRoom() *Room {
	r := &Room{total: runtime.GOMAXPROCS(0), least: 1, next: 1}
	r.freed.L = &r.mutex
	return r
}

// WindowedReplay is a replay that may be in windows.
type WindowedReplay interface {
	Replay
	// Room returns the memory that the replay shares with its clones; nil: it has all ops in memory.
	Room() *Room
}

// Room is the method of [WindowedReplay] for a replay of the program.
func (p *Program) Room() *Room {
	if p.windows == nil {
		return nil
	}
	return p.windows.room
}

// frames returns the part of the frames that the next clone has.
func (r *Room) frames(all uint32) uint32 {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return max(1, uint32(uint64(all)*uint64(r.next)/uint64(r.total)))
}

// RunClone calls run with a clone of a replay, and returns its error. Several calls may run at the same time. If the
// replay is in windows, RunClone waits for memory; if a clone fails because its share of the memory is too small, run
// is called again with a clone that has twice as much, in the end with one that has all.
func RunClone(replay Replay, run func(clone Replay) error) error {
	var room *Room
	if r, is := replay.(WindowedReplay); is {
		room = r.Room()
	}
	if room == nil {
		return run(replay.Clone())
	}
	for {
		shares, err := room.run(replay, run)
		if none := (*noRoomError)(nil); shares == room.total || !errors.As(err, &none) {
			return err
		}
		room.mutex.Lock()
		room.least = max(room.least, min(2*shares, room.total))
		room.mutex.Unlock()
	}
}

// clone returns a clone with the given number of shares.
func (r *Room) clone(replay Replay, shares int) Replay {
	r.cloning.Lock()
	defer r.cloning.Unlock()
	r.setNext(shares)
	defer r.setNext(1)
	return replay.Clone()
}

func (r *Room) setNext(shares int) {
	r.mutex.Lock()
	r.next = shares
	r.mutex.Unlock()
}

// run calls run with a clone as soon as its shares are free, and returns their number.
func (r *Room) run(replay Replay, run func(clone Replay) error) (shares int, err error) {
	r.mutex.Lock()
	for shares = r.least; r.used+shares > r.total; shares = r.least {
		r.freed.Wait()
	}
	r.used += shares
	r.mutex.Unlock()
	defer func() {
		r.mutex.Lock()
		r.used -= shares
		r.mutex.Unlock()
		r.freed.Broadcast()
	}()
	return shares, run(r.clone(replay, shares))
}
