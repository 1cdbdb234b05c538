// This file names the layouts of attributes: the names and kinds of a node's attributes, in order. Real traces
// have a few layouts, and their ops refer to them by name. A name derives from the content, so that it has the
// same meaning in every trace, in any rank order.

package chakra

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/tracedag/tracedag/dag/attr"
)

// layout is the types and names of the attributes of a node, in order.
type layout struct {
	id      string // its name in ops
	typ     NodeType
	slots   []slot
	repeats bool // a name occurs twice, so that names do not identify values
	used    bool // by the attributes of an op
}

type slot struct {
	name string
	kind Kind
}

// layout returns the layout of the current node.
func (r *rankReader) layout() *layout {
	b := append(r.key[:0], byte(r.node.typ))
	for i := range r.attrs {
		b = append(b, byte(r.attrs[i].kind))
		b = append(append(b, r.attrs[i].name...), 0xff) // a byte that no text has
	}
	r.key = b
	if l := r.layouts[string(b)]; l != nil {
		return l
	}
	sum := sha256.Sum256(b)
	l := &layout{id: base64.RawURLEncoding.EncodeToString(sum[:6]), typ: r.node.typ}
	names := make(map[string]bool, len(r.attrs))
	for i := range r.attrs {
		name := string(r.attrs[i].name)
		l.repeats = l.repeats || names[name]
		names[name] = true
		l.slots = append(l.slots, slot{name, r.attrs[i].kind})
	}
	r.layouts[string(b)] = l
	return l
}

// storedLayout is a layout in the attributes of a trace.
type storedLayout struct {
	Type string      `json:"type"`
	Attr [][2]string `json:"attr"` // name, and JSON name of the kind or ""
}

func (l *layout) stored() storedLayout {
	s := storedLayout{Type: l.typ.String(), Attr: make([][2]string, len(l.slots))}
	for i, slot := range l.slots {
		s.Attr[i] = [2]string{slot.name, kindNames[slot.kind].camel}
	}
	return s
}

// layout returns the stored layout. ok is false if it is invalid.
func (s *storedLayout) layout() (l layout, ok bool) {
	if l.typ, ok = typeNamed(s.Type); !ok {
		return l, false
	}
	for _, attr := range s.Attr {
		kind, ok := kindNamed(attr[1])
		if !ok && attr[1] != "" {
			return l, false
		}
		l.slots = append(l.slots, slot{attr[0], kind})
	}
	return l, true
}

// knowledge is the data of a trace's files besides the ops: the member "chakra" of its attributes.
type knowledge struct {
	Metadata []json.RawMessage `json:"metadata"`        // distinct metadata of the files
	Ranks    []int32           `json:"ranks,omitempty"` // index of each rank's metadata; empty: 0 for all

	Layouts map[string]storedLayout `json:"layouts,omitempty"`
	attr.ChakraGroups

	places map[string]int32 // index of metadata in Metadata
}

// addMetadata adds the metadata of the next rank.
func (k *knowledge) addMetadata(m *Metadata) {
	p := printer{compact: true}
	p.metadata(m)
	text := p.b
	fits := len(m.Unknown) == 0
	for i := range m.Attr {
		fits = fits && m.Attr[i].fitsJSON()
	}
	if !fits {
		text = appendBase64([]byte("{"), `"wire":`, m.append(nil))
		text[len(text)-1] = '}'
	}
	at, known := k.places[string(text)]
	if !known {
		if at = int32(len(k.Metadata)); at == 0 {
			k.places = make(map[string]int32)
		}
		k.places[string(text)] = at
		k.Metadata = append(k.Metadata, text)
	}
	k.Ranks = append(k.Ranks, at)
}

// metadataOf returns the metadata of a rank, if it is known.
func (k *knowledge) metadataOf(rank int) (m Metadata, ok bool) {
	at := 0
	if k.Ranks != nil {
		if rank >= len(k.Ranks) {
			return m, false
		}
		at = int(k.Ranks[rank])
	}
	if at < 0 || at >= len(k.Metadata) {
		return m, false
	}
	var wire struct {
		Wire []byte `json:"wire"`
	}
	if json.Unmarshal(k.Metadata[at], &wire) == nil && wire.Wire != nil {
		return m, m.parse(wire.Wire) == nil
	}
	return m, m.parseJSON(k.Metadata[at]) == nil
}

// addLayouts adds the layouts of a rank.
func (k *knowledge) addLayouts(layouts map[string]*layout) error {
	for _, l := range layouts {
		if !l.used {
			continue
		}
		stored := l.stored()
		if other, known := k.Layouts[l.id]; known && fmt.Sprint(other) != fmt.Sprint(stored) {
			return fmt.Errorf("two layouts of attributes have the name %s", l.id)
		}
		if k.Layouts == nil {
			k.Layouts = make(map[string]storedLayout)
		}
		k.Layouts[l.id] = stored
	}
	return nil
}

// text returns the knowledge as the attributes of a trace.
func (k *knowledge) text() (string, error) {
	plain := true
	for _, at := range k.Ranks {
		plain = plain && at == 0
	}
	if plain {
		k.Ranks = nil
	}
	b, err := json.Marshal(map[string]*knowledge{"chakra": k})
	return string(b), err
}
