package blktracer

import (
	"testing"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio/blocktest"
)

const sample = `Attaching 3 probes...
1,2048,4096,R,1500
0,8,512,WS,1500
0,0,0,FN,1600
0,-1,4096,D,1700
3,16,8192,FWFSM,2000000001
Time limit reached. Exiting...
`

func TestRead(t *testing.T) {
	blocktest.Check(t, &Format, sample, format.ReadOptions{},
		"0: write 0 4096+512 @1.5us 0s {\"tie\":1}\n1: read 1 1048576+4096 @1.5us 0s\n2: write 3 8192+8192 @2.000000001s 0s\n", "",
		"x:4: neither a read nor a write, skipped (2 lines in all)\n")
	blocktest.Check(t, &Format, "0,1,2,RA,0\n0,1,2,R,0.5\nLost 7 events\n", format.ReadOptions{},
		"0: read 0 512+2 @0s 0s\n0: read 0 512+2 @500ms 0s\n", "",
		"x:3: neither a read nor a write, skipped (1 line in all)\n")
}

func TestMalformed(t *testing.T) {
	const good = "0,8,512,WS,1500\n"
	for line, want := range map[string]string{
		"0x,8,512,R,1500":             `expected "," and another field, found "x"`,
		"2147483648,8,512,R,1500":     `expected an application number (0..2147483647), found "2147483648"`,
		"0,-1,512,R,1500":             `expected a sector (0..18014398509481983), found "-1"`,
		"0,8,x,R,1500":                `expected a size in bytes (0..9223372036854775807), found "x"`,
		"0,8,512,R,":                  `expected a time in nanoseconds, found the end of the line`,
		"0,8,512,R,1500x":             `expected the end of the line, found "x"`,
		"0,8,512,R,1499":              "expected a time not before the previous record's, 1.5us (--any-order accepts others), found 1.499us",
		"0,8,512,R,99999999999999999": `expected a time in nanoseconds of at most 106 days, found "99999999999999999"`,
	} {
		blocktest.CheckMalformed(t, &Format, good, line, want)
	}
}

func TestDetect(t *testing.T) {
	for head, want := range map[string]bool{
		"0,1,2,R,5": true, "0,1,2,R,5.0": false, "0,1,2,D,5": false, "x,1,2,R,5": false, "0,1,2,R,x": false,
		"Attaching 1 probe...\n0,1,2,FWS,5": true, "Attaching 1 probe...": false, "": false,
	} {
		if got := Format.Detect([]byte(head)); got != want {
			t.Errorf("%q: %v", head, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	blocktest.Fuzz(f, &Format, sample, "0,1,2,RA,0\n0,1,2,R,0.5\nx\n", "0,18014398509481983,512,W,9223372036854775\n")
}
