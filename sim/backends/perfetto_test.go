package backends_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// drawn is the content of a timeline, in the same form for all formats. Times are in nanoseconds, rounded down.
type drawn struct {
	slices   []drawnSlice
	marks    []string
	counters []string
	about    string
}

type drawnSlice struct {
	track      string // "rank 0/stream 0"
	row        int64  // unique id of the row
	start, end int64
	name, cat  string
	args       string
	flow       string // "s", "t" or "f" and the number of the message; "" without
}

func (d *drawn) sorted() *drawn {
	slices.SortStableFunc(d.slices, func(a, b drawnSlice) int { return strings.Compare(a.key(), b.key()) })
	slices.Sort(d.counters)
	slices.Sort(d.marks)
	return d
}

func (s *drawnSlice) key() string {
	return fmt.Sprintf("%s %020d %020d %s %s %s %s", s.track, s.start, s.end, s.name, s.cat, s.args, s.flow)
}

// field is a field of a protocol buffer.
type field struct {
	number int
	value  uint64
	bytes  []byte
}

// fieldsOf decodes a message by the wire format alone.
func fieldsOf(t *testing.T, b []byte) (all []field) {
	t.Helper()
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 {
			t.Fatalf("bad key %x", b)
		}
		b = b[n:]
		f := field{number: int(key >> 3)}
		switch key & 7 {
		case 0:
			if f.value, n = binary.Uvarint(b); n <= 0 {
				t.Fatalf("bad number %x", b)
			}
			b = b[n:]
		case 1:
			f.value, b = binary.LittleEndian.Uint64(b), b[8:]
		case 2:
			length, n := binary.Uvarint(b)
			if n <= 0 || length > uint64(len(b)-n) {
				t.Fatalf("bad length %x", b)
			}
			f.bytes, b = b[n:n+int(length)], b[n+int(length):]
		default:
			t.Fatalf("wire type %d", key&7)
		}
		all = append(all, f)
	}
	return all
}

// one returns the field of a number, the zero field if there is none.
func one(all []field, number int) (found field) {
	for _, f := range all {
		if f.number == number {
			found = f
		}
	}
	return found
}

// decodePerfetto reads a trace as trace_processor does: packets sorted by time, stably, and a stack of open slices per
// track. The numbers of fields are from protos/perfetto/trace in Perfetto's source.
func decodePerfetto(t *testing.T, content []byte) *drawn {
	t.Helper()
	type row struct {
		name    string
		parent  uint64
		counter bool
	}
	type event struct {
		time   uint64
		fields []field
	}
	rows := map[uint64]row{}
	interned := map[int]map[uint64]string{1: {}, 2: {}, 3: {}}
	var events []event
	cleared := false
	for i, p := range fieldsOf(t, content) {
		packet := fieldsOf(t, p.bytes)
		if p.number != 1 || one(packet, 10).value != 1 {
			t.Fatalf("packet %d: field %d, sequence %d", i, p.number, one(packet, 10).value)
		}
		flags := one(packet, 13).value
		if cleared = cleared || flags&1 != 0; flags&2 != 0 && !cleared {
			t.Fatalf("packet %d needs state before it is cleared", i)
		}
		for _, entry := range fieldsOf(t, one(packet, 12).bytes) {
			e := fieldsOf(t, entry.bytes)
			interned[entry.number][one(e, 1).value] = string(one(e, 2).bytes)
		}
		if d := one(packet, 60).bytes; d != nil {
			f := fieldsOf(t, d)
			id := one(f, 1).value
			if _, again := rows[id]; again {
				t.Errorf("two descriptors of track %d", id)
			}
			rows[id] = row{string(one(f, 2).bytes), one(f, 5).value, one(f, 8).bytes != nil}
		}
		if e := one(packet, 11).bytes; e != nil {
			f := fieldsOf(t, e)
			if _, known := rows[one(f, 11).value]; !known {
				t.Errorf("an event of unknown track %d", one(f, 11).value)
			}
			for _, f := range f {
				if (f.number == 3 || f.number == 10) && interned[map[int]int{3: 1, 10: 2}[f.number]][f.value] == "" {
					t.Errorf("no name %d", f.value)
				}
			}
			events = append(events, event{one(packet, 8).value, f})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(int64(a.time - b.time)) })
	d := &drawn{}
	open := map[uint64][]int{}
	for _, e := range events {
		id := one(e.fields, 11).value
		k := rows[id]
		track := k.name
		if k.parent != 0 {
			track = rows[k.parent].name + "/" + track
		}
		switch one(e.fields, 9).value {
		case 1:
			s := drawnSlice{track: track, row: int64(id), start: int64(e.time), end: -1,
				name: interned[2][one(e.fields, 10).value], cat: interned[1][one(e.fields, 3).value]}
			if name := one(e.fields, 23).bytes; name != nil {
				s.name = string(name)
			}
			for _, f := range e.fields {
				switch f.number {
				case 4:
					a := fieldsOf(t, f.bytes)
					s.args += fmt.Sprintf("%s=%d ", interned[3][one(a, 1).value], int64(one(a, 4).value))
				case 47:
					s.flow = fmt.Sprint("s", f.value-1)
					if s.cat == "message" {
						s.flow = fmt.Sprint("t", f.value-1)
					}
				case 48:
					s.flow = fmt.Sprint("f", f.value-1)
				}
			}
			open[id] = append(open[id], len(d.slices))
			d.slices = append(d.slices, s)
		case 2:
			stack := open[id]
			if len(stack) == 0 {
				t.Fatalf("%s: the end of no slice at %d", track, e.time)
			}
			d.slices[stack[len(stack)-1]].end = int64(e.time)
			open[id] = stack[:len(stack)-1]
		case 3:
			if a := one(e.fields, 4).bytes; a != nil {
				d.about = string(one(fieldsOf(t, a), 9).bytes)
			} else {
				d.marks = append(d.marks, fmt.Sprintf("%d %s", e.time, one(e.fields, 23).bytes))
			}
		case 4:
			if !k.counter {
				t.Errorf("%s is no counter", track)
			}
			d.counters = append(d.counters, fmt.Sprintf("%d %s %d %x", e.time, track, one(e.fields, 30).value,
				one(e.fields, 44).value))
		}
	}
	for id, stack := range open {
		if len(stack) > 0 {
			t.Errorf("%d slices of %s have no end", len(stack), rows[id].name)
		}
	}
	return d
}

