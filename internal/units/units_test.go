package units

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestParseTime(t *testing.T) {
	for _, c := range []struct {
		text string
		bare dag.Time
		want dag.Time
	}{
		{"0", 0, 0},
		{"0s", 0, 0},
		{"1ps", 0, 1},
		{"3.7us", 0, 3_700_000},
		{"3.7\u00b5s", 0, 3_700_000},
		{"3.7\u03bcs", 0, 3_700_000},
		{"0.1ns", 0, 100},
		{"100ns", 0, 100_000},
		{"5ms", 0, 5_000_000_000},
		{"12ps", 0, 12},
		{"1s", 0, 1_000_000_000_000},
		{"2500", dag.Nanosecond, 2_500_000},
		{"0.5", dag.Nanosecond, 500},
		{"1e3ns", 0, 1_000_000},
		{"1E-3s", 0, 1_000_000_000},
		{"2.500000000000000000ns", 0, 2500},
		{"9223372.036854775807s", 0, dag.MaxTime},
		{"9223372036854775807", dag.Picosecond, dag.MaxTime},
		{"3.7 us", 0, 3_700_000},
		{".5us", 0, 500_000},
		{"5.us", 0, 5_000_000},
	} {
		if got, err := ParseTime(c.text, c.bare); err != nil || got != c.want {
			t.Errorf("ParseTime(%q, %v) = %v, %v; want %v", c.text, c.bare, got, err, c.want)
		}
	}
}

func TestParseTimeErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "expected a number",
		"us":                    "expected a number",
		"-1us":                  "expected a number",
		"+1us":                  "expected a number",
		"1e999s":                "expected a number",
		strings.Repeat("1", 50): "expected a number",
		"12":                    "with unit",
		"1 u s":                 "with unit",
		".us":                   "expected a number",
		"1US":                   "with unit",
		"1m":                    "with unit",
		"1,5us":                 "with unit",
		"0.5ps":                 "a whole number of picoseconds",
		"0.0001ns":              "a whole number of picoseconds",
		"9223372.036854775808s": "at most 9223372036854775807 picoseconds",
		"1e99s":                 "at most",
		"1_000us":               "with unit",
		"0x10us":                "with unit",
	} {
		if got, err := ParseTime(text, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseTime(%q) = %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "4096": 4096, "4096B": 4096, "64KiB": 65536, "1MB": 1_000_000, "1.5MB": 1_500_000, "1.5KiB": 1536,
		"1kB": 1000, "1KB": 1000, "2e9": 2_000_000_000, "0.5GiB": 1 << 29, "1EB": 1e18, "7EiB": 7 << 60,
		"9223372036854775807": 1<<63 - 1, "64 KiB": 65536, ".5MB": 500_000, "2.kB": 2000, "1.5e3kB": 1_500_000,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                    "expected a number",
		"64K":                 "kB (1000)",
		"64k":                 "kB (1000)",
		"64Kb":                "kB (1000)",
		"1.5":                 "a whole number of bytes",
		"0.1KiB":              "a whole number of bytes",
		"8EiB":                "at most",
		"9223372036854775808": "at most",
		"-5":                  "expected a number",
	} {
		if got, err := ParseSize(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseSize(%q) = %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

func TestParseRate(t *testing.T) {
	for _, c := range []struct {
		text string
		bare string
		want Rate
	}{
		{"25GB/s", "", Rate{40, 1}},
		{"400Gbps", "", Rate{20, 1}},
		{"400Gb/s", "", Rate{20, 1}},
		{"400Gbit/s", "", Rate{20, 1}},
		{"1.5TB/s", "", Rate{2, 3}},
		{"800Gbps", "", Rate{10, 1}},
		{"1GiB/s", "", Rate{1e12 >> 12, 1 << 18}},
		{"1B/s", "", Rate{1e12, 1}},
		{"8bps", "", Rate{1e12, 1}},
		{"6ns/B", "", Rate{6000, 1}},
		{"40ps/B", "", Rate{40, 1}},
		{"0.04ns/B", "", Rate{40, 1}},
		{"0.5ps/B", "", Rate{1, 2}},
		{"6", "ns/B", Rate{6000, 1}},
		{"0.018", "ns/B", Rate{18, 1}},
		{"0", "ns/B", Rate{0, 1}},
		{"200", "Gbps", Rate{40, 1}},
		{"25 GB/s", "Gbps", Rate{40, 1}},
	} {
		if got, err := ParseRate(c.text, c.bare); err != nil || got != c.want {
			t.Errorf("ParseRate(%q, %q) = %v, %v; want %v", c.text, c.bare, got, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"":         "expected a number",
		"25":       "expected a rate",
		"25GB":     "expected a rate",
		"25Gb":     "expected a rate",
		"25GBps":   "expected a rate",
		"25Gs":     "expected a rate",
		"25ps":     "expected a rate",
		"0GB/s":    "above 0",
		"6ns":      "expected a rate",
		"1e-40B/s": "less extreme",
	} {
		if got, err := ParseRate(text, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseRate(%q) = %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

func TestQuantitiesPrint(t *testing.T) {
	for size, want := range map[int64]string{
		0: "0B", 1: "1B", 999: "999B", 1000: "1kB", 1024: "1KiB", 1500: "1.5kB", 4096: "4KiB", 65535: "65535B",
		65536: "64KiB", 1_000_000: "1MB", 1 << 20: "1MiB", 123_456_789: "123456789B", 25_000_000: "25MB", -5: "-5B",
	} {
		if got := FormatSize(size); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", size, got, want)
		}
	}
	for rate, want := range map[Rate]string{
		{0, 1}: "0s/B", {40, 1}: "25GB/s", {2, 3}: "1.5TB/s", {6000, 1}: "6ns/B", {1, 2}: "2TB/s", {3, 7}: "3/7ps/B",
		{}: "0s/B",
	} {
		if got := rate.String(); got != want {
			t.Errorf("%#v prints %q, want %q", rate, got, want)
		}
	}
}

// Formatted values parse to the same value.
func TestQuantitiesRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := random.Int64() >> random.IntN(63)
		if got, err := ParseSize(FormatSize(n)); err != nil || got != n {
			t.Fatalf("size %d prints %s, is read as %d, %v", n, FormatSize(n), got, err)
		}
		at := dag.Time(n)
		if got, err := ParseTime(at.String(), 0); err != nil || got != at {
			t.Fatalf("time %d prints %v, is read as %d, %v", n, at, got, err)
		}
		amount := FormatSize(1+random.Int64N(1000)) + []string{"/s", "ps/B", "ns/B"}[random.IntN(3)]
		amount = strings.Replace(strings.Replace(amount, "Bps", "ps", 1), "Bns", "ns", 1)
		rate, err := ParseRate(amount, "")
		if err != nil {
			continue // such as KiB before ps/B
		}
		if got, err := ParseRate(rate.String(), ""); err != nil || got != rate {
			t.Fatalf("rate %s prints %v, is read as %v, %v", amount, rate, got, err)
		}
	}
}

func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"3", "0-7,12", "2147483647", "5-3", "1TB/s", "312TFLOPS", "312e12", "0.5", "1e400GB/s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseNumbers(s); err == nil {
			if again, err := ParseNumbers(n.String()); err != nil || !slices.Equal(again, n) || n.Len() < 1 {
				t.Errorf("numbers %q are %v, which are read as %v, %v", s, n, again, err)
			}
		}
		if v, err := ParseBandwidth(s); err == nil && v < 1 {
			t.Errorf("bandwidth %q is %d", s, v)
		}
		if v, err := ParseFLOPS(s); err == nil && (v < 1 || v > 1e18) {
			t.Errorf("%q is %d operations per second", s, v)
		}
		if v, err := ParseCount(s, 2, 1000); err == nil && (v < 2 || v > 1000) {
			t.Errorf("count %q is %d", s, v)
		}
	})
}

func FuzzQuantities(f *testing.F) {
	for _, s := range []string{"3.7us", "64KiB", "25GB/s", "400Gbps", "1e9", "6ns/B", "1e", "1e+", "0.5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := ParseTime(s, dag.Nanosecond); err == nil {
			if again, err := ParseTime(v.String(), 0); err != nil || again != v || v < 0 {
				t.Errorf("time %q is %d, which is read as %d, %v", s, v, again, err)
			}
		}
		if v, err := ParseSize(s); err == nil {
			if again, err := ParseSize(FormatSize(v)); err != nil || again != v || v < 0 {
				t.Errorf("size %q is %d, which is read as %d, %v", s, v, again, err)
			}
		}
		if v, err := ParseRate(s, "ns/B"); err == nil {
			if v.Num < 0 || v.Den < 1 {
				t.Errorf("rate %q is %d/%d", s, v.Num, v.Den)
			}
			if again, err := ParseRate(v.String(), ""); err != nil || again != v {
				t.Errorf("rate %q is %v, which is read as %v, %v", s, v, again, err)
			}
		}
	})
}

