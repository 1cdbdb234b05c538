package tables

import (
	"io"

	"github.com/tracedag/tracedag/internal/parquet"
)

// groupRows is the number of rows of a row group. A column of texts always fits a dictionary.
const groupRows = 1 << 15

// parquetWriter writes Parquet, compressed with zstd.
type parquetWriter struct {
	w       io.Writer
	columns []column
	encoder *parquet.Encoder
	buffers []buffer // of the row group, by column
	rows    int      // in the row group
	footer  parquet.Footer
	offset  int64
}

// buffer is a column of a row group without its NULLs.
type buffer struct {
	texts  []string
	ints   []int64
	floats []float64
	at     []bool // by row: it is present
}

// physical are the types in the file.
var physical = [...]parquet.Type{
	textColumn: parquet.ByteArray, int64Column: parquet.Int64, int32Column: parquet.Int32, doubleColumn: parquet.Double,
	boolColumn: parquet.Boolean,
}

func newParquetWriter(w io.Writer, columns []column) *parquetWriter {
	p := &parquetWriter{w: w, columns: columns, buffers: make([]buffer, len(columns))}
	p.footer.CreatedBy = "tracedag"
	root := parquet.Element{Name: "schema", Children: int32(len(columns)), Converted: parquet.ConvertedNone}
	p.footer.Schema = []parquet.Element{root}
	for _, c := range columns {
		e := parquet.Element{Name: c.name, Type: physical[c.kind], Repetition: parquet.Optional,
			Converted: parquet.ConvertedNone}
		if c.kind == textColumn {
			e.Repetition, e.Converted = parquet.Required, parquet.ConvertedUTF8
		}
		p.footer.Schema = append(p.footer.Schema, e)
	}
	return p
}

func (p *parquetWriter) put(b []byte) error {
	n, err := p.w.Write(b)
	p.offset += int64(n)
	return err
}

func (p *parquetWriter) write(row []value) error {
	for i, c := range p.columns {
		v, b := &row[i], &p.buffers[i]
		if c.kind == textColumn {
			b.texts = append(b.texts, v.text)
			continue
		}
		b.at = append(b.at, v.present)
		switch {
		case !v.present:
		case c.kind == doubleColumn:
			b.floats = append(b.floats, v.float)
		default:
			b.ints = append(b.ints, v.int)
		}
	}
	if p.rows++; p.rows == groupRows {
		return p.endGroup()
	}
	return nil
}

func (p *parquetWriter) flush() error { return nil }

// endGroup writes the row group.
func (p *parquetWriter) endGroup() error {
	if p.offset == 0 {
		if err := p.put([]byte(parquet.Magic)); err != nil {
			return err
		}
		p.encoder = parquet.NewEncoder()
	}
	if p.rows == 0 {
		return nil
	}
	group := parquet.RowGroup{Rows: int64(p.rows)}
	for i := range p.columns {
		chunk := p.encode(p.columns[i].kind, &p.buffers[i])
		group.Chunks = append(group.Chunks, chunk.Meta.At(p.offset))
		if err := p.put(chunk.Data); err != nil {
			return err
		}
		b := &p.buffers[i]
		b.texts, b.ints, b.floats, b.at = b.texts[:0], b.ints[:0], b.floats[:0], b.at[:0]
	}
	p.footer.Groups = append(p.footer.Groups, group)
	p.rows = 0
	return nil
}

func (p *parquetWriter) encode(k kind, b *buffer) (c parquet.EncodedChunk) {
	p.encoder.Reset()
	if k == textColumn {
		return p.encoder.DictionaryTexts(b.texts, len(b.texts))
	}
	nulls := int64(0)
	for _, present := range b.at {
		if present {
			p.encoder.Def.Append(1)
		} else {
			p.encoder.Def.Append(0)
			nulls++
		}
	}
	switch k {
	case doubleColumn:
		c = p.encoder.Doubles(b.floats, len(b.at))
	case boolColumn:
		c = p.encoder.Booleans(b.ints, len(b.at))
	default:
		c = p.encoder.Integers(physical[k], b.ints, len(b.at), true)
	}
	c.Meta.Nulls = nulls
	return c
}

func (p *parquetWriter) close() error {
	if err := p.endGroup(); err != nil {
		return err
	}
	return p.put(parquet.AppendFooter(nil, &p.footer))
}
