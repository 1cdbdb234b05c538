package results

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Status is the outcome of a run.
type Status uint8

// Outcomes of runs. Failed and Limited runs have a line with the error instead of a result.
const (
	Done       Status = iota
	Incomplete        // the trace did not run to its end
	Limited           // beyond a limit of the study
	Failed
)

// LimitStatus is the member "status" of the line of a run that exceeded a limit.
const LimitStatus = "limit"

var statuses = [...]string{Done: "done", Incomplete: "incomplete", Limited: LimitStatus, Failed: "failed"}

// failed reports whether a run has an error instead of a result.
func (s Status) failed() bool { return s == Failed || s == Limited }

// Kept is a run of a folder.
type Kept struct {
	Line   []byte // JSON with a line end
	Status Status
	At     time.Time // when its file was written
}

// Error returns the error of a run that failed, "" for others.
func (k *Kept) Error() string {
	if !k.Status.failed() {
		return ""
	}
	var object struct{ Error string }
	if json.Unmarshal(k.Line, &object) != nil {
		return "failed"
	}
	return cmp.Or(object.Error, "failed")
}

// A record is the line of a run and a trailer, a line that shows that the first is whole:
//
//	sha256:DIGEST RUN STATUS
const (
	mark       = "sha256:"
	idDigits   = 16
	trailerMin = len(mark) + 2*sha256.Size + 1 + idDigits + 1
)

// appendRecord appends the record of a run.
func appendRecord(b, line []byte, id string, status Status) []byte {
	sum := sha256.Sum256(line)
	b = append(b, line...)
	b = append(b, mark...)
	b = hex.AppendEncode(b, sum[:])
	return fmt.Appendf(b, " %s %s\n", id, statuses[status])
}

// found is a record in a text.
type found struct {
	id         string
	status     Status
	begin, end int    // of the line
	sum        uint64 // first bytes of the digest
}

// records calls do with each whole record of a text. It skips damaged ones.
func records(text []byte, do func(found)) {
	for at := 0; at < len(text); {
		line := bytes.IndexByte(text[at:], '\n') + 1
		if line == 0 {
			return
		}
		end := at + line
		if r, size := trailerOf(text[at:end], text[end:]); size > 0 {
			r.begin, r.end = at, end
			do(r)
			end += size
		}
		at = end
	}
}

// trailerOf parses the trailer of a line at the beginning of a text. It returns the size 0 if it is not that of the
// line.
func trailerOf(line, text []byte) (r found, size int) {
	size = bytes.IndexByte(text, '\n') + 1
	if size <= trailerMin || string(text[:len(mark)]) != mark {
		return r, 0
	}
	var want [sha256.Size]byte
	rest := text[len(mark):size]
	if _, err := hex.Decode(want[:], rest[:2*len(want)]); err != nil {
		return r, 0
	}
	status := slices.Index(statuses[:], string(text[trailerMin:size-1]))
	id := string(text[trailerMin-1-idDigits : trailerMin-1])
	if rest[2*len(want)] != ' ' || text[trailerMin-1] != ' ' || status < 0 || !isID(id) ||
		want != sha256.Sum256(line) || !slices.Equal(hex.AppendEncode(nil, want[:]), rest[:2*len(want)]) {
		return r, 0
	}
	return found{id: id, status: Status(status), sum: binary.BigEndian.Uint64(want[:])}, size
}

// isID reports whether a text is the identity of a run.
func isID(text string) bool {
	return len(text) == idDigits && strings.Trim(text, "0123456789abcdef") == ""
}
