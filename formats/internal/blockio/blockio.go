// Package blockio holds the shared parts of the formats of block-storage traces: it parses lines, and converts records
// to io ops and back.
//
// A record is a read or write of bytes at an address of a unit (a disk, volume or file), issued at a time. It becomes
// one op of kind io: Subkind is the direction, Bytes the size, Peer the unit, Tag the address in bytes, Release the
// time, and Duration the response time where it is known. Units, ascending, are the ranks. Ops have no dependencies:
// their times are all that orders them.
//
// Records are in the order of their times; records of the same time by rank, then by index. One that is not where that
// puts it has the attribute "tie": its place, from 0, among the records of that time.
package blockio

import (
	"errors"

	"github.com/tracedag/tracedag/formats/format"
)

// SectorSize is the bytes of a sector, and of a block where nothing else is said.
const SectorSize = 512

// BlockSize returns how many bytes a block has, and how many a step of the addresses.
func BlockSize(o *format.ReadOptions) (size, step int64, err error) {
	own := optionsOf(o)
	size = own.BlockSize
	switch {
	case size < 0:
		return 0, 0, errors.New("a block has at least 1 byte")
	case size == 0:
		size = SectorSize
	}
	if own.ByteAddress {
		return size, 1, nil
	}
	return size, size, nil
}

// Direction returns whether the flags of a request of Linux's block layer ("rwbs") are those of a read, such as "R" or
// "RA", or else of a write, such as "WS" or "FWFSM". ok: they are one of these, not a discard or flush.
func Direction(flags []byte) (isRead, ok bool) {
	if len(flags) > 1 && flags[0] == 'F' {
		flags = flags[1:]
	}
	if len(flags) == 0 {
		return false, false
	}
	return flags[0] == 'R', flags[0] == 'R' || flags[0] == 'W'
}
