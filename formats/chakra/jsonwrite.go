// This file writes messages as JSON: protobuf's mapping (https://protobuf.dev/programming-guides/json/), byte for
// byte as Chakra's jsonizer.

package chakra

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// kindNames are the names of the kinds in the schema and in JSON.
var kindNames = [lastKind + 1]struct{ snake, camel string }{
	NoValue:   {"no value", ""},
	DoubleVal: {"double_val", "doubleVal"}, DoubleVal + listOf: {"double_list", "doubleList"},
	FloatVal: {"float_val", "floatVal"}, FloatVal + listOf: {"float_list", "floatList"},
	Int32Val: {"int32_val", "int32Val"}, Int32Val + listOf: {"int32_list", "int32List"},
	Int64Val: {"int64_val", "int64Val"}, Int64Val + listOf: {"int64_list", "int64List"},
	Uint32Val: {"uint32_val", "uint32Val"}, Uint32Val + listOf: {"uint32_list", "uint32List"},
	Uint64Val: {"uint64_val", "uint64Val"}, Uint64Val + listOf: {"uint64_list", "uint64List"},
	Sint32Val: {"sint32_val", "sint32Val"}, Sint32Val + listOf: {"sint32_list", "sint32List"},
	Sint64Val: {"sint64_val", "sint64Val"}, Sint64Val + listOf: {"sint64_list", "sint64List"},
	Fixed32Val: {"fixed32_val", "fixed32Val"}, Fixed32Val + listOf: {"fixed32_list", "fixed32List"},
	Fixed64Val: {"fixed64_val", "fixed64Val"}, Fixed64Val + listOf: {"fixed64_list", "fixed64List"},
	Sfixed32Val: {"sfixed32_val", "sfixed32Val"}, Sfixed32Val + listOf: {"sfixed32_list", "sfixed32List"},
	Sfixed64Val: {"sfixed64_val", "sfixed64Val"}, Sfixed64Val + listOf: {"sfixed64_list", "sfixed64List"},
	BoolVal: {"bool_val", "boolVal"}, BoolVal + listOf: {"bool_list", "boolList"},
	StringVal: {"string_val", "stringVal"}, StringVal + listOf: {"string_list", "stringList"},
	BytesVal: {"bytes_val", "bytesVal"}, BytesVal + listOf: {"bytes_list", "bytesList"},
}

// kindsByName are the kinds by their names in the schema.
var kindsByName = func() map[string]Kind {
	kinds := make(map[string]Kind)
	for k := firstKind; k <= lastKind; k++ {
		kinds[kindNames[k].snake] = k
	}
	return kinds
}()

// kindNamed returns the kind with a name in the schema or in JSON.
func kindNamed(name string) (Kind, bool) {
	k, ok := kindsByName[schemaName(name)]
	return k, ok
}

// printer prints JSON.
type printer struct {
	b       []byte
	depth   int
	empty   bool // the current object or list is empty
	compact bool // on one line, without spaces
}

func (p *printer) open(bracket byte) {
	p.b = append(p.b, bracket)
	p.depth++
	p.empty = true
}

// next begins a member of an object or an element of a list.
func (p *printer) next() {
	if !p.empty {
		p.b = append(p.b, ',')
	}
	p.empty = false
	p.newline()
}

func (p *printer) newline() {
	if p.compact {
		return
	}
	p.b = append(p.b, '\n')
	for range p.depth {
		p.b = append(p.b, "  "...)
	}
}

func (p *printer) close(bracket byte) {
	p.depth--
	if !p.empty {
		p.newline()
	}
	p.b = append(p.b, bracket)
	p.empty = false
}

func (p *printer) key(name string) {
	p.next()
	p.b = append(append(append(p.b, '"'), name...), '"', ':')
	if !p.compact {
		p.b = append(p.b, ' ')
	}
}

// text prints a text member unless it is empty.
func (p *printer) text(name, s string) {
	if s != "" {
		p.key(name)
		p.b = appendString(p.b, s)
	}
}

// number prints a 64-bit member unless it is 0.
func (p *printer) number(name string, v uint64) {
	if v != 0 {
		p.key(name)
		p.id(v)
	}
}

func (p *printer) id(v uint64) {
	p.b = append(strconv.AppendUint(append(p.b, '"'), v, 10), '"')
}

func (p *printer) ids(name string, ids []uint64) {
	if len(ids) == 0 {
		return
	}
	p.key(name)
	p.open('[')
	for _, id := range ids {
		p.next()
		p.id(id)
	}
	p.close(']')
}

func (p *printer) metadata(m *Metadata) {
	p.open('{')
	p.text("version", m.Version)
	p.attrs(m.Attr)
	p.close('}')
}

func (p *printer) node(n *Node) {
	p.open('{')
	p.number("id", n.ID)
	p.text("name", n.Name)
	if n.Type != InvalidNode {
		p.text("type", n.Type.String())
	}
	p.ids("ctrlDeps", n.CtrlDeps)
	p.ids("dataDeps", n.DataDeps)
	p.number("startTimeMicros", n.StartTimeMicros)
	p.number("durationMicros", n.DurationMicros)
	p.io("inputs", n.Inputs)
	p.io("outputs", n.Outputs)
	p.attrs(n.Attr)
	p.close('}')
}

