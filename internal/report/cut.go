package report

import (
	"slices"
	"strings"
)

// Lists with more entries than listed are not part of a page, except those with an entry per rank. While the document
// exceeds maxDocument bytes, the page also omits long lists with an entry per rank, then all of these, then shorter
// lists.
const (
	listed      = 1000
	maxDocument = 2_500_000

	drawn   = 2000    // longest list of the section of the network that is part of a page, unless the page is too large
	maxText = 100_000 // bytes of a text; longer ones are null
)

// cut returns a valid JSON document without its long lists and objects, and the names of the members that it omits. An
// omitted list within a list is empty. ranks is the number of ranks.
func cut(document []byte, ranks int) (rest []byte, omitted []string) {
	for _, pass := range []struct{ limit, kept, most int }{
		{listed, ranks, maxDocument}, {listed, ranks, maxDocument / 5}, {listed, -1, 0}, {listed / 10, -1, 0},
		{listed / 100, -1, 0}, {0, -1, 0},
	} {
		if rest, omitted = without(document, pass.limit, pass.kept, pass.most); len(rest) <= maxDocument {
			break
		}
	}
	return rest, omitted
}

// open is a list or object that a scan has entered.
type open struct {
	object  bool
	start   int    // of its text in the output
	member  int    // of its current member in the output, with the comma before it
	name    string // of that member
	entries int
	long    bool // a name is longer than maxText
	empty   bool // the output has no member yet
}

// without returns a document without lists and objects of more than limit entries, except those of kept entries and at
// most most bytes.
func without(document []byte, limit, kept, most int) (out []byte, omitted []string) {
	out = make([]byte, 0, min(len(document), 2*maxDocument))
	var stack []open
	key := false      // the next text is a name
	begin := func() { // before a value or name
		if len(stack) == 0 {
			return
		}
		in := &stack[len(stack)-1]
		if in.object && !key {
			return // after a colon
		}
		in.member = len(out)
		if !in.empty {
			out = append(out, ',')
		}
		in.entries++
		in.empty = false
	}
	for i := 0; i < len(document); {
		switch c := document[i]; c {
		case ' ', '\t', '\n', '\r', ',':
			if c == ',' {
				key = stack[len(stack)-1].object
			}
			i++
		case ':':
			out = append(out, ':')
			key = false
			i++
		case '{', '[':
			begin()
			stack = append(stack, open{object: c == '{', start: len(out), empty: true})
			out = append(out, c)
			key = c == '{'
			i++
		case '}', ']':
			out = append(out, c)
			done := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			key = false
			i++
			within := limit
			if len(stack) > 0 && stack[0].name == "network" && limit == listed {
				within = drawn
			}
			keep := done.entries <= within || done.entries == kept && len(out)-done.start <= most
			if len(stack) == 0 || keep && !done.long {
				break
			}
			in := &stack[len(stack)-1]
			if !in.object {
				out = append(out[:done.start], bracket(done.object)...)
				break
			}
			out = out[:in.member]
			in.empty = out[len(out)-1] == '{'
			if !slices.Contains(omitted, in.name) {
				omitted = append(omitted, in.name)
			}
		case '"':
			end := i + 1
			for document[end] != '"' {
				if document[end] == '\\' {
					end++
				}
				end++
			}
			end++
			begin()
			switch in := &stack[len(stack)-1]; {
			case key && end-i > maxText:
				in.long = true
			case key:
				in.name = string(document[i+1 : end-1])
			}
			if text := document[i:end]; key || len(text) <= maxText {
				out = append(out, text...)
			} else {
				out = append(out, "null"...)
			}
			i = end
		default:
			end := i
			for end < len(document) && !strings.ContainsRune(",]} \t\n\r", rune(document[end])) {
				end++
			}
			begin()
			out = append(out, document[i:end]...)
			i = end
		}
	}
	return out, omitted
}

func bracket(object bool) string {
	if object {
		return "{}"
	}
	return "[]"
}
