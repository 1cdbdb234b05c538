// Package blockio has the shared parts of the block-storage formats: it parses lines and converts records to io
// ops and back.
//
// A record is a read or write of bytes at an address of a unit (a disk, volume or file), issued at a time. It
// becomes one op of kind io: Subkind is the direction, Bytes the size, Peer the unit, Tag the address in bytes,
// Release the time, and Duration the response time if known. The units, ascending, are the ranks. Ops have no
// dependencies; only their times order them.
//
// Records are ordered by time; records of equal time are ordered by rank, then by index. A record in another place
// has the attribute "tie": its place, from 0, among the records of its time.
package blockio

import (
	"fmt"

	"github.com/tracedag/tracedag/formats/format"
)

// SectorSize is the size of a sector in bytes, and of a block unless stated otherwise.
const SectorSize = 512

// BlockSize returns the size of a block and the step of addresses, both in bytes.
func BlockSize(o *format.ReadOptions) (size, step int64, err error) {
	own := optionsOf(o)
	size = own.BlockSize
	switch {
	case size < 0:
		return 0, 0, fmt.Errorf("expected a block of 1 byte or more, found %d", size)
	case size == 0:
		size = SectorSize
	}
	if own.ByteAddress {
		return size, 1, nil
	}
	return size, size, nil
}

// Direction decodes the flags of a request of Linux's block layer ("rwbs"): a read, such as "R" or "RA", or a
// write, such as "WS" or "FWFSM". ok reports that they are one of these, not a discard or flush.
func Direction(flags []byte) (isRead, ok bool) {
	if len(flags) > 1 && flags[0] == 'F' {
		flags = flags[1:]
	}
	if len(flags) == 0 {
		return false, false
	}
	return flags[0] == 'R', flags[0] == 'R' || flags[0] == 'W'
}
