// This file reads the header, the first record of every VEF file.

package vef

import (
	"math"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// header is the first record.
type header struct {
	line     int64
	magic    string
	tasks    int64
	messages int64 // number of point-to-point records; models define their own meaning
	comms    int64
	global   int64 // number of collectives
	local    int64 // number of their records
	onlySend bool
	clock    dag.Time
}

const headerSyntax = "VEF|VEF2|VEF3 ntasks nmsgs ncomms nglobal nlocal flag [clock]"

func (r *reader) readHeader(fields []string) error {
	h := &r.header
	h.line, h.clock = r.line, defaultClock
	if !isMagic([]byte(fields[0])) {
		return r.fail(inHeader, "VEF, VEF2 or VEF3", quote(fields[0]))
	}
	if len(fields) < 7 || len(fields) > 8 {
		return r.fail(inHeader, headerSyntax, strconv.Itoa(len(fields))+" fields")
	}
	h.magic = fields[0]
	for i, number := range []struct {
		what  string
		value *int64
		least int64
	}{
		{"a number of tasks", &h.tasks, 1},
		{"a number of messages", &h.messages, 0},
		{"a number of communicators", &h.comms, 0},
		{"a number of collectives", &h.global, 0},
		{"a number of collective records", &h.local, 0},
	} {
		v, err := strconv.ParseInt(fields[1+i], 10, 64)
		if err != nil || v < number.least || number.value == &h.tasks && v > math.MaxInt32 {
			return r.fail(inHeader, number.what, quote(fields[1+i]))
		}
		*number.value = v
	}
	switch strings.ToUpper(fields[6]) {
	case "TRUE", "1":
		h.onlySend = true
	case "FALSE", "0":
	default:
		return r.fail(inHeader, "TRUE or FALSE", quote(fields[6]))
	}
	if len(fields) == 8 {
		clock, err := strconv.ParseInt(fields[7], 10, 64)
		if err != nil || clock < 1 {
			return r.fail(inHeader, "a clock tick in picoseconds", quote(fields[7]))
		}
		h.clock = dag.Time(clock)
	}
	return nil
}
