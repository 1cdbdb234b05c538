package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/parquet"
)

// groupRows is the number of rows of a row group. The strings of a column always fit a dictionary.
const groupRows = 1 << 15

// maxRows bounds the number of rows of a catalogue that is read. Its size in bytes bounds it, too, because digests do
// not compress.
const maxRows = 1 << 22

// AppendCatalogue appends catalogue.parquet with the rows, which the caller sorted by trace. Equal rows give equal
// bytes.
func AppendCatalogue(b []byte, rows []Row) []byte {
	start := len(b)
	b = append(b, parquet.Magic...)
	footer := parquet.Footer{CreatedBy: "tracedag", Schema: schema()}
	encoder := parquet.NewEncoder()
	for len(rows) > 0 {
		n := groupOf(rows)
		group := parquet.RowGroup{Rows: int64(n)}
		for i := range fields {
			encoder.Reset()
			chunk := encode(encoder, fields[i].of, rows[:n])
			group.Chunks = append(group.Chunks, chunk.Meta.At(int64(len(b)-start)))
			b = append(b, chunk.Data...)
		}
		footer.Groups = append(footer.Groups, group)
		rows = rows[n:]
	}
	return parquet.AppendFooter(b, &footer)
}

// noType is the type of groups in a schema that was read.
const noType parquet.Type = -1

// groupOf returns the number of rows of the first row group: all distinct strings of a column fit a dictionary.
func groupOf(rows []Row) int {
	tags := 0
	for i := range min(len(rows), groupRows) {
		if tags += len(rows[i].Tags); tags > parquet.MaxDictionary && i > 0 {
			return i
		}
	}
	return min(len(rows), groupRows)
}

// schema returns the schema of the catalogue.
func schema() []parquet.Element {
	all := []parquet.Element{{Name: "schema", Children: int32(len(fields)), Converted: parquet.ConvertedNone}}
	for _, f := range fields {
		e := parquet.Element{Name: f.name, Type: parquet.ByteArray, Converted: parquet.ConvertedUTF8}
		switch f.of(new(Row)).(type) {
		case *int64:
			e.Type, e.Converted = parquet.Int64, parquet.ConvertedNone
		case **int64:
			e.Type, e.Converted, e.Repetition = parquet.Int64, parquet.ConvertedNone, parquet.Optional
		case *bool:
			e.Type, e.Converted = parquet.Boolean, parquet.ConvertedNone
		case **string:
			e.Repetition = parquet.Optional
		case *[]string:
			all = append(all,
				parquet.Element{Name: f.name, Type: noType, Children: 1, Converted: parquet.ConvertedList},
				parquet.Element{Name: "list", Type: noType, Repetition: parquet.Repeated, Children: 1,
					Converted: parquet.ConvertedNone})
			e.Name = "element"
		}
		all = append(all, e)
	}
	return all
}

// encode encodes a column.
func encode(e *parquet.Encoder, of func(r *Row) any, rows []Row) (c parquet.EncodedChunk) {
	var ints []int64
	var texts []string
	for i := range rows {
		switch v := of(&rows[i]).(type) {
		case *int64:
			ints = append(ints, *v)
		case *bool:
			bit := int64(0)
			if *v {
				bit = 1
			}
			ints = append(ints, bit)
		case **int64:
			if level(e, *v != nil); *v != nil {
				ints = append(ints, **v)
			}
		case *string:
			texts = append(texts, *v)
		case **string:
			if level(e, *v != nil); *v != nil {
				texts = append(texts, **v)
			}
		case *[]string:
			appendList(e, *v)
			texts = append(texts, *v...)
		}
	}
	switch of(&rows[0]).(type) {
	case *int64, **int64:
		c = e.Integers(parquet.Int64, ints, len(rows), false)
		c.Meta.Nulls = int64(len(rows) - len(ints))
	case *bool:
		c = e.Booleans(ints, len(rows))
	case *[]string:
		c = e.DictionaryTexts(texts, e.Rep.Len())
		c.Meta.Nulls = int64(e.Rep.Len() - len(texts))
	default:
		c = e.DictionaryTexts(texts, len(rows))
		c.Meta.Nulls = int64(len(rows) - len(texts))
	}
	return c
}

// level appends the definition level of a value that may be NULL.
func level(e *parquet.Encoder, present bool) {
	if present {
		e.Def.Append(1)
	} else {
		e.Def.Append(0)
	}
}

// appendList appends the levels of a list.
func appendList(e *parquet.Encoder, list []string) {
	e.Rep.Append(0)
	level(e, len(list) > 0)
	if n := len(list) - 1; n > 0 {
		e.Rep.AppendSame(1, n)
		e.Def.AppendSame(1, n)
	}
}

