package storage

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestRate compares times with exact arithmetic.
func TestRate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100000 {
		perSecond := 1 + rng.Int64()>>rng.IntN(63)
		bytes := rng.Int64() >> rng.IntN(63)
		if rng.IntN(8) == 0 {
			perSecond = []int64{6e9, 15e8, 1, 1 << 62}[rng.IntN(4)]
		}
		want := new(big.Int).Mul(big.NewInt(bytes), big.NewInt(1e9))
		want.Add(want, big.NewInt(perSecond-1)).Div(want, big.NewInt(perSecond))
		possible := want.IsInt64() && want.Int64() <= maxNS
		r := newRate(perSecond)
		got, ok := r.time(bytes)
		if ok != possible || ok && got != want.Int64() {
			t.Fatalf("%d bytes at %d B/s: %d, %t, expected %v", bytes, perSecond, got, ok, want)
		}
	}
}
