package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/units"
)

func TestQuantityFlags(t *testing.T) {
	var latency dag.Time
	var message int64
	var bandwidth units.Rate
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	TimeVar(flags, &latency, "L", 2500*dag.Nanosecond, dag.Nanosecond, "latency")
	SizeVar(flags, &message, "size", 64<<10, "message size")
	RateVar(flags, &bandwidth, "G", units.Rate{Num: 40, Den: 1}, "ns/B", "bandwidth")
	usages := flags.FlagUsages()
	for _, want := range []string{"--L time", "(default 2.5us)", "--size size", "(default 64KiB)", "(default 25GB/s)"} {
		if !strings.Contains(usages, want) {
			t.Errorf("help lacks %q:\n%s", want, usages)
		}
	}
	if err := flags.Parse([]string{"--L", "1000", "--size=1MB", "--G=400Gbps"}); err != nil {
		t.Fatal(err)
	}
	if latency != dag.Microsecond || message != 1e6 || bandwidth != (units.Rate{Num: 20, Den: 1}) {
		t.Errorf("flags were read as %v, %v, %v", latency, message, bandwidth)
	}
	if err := flags.Parse([]string{"--size", "1.5"}); err == nil {
		t.Error("--size 1.5 was accepted")
	}
}
