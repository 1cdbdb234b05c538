package param_test

import (
	"math/big"
	"testing"

	"github.com/tracedag/tracedag/param"
)

func TestParseRange(t *testing.T) {
	for text, want := range map[string]param.Range{
		"1us..2ms:3":     {"1us", "2ms", 3, false},
		"-1..+5:2:log":   {"-1", "+5", 2, true},
		"1..5":           {"1", "5", 0, false},
		"../traces:3":    {},
		"a..b:2":         {},
		"fattree:k=4":    {},
		"1..2:1":         {N: -1},
		"1..2:11":        {N: -1},
		"1..2:3:linear":  {N: -1},
		"1..2:3:":        {N: -1},
		"1..2:999999999": {N: -1},
	} {
		r, is, err := param.ParseRange(text, 10)
		if (err != nil) != (want.N < 0) || err == nil && (r != want || is != (want.From != "")) {
			t.Errorf("%s: %v %t, %v", text, r, is, err)
		}
	}
}

func TestSpaced(t *testing.T) {
	for i, got := range param.Spaced(big.NewRat(1, 1), big.NewRat(2, 1), 4) {
		if want := big.NewRat(int64(3+i), 3); got.Cmp(want) != 0 {
			t.Errorf("value %d is %v, expected %v", i, got, want)
		}
	}
}
