package parquet

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestCompressor checks that the size of the window does not change the compressed pages, for pages around all sizes of
// the window, in any order, with matches at all distances.
func TestCompressor(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, l := range []struct {
		level  zstd.EncoderLevel
		window int
	}{{zstd.SpeedFastest, 4 << 20}, {zstd.SpeedBetterCompression, 8 << 20}} {
		whole, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(l.level), zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
		if err != nil {
			t.Fatal(err)
		}
		c := newCompressor(l.level, l.window)
		sizes := []int{0, 1, 1 << 10, 1 << 16, firstWindow - 1, firstWindow, firstWindow + 1, 1 << 20, 1<<20 + 1, 300, 1 << 17}
		if !testing.Short() {
			sizes = append(sizes, 2<<20, l.window/2+1, l.window, l.window+1, 5000, l.window+1<<20)
		}
		for _, n := range sizes {
			page := make([]byte, n)
			for i := range page {
				page[i] = byte(rng.IntN(3))
			}
			for at := 0; at < n; { // repeat earlier parts
				size := min(rng.IntN(4000), n-at)
				copy(page[at:at+size], page[rng.IntN(at+1):])
				at += size + rng.IntN(200)
			}
			if !bytes.Equal(c.encode(page, nil), whole.EncodeAll(page, nil)) {
				t.Errorf("level %v, %d bytes, window %d: other bytes than with the whole window", l.level, n, c.window)
			}
		}
	}
}
