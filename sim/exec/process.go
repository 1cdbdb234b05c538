// This file starts and ends the process of a peer.

package exec

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tracedag/tracedag/sim"
)

const (
	// politeTime is the time that a peer has to end by itself, and termTime that after SIGTERM.
	politeTime, termTime = 2 * time.Second, 5 * time.Second
	// stderrLine is the largest number of bytes in a line of a peer's standard error; longer ones are divided.
	stderrLine = 4096
)

// process is a running peer.
type process struct {
	cmd      *osexec.Cmd
	in, out  *os.File      // our ends of its standard input and output
	exited   chan struct{} // closed when the process has ended
	relayed  chan struct{} // closed when its standard error has ended
	stop     func() bool   // ends the watch over the context
	timeout  time.Duration // 0: none
	ctx      context.Context
	canceled atomic.Bool // the context has ended
	exiting  atomic.Bool // a signal ends the program
	remove   func()      // removes the function of [sim.Env.AtExit]
}

// startProcess starts a command. log receives its standard error by lines.
func startProcess(ctx context.Context, words []string, timeout time.Duration, log func(line string)) (*process, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	p := &process{cmd: osexec.Command(words[0], words[1:]...), exited: make(chan struct{}),
		relayed: make(chan struct{}), timeout: timeout, ctx: ctx, remove: func() {}}
	separate(p.cmd)
	var files [6]*os.File
	for i := 0; i < len(files); i += 2 {
		var err error
		if files[i], files[i+1], err = os.Pipe(); err != nil {
			closeAll(files[:])
			return nil, err
		}
	}
	p.in, p.out = files[1], files[2]
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = files[0], files[3], files[5]
	if err := p.cmd.Start(); err != nil {
		closeAll(files[:])
		return nil, fmt.Errorf("starting the simulator: %w", err)
	}
	closeAll([]*os.File{files[0], files[3], files[5]})
	go relay(files[4], log, p.relayed)
	go func() {
		p.cmd.Wait() // its state tells
		close(p.exited)
	}()
	p.stop = context.AfterFunc(ctx, func() {
		p.canceled.Store(true)
		p.unblock(time.Now())
	})
	return p, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// unblock makes reads and writes after a time fail.
func (p *process) unblock(at time.Time) {
	p.in.SetWriteDeadline(at)
	p.out.SetReadDeadline(at)
}

// restart restarts the time limit.
func (p *process) restart() {
	if p.timeout > 0 && !p.canceled.Load() {
		p.unblock(time.Now().Add(p.timeout))
		if p.canceled.Load() { // in between
			p.unblock(time.Now())
		}
	}
}

// explain returns the reason of a failed read or write.
func (p *process) explain(err error, asked string) error {
	p.halt()
	switch {
	case p.canceled.Load():
		return sim.Interrupted(p.ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("expected an answer to %q within %v, found none; increase --exec-timeout", asked, p.timeout)
	}
	p.in.Close()
	if !p.wait(politeTime) {
		return fmt.Errorf("it closed its standard input or output before the answer to %q", asked)
	}
	return fmt.Errorf("it ended before the answer to %q: %v", asked, p.cmd.ProcessState)
}

// exit ends the peer before a signal ends the program. The run stops where it is, since its errors would come first.
func (p *process) exit() {
	p.exiting.Store(true)
	p.in.Close()
	if !p.wait(politeTime) {
		if terminate(p.cmd); !p.wait(termTime) {
			kill(p.cmd)
			p.wait(termTime)
		}
	}
	kill(p.cmd)
}

// halt blocks if a signal ends the program.
func (p *process) halt() {
	if p.exiting.Load() {
		select {}
	}
}

// wait waits until the process has ended, and reports whether it has.
func (p *process) wait(most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// end ends the process and all processes that it started. It returns the state of one that ended by itself, otherwise
// nil. After a failed run, the peer cannot write any more, so that it does not wait for a reader.
func (p *process) end(failed bool) (state *os.ProcessState) {
	p.halt()
	p.remove()
	p.stop()
	p.in.Close()
	defer p.out.Close()
	if failed {
		p.out.Close()
	}
	if p.wait(politeTime) {
		state = p.cmd.ProcessState
	} else if terminate(p.cmd); !p.wait(termTime) {
		kill(p.cmd)
		<-p.exited
	}
	kill(p.cmd) // what the peer started and left
	timer := time.NewTimer(politeTime)
	defer timer.Stop()
	select {
	case <-p.relayed:
	case <-timer.C:
	}
	return state
}

// relay passes the standard error of a peer on, by lines of at most stderrLine bytes.
func relay(from *os.File, log func(line string), done chan<- struct{}) {
	defer close(done)
	defer from.Close()
	in := bufio.NewReaderSize(from, stderrLine)
	for {
		text, err := in.ReadSlice('\n')
		if len(text) > 0 && log != nil {
			log("peer: " + strings.ToValidUTF8(strings.TrimRight(string(text), "\r\n"), "\uFFFD"))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// peer is a started peer and the conversation with it.
type peer struct {
	*conversation
	process *process
	failed  error // first error of a stream
}

// startPeer starts a peer and greets it.
func startPeer(ctx context.Context, b *backend, hosts int, env *sim.Env) (*peer, error) {
	timeout := time.Duration(b.timeout / 1000) // picoseconds to nanoseconds
	process, err := startProcess(ctx, b.words(), timeout, env.Log)
	if err != nil {
		return nil, err
	}
	if env.AtExit != nil {
		process.remove = env.AtExit(process.exit)
	}
	p := &peer{process: process, conversation: newConversation(process.in, process.out, process.restart)}
	p.lost = func(err error) { p.failed = cmp.Or(p.failed, process.explain(err, p.asked)) }
	if err := p.begin(hosts, uint64(b.window), b.config); err != nil {
		p.process.end(true)
		return nil, p.reason(err)
	}
	return p, nil
}

// reason returns the reason of an error of the conversation.
func (p *peer) reason(err error) error {
	return cmp.Or(p.failed, err)
}
