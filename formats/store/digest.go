package store

// The digest of a file: a checksum of each chunk and one of the footer, in the metadata. It covers every byte that
// a reader interprets: the footer by the checksum of the footer, which includes those of the chunks, and page
// headers and page bodies, as stored, by the checksum of their chunk. CRC-32C detects every flipped bit and every
// burst of up to 32 bits.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par"
	"github.com/tracedag/tracedag/internal/parquet"
)

const (
	keyDigest = "tracedag.digest"
	// digestSince is the minor schema version that introduced the digest.
	digestSince = 2

	// digestAlgorithm begins the digest. The checksum of the footer follows, and then, after a space for each row
	// group, the checksums of its chunks.
	digestAlgorithm = "crc32c"
	sumDigits       = 8
	noSum           = "00000000" // in place of the checksum of the footer, while that is computed

	// creator begins the name of the program that wrote a file, if that is this package.
	creator = "tracedag version "

	damaged = "; the file is damaged: restore a copy of it, or write it again from its source"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunkSum returns the checksum of the stored bytes of a chunk.
func chunkSum(chunk []byte) uint32 {
	return crc32.Checksum(chunk, castagnoli)
}

func appendSum(dst []byte, sum uint32) []byte {
	return fmt.Appendf(dst, "%0*x", sumDigits, sum)
}

// footerSum returns the checksum of a footer at an offset of the file, so that one that was moved is detected. The
// checksum itself is in the footer at the given index and counts as noSum.
func footerSum(footer []byte, offset int64, index int) uint32 {
	sum := crc32.Checksum(binary.LittleEndian.AppendUint64(nil, uint64(offset)), castagnoli)
	sum = crc32.Update(sum, castagnoli, footer[:index])
	sum = crc32.Update(sum, castagnoli, []byte(noSum))
	return crc32.Update(sum, castagnoli, footer[index+sumDigits:])
}

// appendFooter appends the end of a file, which begins at an offset of the file. sums has the checksums of the chunks
// as the digest has them.
func appendFooter(dst []byte, offset int64, groups []parquet.RowGroup, keys []parquet.KeyValue, sums string) []byte {
	keys = append(slices.Clip(keys), parquet.KeyValue{Key: keyDigest, Value: digestAlgorithm + " " + noSum + sums})
	start := len(dst)
	dst = parquet.AppendFooter(dst, &parquet.Footer{
		Schema: writtenSchema(), Groups: groups, Keys: keys, SortedBy: colRank,
		CreatedBy: creator + Version,
	})
	footer := dst[start : len(dst)-footerEnd]
	index := keys[len(keys)-1].Offset + len(digestAlgorithm+" ")
	copy(footer[index:], appendSum(nil, footerSum(footer, offset, index)))
	return dst
}

// checkDigest checks the footer at an offset of the file against the digest, if the file has one that applies, and
// sets f.sums to the checksums of the chunks. Another program that rewrites a file may copy the digest with the rest
// of the metadata; the digest applies only if the file names this package as its creator, or none.
func (f *File) checkDigest(m *parquet.Footer, footer []byte, offset int64) error {
	ours := strings.HasPrefix(m.CreatedBy, creator)
	i := slices.IndexFunc(m.Keys, func(k parquet.KeyValue) bool { return k.Key == keyDigest })
	if i < 0 {
		minor, err := checkVersion(keyValues(m.Keys)[keyVersion])
		switch {
		case m.CreatedBy == "" && bytes.Contains(footer, []byte(keyDigest)): // damage can hide several fields
			return f.syntaxError(offset, "a footer with a creator and the key "+keyDigest, "neither"+damaged)
		case !ours:
			f.unverified = writtenBy(m.CreatedBy)
		case err == nil && minor >= digestSince:
			return f.syntaxError(offset, "a footer with the key "+keyDigest, "none"+damaged)
		default:
			f.unverified = "schema 1." + strconv.Itoa(minor) + " has none"
		}
		return nil
	}
	if !ours && m.CreatedBy != "" {
		f.unverified = writtenBy(m.CreatedBy)
		return nil
	}
	parts := strings.Split(m.Keys[i].Value, " ")
	if parts[0] != digestAlgorithm || len(parts) < 2 || len(parts[1]) != sumDigits {
		if minor, err := checkVersion(keyValues(m.Keys)[keyVersion]); err != nil || minor > minorVersion {
			f.unverified = "this version of tracedag cannot check " + strconv.Quote(parts[0])
			return err
		}
		return f.syntaxError(offset, fmt.Sprintf("%s with %s and %d digits", keyDigest, digestAlgorithm, sumDigits),
			strconv.Quote(m.Keys[i].Value[:min(len(m.Keys[i].Value), 32)])+damaged)
	}
	sum := string(appendSum(nil, footerSum(footer, offset, m.Keys[i].Offset+len(digestAlgorithm+" "))))
	if sum != parts[1] {
		return f.syntaxError(offset, "a footer with checksum "+parts[1], sum+damaged)
	}
	if f.sums = parts[2:]; len(f.sums) != len(m.Groups) {
		return f.syntaxError(offset, fmt.Sprintf("%s with checksums of %d row groups", keyDigest, len(m.Groups)),
			fmt.Sprintf("%d%s", len(f.sums), damaged))
	}
	return nil
}

// writtenBy returns why a file has no digest that applies.
func writtenBy(creator string) string {
	if creator == "" {
		return "another program wrote it"
	}
	return "another program wrote it, " + strconv.Quote(creator)
}

// setSums sets the checksums of the chunks of a row group, of which the digest has one for each of the given number
// of leaves.
func (f *File) setSums(g *group, leaves int) error {
	if f.unverified != "" {
		return nil
	}
	text := f.sums[g.number]
	if len(text) != leaves*sumDigits {
		return fmt.Errorf("%s: row group %d: expected %d checksums, found %d digits%s", keyDigest, g.number, leaves,
			len(text), damaged)
	}
	for column, l := range f.leaves {
		if l.Index < 0 {
			continue
		}
		digits := text[l.Index*sumDigits:][:sumDigits]
		sum, err := strconv.ParseUint(digits, 16, 32)
		if err != nil {
			return fmt.Errorf("%s: row group %d: expected %d hexadecimal digits, found %q%s", keyDigest, g.number,
				sumDigits, digits, damaged)
		}
		g.sums[column] = uint32(sum)
	}
	return nil
}

// checkSum checks the stored bytes of a chunk against the digest.
func (f *File) checkSum(g *group, column int, raw []byte) error {
	if f.unverified != "" {
		return nil
	}
	if sum := chunkSum(raw); sum != g.sums[column] {
		return &format.SyntaxError{
			File: f.name, Offset: g.chunks[column].Start(), Class: "column " + columns[column].name,
			Expected: fmt.Sprintf("pages of row group %d with checksum %0*x", g.number, sumDigits, g.sums[column]),
			Found:    fmt.Sprintf("%0*x%s", sumDigits, sum, damaged),
		}
	}
	return nil
}

// Unverified returns why the file has no digest against which its contents are checked, or "" if it has one.
func (f *File) Unverified() string {
	if f.unverified == "" {
		return ""
	}
	return "the store has no digest that would reveal damage (" + f.unverified + "); traceconv adds one"
}

// Digest returns a digest of the ops: the checksums of all chunks, with the metadata that is needed to decode them. It
// is "" if the file has none. Stores with equal ops may have different digests if they were written in other parts.
func (f *File) Digest() string {
	if f.unverified != "" {
		return ""
	}
	var b []byte
	for i := range f.groups {
		g := &f.groups[i]
		b = fmt.Appendf(b, "%d rows of ranks %d to %d\n", g.rows, g.first, g.last)
		for column := range g.chunks {
			if f.leaves[column].Index < 0 {
				continue
			}
			c := &g.chunks[column]
			b = fmt.Appendf(b, "%d %d %d %d %d %d %x\n", column, c.Type, c.Codec, c.Values, c.CompressedSize, c.Size,
				g.sums[column])
		}
	}
	return string(b)
}

// Verify reads all chunks and returns an error unless they have the checksums of the digest.
func (f *File) Verify() error {
	return par.Each(len(f.groups)*numColumns, func(i int) error {
		g, column := &f.groups[i/numColumns], i%numColumns
		if f.leaves[column].Index < 0 {
			return nil
		}
		d := decoders.get()
		defer decoders.put(d)
		return guard(func() error {
			if _, err := f.chunk(d, g, column); err != nil {
				return f.wrap(err)
			}
			return nil
		})
	})
}