// ReadCatalogue parses catalogue.parquet. file is its name in errors. Columns may be in any order, and unknown ones are
// ignored; a missing column is an error that names it.
func ReadCatalogue(file string, data []byte) (rows []Row, err error) {
	defer func() {
		if err != nil {
			rows, err = nil, format.InFile(file, err)
		}
	}()
	footer, pages, err := readFooter(data)
	if err != nil {
		return nil, err
	}
	leaves, err := findColumns(footer.Schema)
	if err != nil {
		return nil, err
	}
	decoder := parquet.NewDecoder()
	for i := range footer.Groups {
		g := &footer.Groups[i]
		if limit := min(int64(len(data)), maxRows) - int64(len(rows)); g.Rows < 0 || g.Rows > limit {
			return nil, fmt.Errorf("row group %d: %d rows do not fit into a catalogue of %d bytes", i, g.Rows,
				len(data))
		}
		first := len(rows)
		rows = append(rows, make([]Row, g.Rows)...)
		for k, leaf := range leaves {
			if leaf.Index >= len(g.Chunks) {
				return nil, fmt.Errorf("row group %d: expected a column %s, found none", i, fields[k].name)
			}
			chunk := &g.Chunks[leaf.Index]
			r := columnReader{decoder: decoder, leaf: leaf, of: fields[k].of, rows: rows[first:]}
			if err := r.read(chunk, pages); err != nil {
				return nil, fmt.Errorf("column %s: %w", fields[k].name, err)
			}
		}
	}
	return rows, nil
}

// readFooter returns the footer and the bytes before it.
func readFooter(data []byte) (*parquet.Footer, []byte, error) {
	const ends = 8 // length of the footer and magic
	n := len(data) - ends
	if n < len(parquet.Magic) || string(data[:len(parquet.Magic)]) != parquet.Magic ||
		string(data[n+4:]) != parquet.Magic {
		return nil, nil, errors.New("expected a Parquet file, found something else; the file may be incomplete")
	}
	size := binary.LittleEndian.Uint32(data[n:])
	if int64(size) > int64(n-len(parquet.Magic)) {
		return nil, nil, fmt.Errorf("expected a footer inside %d bytes, found one of %d bytes", len(data), size)
	}
	pages := data[:n-int(size)]
	footer, err := parquet.ReadFooter(data[len(pages):n])
	if err != nil {
		return nil, nil, fmt.Errorf("expected a Parquet footer: %w", err)
	}
	return footer, pages, nil
}

// findColumns returns the leaf of each column of the catalogue.
func findColumns(schema []parquet.Element) ([]parquet.Leaf, error) {
	leaves, found := make([]parquet.Leaf, len(fields)), make([]bool, len(fields))
	if len(schema) == 0 {
		return nil, errors.New("expected a schema, found none")
	}
	written := writtenFields()
	for rest, index := schema[1:], 0; len(rest) > 0; {
		size := parquet.FieldSize(rest)
		if size == 0 {
			return nil, errors.New("expected a whole schema, found a part")
		}
		if k, known := written.index[rest[0].Name]; known {
			if found[k] || !slices.Equal(rest[:size], written.elements[k]) {
				return nil, fmt.Errorf("column %s: expected one of type %s, found another", fields[k].name,
					CatalogueColumns()[k].Type)
			}
			leaf, err := parquet.NewLeaf(rest[:size])
			if err != nil {
				return nil, fmt.Errorf("column %s: %w", fields[k].name, err)
			}
			leaf.Index = index
			leaves[k], found[k] = leaf, true
		}
		for _, e := range rest[:size] {
			if e.Children == 0 {
				index++
			}
		}
		rest = rest[size:]
	}
	if k := slices.Index(found, false); k >= 0 {
		return nil, fmt.Errorf("expected a column %s, found none; publish the set again", fields[k].name)
	}
	return leaves, nil
}

// writtenColumns are the columns as AppendCatalogue writes them.
type writtenColumns struct {
	index    map[string]int
	elements [][]parquet.Element
}

func writtenFields() writtenColumns {
	w := writtenColumns{index: make(map[string]int)}
	for rest := schema()[1:]; len(rest) > 0; {
		size := parquet.FieldSize(rest)
		w.index[rest[0].Name] = len(w.elements)
		w.elements = append(w.elements, rest[:size])
		rest = rest[size:]
	}
	return w
}

// columnReader reads a column of a row group into rows.
type columnReader struct {
	decoder *parquet.Decoder
	leaf    parquet.Leaf
	of      func(r *Row) any
	rows    []Row
	at      int // rows that the pages so far have

	texts []string // the dictionary
	ints  []int64
}