func TestRatePerSecond(t *testing.T) {
	for _, c := range []struct {
		rate       Rate
		bytes      int64
		bytesExact bool
		bits       int64
		bitsExact  bool
	}{
		{Rate{40, 1}, 25e9, true, 200e9, true},
		{Rate{3, 1}, 333_333_333_333, false, 2_666_666_666_666, false},
		{Rate{16e12, 1}, 0, false, 0, false},
		{Rate{2e12, 1}, 0, false, 4, true},
		{Rate{1, math.MaxInt64}, math.MaxInt64, false, math.MaxInt64, false},
		{Rate{0, 1}, math.MaxInt64, false, math.MaxInt64, false},
		{Rate{}, math.MaxInt64, false, math.MaxInt64, false},
	} {
		bytes, bytesExact := c.rate.BytesPerSecond()
		bits, bitsExact := c.rate.BitsPerSecond()
		if bytes != c.bytes || bytesExact != c.bytesExact || bits != c.bits || bitsExact != c.bitsExact {
			t.Errorf("%#v: %d B/s (%t), %d bit/s (%t)", c.rate, bytes, bytesExact, bits, bitsExact)
		}
	}
}

func TestFLOPS(t *testing.T) {
	for text, want := range map[string]int64{
		"312TFLOPS": 312e12, "312e12": 312e12, "312 TFLOPS": 312e12, ".5PFLOPS": 5e14, "1.5": 2, "0.5": 1, "1EFLOPS": 1e18,
		"1.4FLOPS": 1, "0.4": -1, "0": -1, "1.000000001EFLOPS": -1, "312TF": -1, "-1": -1, "": -1, "inf": -1,
	} {
		if got, err := ParseFLOPS(text); (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("ParseFLOPS(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	if got := FormatFLOPS(989_500_000_000_000); got != "989.5TFLOPS" {
		t.Errorf("989.5TFLOPS prints %s", got)
	}
}

func TestCount(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "8": 8, "0": -1, "9": -1, "1e0": -1, "": -1, "-1": -1, "0x1": -1} {
		if got, err := ParseCount(text, 1, 8); (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("ParseCount(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	if _, err := ParseCount("x", 1, 8); err == nil || err.Error() != `expected a whole number from 1 to 8, found "x"` {
		t.Errorf("error %v", err)
	}
}

func TestNumbers(t *testing.T) {
	set, err := ParseNumbers("0-7,12,3..3")
	if err != nil || set.String() != "0-7,12,3" || set.Len() != 10 {
		t.Errorf("%v of %d numbers, %v", set, set.Len(), err)
	}
	if want := []int32{0, 1, 2, 3, 4, 5, 6, 7, 12, 3}; !slices.Equal(set.All(), want) {
		t.Errorf("numbers %v, want %v", set.All(), want)
	}
	for _, text := range []string{"", "1,", "2-1", "-1", "1-", "2147483648", "1..", "2..1", "1...2", "1e3", "+1"} {
		if set, err := ParseNumbers(text); err == nil {
			t.Errorf("%q is read as %v", text, set)
		}
	}
}

func TestUnitErrors(t *testing.T) {
	_, size := ParseSize("1Mib")
	_, time := ParseTime("1", 0)
	_, rate := ParseRate("1GB", "")
	for _, err := range []error{size, time, rate} {
		if !errors.Is(err, ErrUnit) {
			t.Errorf("%v is no ErrUnit", err)
		}
	}
	if _, err := ParseSize("x"); errors.Is(err, ErrUnit) {
		t.Errorf("%v is an ErrUnit", err)
	}
}
