package platform

import (
	"fmt"
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

// timeUnits are the units of SimGrid, in seconds.
var timeUnits = map[string]float64{"": 1, "w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 1e-3,
	"us": 1e-6, "ns": 1e-9, "ps": 1e-12}

// parseTime parses a latency, by default 0 and in seconds, and returns seconds. The number is rounded before it is
// multiplied by its unit, as in SimGrid: the last bit decides which of two equal limits of a flow holds.
func parseTime(name, text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	n, unit, err := units.CutNumber(text)
	size, known := timeUnits[unit]
	if err != nil || !known {
		return 0, fmt.Errorf("%s: expected a time such as 500ns or 1.5us, found %s", name, short(text))
	}
	number, _ := n.Float64()
	if seconds := number * size; seconds <= maxTime {
		return seconds, nil
	}
	return 0, fmt.Errorf("%s: expected at most 1000s, found %s", name, short(text))
}

// prefixes are those of rates and speeds; an i follows them for powers of 1024.
var prefixes = []string{"", "k", "M", "G", "T", "P", "E", "Z", "Y"}

// parseRate parses a bandwidth, by default in bytes per second. It rounds as parseTime does.
func parseRate(name, text string) (float64, error) {
	n, unit, err := units.CutNumber(text)
	prefix, isBytes := strings.CutSuffix(unit, "Bps")
	isBits := false
	if !isBytes {
		prefix, isBits = strings.CutSuffix(unit, "bps")
	}
	size, base := 1.0, 1000.0
	short0, binary := strings.CutSuffix(prefix, "i")
	if binary {
		base, prefix = 1024, strings.Replace(short0, "K", "k", 1)
	}
	power := slices.Index(prefixes, prefix)
	if err != nil || power < 0 || binary && power == 0 || !isBytes && !isBits && unit != "" {
		return 0, fmt.Errorf("%s: expected a bandwidth such as 12.5GBps or 100Gbps, found %s", name, short(text))
	}
	for range power {
		size *= base
	}
	if isBits {
		size /= 8
	}
	number, _ := n.Float64()
	rate := number * size
	if rate < 1 || rate > maxRate {
		return 0, fmt.Errorf("%s: expected 1 to 1e18 bytes per second, found %s", name, short(text))
	}
	return rate, nil
}

// speedPrefixes are the long forms of prefixes.
var speedPrefixes = []string{"", "kilo", "mega", "giga", "tera", "peta", "exa", "zetta", "yotta"}

// parseSpeeds parses a list of speeds, such as 1Gf or 100Mf,50Mf, and returns operations per second.
func parseSpeeds(name, text string) (speeds []float64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, unit, err := units.CutNumber(strings.TrimSpace(part))
		prefix, isShort := strings.CutSuffix(unit, "f")
		power := slices.Index(prefixes, prefix)
		if long, is := strings.CutSuffix(unit, "flops"); is {
			isShort, power = true, slices.Index(speedPrefixes, long)
		}
		if unit == "" {
			isShort, power = true, 0
		}
		if err != nil || !isShort || power < 0 {
			return nil, fmt.Errorf("%s: expected a speed such as 1Gf, found %s", name, short(part))
		}
		speed, _ := n.Float64()
		for range power {
			speed *= 1000
		}
		speeds = append(speeds, speed)
	}
	return speeds, nil
}

// short quotes a text of a file and shortens it for an error.
func short(s string) string {
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return strconv.Quote(s)
}
