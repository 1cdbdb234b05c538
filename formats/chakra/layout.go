// This file names the layouts of attributes: which names and kinds the attributes of a node have, and in which order.
// Real traces have a few, and their ops refer to them by name. A name is made of the content, so that it means the same
// in every trace and whatever rank came first.

package chakra

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/tracedag/tracedag/dag/attr"
)

// layout is the types and names of the attributes of a node, in their order.
type layout struct {
	id      string // what ops call it
	typ     NodeType
	slots   []slot
	repeats bool // a name is there twice, so that values cannot be told apart by names
	used    bool // by the attributes of an op
}

type slot struct {
	name string
	kind Kind
}

// layout returns the layout of the node at hand.
func (r *rankReader) layout() *layout {
	b := append(r.key[:0], byte(r.node.typ))
	for i := range r.attrs {
		b = append(b, byte(r.attrs[i].kind))
		b = append(append(b, r.attrs[i].name...), 0xff) // which no text has
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

// storedLayout is a layout as the attributes of a trace have it.
type storedLayout struct {
	Type string      `json:"type"`
	Attr [][2]string `json:"attr"` // name, and kind as JSON has it or ""
}

func (l *layout) stored() storedLayout {
	s := storedLayout{Type: l.typ.String(), Attr: make([][2]string, len(l.slots))}
	for i, slot := range l.slots {
		s.Attr[i] = [2]string{slot.name, kindNames[slot.kind].camel}
	}
	return s
}

// layout returns the layout that was stored, false where it is none.
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

// knowledge is what a trace keeps of its files, beside the ops: the member "chakra" of its attributes.
type knowledge struct {
	Metadata []json.RawMessage `json:"metadata"`        // of the files, each once
	Ranks    []int32           `json:"ranks,omitempty"` // which of them the file of each rank has; none: all the first

	Layouts map[string]storedLayout `json:"layouts,omitempty"`
	attr.ChakraGroups

	places map[string]int32 // of metadata in Metadata
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

// metadataOf returns the metadata of a rank, as far as it is known.
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
			return fmt.Errorf("two layouts of attributes with the name %s: %v and %v", l.id, other, stored)
		}
		if k.Layouts == nil {
			k.Layouts = make(map[string]storedLayout)
		}
		k.Layouts[l.id] = stored
	}
	return nil
}

// text returns the attributes of a trace that has the knowledge.
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
