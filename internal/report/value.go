package report

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// value is a value of a JSON document and the JSON pointer to it.
type value struct {
	of      any // as encoding/json decodes it with UseNumber
	pointer string
	known   bool // the document has it
}

// get returns the member of an object at the end of a path of names.
func (v value) get(names ...string) value {
	for _, name := range names {
		object, _ := v.of.(map[string]any)
		member, known := object[name]
		v = value{member, v.pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name), known}
	}
	return v
}

// at returns an element of a list.
func (v value) at(i int) value {
	list, _ := v.of.([]any)
	element := value{pointer: v.pointer + "/" + strconv.Itoa(i)}
	if i >= 0 && i < len(list) {
		element.of, element.known = list[i], true
	}
	return element
}

// len returns the number of elements of a list, 0 for other values.
func (v value) len() int {
	list, _ := v.of.([]any)
	return len(list)
}

// all returns the elements of a list.
func (v value) all() []value {
	all := make([]value, v.len())
	for i := range all {
		all[i] = v.at(i)
	}
	return all
}

// number returns a number, 0 for other values.
func (v value) number() float64 {
	n, _ := v.of.(json.Number)
	f, _ := strconv.ParseFloat(string(n), 64) // infinite if out of range
	return math.Max(-math.MaxFloat64, math.Min(f, math.MaxFloat64))
}

// isNumber reports whether the value is a number.
func (v value) isNumber() bool {
	_, is := v.of.(json.Number)
	return is
}

// integer returns a whole number exactly, 0 for other values.
func (v value) integer() *big.Int {
	n, _ := v.of.(json.Number)
	if i, ok := new(big.Int).SetString(string(n), 10); ok {
		return i
	}
	i, _ := big.NewFloat(v.number()).Int(nil)
	return i
}

// text returns a text, "" for other values.
func (v value) text() string {
	s, _ := v.of.(string)
	return s
}

// unit is the unit of numbers.
type unit uint8

const (
	plain   unit = iota // a number
	time                // ps
	size                // bytes
	rate                // bit/s
	percent             // a share of 1
)

// scale is a larger unit and its value.
type scale struct {
	name  string
	value float64
}

var scales = [...][]scale{
	plain:   {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}},
	time:    {{"ps", 1}, {"ns", 1e3}, {"µs", 1e6}, {"ms", 1e9}, {"s", 1e12}},
	size:    {{"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"PB", 1e15}},
	rate:    {{"b/s", 1}, {"kb/s", 1e3}, {"Mb/s", 1e6}, {"Gb/s", 1e9}, {"Tb/s", 1e12}},
	percent: {{"%", 0.01}},
}

// scaleOf returns the unit in which a number is at least 1, if there is one. Plain numbers up to 9999 have no unit.
func (u unit) scaleOf(x float64) scale {
	all, x := scales[u], math.Abs(x)
	best := all[0]
	for _, s := range all[1:] {
		if x >= s.value && (u != plain || x >= 1e4) {
			best = s
		}
	}
	return best
}

// format returns a number with its unit, rounded to four digits.
func (u unit) format(x float64) string {
	s := u.scaleOf(x)
	text := digits(x / s.value)
	if s.name != "" {
		text += "\u00a0" + s.name
	}
	return text
}

// digits returns a number rounded to four digits; whole numbers keep all.
func digits(x float64) string {
	switch abs := math.Abs(x); {
	case x == 0:
		return "0"
	case abs >= 1e15 || abs < 1e-5:
		return strconv.FormatFloat(x, 'e', 3, 64)
	default:
		decimals := max(0, 3-int(math.Floor(math.Log10(abs))))
		text := strconv.FormatFloat(x, 'f', decimals, 64)
		if decimals > 0 {
			text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		}
		return text
	}
}

// names of numbers that are shares of 1, or end so.
var shares = []string{"share", "use", "utilisation", "utilization", "utilisation_until_last_completion", "error",
	"last_after_mean"}

// unitOf returns the unit of numbers with a name in the document.
func unitOf(name string) unit {
	switch {
	case strings.HasSuffix(name, "_ps") || strings.Contains(name, "_ps_"):
		return time
	case name == "bytes" || strings.HasSuffix(name, "_bytes"):
		return size
	case strings.HasSuffix(name, "bits_s"):
		return rate
	}
	for _, share := range shares {
		if name == share || strings.HasSuffix(name, "_"+share) {
			return percent
		}
	}
	return plain
}

// unitOfPath returns the unit of a number with a path of names: that of the last name with a unit.
func unitOfPath(path string) unit {
	names := strings.Split(path, ".")
	for i := len(names) - 1; i >= 0; i-- {
		if u := unitOf(names[i]); u != plain {
			return u
		}
	}
	return plain
}

// shareOf returns the name of the share of a part of a breakdown.
func shareOf(part string) string { return strings.TrimSuffix(part, "_ps") + "_share" }

// heading returns the name of a number or column for people: without its unit.
func heading(name string) string {
	switch name {
	case "exposed_comm_ps":
		return "exposed communication"
	case "exposed_remote_mem_ps":
		return "exposed remote memory"
	case "exposed_local_mem_ps":
		return "exposed local memory"
	case "ecn_marks":
		return "ECN marks"
	case "use":
		return "utilization"
	case "back_use":
		return "utilization in the other direction"
	case "back_bytes":
		return "bytes in the other direction"
	}
	for _, end := range []string{"_ps_per_byte", "_ps", "_bytes", "_bits_s"} {
		if cut, found := strings.CutSuffix(name, end); found && cut != "" {
			name = cut
			break
		}
	}
	return strings.ReplaceAll(name, "_", " ")
}
