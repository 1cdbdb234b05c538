// This file shows the progress of long work.

package cli

import (
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
)

const (
	progressDelay    = time.Second            // what takes no longer shows no progress
	progressInterval = 200 * time.Millisecond // between updates
)

// Progress shows how far long work has come, with its rate and how long it will take, on stderr if that is a terminal.
// A nil Progress is valid and shows nothing.
type Progress struct {
	done atomic.Int64
	stop chan struct{}
	gone chan struct{}
}

// Progress begins to show the progress of something, such as "reading x.goal", that consists of total units, -1 if that
// is not known. The unit is "B" for bytes, or else a noun, such as "ops". The caller must call Close. While one
// progress is shown, another shows nothing.
func (p *Program) Progress(what string, total int64, unit string) *Progress {
	if p.Quiet || !isTerminal(p.Stderr) {
		return nil
	}
	if !p.showing.CompareAndSwap(false, true) {
		return nil
	}
	g := &Progress{stop: make(chan struct{}), gone: make(chan struct{})}
	go g.show(p, printable(what), total, unit)
	return g
}

// Add counts n more units as done.
func (g *Progress) Add(n int64) {
	if g != nil {
		g.done.Add(n)
	}
}

// Close ends the progress and removes it from the terminal.
func (g *Progress) Close() {
	if g != nil {
		close(g.stop)
		<-g.gone
	}
}

func (g *Progress) show(p *Program, what string, total int64, unit string) {
	defer close(g.gone)
	defer p.showing.Store(false)
	if total <= 0 {
		total = -1
	}
	bar := newBar(p, what, total, unit)
	bar.StartWithoutRender()
	wait := progressDelay
	for {
		select {
		case <-g.stop:
			p.messages.Lock()
			p.clearProgress()
			p.messages.Unlock()
			return
		case <-time.After(wait):
		}
		wait = progressInterval
		p.messages.Lock()
		p.bar = bar
		done := g.done.Load()
		if total > 0 {
			done = min(done, total-1) // a full bar would end itself, while the work has yet to
		}
		bar.Set64(done)
		p.messages.Unlock()
	}
}

func newBar(p *Program, what string, total int64, unit string) *progressbar.ProgressBar {
	options := []progressbar.Option{
		progressbar.OptionSetWriter(p.Stderr),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionSetWidth(20),
		progressbar.OptionSetSpinnerChangeInterval(0),
		progressbar.OptionShowCount(),
	}
	if unit == "B" {
		options = append(options, progressbar.OptionShowBytes(true), progressbar.OptionShowTotalBytes(true))
	} else {
		options = append(options, progressbar.OptionShowIts(), progressbar.OptionSetItsString(unit))
	}
	return progressbar.NewOptions64(total, options...)
}

// clearProgress takes the progress bar off the terminal. The caller holds p.messages.
func (p *Program) clearProgress() {
	if p.bar != nil {
		p.bar.Clear()
		p.bar = nil
	}
}
