// Package sizes holds published distributions of message and flow sizes, and reads such distributions from files.
//
// README.md lists the tables with their sources.
package sizes

import (
	"embed"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

// Rule is how sizes are drawn from a table of sizes and cumulative probabilities.
type Rule uint8

const (
	// Step draws only sizes of the table: the smallest one whose probability is at least u.
	Step Rule = iota
	// Linear draws all sizes between two rows with equal probability. They are rounded up, so that the probabilities of
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
	Unit int64 // bytes per unit of the table, whose sizes may be packets

	StatedMean float64 // mean size in bytes that a file states; 0: none

	sizes []int64 // ascending, in units
	cdf   []float64
	mean  float64 // in units, as drawn
}

// Mean returns the mean size in bytes, as drawn.
func (c *Curve) Mean() float64 {
	return float64(c.Unit) * c.mean
}

// TableMean returns the mean of the table by its rule, in units, without the rounding of drawn sizes.
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

// drawnMean returns the mean of drawn sizes, in units.
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

// Distinct returns the sizes in units, strictly ascending, and the cumulative probability of each.
func (c *Curve) Distinct() (sizes []int64, cdf []float64) {
	for i, size := range c.sizes {
		if k := len(sizes) - 1; k >= 0 && sizes[k] == size {
			cdf[k] = c.cdf[i]
		} else {
			sizes, cdf = append(sizes, size), append(cdf, c.cdf[i])
		}
	}
	return sizes, cdf
}

// Constant returns the distribution of a single size in bytes, 1..openloop.MaxBytes.
func Constant(bytes int64) *Curve {
	return &Curve{
		Name: fmt.Sprintf("%d bytes", bytes), Unit: 1, sizes: []int64{bytes}, cdf: []float64{1}, mean: float64(bytes),
	}
}

//go:embed tables/*.csv
var tables embed.FS

// table is an embedded file of sizes, which README.md describes.
type table struct {
	name    string
	rule    Rule
	unit    int64
	aliases []string
}

// Data bytes of a packet in the simulations that count sizes in packets.
const (
	homaPacket    = 1442
	pfabricPacket = 1460
)

var published = []table{
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

// Names returns the names of the tables, each after its aliases.
func Names() []string {
	var names []string
	for _, t := range published {
		names = append(names, t.aliases...)
		names = append(names, t.name)
	}
	return names
}

// Named returns the table of a name or alias, in any case, with - for _ and with or without the ending .csv.
func Named(name string) (*Curve, bool) {
	name = strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(name), "-", "_"), ".csv")
	i := slices.IndexFunc(published, func(t table) bool { return t.name == name || slices.Contains(t.aliases, name) })
	if i < 0 {
		return nil, false
	}
	t := published[i]
	file, err := tables.Open("tables/" + t.name + ".csv")
	if err != nil {
		panic(err) // it is part of the program
	}
	defer file.Close()
	c, err := Read(t.name, file, CSV, t.rule)
	if err != nil {
		panic(err)
	}
	c.Unit = t.unit
	return c, true
}

// markStep is the largest distance of two marks inside a row, as a part of all flows.
const markStep = 1.0 / 4096

// Marks returns sizes in units at which to compare distributions, ascending, and the cumulative probability of each.
func (c *Curve) Marks() (sizes []int64, cdf []float64) {
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
			parts := min(int64(math.Ceil((p-before)/markStep)), width)
			for k := int64(1); k < parts; k++ {
				step := int64(float64(width) * float64(k) / float64(parts))
				mark(c.sizes[i-1]+step, before+float64((p-before)*float64(step)/float64(width)))
			}
		}
		mark(max(1, c.sizes[i]), p)
	}
	return sizes, cdf
}
