// This file has the distributions of sizes.

package workload

import (
	"bufio"
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/tracedag/tracedag/dag/gen/openloop"
)

// Rule says how a table of sizes and cumulative probabilities is read.
type Rule uint8

const (
	// Step: there are only the sizes of the table. The smallest whose probability is at least u is drawn.
	Step Rule = iota
	// Linear: between two rows sizes are as likely as each other. They are rounded up, so that the probabilities of
	// whole sizes are those of the table, and sizes of 0 become 1.
	Linear
)

// Rules are all rules.
var Rules = []Rule{Step, Linear}

// String returns the rule's name.
func (r Rule) String() string {
	return [...]string{"step", "linear"}[r]
}

// Curve is a distribution of sizes.
type Curve struct {
	Name string // of the table
	Rule Rule
	Unit int64 // bytes of one in the table, whose sizes may be packets

	sizes []int64 // ascending, in units
	cdf   []float64
	mean  float64 // in units, as drawn
}

// Mean returns the mean size in bytes, as drawn.
func (c *Curve) Mean() float64 {
	return float64(c.Unit) * c.mean
}

// TableMean returns the mean of the table by its rule, in units: what is rounded when sizes are drawn is not in it.
func (c *Curve) TableMean() float64 {
	sum, before := 0.0, 0.0
	for i, p := range c.cdf {
		size := float64(c.sizes[i])
		if c.Rule == Linear && i > 0 {
			size = (size + float64(c.sizes[i-1])) / 2
		}
		sum += float64(size * (p - before))
		before = p
	}
	return sum
}

// drawnMean returns the mean of what is drawn, in units.
func (c *Curve) drawnMean() float64 {
	sum, before := 0.0, 0.0
	for i, p := range c.cdf {
		size := float64(max(1, c.sizes[i]))
		if c.Rule == Linear && i > 0 && c.sizes[i] > c.sizes[i-1] {
			size = (float64(c.sizes[i-1]) + float64(c.sizes[i]) + 1) / 2 // the whole sizes above one up to the other
		}
		sum += float64(size * (p - before))
		before = p
	}
	return sum
}

// Draw returns the size in bytes that uniform bits choose.
func (c *Curve) Draw(uniform uint64) int64 {
	return c.Unit * max(1, c.draw(float64(uniform>>11+1)/(1<<53)))
}

// draw returns the size in units for u in (0, 1].
func (c *Curve) draw(u float64) int64 {
	i := sort.SearchFloat64s(c.cdf, u)
	if c.Rule == Step || i == 0 {
		return c.sizes[i]
	}
	least, most := c.sizes[i-1], c.sizes[i]
	part := (u - c.cdf[i-1]) / (c.cdf[i] - c.cdf[i-1])
	return least + min(int64(math.Ceil(part*float64(most-least))), most-least)
}

// Constant returns the law of a single size in bytes, 1..openloop.MaxBytes.
func Constant(bytes int64) *Curve {
	return &Curve{
		Name: fmt.Sprintf("%d bytes", bytes), Unit: 1, sizes: []int64{bytes}, cdf: []float64{1}, mean: float64(bytes),
	}
}

//go:embed sizes/*.csv
var tables embed.FS

// table is a file of sizes, which README.md there describes.
type table struct {
	name    string
	rule    Rule
	unit    int64
	aliases []string
}

// Bytes of data in a packet, as the simulations have them that count sizes in packets.
const (
	homaPacket    = 1442
	pfabricPacket = 1460
)

var all = []table{
	{"w1_facebook_keyvalue", Step, 1, []string{"w1", "keyvalue"}},
	{"w2_google_search", Step, 1, []string{"w2", "googlesearch"}},
	{"w3_google_all", Step, 1, []string{"w3", "googleall"}},
	{"w4_facebook_hadoop", Step, 1, []string{"w4", "hadoop"}},
	{"w5_dctcp_websearch", Step, 1, []string{"w5", "dctcp"}},
	{"w5_dctcp_websearch_pkts", Step, homaPacket, nil},
	{"facebook_cachefollower_intracluster", Step, 1, []string{"cachefollower"}},
	{"facebook_webserver_intracluster", Step, 1, []string{"webserver"}},
	{"hkust_websearch_dctcp", Linear, 1, []string{"websearch"}},
	{"hkust_datamining_vl2", Linear, 1, []string{"datamining", "vl2"}},
	{"hkust_facebook_memcached", Linear, 1, []string{"memcached"}},
	{"hpcc_websearch", Linear, 1, nil},
	{"hpcc_fbhadoop", Linear, 1, []string{"fbhadoop"}},
	{"hpcc_alistorage2019", Linear, 1, []string{"alistorage"}},
	{"hpcc_googlerpc2008", Linear, 1, []string{"googlerpc"}},
	{"opera_websearch", Linear, 1, nil},
	{"opera_datamining", Linear, 1, nil},
	{"opera_fb_hadoop_interrack", Linear, 1, nil},
	{"pfabric_websearch_pkts", Linear, pfabricPacket, []string{"pfabric_websearch"}},
	{"pfabric_datamining_pkts", Linear, pfabricPacket, []string{"pfabric_datamining"}},
	{"dctcp_websearch_pfabric12_pkts", Linear, pfabricPacket, nil},
	{"homa_module_w1", Step, 1, nil},
	{"homa_module_w2", Step, 1, nil},
	{"homa_module_w3", Step, 1, nil},
	{"homa_module_w4", Step, 1, nil},
	{"homa_module_w5", Step, 1, nil},
	{"homa_fabricated_heavy_head", Step, 1, nil},
	{"homa_fabricated_heavy_middle", Step, 1, nil},
}

