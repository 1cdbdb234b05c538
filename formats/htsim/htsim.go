// Package htsim reads and writes the connection matrices (.cm) of htsim and its successors: flows that start at a
// given time or when other flows have ended. docs/reference/formats/htsim.md specifies them.
package htsim

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
	"github.com/tracedag/tracedag/formats/internal/flowio"
)

// Format is the connection-matrix format.
var Format = format.Format{
	Name:       "htsim",
	Modes:      format.Modes{Lenient: true},
	Title:      "htsim connection matrices",
	Extensions: []string{".cm"},
	Detect:     func(head []byte) bool { return blockio.FirstLine(head, isHeader) },
	Read:       read,
	Options:    flowio.Table,
	Lacks:      lower.Everything(),
	Losses:     losses,
	Write:      write,
}

// connection is a flow line.
type connection struct {
	flowio.Flow
	trigger, sendDone, recvDone int64 // trigger numbers; 0: none
}

// shot is the effect of activating a trigger.
type shot uint8

const (
	oneshot   shot = iota + 1 // starts all its flows; activated once only
	multishot                 // starts the next of its flows
	barrier                   // starts all its flows after count activations
)

var shots = map[string]shot{"oneshot": oneshot, "multishot": multishot, "barrier": barrier}

// trigger is a trigger line.
type trigger struct {
	id, count int64
	shot      shot
}

func isHeader(l *blockio.Line) bool {
	fields := bytes.Fields(l.Text())
	if len(fields) != 2 {
		return false
	}
	_, err := strconv.ParseUint(string(fields[1]), 10, 31)
	return err == nil && (string(fields[0]) == "Nodes" || string(fields[0]) == "Connections")
}

// number parses a token as a number in least..most; nil is the end of the line. The name describes it in errors.
func number(l *blockio.Line, token []byte, name string, least, most int64) int64 {
	n, ok := int64(0), len(token) > 0
	for _, c := range token {
		d := int64(c) - '0'
		if d < 0 || d > 9 || n > (most-d)/10 {
			ok = false
			break
		}
		n = 10*n + d
	}
	if !ok || n < least {
		l.FailWith(fmt.Sprintf("%s (%d..%d)", name, least, most), shown(token))
	}
	return n
}

// first returns the first token, or nil if there is none.
func first(tokens [][]byte) []byte {
	if len(tokens) == 0 {
		return nil
	}
	return tokens[0]
}

// shown returns a token for a message, shortened if it is long.
func shown(token []byte) string {
	const most = 40
	if token == nil {
		return "the end of the line"
	}
	if len(token) > most {
		return fmt.Sprintf("%q...", token[:most])
	}
	return fmt.Sprintf("%q", token)
}

// maxTrigger is the highest trigger or flow number.
const maxTrigger = math.MaxInt32

// parseConnection parses a flow line with a start in units of 10^unit picoseconds.
func parseConnection(l *blockio.Line, unit int) connection {
	var c connection
	tokens := bytes.Fields(l.Text())
	source, destination, _ := bytes.Cut(tokens[0], []byte("->"))
	c.Source = int32(number(l, source, "a source node", 0, flowio.MaxRanks-1))
	c.Destination = int32(number(l, destination, "a destination node", 0, flowio.MaxRanks-1))
	var started, sized bool
	for tokens = tokens[1:]; len(tokens) > 0 && !l.Failed(); {
		key := string(tokens[0])
		tokens = tokens[1:]
		take := 1
		switch key {
		case "id":
			number(l, first(tokens), "a flow number", 1, maxTrigger)
		case "start":
			started = true
			c.Start = start(l, first(tokens), unit)
		case "trigger":
			c.trigger = number(l, first(tokens), "a trigger number", 1, maxTrigger)
		case "size":
			sized = true
			c.Bytes = number(l, first(tokens), "a size in bytes", 1, math.MaxInt64)
		case "send_done_trigger":
			c.sendDone = number(l, first(tokens), "a trigger number", 1, maxTrigger)
		case "recv_done_trigger":
			c.recvDone = number(l, first(tokens), "a trigger number", 1, maxTrigger)
		case "prio":
			number(l, first(tokens), "a priority", 0, math.MaxInt32)
		case "msg": // the number is optional
			if take = 0; len(tokens) > 0 && tokens[0][0] >= '0' && tokens[0][0] <= '9' {
				number(l, first(tokens), "a message number", 1, math.MaxInt32)
				take = 1
			}
		case "addon":
			take = 0
		default:
			l.FailWith("id, start, trigger, size, send_done_trigger, recv_done_trigger, prio, msg or addon",
				shown([]byte(key)))
		}
		tokens = tokens[min(take, len(tokens)):]
	}
	switch {
	case !sized:
		l.FailWith("the size of the flow", "none")
	case started && c.trigger != 0:
		l.FailWith("a start or a trigger", "both")
	case !started && c.trigger == 0:
		l.FailWith("a start or a trigger", "neither")
	}
	return c
}

// start parses a start time.
func start(l *blockio.Line, token []byte, unit int) dag.Time {
	line := blockio.NewLine(token)
	t, _ := line.Time("a start", unit)
	if line.Failed() || !line.End() {
		l.FailWith(fmt.Sprintf("a start, in units of %v", flowio.Unit(unit)), shown(token))
	}
	return t
}

func parseTrigger(l *blockio.Line) trigger {
	var t trigger
	tokens := bytes.Fields(l.Text())[1:]
	for len(tokens) > 0 && !l.Failed() {
		key := string(tokens[0])
		tokens = tokens[1:]
		if s := shots[key]; s != 0 {
			if t.shot != 0 {
				l.FailWith("one of oneshot, multishot or barrier", "two")
			}
			t.shot = s
			continue
		}
		switch key {
		case "id":
			t.id = number(l, first(tokens), "a trigger number", 1, maxTrigger)
		case "count":
			t.count = number(l, first(tokens), "the count of a barrier", 0, maxTrigger)
		default:
			l.FailWith("id, count, oneshot, multishot or barrier", shown([]byte(key)))
		}
		tokens = tokens[min(1, len(tokens)):]
	}
	switch {
	case t.id == 0:
		l.FailWith("the id of the trigger", "none")
	case t.shot == 0:
		l.FailWith("oneshot, multishot or barrier", "none of them")
	case t.shot == barrier && t.count == 0:
		l.FailWith("the count of the barrier, 1 or more", "none")
	}
	return t
}

// parseFailure checks the line of a link failure.
func parseFailure(l *blockio.Line) {
	tokens := bytes.Fields(l.Text())[1:]
	for ; len(tokens) > 1 && !l.Failed(); tokens = tokens[2:] {
		switch string(tokens[0]) {
		case "switch_type":
			if s := string(tokens[1]); s != "TOR" && s != "AGG" && s != "CORE" {
				l.FailWith("TOR, AGG or CORE", shown(tokens[1]))
			}
		case "switch_id", "link_id":
			number(l, tokens[1], "a switch or link number", 0, math.MaxInt32)
		default:
			l.FailWith("switch_type, switch_id or link_id", shown(tokens[0]))
		}
	}
	if len(tokens) == 1 {
		l.FailWith("a value", "the end of the line")
	}
}

// unitOf returns the exponent of the unit of start times.
func unitOf(o *format.ReadOptions) (int, error) {
	cycle := flowio.OptionsOf(o).Cycle
	if cycle == 0 {
		return 0, nil
	}
	unit, ok := flowio.Exponent(cycle)
	if !ok {
		return 0, fmt.Errorf("--cycle (unit of start times): expected a power of ten from 1ps to 1s, found %v", cycle)
	}
	return unit, nil
}
