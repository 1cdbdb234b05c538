// This file parses the line of a call.

package mpi

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/tracedag/tracedag/dag"
)

// timestamp is a time in a line. Tracers count microseconds since an event of the machine, often since 1970, which
// exceeds 64 bits in picoseconds.
type timestamp struct {
	us int64    // whole microseconds
	ps dag.Time // the rest, 0..999999
}

// fields are the parsed fields of a line. Repeated fields are in line order.
type fields struct {
	start, end       timestamp
	hasStart, hasEnd bool // else the tracer wrote "-"

	numbers [6]int64
	sizes   [2]int64 // sizes of the datatypes in bytes; noSize: not in the line
	arrays  [4][]byte
	address uint64 // "p"
	request uint64
	comm    commKey
	hasComm bool // else the line has a handle without rank and size
}

// noSize is the size of a datatype of which the line has only a handle.
const noSize = math.MinInt64

// commKey identifies a communicator within a process.
type commKey struct {
	handle     uint64
	rank, size int32 // the process's rank in it
}

// parser parses one line.
type parser struct {
	b        []byte // the line without its end
	p        int
	expected string // the first error: what is missing at p; "": none
}

func (s *parser) fail(expected string) {
	if s.expected == "" {
		s.expected = expected
	}
}

// separator skips the ":" before a field.
func (s *parser) separator() {
	if s.p < len(s.b) && s.b[s.p] == ':' {
		s.p++
		return
	}
	s.fail(`":" and another field`)
}

// digits parses a number without sign, decimal or hexadecimal with 0x. The name describes it in errors.
func (s *parser) digits(name string) uint64 {
	b, p := s.b, s.p
	v := uint64(0)
	for p < len(b) {
		d := b[p] - '0'
		if d > 9 {
			break
		}
		v = 10*v + uint64(d)
		p++
	}
	n := p - s.p
	switch {
	case n == 1 && v == 0 && p < len(b) && b[p] == 'x':
		return s.hex(name)
	case n == 0:
		s.fail(name)
	case n > 19:
		exact, err := strconv.ParseUint(string(b[s.p:p]), 10, 64)
		if err != nil {
			s.fail(name + " below 2^64")
		}
		v = exact
	}
	if s.expected == "" {
		s.p = p
	}
	return v
}

// hex parses the part of a hexadecimal number behind the 0.
func (s *parser) hex(name string) uint64 {
	end := s.p + 2
	for end < len(s.b) && isHex(s.b[end]) {
		end++
	}
	v, err := strconv.ParseUint(string(s.b[s.p+2:end]), 16, 64)
	if err != nil {
		s.fail(name)
		return 0
	}
	s.p = end
	return v
}

func isHex(c byte) bool {
	return c-'0' <= 9 || (c|0x20)-'a' <= 5
}

// word parses a number of 64 bits with or without sign: a handle or an address. Some tracers print the address 0
// as (nil).
func (s *parser) word(name string) uint64 {
	if s.p < len(s.b) {
		switch s.b[s.p] {
		case '-':
			s.p++
			return -s.digits(name)
		case '(':
			if bytes.HasPrefix(s.b[s.p:], []byte("(nil)")) {
				s.p += len("(nil)")
				return 0
			}
		}
	}
	return s.digits(name)
}

// number parses a whole number with or without sign.
func (s *parser) number() int64 {
	at := s.p
	negative := at < len(s.b) && s.b[at] == '-'
	v := s.word("a whole number")
	if s.expected == "" && (!negative && v > math.MaxInt64 || negative && -v > math.MaxInt64) {
		s.p = at
		s.fail("a number of 63 bits")
	}
	return int64(v)
}

// time parses a time. given is false for "-".
func (s *parser) time() (m timestamp, given bool) {
	b := s.b
	if s.p < len(b) && b[s.p] == '-' && (s.p+1 == len(b) || b[s.p+1] == ':') {
		s.p++
		return m, false
	}
	at := s.p
	us := s.digits("a time in microseconds")
	if us > math.MaxInt64/4 {
		s.p = at
		s.fail("a time in microseconds")
	}
	m.us = int64(us)
	if s.p < len(b) && b[s.p] == '.' {
		s.p++
		s.fraction(&m)
	}
	return m, true
}

// fraction parses the decimals of a time and rounds them to picoseconds.
func (s *parser) fraction(m *timestamp) {
	unit := dag.Time(100_000)
	roundUp := false
	for s.p < len(s.b) {
		d := s.b[s.p] - '0'
		if d > 9 {
			break
		}
		if unit > 0 {
			m.ps += dag.Time(d) * unit
			if unit /= 10; unit == 0 && s.p+1 < len(s.b) {
				next := s.b[s.p+1]
				roundUp = '5' <= next && next <= '9'
			}
		}
		s.p++
	}
	if roundUp {
		if m.ps++; m.ps == dag.Microsecond {
			m.us, m.ps = m.us+1, 0
		}
	}
}

