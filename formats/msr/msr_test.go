package msr

import (
	"strings"
	"testing"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
	"github.com/tracedag/tracedag/formats/internal/blockio/blocktest"
)

const sample = "128166372003061629,hm,0,Read,383496192,32768,413\n" +
	"128166372003061629,hm,1,Write,7014609920,24576,0\n" +
	"128166372013061630,web,0,write,0,0,92233720368547\n" +
	"128166372013061630,hm,0,READ,1,1,1\n"

func TestRead(t *testing.T) {
	blocktest.Check(t, &Format, sample, format.ReadOptions{},
		"0: read 0 383496192+32768 @0s 41.3us\n"+
			"0: read 0 1+1 @1.0000001s 100ns {\"tie\":1}\n"+
			"1: write 1 7014609920+24576 @0s 0s\n"+
			"2: write 2 0+0 @1.0000001s 9223372.0368547s\n",
		`{"msr":{"start":128166372003061629,"units":["hm.0","hm.1","web.0"]}}`, "")
}

// A record before the first, where that is accepted, becomes time 0.
func TestAnyOrder(t *testing.T) {
	text := strings.Split(sample, "\n")
	blocktest.Check(t, &Format, text[2]+"\n"+text[0]+"\n", format.ReadOptions{Own: &blockio.Options{AnyOrder: true}},
		"0: write 0 0+0 @1.0000001s 9223372.0368547s\n1: read 1 383496192+32768 @0s 41.3us\n",
		`{"msr":{"start":128166372003061629,"units":["web.0","hm.0"]}}`,
		"x: the time of record 2 is before the previous record's; the records are sorted by time (1 in all)\n")
}

func TestMalformed(t *testing.T) {
	for line, want := range map[string]string{
		"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime": `expected a time in units of 100 ns (0..9223372036854775807), found "Timestamp"`,
		"128166372013061630,,0,Read,0,0,0":                            `expected a host name, found ","`,
		"128166372013061630,hm,x,Read,0,0,0":                          `expected a disk number (0..2147483647), found "x"`,
		"128166372013061630,hm,0,Trim,0,0,0":                          `expected Read or Write, found "Trim"`,
		"128166372013061630,hm,0,Read,-1,0,0":                         `expected an offset in bytes (0..9223372036854775807), found "-1"`,
		"128166372013061630,hm,0,Read,0,-1,0":                         `expected a size in bytes (0..9223372036854775807), found "-1"`,
		"128166372013061630,hm,0,Read,0,0,-1":                         `expected a response time in units of 100 ns (0..92233720368547), found "-1"`,
		"128166372013061630,hm,0,Read,0,0":                            `expected "," and another field, found the end of the line`,
		"128166372013061630,hm,0,Read,0,0,0,0":                        `expected the end of the line, found ","`,
		"128166372003061628,hm,0,Read,0,0,0":                          "expected a time not before the previous record's, 1.0000001s (--any-order accepts others), found -100ns",
		"0,hm,0,Read,0,0,0":                                           "expected a time within 106 days of the first, found 0",
		"228166372003061628,hm,0,Read,0,0,0":                          "expected a time within 106 days of the first, found 228166372003061628",
	} {
		blocktest.CheckMalformed(t, &Format, sample, line, want)
	}
}

func FuzzRead(f *testing.F) {
	blocktest.Fuzz(f, &Format, sample, "9223372036854775807,a,0,Read,0,0,0\n0,a,0,Write,9223372036854775807,1,0\n", "x\n"+sample)
}
