package attr

import (
	"encoding/json"
	"strconv"
	"strings"
)

// IOAccess is the number of a storage access, from 0 in the order of the trace's records: the member "io" of the
// attributes of the ops that issue and end the access after lowering.
type IOAccess uint32

const ioKey = `"io"`

// Append appends the member to b.
func (a IOAccess) Append(b []byte) []byte {
	return strconv.AppendUint(append(b, ioKey+":"...), uint64(a), 10)
}

// ParseIOAccess returns the number of the access that an op issues or ends; ok is false if it does neither.
func ParseIOAccess(attrs string) (IOAccess, bool) {
	if !strings.Contains(attrs, ioKey) {
		return 0, false
	}
	var known struct {
		IO *IOAccess `json:"io"`
	}
	if json.Unmarshal([]byte(attrs), &known) != nil || known.IO == nil {
		return 0, false
	}
	return *known.IO, true
}

// IORecord is a storage access of the trace: the members "read" or "write", the bytes, and "unit" of the attributes of
// the first op that issues the access after lowering, beside [IOAccess].
type IORecord struct {
	Write bool
	Bytes int64
	Unit  int32
}

// Append appends the members to b.
func (r IORecord) Append(b []byte) []byte {
	kind := `"read":`
	if r.Write {
		kind = `"write":`
	}
	b = strconv.AppendInt(append(b, kind...), r.Bytes, 10)
	return strconv.AppendInt(append(b, `,"unit":`...), int64(r.Unit), 10)
}

// ParseIORecord returns the record of the access that an op issues; ok is false if its attributes have none.
func ParseIORecord(attrs string) (r IORecord, ok bool) {
	if !strings.Contains(attrs, `"unit"`) {
		return r, false
	}
	var known struct{ Read, Write, Unit *int64 }
	if json.Unmarshal([]byte(attrs), &known) != nil || known.Unit == nil ||
		(known.Read == nil) == (known.Write == nil) {
		return r, false
	}
	bytes := known.Read
	if r.Write = known.Write != nil; r.Write {
		bytes = known.Write
	}
	r.Bytes, r.Unit = *bytes, int32(*known.Unit)
	return r, r.Bytes >= 0 && int64(r.Unit) == *known.Unit
}

// Storage is the parameters of a storage system, with its name as "system": the member "storage" of the attributes of a
// trace whose storage accesses were lowered.
type Storage map[string]string

// AddTo returns the attributes of a trace with the member added. It returns the JSON error of malformed attributes.
func (s Storage) AddTo(attrs string) (string, error) {
	members := map[string]json.RawMessage{}
	if attrs != "" {
		if err := json.Unmarshal([]byte(attrs), &members); err != nil {
			return "", err
		}
	}
	if err := set(members, "storage", s); err != nil {
		return "", err
	}
	text, err := json.Marshal(members)
	return string(text), err
}

// HasStorage reports whether the attributes of a trace have the member "storage".
func HasStorage(attrs string) bool {
	var known struct {
		Storage *json.RawMessage `json:"storage"`
	}
	return strings.Contains(attrs, "storage") && json.Unmarshal([]byte(attrs), &known) == nil && known.Storage != nil
}

// RecordTie is the position of an I/O record, from 0, among the records of the same time: the first member, "tie", of
// the attributes of an io op whose position differs from that of dag.Trace.Records.
type RecordTie int

const tieKey = `"tie":`

// Append appends the member to b.
func (t RecordTie) Append(b []byte) []byte {
	return strconv.AppendInt(append(b, tieKey...), int64(t), 10)
}

// HasRecordTie reports whether the attributes of an io op begin with a RecordTie.
func HasRecordTie(attrs string) bool { return strings.HasPrefix(attrs, "{"+tieKey) }

// ParseRecordTie returns the position of a record; ok is false if the attributes of its op do not begin with it.
func ParseRecordTie(attrs string) (RecordTie, bool) {
	rest, ok := strings.CutPrefix(attrs, "{"+tieKey)
	if !ok {
		return 0, false
	}
	end := strings.IndexAny(rest, ",}")
	if end < 0 {
		return 0, false
	}
	place, err := strconv.Atoi(rest[:end])
	return RecordTie(place), err == nil && place >= 0
}
