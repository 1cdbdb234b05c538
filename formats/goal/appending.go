// This file appends words and numbers to a buffer faster than append and strconv: it stores each in whole
// registers, and the next append overwrites the surplus bytes.

package goal

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// word is a text of at most 16 bytes.
type word struct {
	text [16]byte
	n    int
}

func newWord(s string) *word {
	w := &word{n: len(s)}
	if copy(w.text[:], s) < len(s) {
		panic("too long")
	}
	return w
}

func appendWord(b []byte, w *word) []byte {
	n := len(b)
	b = slices.Grow(b, len(w.text))[:n+len(w.text)]
	*(*[16]byte)(b[n:]) = w.text
	return b[:n+w.n]
}

// appendDecimal appends a number in decimal.
func appendDecimal(b []byte, v uint64) []byte {
	const most = 99_999_999 // eight digits
	if v > most {
		b = appendDecimal(b, v/(most+1))
		return binary.LittleEndian.AppendUint64(b, eightDigits(v%(most+1))|zeros)
	}
	n := len(b)
	b = slices.Grow(b, 8)[:n+8]
	if v < 10 {
		b[n] = '0' + byte(v)
		return b[:n+1]
	}
	digits := eightDigits(v)
	leading := bits.TrailingZeros64(digits) &^ 7
	binary.LittleEndian.PutUint64(b[n:], (digits|zeros)>>leading)
	return b[:n+8-leading/8]
}

// zeros is eight characters "0".
const zeros = 0x30303030_30303030

// eightDigits returns the decimal digits of a number below 10^8, one per byte, the first in the lowest byte.
func eightDigits(v uint64) uint64 {
	// Split into halves of four digits, quarters of two, and digits. The multiplications divide by 100 and 10,
	// exactly for numbers of this size.
	halves := v/10_000 | v%10_000<<32
	hundreds := halves * 10_486 >> 20 & 0x0000007f_0000007f
	quarters := hundreds | (halves-100*hundreds)<<16
	tens := quarters * 103 >> 10 & 0x000f_000f_000f_000f
	return tens | (quarters-10*tens)<<8
}