// chromeEvent is an event of Chromium's format.
type chromeEvent struct {
	Ph, Name, Cat string
	PID, TID, ID  int64
	TS, Dur       json.Number
	Args          json.RawMessage
}

// picosecondsIn parses microseconds.
func picosecondsIn(t *testing.T, n json.Number) int64 {
	t.Helper()
	whole, rest, _ := strings.Cut(string(n), ".")
	var us, ps int64
	if _, err := fmt.Sscan(whole, &us); err != nil || len(rest) > 6 {
		t.Fatalf("time %q", n)
	}
	if rest != "" {
		if _, err := fmt.Sscan("1"+(rest + "000000")[:6], &ps); err != nil {
			t.Fatalf("time %q", n)
		}
		ps -= 1_000_000
	}
	return us*1_000_000 + ps
}

// decodeChrome reads the JSON form. It also checks that the slices of a row do not overlap, to the picosecond.
func decodeChrome(t *testing.T, content []byte) *drawn {
	t.Helper()
	var file struct {
		TraceEvents []chromeEvent
		OtherData   json.RawMessage
	}
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatalf("%v in %.300s", err, content)
	}
	d := &drawn{about: string(file.OtherData)}
	type row struct{ pid, tid int64 }
	processes, threads := map[int64]string{}, map[row]string{}
	type extent struct{ start, end int64 }
	rows := map[row][]extent{}
	for _, e := range file.TraceEvents {
		at := row{e.PID, e.TID}
		switch e.Ph {
		case "M":
			var args struct{ Name string }
			if err := json.Unmarshal(e.Args, &args); err != nil {
				t.Fatal(err)
			}
			switch e.Name {
			case "process_name":
				processes[e.PID] = args.Name
			case "thread_name":
				if threads[at] != "" {
					t.Errorf("two tracks %v", at)
				}
				threads[at] = args.Name
			}
		case "X":
			start, length := picosecondsIn(t, e.TS), picosecondsIn(t, e.Dur)
			var args strings.Builder
			decoder := json.NewDecoder(strings.NewReader(string(e.Args)))
			for {
				token, err := decoder.Token()
				if err != nil {
					break
				}
				switch v := token.(type) {
				case string:
					args.WriteString(v + "=")
				case float64:
					fmt.Fprintf(&args, "%d ", int64(v))
				}
			}
			d.slices = append(d.slices, drawnSlice{track: processes[e.PID] + "/" + threads[at], row: e.PID<<32 | e.TID,
				start: start / 1000, end: (start + length) / 1000, name: e.Name, cat: e.Cat, args: args.String()})
			rows[at] = append(rows[at], extent{start, start + length})
		case "s", "t", "f":
			last := &d.slices[len(d.slices)-1]
			if last.flow != "" || last.row != e.PID<<32|e.TID || picosecondsIn(t, e.TS)/1000 != last.start {
				t.Errorf("arrow %+v is not that of %+v", e, last)
			}
			last.flow = fmt.Sprint(e.Ph, e.ID)
		case "i":
			d.marks = append(d.marks, fmt.Sprintf("%d %s", picosecondsIn(t, e.TS)/1000, e.Name))
		case "C":
			d.counters = append(d.counters, fmt.Sprintf("%d %s", picosecondsIn(t, e.TS)/1000, e.Name))
		default:
			t.Errorf("event %q", e.Ph)
		}
	}
	for at, all := range rows {
		slices.SortFunc(all, func(a, b extent) int {
			if a.start != b.start {
				return int(a.start - b.start)
			}
			return int(a.end - b.end)
		})
		for i := 1; i < len(all); i++ {
			if all[i].start < all[i-1].end {
				t.Errorf("%s/%s: slices from %d to %d and from %d to %d ps overlap", processes[at.pid], threads[at],
					all[i-1].start, all[i-1].end, all[i].start, all[i].end)
			}
		}
	}
	return d
}
