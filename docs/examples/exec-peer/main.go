// Exec-peer is a network simulator for simulate --backend exec: every message takes a latency and a time per byte. It
// is a start for couplings of other simulators and imports nothing of tracedag. docs/reference/backends/exec.md defines
// the lines that it reads and writes.
//
//	simulate --backend "exec:exec-peer --latency 500ns --rate 100" trace.parquet
package main

import (
	"bufio"
	"container/heap"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// event is a report that the network has to make.
type event struct {
	at       int64 // picoseconds
	sequence int64 // orders events of equal times
	what     string
	id       string
}

// events is a heap by time.
type events []event

func (q events) Len() int      { return len(q) }
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].sequence < q[j].sequence
}
func (q *events) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// network is the model: no contention, or with serial one message at a time per host.
type network struct {
	latency, perByte int64 // picoseconds
	serial           bool
	now, sequence    int64
	free             map[string]int64 // by host: when its last message has left, with serial
	queue            events
}

// send starts a message: ID T SRC DST BYTES TAG NIC.
func (n *network) send(f []string) error {
	if len(f) != 7 {
		return fmt.Errorf("expected 7 fields, found %d", len(f))
	}
	at, err := strconv.ParseInt(f[1], 10, 64)
	bytes, err2 := strconv.ParseInt(f[4], 10, 64)
	if err = errors.Join(err, err2); err != nil || at < n.now {
		return fmt.Errorf("bad time or size of message %s: %v", f[0], err)
	}
	if n.serial {
		at = max(at, n.free[f[2]])
		n.free[f[2]] = at + bytes*n.perByte
	}
	n.sequence++
	heap.Push(&n.queue, event{at + bytes*n.perByte, n.sequence, "sent", f[0]})
	heap.Push(&n.queue, event{at + bytes*n.perByte + n.latency, n.sequence, "done", f[0]})
	return nil
}

// run simulates until the first moment with reports, at most until the given time, "-" for no limit.
func (n *network) run(until string, out io.Writer) error {
	end, err := strconv.ParseInt(until, 10, 64)
	if err != nil && until != "-" {
		return err
	}
	switch {
	case len(n.queue) > 0 && (until == "-" || n.queue[0].at <= end):
		n.now = n.queue[0].at
		for len(n.queue) > 0 && n.queue[0].at == n.now {
			e := heap.Pop(&n.queue).(event)
			fmt.Fprintln(out, e.what, e.id, e.at)
		}
	case until == "-":
		fmt.Fprintln(out, "now -")
		return nil
	default:
		n.now = end
	}
	fmt.Fprintln(out, "now", n.now)
	return nil
}

// undelivered returns the number of messages under way.
func (n *network) undelivered() (count int) {
	for _, e := range n.queue {
		if e.what == "done" {
			count++
		}
	}
	return count
}

// serve answers lines until "bye" or the end of the input.
func (n *network) serve(in io.Reader, out *bufio.Writer) error {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var err error
		switch f := strings.Fields(lines.Text()); {
		case len(f) > 2 && f[0] == "hello" && f[1] == "tracedag-net" && f[2] == "1":
			fmt.Fprintln(out, "ready fixed 1 sent")
			out.Flush()
		case len(f) > 2 && f[0] == "config": // another model has settings here
		case len(f) > 1 && f[0] == "send":
			err = n.send(f[1:])
		case len(f) == 2 && f[0] == "run":
			err = n.run(f[1], out)
			out.Flush()
		case len(f) == 1 && f[0] == "stats":
			fmt.Fprintf(out, "stat undelivered %d\nend\n", n.undelivered())
			out.Flush()
		case len(f) == 1 && f[0] == "bye":
			return nil
		default:
			err = fmt.Errorf("unknown line %.200q", lines.Text())
		}
		if err != nil {
			fmt.Fprintln(out, "error", err)
			return errors.Join(err, out.Flush())
		}
	}
	return nil
}

func main() {
	latency := flag.Duration("latency", time.Microsecond, "latency of a message, in whole nanoseconds")
	rate := flag.Int64("rate", 100, "rate of a host in Gb/s; a divisor of 8000")
	serial := flag.Bool("serial", false, "one message at a time leaves a host")
	flag.Parse()
	if *rate < 1 || 8000%*rate != 0 || *latency < 0 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: exec-peer [--latency TIME] [--rate GBPS] [--serial]")
		os.Exit(2)
	}
	n := &network{latency: latency.Nanoseconds() * 1000, perByte: 8000 / *rate, serial: *serial}
	n.free = make(map[string]int64)
	if err := n.serve(os.Stdin, bufio.NewWriter(os.Stdout)); err != nil {
		os.Exit(1)
	}
}