// read reads the chunk among the pages of the file.
func (r *columnReader) read(c *parquet.Chunk, pages []byte) error {
	start, size := c.Start(), c.CompressedSize
	switch {
	case c.Type != r.leaf.Type:
		return fmt.Errorf("expected values of type %v, found %v", r.leaf.Type, c.Type)
	case start < int64(len(parquet.Magic)) || size < 0 || start > int64(len(pages)) || size > int64(len(pages))-start:
		return fmt.Errorf("expected %d bytes of pages at %d, found fewer", size, start)
	case c.Values < int64(len(r.rows)) || c.Values > maxValues:
		return fmt.Errorf("expected at least %d values, found %d", len(r.rows), c.Values)
	}
	if err := r.decoder.Pages(c, pages[start:start+size], r.leaf, r); err != nil {
		return err
	}
	if r.at != len(r.rows) {
		return fmt.Errorf("expected %d rows, found %d", len(r.rows), r.at)
	}
	return nil
}

// maxValues bounds the values of a column of a row group.
const maxValues = 1 << 24

// Dictionary reads the dictionary page.
func (r *columnReader) Dictionary(body []byte, n int) (err error) {
	if r.leaf.Type == parquet.Int64 {
		r.ints, err = parquet.IntegerDictionary[int64](nil, body, n, r.leaf)
		return err
	}
	return parquet.PlainTexts(body, n, func(_ int, s string) error {
		r.texts = append(r.texts, strings.Clone(s))
		return nil
	})
}

// Page reads a data page.
func (r *columnReader) Page(p *parquet.Page) error {
	if r.leaf.MaxRep > 0 {
		return r.lists(p)
	}
	if p.N > len(r.rows)-r.at {
		return fmt.Errorf("expected %d rows, found more", len(r.rows))
	}
	rows := r.rows[r.at : r.at+p.N]
	r.at += p.N
	var present []*Row // rows whose value is not NULL
	if r.leaf.MaxDef == 0 {
		for i := range rows {
			present = append(present, &rows[i])
		}
		return r.values(p, present)
	}
	levels, err := r.decoder.Present(p, r.leaf)
	if err != nil {
		return err
	}
	for i, level := range levels {
		if level == 1 {
			present = append(present, &rows[i])
		}
	}
	return r.values(p, present)
}

// values reads the values of rows that have one.
func (r *columnReader) values(p *parquet.Page, rows []*Row) error {
	switch r.leaf.Type {
	case parquet.Int64:
		values := make([]int64, len(rows))
		if _, err := parquet.Integers(r.decoder, values, p, r.leaf, r.ints); err != nil {
			return err
		}
		for i, v := range values {
			switch at := r.of(rows[i]).(type) {
			case *int64:
				*at = v
			case **int64:
				*at = &v
			}
		}
		return nil
	case parquet.Boolean:
		values := make([]bool, len(rows))
		if err := parquet.Booleans(values, p); err != nil {
			return err
		}
		for i, v := range values {
			*r.of(rows[i]).(*bool) = v
		}
		return nil
	}
	return parquet.Texts(r.decoder, len(rows), p, r.texts, func(i int, s string) error {
		s = r.own(p, s)
		switch at := r.of(rows[i]).(type) {
		case *string:
			*at = s
		case **string:
			*at = &s
		}
		return nil
	})
}

// own returns a string of a page that outlives it.
func (r *columnReader) own(p *parquet.Page, s string) string {
	if p.HasDictionary() {
		return s
	}
	return strings.Clone(s)
}

// lists reads the lists of a page, which begin in it.
func (r *columnReader) lists(p *parquet.Page) error {
	lists, err := r.decoder.Lists(p, r.leaf)
	if err != nil {
		return err
	}
	if lists.Continues || lists.Rows > len(r.rows)-r.at {
		return fmt.Errorf("expected %d lists, found more", len(r.rows))
	}
	rows := r.rows[r.at : r.at+lists.Rows]
	r.at += lists.Rows
	ends := make([]uint32, lists.Rows)
	if !lists.Empty {
		if _, _, err := lists.Ends(ends, -1, 0); err != nil {
			return err
		}
	}
	count := 0
	if len(ends) > 0 {
		count = int(ends[len(ends)-1])
	}
	texts := make([]string, 0, count)
	if count > 0 {
		err = parquet.Texts(r.decoder, count, p, r.texts, func(_ int, s string) error {
			texts = append(texts, r.own(p, s))
			return nil
		})
	}
	first := uint32(0)
	for i, end := range ends {
		if err == nil && end > first {
			*r.of(&rows[i]).(*[]string) = texts[first:end:end]
		}
		first = end
	}
	return err
}
