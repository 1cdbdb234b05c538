package chakra

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
)

// messageMaker makes random messages: every kind of attribute, values at the edges, odd names.
type messageMaker struct {
	*rand.Rand
	unknown bool // with fields that the schema does not have, and values that JSON has not
}

var (
	texts   = []string{"", "a", "is_cpu_op", "num_ops", "tensor_size", "é漢😀\n", "x\x00", "0", "5", "12", "tp"}
	numbers = []uint64{0, 1, 2, 5, 127, 128, 1 << 31, math.MaxUint32, 1 << 40, math.MaxInt64, 1 << 63, math.MaxUint64}
)

func (r messageMaker) text() string   { return texts[r.IntN(len(texts))] }
func (r messageMaker) number() uint64 { return numbers[r.IntN(len(numbers))] }

func (r messageMaker) unknownFields() []byte {
	if !r.unknown || r.IntN(8) > 0 {
		return nil
	}
	return [][]byte{{0x98, 0x06, 0x07}, {0x9a, 0x06, 0x03, 'x', 'y', 'z'}, {0xf3, 0x06, 0xf4, 0x06}}[r.IntN(3)]
}

func (r messageMaker) value(k Kind) uint64 {
	v := r.number()
	switch k {
	case FloatVal:
		v = uint64(math.Float32bits(float32(math.Float64frombits(r.Uint64()))))
	case DoubleVal:
		v = r.Uint64()
	}
	switch k {
	case Int32Val, Sint32Val, Sfixed32Val:
		return uint64(int64(int32(v)))
	case Uint32Val, Fixed32Val:
		return uint64(uint32(v))
	case BoolVal:
		return v & 1
	case FloatVal:
		if f := math.Float32frombits(uint32(v)); !r.unknown && f != f {
			return floatNaN
		}
	case DoubleVal:
		if f := math.Float64frombits(v); !r.unknown && f != f {
			return doubleNaN
		}
	}
	return v
}

func (r messageMaker) attr() Attr {
	a := Attr{Name: r.text(), Unknown: r.unknownFields()}
	if r.IntN(20) == 0 {
		a.Doc = r.text()
	}
	if r.IntN(20) == 0 {
		return a
	}
	a.Kind = firstKind + Kind(r.IntN(int(lastKind-firstKind)+1))
	scalar, list := a.Kind.scalar()
	textual := scalar == StringVal || scalar == BytesVal
	text := func() string {
		if scalar == BytesVal {
			return string([]byte{byte(r.IntN(256)), byte(r.IntN(256))}[:r.IntN(3)])
		}
		return r.text()
	}
	switch {
	case list:
		for range r.IntN(4) {
			if textual {
				a.texts = append(a.texts, text())
			} else {
				a.nums = append(a.nums, r.value(scalar))
			}
		}
		a.listUnknown = r.unknownFields()
	case textual:
		a.text = text()
	default:
		a.num = r.value(scalar)
	}
	return a
}

func (r messageMaker) io() *IOInfo {
	if r.IntN(3) > 0 {
		return nil
	}
	return &IOInfo{Values: r.text(), Shapes: r.text(), Types: r.text(), Unknown: r.unknownFields()}
}

// usual returns attributes as simulators expect them, or nearly.
func (r messageMaker) usual(t NodeType) []Attr {
	var attrs []Attr
	for _, u := range usualColumns[t] {
		if r.IntN(8) == 0 {
			continue
		}
		switch u.column {
		case groupColumn:
			if r.IntN(2) == 0 {
				attrs = append(attrs, String(u.name, r.text()))
			}
		case dimsColumn:
			if r.IntN(3) == 0 {
				attrs = append(attrs, Bools(u.name, []bool{true, false, true, true}[:r.IntN(5)]...))
			}
		case rootColumn, priorityColumn:
			if r.IntN(3) == 0 {
				attrs = append(attrs, Int32(u.name, int32(r.number())))
			}
		case collectiveColumn:
			attrs = append(attrs, Int64(u.name, r.Int64N(numCollectives)))
		default:
			kind := []Kind{u.usualKind(&dag.Op{Kind: dag.Calc}), Int64Val, Uint64Val, Int32Val}[r.IntN(4)]
			attrs = append(attrs, Attr{Name: u.name, Kind: kind, num: r.value(kind)})
		}
	}
	if t == CommCollNode && (len(attrs) == 0 || attrs[0].Name != collectiveName) {
		attrs = append([]Attr{Int64(collectiveName, 0)}, attrs...)
	}
	return attrs
}

// file returns a file whose nodes depend on those made before, in random order.
func (r messageMaker) file() File {
	f := File{Metadata: Metadata{Version: r.text(), Unknown: r.unknownFields()}}
	for range r.IntN(3) {
		f.Metadata.Attr = append(f.Metadata.Attr, r.attr())
	}
	id := uint64(r.IntN(2)) * r.number() / 2
	for i := range r.IntN(20) {
		n := Node{ID: id, Name: r.text(), Type: NodeType(r.IntN(int(numNodeTypes))), Inputs: r.io(), Outputs: r.io(),
			Unknown: r.unknownFields()}
		if r.IntN(2) == 0 {
			n.DurationMicros = r.number()
		}
		if r.IntN(4) == 0 {
			n.StartTimeMicros = r.number()
		}
		for range r.IntN(4) {
			if i > 0 && r.IntN(2) == 0 {
				n.DataDeps = append(n.DataDeps, f.Nodes[r.IntN(i)].ID)
			} else if i > 0 {
				n.CtrlDeps = append(n.CtrlDeps, f.Nodes[r.IntN(i)].ID)
			} else if id > 1 {
				n.CtrlDeps = append(n.CtrlDeps, 1) // no such node
			}
		}
		n.Attr = r.usual(n.Type)
		for range r.IntN(3) {
			if a := r.attr(); columnOf(n.Type, []byte(a.Name)) == noColumn {
				n.Attr = append(n.Attr, a)
			}
		}
		f.Nodes = append(f.Nodes, n)
		id++
		if r.IntN(4) == 0 {
			id += uint64(r.IntN(100))
		}
	}
	if r.IntN(2) == 0 {
		r.Shuffle(len(f.Nodes), func(i, j int) { f.Nodes[i], f.Nodes[j] = f.Nodes[j], f.Nodes[i] })
	}
	return f
}

