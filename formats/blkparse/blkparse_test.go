package blkparse

import (
	"strings"
	"testing"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
	"github.com/tracedag/tracedag/formats/internal/blockio/blocktest"
)

const sample = `  8,0    1        1     0.000000000  3013  A   R 63 + 8 <- (8,1) 0
  8,0    1        2     0.000000500  3013  Q   R 63 + 8 [dd]
  8,0    1        3     0.000003446  3013  P   N [dd]
  8,0    1        4     0.000004000  3013  D   R 63 + 8 [dd]
  8,0    1        5     0.000004500  3013 UT   N [dd] 1
259,10   3        1     0.000005000     0  D FWFSM 4096 + 16 [kworker/3:1H]
  8,0    1        6     0.000006000  3013  m   N cfq3013 insert_request
  8,0    1        7     0.000007000  3013  D  FN [kworker]
  8,0    1        8     0.000007000  3013  D  DS 18446744073709551615 + 8 [fstrim]
  8,0    1        9     0.000007000  3013  D   R 36 (12 00 00 00 24 00 ..) [smartd]
  8,0    1       10     0.001027448     0  C   R 63 + 8 [0]
CPU0 (sda):
 Reads Queued:           1,        4KiB	 Writes Queued:           0,        0KiB

Total (sda):
Throughput (R/W): 4,000KiB/s / 0KiB/s
`

const leftOut = "x:8: neither a read nor a write, skipped (3 lines in all)\n"

func TestRead(t *testing.T) {
	blocktest.Check(t, &Format, sample, format.ReadOptions{},
		"0: read 0 32256+4096 @4us 0s\n1: write 1 2097152+8192 @5us 0s\n",
		`{"blkparse":{"action":"D","units":["8,0","259,10"]}}`, leftOut)
	blocktest.Check(t, &Format, sample, format.ReadOptions{Own: &blockio.Options{MaxRecords: 1}},
		"0: read 0 32256+4096 @4us 0s\n", `{"blkparse":{"action":"D","units":["8,0"]}}`, "")
}

// Without issued requests, those queued count.
func TestQueued(t *testing.T) {
	text := strings.ReplaceAll(sample, " D ", " I ") + "  8,0 1 7 0.1 1 Q W 9 + 1 [x]\n"
	blocktest.Check(t, &Format, text, format.ReadOptions{}, "0: read 0 32256+4096 @500ns 0s\n",
		`{"blkparse":{"action":"Q","units":["8,0"]}}`,
		"x: no request was issued to a device (action D); the queued requests (action Q) are read instead\n")
}

func TestMalformed(t *testing.T) {
	good := sample[:strings.Index(sample, "CPU0")]
	for line, want := range map[string]string{
		"-8,0 1 1 0.1 1 D R 0 + 8 [x]":                   `expected a major device number (0..2147483647), found "-8"`,
		"8 1 1 0.1 1 D R 0 + 8 [x]":                      `expected "," and another field, found " 1"`,
		"8,x 1 1 0.1 1 D R 0 + 8 [x]":                    `expected a minor device number (0..2147483647), found "x"`,
		"8,0 x 1 0.1 1 D R 0 + 8 [x]":                    `expected a CPU number (0..2147483647), found "x"`,
		"8,0 1 x 0.1 1 D R 0 + 8 [x]":                    `expected a sequence number (0..9223372036854775807), found "x"`,
		"8,0 1 1 x 1 D R 0 + 8 [x]":                      `expected a time in seconds, found "x"`,
		"8,0 1 1 0.1 x D R 0 + 8 [x]":                    `expected a process ID (0..9223372036854775807), found "x"`,
		"8,0 1 1 0.1 1":                                  `expected a blank and another field, found the end of the line`,
		"8,0 1 1 0.1 1 D R":                              `expected a blank and another field, found the end of the line`,
		"8,0 1 1 0.1 1 D R -1 + 8 [x]":                   `expected a sector (0..18014398509481983), found "-1"`,
		"8,0 1 1 0.1 1 D R 0 + x [x]":                    `expected a number of sectors (0..18014398509481983), found "x"`,
		"8,0 1 1 0.1 1 D R 18014398509481983 + 8 [x]":    "expected bytes at addresses below 2^63, found 4096 at 9223372036854775296",
		"8,0 1 1 0.000004999 1 D R 0 + 8 [x]":            "expected a time not before the previous record's, 5us (--any-order accepts others), found 4.999us",
		"The trace was recorded on a Monday.":            `expected a major device number (0..2147483647), found "The"`,
		"8,0 1 1 9223372.036854775808 1 D R 0 + 8 [dd]":  `expected a time in seconds of at most 106 days, found "9223372.036854775808"`,
		"  8,0    1       10     0.001027448    -1  C R": `expected a process ID (0..9223372036854775807), found "-1"`,
	} {
		blocktest.CheckMalformed(t, &Format, good, line, want)
	}
}

func FuzzRead(f *testing.F) {
	blocktest.Fuzz(f, &Format, sample, strings.ReplaceAll(sample, " D ", " I "), "8,0 1 1 0 1 D W 18014398509481983 + 1\n")
}
