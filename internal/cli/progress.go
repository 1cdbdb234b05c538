// This file shows the progress of long work.

package cli

import (
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
)

const (
	progressDelay    = time.Second            // shorter work shows no progress
	progressInterval = 200 * time.Millisecond // between updates
)

// Progress shows the progress, the rate and the remaining time of long work on stderr, if that is a terminal. A nil
// Progress is valid and shows nothing.
type Progress struct {
	done atomic.Int64
	stop chan struct{}
	gone chan struct{}
}

// Progress starts to show the progress of work such as "reading x.goal" with a total number of units, -1 if unknown.
// The unit is "B" for bytes, or a noun such as "ops". The caller must call Close. It returns nil while another progress
// is shown.
func (p *Program) Progress(title string, total int64, unit string) *Progress {
	if p.of != nil {
		return p.of.Progress(title, total, unit)
	}
	if p.Quiet || !IsTerminal(p.Stderr) {
		return nil
	}
	if !p.showing.CompareAndSwap(false, true) {
		return nil
	}
	g := &Progress{stop: make(chan struct{}), gone: make(chan struct{})}
	go g.show(p, printable(title), total, unit)
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

func (g *Progress) show(p *Program, title string, total int64, unit string) {
	defer close(g.gone)
	defer p.showing.Store(false)
	if total <= 0 {
		total = -1
	}
	bar := newBar(p, title, total, unit)
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
			done = min(done, total-1) // a full bar ends itself
		}
		bar.Set64(done)
		p.messages.Unlock()
	}
}

func newBar(p *Program, title string, total int64, unit string) *progressbar.ProgressBar {
	options := []progressbar.Option{
		progressbar.OptionSetWriter(p.Stderr),
		progressbar.OptionSetDescription(title),
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

// clearProgress removes the progress bar from the terminal. The caller holds p.messages.
func (p *Program) clearProgress() {
	if p.bar != nil {
		p.bar.Clear()
		p.bar = nil
	}
}