// Whatever messages there are, they come back through the store, and through JSON as far as that has them.
func TestRandomRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		for _, unknown := range []bool{false, true} {
			r := messageMaker{rand.New(rand.NewPCG(seed, 0)), unknown}
			f := r.file()
			content := wire(&f)
			if got := messages(t, content); !reflect.DeepEqual(normal(got), normal(f)) {
				t.Fatalf("seed %d: on the wire\n%+v becomes\n%+v", seed, f, got)
			}
			trace, err := Format.Read([]*format.Input{input("x", content)}, quiet)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			stored := throughStore(t, trace)
			if got := encode(t, &Format, stored)[".0.et"]; !bytes.Equal(got, content) {
				t.Fatalf("seed %d:\n%+v becomes\n%+v", seed, f, messages(t, got))
			}
			text := encode(t, &JSON, stored)[".0.json"]
			fromText, err := JSON.Read([]*format.Input{input("x.json", text)}, quiet)
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, text)
			}
			if got := encode(t, &Format, fromText)[".0.et"]; !unknown && !bytes.Equal(got, content) {
				t.Fatalf("seed %d:\n%+v becomes by JSON\n%+v", seed, f, messages(t, got))
			}
			if got := encode(t, &JSON, fromText)[".0.json"]; !bytes.Equal(got, text) {
				t.Fatalf("seed %d: JSON\n%s becomes\n%s", seed, text, got)
			}
		}
	}
}

// normal returns a file with lists that are nil where they are empty.
func normal(f File) string {
	return fmt.Sprintf("%+v", f.Metadata) + fmt.Sprint(len(f.Nodes)) + func() string {
		p := printer{compact: true}
		for i := range f.Nodes {
			p.node(&f.Nodes[i])
			p.b = fmt.Appendf(p.b, "%x", f.Nodes[i].Unknown)
		}
		return string(p.b)
	}()
}

// maxSeed is the limit of seeds in bytes: small ones are changed and read fast.
const maxSeed = 1500

// FuzzRead checks that accepted input gives a valid trace, and that reading and writing it reproduces the trace.
func FuzzRead(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*.et", "*/testdata/*.et"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			if len(content) < maxSeed {
				f.Add(content, false)
			}
		}
	}
	for seed := range uint64(20) {
		file := messageMaker{rand.New(rand.NewPCG(seed, 1)), true}.file()
		f.Add(wire(&file), true)
	}
	f.Fuzz(func(t *testing.T, content []byte, lenient bool) {
		detect(content)
		checkRead(t, &Format, content, format.ReadOptions{Lenient: lenient, Warn: func(string, ...any) {}})
	})
}

// FuzzReadJSON is FuzzRead of JSON.
func FuzzReadJSON(f *testing.F) {
	names, err := filepath.Glob("testdata/et/*.json")
	if err != nil || len(names) == 0 {
		f.Fatal(err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(content) < maxSeed {
			f.Add(content, false)
		}
	}
	f.Add([]byte(`[{"version":"1"},{"id":1,"type":5,"ctrl_deps":["7"],"attr":[{"name":"x","floatVal":1e3}]}]`), true)
	f.Add([]byte("{}\n{\"id\":1.0}\n{\"id\":\"2e0\",\"type\":null}\n"), true)
	f.Fuzz(func(t *testing.T, content []byte, lenient bool) {
		detectJSON(content)
		checkRead(t, &JSON, content, format.ReadOptions{Lenient: lenient, Warn: func(string, ...any) {}})
	})
}

// checkRead reads a file and checks the result.
func checkRead(t *testing.T, f *format.Format, content []byte, o format.ReadOptions) {
	trace, err := f.Read([]*format.Input{input("x", content)}, o)
	if err != nil {
		return
	}
	checkSound(t, trace)
	first := encode(t, &Format, trace)
	again, err := Format.Read([]*format.Input{input("again", first[".0.et"])}, o)
	if err != nil {
		t.Fatalf("what was written is not read: %v", err)
	}
	if second := encode(t, &Format, again); !bytes.Equal(second[".0.et"], first[".0.et"]) {
		t.Fatalf("written as\n%+v, then as\n%+v", messages(t, first[".0.et"]), messages(t, second[".0.et"]))
	}
	text := encode(t, &JSON, trace)[".0.json"]
	if again, err = JSON.Read([]*format.Input{input("again", text)}, o); err != nil {
		t.Fatalf("%s is not read: %v", text, err)
	}
	if second := encode(t, &JSON, again)[".0.json"]; !bytes.Equal(second, text) {
		t.Fatalf("written as\n%s, then as\n%s", text, second)
	}
}
