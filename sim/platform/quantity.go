package platform

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/internal/units"
)

// Limits of quantities.
const (
	maxRate = 1e18 // bytes per second
	maxTime = 1000 // seconds
)

// timeUnits are the units of SimGrid, in picoseconds.
var timeUnits = map[string]int64{"": 1e12, "w": 7 * 86400e12, "d": 86400e12, "h": 3600e12, "m": 60e12, "s": 1e12,
	"ms": 1e9, "us": 1e6, "ns": 1e3, "ps": 1}

// parseTime parses a latency, by default 0 and in seconds, and returns seconds.
func parseTime(name, text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	n, unit, err := units.CutNumber(text)
	size, known := timeUnits[unit]
	if err != nil || !known {
		return 0, fmt.Errorf("%s: expected a time such as 500ns or 1.5us, found %s", name, short(text))
	}
	n.Mul(n, big.NewRat(size, 1e12))
	if seconds, _ := n.Float64(); seconds <= maxTime {
		return seconds, nil
	}
	return 0, fmt.Errorf("%s: expected at most 1000s, found %s", name, short(text))
}

// prefixes are those of rates and speeds; an i follows them for powers of 1024.
var prefixes = []string{"", "k", "M", "G", "T", "P", "E", "Z", "Y"}

// parseRate parses a bandwidth, by default in bytes per second.
func parseRate(name, text string) (float64, error) {
	n, unit, err := units.CutNumber(text)
	prefix, isBytes := strings.CutSuffix(unit, "Bps")
	isBits := false
	if !isBytes {
		prefix, isBits = strings.CutSuffix(unit, "bps")
	}
	base := int64(1000)
	short0, binary := strings.CutSuffix(prefix, "i")
	if binary {
		base, prefix = 1024, strings.Replace(short0, "K", "k", 1)
	}
	power := slices.Index(prefixes, prefix)
	if err != nil || power < 0 || binary && power == 0 || !isBytes && !isBits && unit != "" {
		return 0, fmt.Errorf("%s: expected a bandwidth such as 12.5GBps or 100Gbps, found %s", name, short(text))
	}
	for range power {
		n.Mul(n, big.NewRat(base, 1))
	}
	if isBits {
		n.Quo(n, big.NewRat(8, 1))
	}
	rate, _ := n.Float64()
	if rate < 1 || rate > maxRate {
		return 0, fmt.Errorf("%s: expected 1 to 1e18 bytes per second, found %s", name, short(text))
	}
	return rate, nil
}

// speedPrefixes are the long forms of prefixes.
var speedPrefixes = []string{"", "kilo", "mega", "giga", "tera", "peta", "exa", "zetta", "yotta"}

// checkSpeed returns an error unless a text is a list of speeds, such as 1Gf or 100Mf,50Mf.
func checkSpeed(name, text string) error {
	for part := range strings.SplitSeq(text, ",") {
		_, unit, err := units.CutNumber(strings.TrimSpace(part))
		prefix, isShort := strings.CutSuffix(unit, "f")
		known := unit == "" || isShort && slices.Contains(prefixes, prefix)
		if long, is := strings.CutSuffix(unit, "flops"); is {
			known = slices.Contains(speedPrefixes, long)
		}
		if err != nil || !known {
			return fmt.Errorf("%s: expected a speed such as 1Gf, found %s", name, short(part))
		}
	}
	return nil
}

// short quotes a text of a file and shortens it for an error.
func short(s string) string {
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return strconv.Quote(s)
}