func (p *printer) io(name string, io *IOInfo) {
	if io == nil {
		return
	}
	p.key(name)
	p.open('{')
	p.text("values", io.Values)
	p.text("shapes", io.Shapes)
	p.text("types", io.Types)
	p.close('}')
}

func (p *printer) attrs(attrs []Attr) {
	if len(attrs) == 0 {
		return
	}
	p.key("attr")
	p.open('[')
	for i := range attrs {
		p.next()
		p.attr(&attrs[i])
	}
	p.close(']')
}

func (p *printer) attr(a *Attr) {
	p.open('{')
	p.text("name", a.Name)
	p.text("docString", a.Doc)
	if a.Kind != NoValue {
		p.key(kindNames[a.Kind].camel)
		p.value(a)
	}
	p.close('}')
}

// value prints the value of an attribute.
func (p *printer) value(a *Attr) {
	scalar, list := a.Kind.scalar()
	if !list {
		p.scalar(scalar, a.num, a.text)
		return
	}
	p.open('{')
	if len(a.nums)+len(a.texts) > 0 {
		p.key("values")
		p.open('[')
		for _, v := range a.nums {
			p.next()
			p.scalar(scalar, v, "")
		}
		for _, s := range a.texts {
			p.next()
			p.scalar(scalar, 0, s)
		}
		p.close(']')
	}
	p.close('}')
}

func (p *printer) scalar(kind Kind, num uint64, text string) {
	switch kind {
	case StringVal:
		p.b = appendString(p.b, text)
	case BytesVal:
		p.b = base64.StdEncoding.AppendEncode(append(p.b, '"'), []byte(text))
		p.b = append(p.b, '"')
	case BoolVal:
		p.b = strconv.AppendBool(p.b, num != 0)
	case Int32Val, Sint32Val, Sfixed32Val:
		p.b = strconv.AppendInt(p.b, int64(num), 10)
	case Uint32Val, Fixed32Val:
		p.b = strconv.AppendUint(p.b, num, 10)
	case Int64Val, Sint64Val, Sfixed64Val:
		p.b = append(strconv.AppendInt(append(p.b, '"'), int64(num), 10), '"')
	case Uint64Val, Fixed64Val:
		p.id(num)
	case FloatVal:
		p.b = appendFloat(p.b, shortest(math.Float32frombits(uint32(num))))
	case DoubleVal:
		p.b = appendFloat(p.b, math.Float64frombits(num))
	}
}

// shortest returns the float with the fewest digits, at least six, that identify it, as a double. Python's
// protobuf prints floats so; Go's shortest form has fewer digits for tiny floats.
func shortest(f float32) float64 {
	v := float64(f)
	if v != v || math.IsInf(v, 0) {
		return v
	}
	for digits := 6; ; digits++ {
		d, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
		if float32(d) == f {
			return d
		}
	}
}

// appendFloat appends a double in the form of Python's repr.
func appendFloat(b []byte, v float64) []byte {
	switch {
	case v != v:
		return append(b, `"NaN"`...)
	case v > math.MaxFloat64:
		return append(b, `"Infinity"`...)
	case v < -math.MaxFloat64:
		return append(b, `"-Infinity"`...)
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(b, v, 'e', -1, 64) // two or more digits of exponent, in both languages
	}
	start := len(b)
	b = strconv.AppendFloat(b, v, 'f', -1, 64)
	for _, c := range b[start:] {
		if c == '.' {
			return b
		}
	}
	return append(b, ".0"...)
}

// appendString appends text as JSON in ASCII.
func appendString[T string | []byte](b []byte, s T) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[from:i]...)
		r, size := rune(c), 1
		if c >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)]))
		}
		b = appendEscaped(b, r)
		i += size
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

// appendEscaped appends an escaped character of a JSON string.
func appendEscaped(b []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	case '\b':
		return append(b, `\b`...)
	case '\f':
		return append(b, `\f`...)
	}
	if r > math.MaxUint16 { // a surrogate pair
		r -= 0x10000
		return appendEscaped(appendEscaped(b, 0xd800+r>>10), 0xdc00+r&0x3ff)
	}
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

// appendCompactAttr appends an attribute as JSON on one line.
func appendCompactAttr(b []byte, a *Attr) []byte {
	p := printer{b: b, compact: true}
	p.attr(a)
	return p.b
}

// appendCompactValue appends the value of an attribute as JSON on one line.
func appendCompactValue(b []byte, a *Attr) []byte {
	p := printer{b: b, compact: true}
	p.value(a)
	return p.b
}

// The bits of the only NaN in JSON.
const (
	floatNaN  = 0x7fc00000
	doubleNaN = 0x7ff8 << 48
)

// fitsJSON reports whether JSON can represent an attribute: it has only one NaN and no fields outside the schema.
func (a *Attr) fitsJSON() bool {
	if len(a.Unknown)+len(a.listUnknown) > 0 {
		return false
	}
	scalar, list := a.Kind.scalar()
	if !list {
		return !oddNaN(scalar, a.num)
	}
	return !slices.ContainsFunc(a.nums, func(v uint64) bool { return oddNaN(scalar, v) })
}

// oddNaN reports whether a number is a NaN that JSON cannot represent.
func oddNaN(kind Kind, v uint64) bool {
	switch kind {
	case FloatVal:
		return v&0x7fffffff > 0x7f800000 && v != floatNaN
	case DoubleVal:
		return v&math.MaxInt64 > 0x7ff<<52 && v != doubleNaN
	}
	return false
}