// skip skips a field.
func (s *parser) skip() {
	for s.p < len(s.b) && s.b[s.p] != ':' {
		s.p++
	}
}

// datatype parses CODE,SIZE,EXTENT and returns the size. liballprof2 writes only a handle.
func (s *parser) datatype() int64 {
	handle := s.word("a datatype")
	if s.p == len(s.b) || s.b[s.p] != ',' {
		return handleSize(handle)
	}
	s.p++
	size := s.number()
	s.skip()
	return size
}

// handleSize returns the size of a datatype if its handle encodes it: predefined types of MPICH have it in bits 8
// to 15.
func handleSize(handle uint64) int64 {
	if handle>>16 == 0x4c00 {
		return int64(handle >> 8 & 0xff)
	}
	return noSize
}

// communicator parses HANDLE,RANK,SIZE. liballprof2 writes only a handle.
func (s *parser) communicator(f *fields) {
	f.comm.handle = s.word("a communicator")
	f.hasComm = s.p < len(s.b) && s.b[s.p] == ','
	if !f.hasComm {
		return
	}
	s.p++
	at := s.p
	rank := s.digits("the rank in a communicator")
	if s.p < len(s.b) && s.b[s.p] == ',' {
		s.p++
	} else {
		s.fail(`"," and the size of the communicator`)
	}
	size := s.digits("the size of a communicator")
	if s.expected == "" && (size > math.MaxInt32 || rank >= size) {
		s.p = at
		s.fail("a rank in a communicator, and its size")
	}
	f.comm.rank, f.comm.size = int32(rank), int32(size)
}

// array finds an array: ADDRESS:N,N,...,N or, from liballprof2, ADDRESS,LENGTH[N;N;...;].
func (s *parser) array() []byte {
	s.word("an address")
	if s.p < len(s.b) && s.b[s.p] == ',' {
		s.skip()
		open := bytes.LastIndexByte(s.b[:s.p], '[')
		if open < 0 || s.b[s.p-1] != ']' {
			s.fail(`an array "[N;N;...]"`)
			return nil
		}
		return s.b[open+1 : s.p-1]
	}
	s.separator()
	at := s.p
	s.skip()
	return s.b[at:s.p]
}

// parse parses a line whose name ends at p.
func (s *parser) parse(c *call, f *fields) {
	s.separator()
	f.start, f.hasStart = s.time()
	numbers, sizes, arrays := 0, 0, 0
	for i := 0; i < len(c.fields) && s.expected == ""; i++ {
		s.separator()
		switch c.fields[i] {
		case 'x':
			s.skip()
		case 'p':
			f.address = s.word("an address")
		case 'q':
			f.request = s.word("an address")
			s.skip() // rest of an array
		case 'n':
			f.numbers[numbers] = s.number()
			numbers++
		case 't':
			f.sizes[sizes] = s.datatype()
			sizes++
		case 'v':
			f.arrays[arrays] = s.array()
			arrays++
		case 'c':
			s.communicator(f)
		}
		if s.p < len(s.b) && s.b[s.p] != ':' {
			s.fail(`":" and another field`)
		}
	}
	if s.expected != "" {
		return
	}
	last := bytes.LastIndexByte(s.b, ':')
	if last < s.p {
		s.fail(`":" and the time of the end`)
		return
	}
	s.p = last + 1
	f.end, f.hasEnd = s.time()
	if s.expected == "" && s.p != len(s.b) {
		s.fail("the end of the line")
	}
}

// sumArray returns the sum of an array, its k-th number, and its length; or an error.
func sumArray(array []byte, k int) (sum, kth int64, n int, err error) {
	s := parser{b: array}
	for s.p < len(array) {
		v := s.number()
		if s.expected != "" {
			return 0, 0, 0, fmt.Errorf("%s", s.expected)
		}
		if v < 0 || sum > math.MaxInt64-v {
			return 0, 0, 0, fmt.Errorf("counts of 0 or more, with a sum of 63 bits")
		}
		sum += v
		if n == k {
			kth = v
		}
		n++
		if s.p < len(array) {
			if c := array[s.p]; c != ',' && c != ';' {
				return 0, 0, 0, fmt.Errorf(`"," between counts`)
			}
			s.p++
		}
	}
	return sum, kth, n, nil
}
