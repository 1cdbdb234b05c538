// This file parses the lines of a peer. docs/reference/backends/exec.md defines them.

package exec

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// version is the version of the protocol tracedag-net.
const version = 1

// verb is the first word of a line of a peer.
type verb uint8

const (
	sentVerb verb = iota
	doneVerb
	nowVerb
	statVerb
	endVerb
	readyVerb
	errorVerb
)

var verbs = [...]string{
	sentVerb: "sent", doneVerb: "done", nowVerb: "now", statVerb: "stat", endVerb: "end", readyVerb: "ready",
	errorVerb: "error",
}

// forms are the lines with each verb.
var forms = [...]string{
	sentVerb: "sent ID T", doneVerb: "done ID T", nowVerb: "now T", statVerb: "stat KEY VALUE", endVerb: "end",
	readyVerb: "ready NAME VERSION [FEATURE...]", errorVerb: "error TEXT",
}

// line is a parsed line of a peer.
type line struct {
	verb verb
	id   uint64 // of sent and done
	at   uint64 // of sent, done and now: a time in picoseconds, at most math.MaxInt64
	idle bool   // of now: "now -"
	rest []byte // of the other verbs: the text after the verb; valid until the next line is read
}

// parseLine parses a line without its line end. The error is the form of a valid line.
func parseLine(text []byte) (l line, err error) {
	word, rest, more := bytes.Cut(text, space)
	at := slices.IndexFunc(verbs[:], func(v string) bool { return v == string(word) })
	if at < 0 {
		return l, errSyntax("a line of the protocol")
	}
	l.verb = verb(at)
	bad := errSyntax(strconv.Quote(forms[at]))
	switch l.verb {
	case sentVerb, doneVerb:
		id, at, _ := bytes.Cut(rest, space)
		var idOK, atOK bool
		l.id, idOK = parseNumber(id)
		l.at, atOK = parseNumber(at)
		if !idOK || !atOK {
			return l, bad
		}
	case nowVerb:
		if l.idle = string(rest) == "-"; l.idle {
			return l, nil
		}
		var ok bool
		if l.at, ok = parseNumber(rest); !ok {
			return l, bad
		}
	case endVerb:
		if more {
			return l, bad
		}
	default:
		if l.rest = rest; len(rest) == 0 {
			return l, bad
		}
	}
	return l, nil
}

var space = []byte{' '}

// errSyntax is the form of the expected line.
type errSyntax string

func (e errSyntax) Error() string { return string(e) }

// parseNumber parses a decimal number of digits only, at most math.MaxInt64.
func parseNumber(text []byte) (n uint64, ok bool) {
	if len(text) == 0 || len(text) > maxDigits {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + uint64(c-'0')
	}
	return n, n <= math.MaxInt64
}

// maxDigits is the number of digits of math.MaxInt64.
const maxDigits = 19

// stat is a counter of a peer.
type stat struct{ key, value string }

// parseStat parses the text after "stat ".
func parseStat(rest []byte) (s stat, err error) {
	key, value, _ := bytes.Cut(rest, space)
	if len(key) == 0 || len(value) == 0 {
		return s, errSyntax(strconv.Quote(forms[statVerb]))
	}
	return stat{string(key), string(value)}, nil
}

// readyLine is the answer to hello.
type readyLine struct {
	name, version string
	features      []string
}

// parseReady parses the text after "ready ". Unknown features are ignored.
func parseReady(rest []byte) (r readyLine, err error) {
	fields := bytes.Split(rest, space)
	for _, f := range fields {
		if len(f) == 0 {
			fields = nil // two spaces, or one at the end
			break
		}
	}
	if len(fields) < 2 {
		return r, errSyntax(strconv.Quote(forms[readyVerb]))
	}
	r.name, r.version = string(fields[0]), string(fields[1])
	for _, f := range fields[2:] {
		r.features = append(r.features, string(f))
	}
	return r, nil
}

// quoteLine quotes the first bytes of a line for a message.
func quoteLine(text []byte) string {
	if len(text) <= quoted {
		return strconv.Quote(string(text))
	}
	return fmt.Sprintf("%q... (%d bytes or more)", text[:quoted], len(text))
}

// quoted is the number of bytes of a line that messages quote.
const quoted = 200
