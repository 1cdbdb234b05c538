package blockio

import (
	"math"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestNumber(t *testing.T) {
	for text, want := range map[string]struct {
		value int64
		odd   bool
		found string // "": it is a number
	}{
		"0":                    {0, false, ""},
		"7,":                   {7, false, ""},
		"00":                   {0, true, ""},
		"007":                  {7, true, ""},
		"9223372036854775807":  {math.MaxInt64, false, ""},
		"09223372036854775807": {math.MaxInt64, true, ""},
		"9223372036854775808":  {0, false, `"9223372036854775808"`},
		"18446744073709551616": {0, false, `"18446744073709551616"`},
		"99999999999999999999": {0, false, `"99999999999999999999"`},
		"-1,2":                 {0, false, `"-1"`},
		"+1":                   {0, false, `"+1"`},
		"x":                    {0, false, `"x"`},
		"":                     {0, false, "the end of the line"},
		",":                    {0, false, `","`},
	} {
		l := NewLine([]byte(text))
		got := l.Number("a number", math.MaxInt64)
		if want.found != "" {
			if !l.failed || l.found != want.found || l.expected != "a number (0..9223372036854775807)" {
				t.Errorf("%q: failed %v, expected %s, found %s; want %s", text, l.failed, l.expected, l.found, want.found)
			}
		} else if l.failed || got != want.value || l.odd != want.odd {
			t.Errorf("%q: %d, odd %v, failed %v; want %+v", text, got, l.odd, l.failed, want)
		}
	}
	l := NewLine([]byte("256"))
	if l.Number("a byte", 255); !l.failed || l.expected != "a byte (0..255)" {
		t.Errorf("256 of 255: failed %v, expected %s", l.failed, l.expected)
	}
}

func TestTime(t *testing.T) {
	for _, test := range []struct {
		text     string
		exp      int
		time     dag.Time
		decimals int
		rounded  bool
		fails    bool
	}{
		{"0.000000", 12, 0, 6, false, false},
		{"0.551706", 12, 551706 * dag.Microsecond, 6, false, false},
		{"12.000000000001", 12, 12*dag.Second + 1, 12, false, false},
		{"1.0000000000010", 12, dag.Second + 1, 13, false, false},
		{"1.0000000000014", 12, dag.Second + 1, 13, true, false},
		{"1.0000000000015", 12, dag.Second + 2, 13, true, false},
		{"1.00000000000149", 12, dag.Second + 1, 14, true, false},
		{"0.9999999999996", 12, dag.Second, 13, true, false},
		{"1.00000000000000000000000000000001", 12, dag.Second, 32, true, false},
		{"9223372.036854775807", 12, dag.MaxTime, 12, false, false},
		{"9223372.036854775808", 12, 0, 0, false, true},
		{"9223373.0", 12, 0, 0, false, true},
		{"99999999999999999999.0", 12, 0, 0, false, true},
		{"5", 12, 5 * dag.Second, -1, false, false},
		{"5.25", 9, 5250 * dag.Microsecond, 2, false, false},
		{"5.1234567891", 9, 5123456789, 10, true, false},
		{"17", 3, 17 * dag.Nanosecond, -1, false, false},
		{"17.0005", 3, 17*dag.Nanosecond + 1, 4, true, false},
		{"17.6", 0, 18, 1, true, false},
		{"5.", 12, 0, 0, false, true},
		{".5", 12, 0, 0, false, true},
		{"-0.5", 12, 0, 0, false, true},
		{"", 12, 0, 0, false, true},
	} {
		l := NewLine([]byte(test.text))
		got, decimals := l.Time("a time", test.exp)
		if l.failed != test.fails || !test.fails && (got != test.time || decimals != test.decimals || l.rounded != test.rounded) {
			t.Errorf("%q: %d ps, %d decimals, rounded %v, failed %v; want %+v", test.text, got, decimals, l.rounded, l.failed,
				test)
		}
	}
}

func TestDirection(t *testing.T) {
	for flags, want := range map[string][2]bool{
		"R": {true, true}, "RA": {true, true}, "W": {false, true}, "WS": {false, true}, "FWFSM": {false, true},
		"D": {false, false}, "DS": {false, false}, "N": {false, false}, "FN": {false, false}, "F": {false, false},
		"FF": {false, false}, "": {false, false}, "FR": {true, true},
	} {
		if isRead, ok := Direction([]byte(flags)); isRead != want[0] || ok != want[1] {
			t.Errorf("%q: read %v, ok %v", flags, isRead, ok)
		}
	}
}

func TestFirstLine(t *testing.T) {
	is := func(l *Line) bool { return string(l.Text()) == "yes" }
	for head, want := range map[string]bool{
		"yes": true, "yes\r\nno": true, "# no\n\n \t\nyes\n": true, "no\nyes\n": false, "": false, "#yes": false,
	} {
		if got := FirstLine([]byte(head), is); got != want {
			t.Errorf("%q: %v", head, got)
		}
	}
}