// Names returns the names of the tables that come with the package, and short ones of some.
func Names() []string {
	var names []string
	for _, t := range all {
		names = append(names, t.aliases...)
		names = append(names, t.name)
	}
	return names
}

// Named returns the curve of a name, in any case, with - for _ or without the ending .csv, nil where there is none.
func Named(name string) (*Curve, bool) {
	name = strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(name), "-", "_"), ".csv")
	i := slices.IndexFunc(all, func(t table) bool { return t.name == name || slices.Contains(t.aliases, name) })
	if i < 0 {
		return nil, false
	}
	t := all[i]
	file, err := tables.Open("sizes/" + t.name + ".csv")
	if err != nil {
		panic(err) // it is part of the program
	}
	defer file.Close()
	c, err := Read(t.name, file, t.rule)
	if err != nil {
		panic(err)
	}
	c.Unit = t.unit
	return c, true
}

// TableError says where and why a file of sizes cannot be understood.
type TableError struct {
	Line            int64 // from 1
	Expected, Found string
}

func (e *TableError) Error() string {
	return fmt.Sprintf("line %d: expected %s, found %s", e.Line, e.Expected, e.Found)
}

// Limits of files of sizes.
const (
	maxLine = 1 << 12 // bytes
	maxRows = 1 << 20
)

// Read reads a table: lines of a size in bytes and its cumulative probability or percentage, with a comma or blanks
// between them. A line in front that does not begin with a digit names the columns. What is wrong is a TableError.
func Read(name string, file io.Reader, rule Rule) (*Curve, error) {
	c := &Curve{Name: name, Rule: rule, Unit: 1}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	line := int64(0)
	fail := func(expected, found string) error { return &TableError{line, expected, found} }
	for lines.Scan() {
		line++
		fields := strings.FieldsFunc(lines.Text(), func(r rune) bool { return strings.ContainsRune(", \t\r", r) })
		if len(fields) == 0 || fields[0][0] == '#' || line == 1 && (fields[0][0] < '0' || fields[0][0] > '9') {
			continue
		}
		if len(fields) != 2 {
			return nil, fail("a size and a cumulative probability", fmt.Sprintf("%d fields", len(fields)))
		}
		if len(c.sizes) == maxRows {
			return nil, fail(fmt.Sprintf("at most %d sizes", maxRows), "more")
		}
		size, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil || size < 0 || size > openloop.MaxBytes {
			return nil, fail(fmt.Sprintf("a size in bytes, a whole number up to %d", int64(openloop.MaxBytes)),
				strconv.Quote(fields[0]))
		}
		p, err := strconv.ParseFloat(fields[1], 64)
		if err != nil || !(p >= 0 && p <= 100*(1+tolerance)) {
			return nil, fail("a cumulative probability from 0 to 1, or to 100 %", strconv.Quote(fields[1]))
		}
		if k := len(c.sizes) - 1; k >= 0 && size < c.sizes[k] {
			return nil, fail(fmt.Sprintf("a size of at least the %d of the line before", c.sizes[k]), fields[0])
		} else if k >= 0 && p < c.cdf[k] {
			return nil, fail(fmt.Sprintf("a cumulative probability of at least the %v of the line before", c.cdf[k]), fields[1])
		}
		c.sizes, c.cdf = append(c.sizes, size), append(c.cdf, p)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		line++
		return nil, fail(fmt.Sprintf("a line of less than %d bytes", maxLine), "a longer one")
	} else if err != nil {
		return nil, fmt.Errorf("reading sizes: %w", err)
	}
	if expected, found := c.finish(); expected != "" {
		line = max(1, line)
		return nil, fail(expected, found)
	}
	return c, nil
}

// tolerance is by how much the last cumulative probability may differ from 1: 1e-6, and what rounding adds to that.
const tolerance = 1e-6 + 1e-12

// finish makes the last probability 1, and returns what is wrong with the whole table.
func (c *Curve) finish() (expected, found string) {
	k := len(c.cdf) - 1
	if k < 0 {
		return "sizes with their cumulative probabilities", "none"
	}
	last := c.cdf[k]
	if math.Abs(last/100-1) <= tolerance {
		for i := range c.cdf {
			c.cdf[i] /= 100
		}
	} else if math.Abs(last-1) > tolerance {
		return "a last cumulative probability of 1, or 100 %", fmt.Sprint(last)
	}
	for i, p := range c.cdf {
		c.cdf[i] = min(1, p)
	}
	c.cdf[k] = 1
	if c.mean = c.drawnMean(); c.sizes[k] == 0 {
		return "a size above 0", "none"
	}
	return "", ""
}

// fine is how finely the distribution is compared to that of drawn sizes, as a part of all flows.
const fine = 1.0 / 4096

// marks returns sizes in units at which to compare distributions, ascending, and how likely sizes up to each are.
func (c *Curve) marks() (sizes []int64, cdf []float64) {
	mark := func(size int64, p float64) {
		if k := len(sizes) - 1; k >= 0 && sizes[k] == size {
			cdf[k] = p
		} else if size >= 1 {
			sizes, cdf = append(sizes, size), append(cdf, p)
		}
	}
	for i, p := range c.cdf {
		if c.Rule == Linear && i > 0 {
			before, width := c.cdf[i-1], c.sizes[i]-c.sizes[i-1]
			parts := min(int64(math.Ceil((p-before)/fine)), width)
			for k := int64(1); k < parts; k++ {
				step := int64(float64(width) * float64(k) / float64(parts))
				mark(c.sizes[i-1]+step, before+float64((p-before)*float64(step)/float64(width)))
			}
		}
		mark(max(1, c.sizes[i]), p)
	}
	return sizes, cdf
}
