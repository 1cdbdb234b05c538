package disksim

import (
	"testing"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/internal/blockio"
	"github.com/tracedag/tracedag/formats/internal/blockio/blocktest"
)

func TestDiskSim(t *testing.T) {
	const text = "0.000000 1 303567 7 0\n 26.214001\t0 303574 8   1 \n26.2140010000004 5 0 0 1\n"
	blocktest.Check(t, &DiskSim, text, format.ReadOptions{},
		"0: read 0 155429888+4096 @26.214001ms 0s\n1: write 1 155426304+3584 @0s 0s\n2: read 5 0+0 @26.214001ms 0s\n", "",
		"x:3: a time is rounded to picoseconds (1 line in all)\n")
	blocktest.Check(t, &DiskSim, text, format.ReadOptions{Own: &blockio.Options{BlockSize: 1024, MaxRecords: 2}},
		"0: read 0 310859776+8192 @26.214001ms 0s\n1: write 1 310852608+7168 @0s 0s\n", "", "")
	blocktest.Check(t, &DiskSim, text, format.ReadOptions{Own: &blockio.Options{ByteAddress: true, MaxRecords: 2}},
		"0: read 0 303574+4096 @26.214001ms 0s\n1: write 1 303567+3584 @0s 0s\n", "", "")
	if MQSim.Detect([]byte(text)) {
		t.Error("times with a point may be MQSim's")
	}
}

// Whole numbers may be milliseconds as well as nanoseconds.
func TestMQSim(t *testing.T) {
	const text = "11413000 0 657728 16 1\n11565000 1 31244784 64 0\n"
	blocktest.Check(t, &MQSim, text, format.ReadOptions{},
		"0: read 0 336756736+8192 @11.413ms 0s\n1: write 1 15997329408+32768 @11.565ms 0s\n", "", "")
	if !DiskSim.Detect([]byte(text)) {
		t.Error("whole times cannot be DiskSim's")
	}
}

func TestMalformed(t *testing.T) {
	const good = "5.5 0 1 1 1\n"
	for line, want := range map[string]string{
		"x 0 1 1 1":                   `expected a time in milliseconds, found "x"`,
		"-5.5 0 1 1 1":                `expected a time in milliseconds, found "-5.5"`,
		"9223372036.9 0 1 1 1":        `expected a time in milliseconds of at most 106 days, found "9223372036.9"`,
		"5.5,0,1,1,1":                 `expected a blank and another field, found ","`,
		"5.5 -1 1 1 1":                `expected a device number (0..2147483647), found "-1"`,
		"5.5 0 x 1 1":                 `expected a sector (0..18014398509481983), found "x"`,
		"5.5 0 1 x 1":                 `expected a number of sectors (0..18014398509481983), found "x"`,
		"5.5 0 1 1 2":                 `expected 1 for a read or 0 for a write (0..1), found "2"`,
		"5.5 0 1 1":                   `expected a blank and another field, found the end of the line`,
		"5.5 0 1 1 1 1":               `expected the end of the line, found "1"`,
		"5.499999 0 1 1 1":            "expected a time not before the previous record's, 5.5ms (--any-order accepts others), found 5.499999ms",
		"5.5 0 18014398509481983 1 1": "expected bytes at addresses below 2^63, found 512 at 9223372036854775296",
	} {
		blocktest.CheckMalformed(t, &DiskSim, good, line, want)
	}
	const whole = "5 0 1 1 1\n"
	for line, want := range map[string]string{
		"5.5 0 1 1 1":              `expected a blank and another field, found ".5"`,
		"9223372036854776 0 1 1 1": `expected a time in nanoseconds (0..9223372036854775), found "9223372036854776"`,
	} {
		blocktest.CheckMalformed(t, &MQSim, whole, line, want)
	}
}

func FuzzDiskSim(f *testing.F) {
	blocktest.Fuzz(f, &DiskSim, "0.000000 1 303567 7 0\n26.214001 0 303574 8 1\n", "9223372036.8547758 7 18014398509481983 1 0\n")
}

func FuzzMQSim(f *testing.F) {
	blocktest.Fuzz(f, &MQSim, "11413000 0 657728 16 1\n11565000 1 31244784 64 0\n", "9223372036854775 2147483647 0 0 0\n5 0 1 1 1\n")
}
