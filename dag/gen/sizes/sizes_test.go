package sizes

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every table is sound, listed in the README, and has the mean that this states.
func TestTables(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(readme)) {
		cells := strings.Split(line, " | ")
		name, isTable := strings.CutSuffix(strings.TrimPrefix(cells[0], "| "), ".csv")
		if !isTable {
			continue
		}
		listed[name] = true
		c, ok := Named(name)
		if !ok {
			t.Errorf("%s is not embedded", name)
			continue
		}
		want, err := strconv.ParseFloat(cells[5], 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.TableMean(); c.Rule.String() != cells[4] || math.Abs(got/want-1) > 1e-6 {
			t.Errorf("%s: rule %v, mean %v, want %s, %v", name, c.Rule, got, cells[4], want)
		}
		if got := fmt.Sprint(len(c.sizes), c.sizes[0], c.sizes[len(c.sizes)-1]); got != strings.Join(cells[1:4], " ") {
			t.Errorf("%s: rows, smallest and largest are %s, want %v", name, got, cells[1:4])
		}
		if !slices.IsSorted(c.sizes) || !slices.IsSorted(c.cdf) || c.cdf[len(c.cdf)-1] != 1 {
			t.Errorf("%s is not ascending to 1", name)
		}
		if strings.HasSuffix(name, "_pkts") != (c.Unit > 1) {
			t.Errorf("%s is in units of %d bytes", name, c.Unit)
		}
	}
	files, err := tables.ReadDir("tables")
	if err != nil || len(files) != len(listed) || len(published) != len(listed) {
		t.Errorf("%v: %d files and %d names, %d listed", err, len(files), len(published), len(listed))
	}
	seen := map[string]bool{}
	for _, name := range Names() {
		if _, ok := Named(strings.ToUpper(name)); !ok || seen[name] {
			t.Errorf("%s is there twice, or not", name)
		}
		seen[name] = true
	}
	if _, ok := Named("w6"); ok {
		t.Error("there is a table W6")
	}
}

// The mean of the draws is that of all u, and no size is 0 or beyond the table.
func TestDrawnMean(t *testing.T) {
	const steps = 1 << 20
	for _, table := range published {
		c, _ := Named(table.name)
		sum := 0.0
		for i := range steps {
			size := c.draw((float64(i) + 0.5) / steps)
			sum += float64(max(1, size))
		}
		if got := sum / steps; math.Abs(got/c.mean-1) > 1e-3 {
			t.Errorf("%s: mean %v, want %v", c.Name, got, c.mean)
		}
		if least, most := c.Draw(0), c.Draw(math.MaxUint64); least < c.Unit || most != c.Unit*c.sizes[len(c.sizes)-1] {
			t.Errorf("%s: sizes from %d to %d", c.Name, least, most)
		}
	}
}

func TestRules(t *testing.T) {
	const text = "size,cdf\n0 0\n10,25\n10\t50\n30 100\n"
	for rule, want := range map[Rule]string{Step: "10 10 10 10 30 30", Linear: "1 2 10 10 11 30"} {
		c, err := Read("x", strings.NewReader(text), CSV, rule)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range []float64{1e-9, 0.05, 0.25, 0.5, 0.501, 1} {
			got = append(got, fmt.Sprint(c.draw(u)))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%v: got %s, want %s", rule, text, want)
		}
	}
}

// Repeated sizes have the probability of their last row.
func TestDistinct(t *testing.T) {
	c, err := Read("x", strings.NewReader("0 0\n10 0.25\n10 0.5\n30 1\n"), CSV, Step)
	if err != nil {
		t.Fatal(err)
	}
	sizes, cdf := c.Distinct()
	if !slices.Equal(sizes, []int64{0, 10, 30}) || !slices.Equal(cdf, []float64{0, 0.5, 1}) {
		t.Errorf("sizes %v, probabilities %v", sizes, cdf)
	}
}

func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "line 1: expected sizes with their cumulative probabilities, found none",
		"size cdf\n":              "line 1: expected sizes with their cumulative probabilities, found none",
		"1 0.5 3\n":               "line 1: expected a size and a cumulative probability, found 3 fields",
		"a b\nc d\n":              `line 2: expected a size in bytes, a whole number up to 1125899906842624, found "c"`,
		"-1 1\n2 x\n":             `line 2: expected a cumulative probability from 0 to 1, or to 100 %, found "x"`,
		"1 0.5\n0 1\n":            "line 2: expected a size of at least the 1 of the line before, found 0",
		"1 0.5\n2 0.4\n":          "line 2: expected a cumulative probability of at least the 0.5 of the line before, found 0.4",
		"1 0.5\n2 0.9\n":          "line 2: expected a last cumulative probability of 1, or 100 %, found 0.9",
		"1 NaN\n":                 `line 1: expected a cumulative probability from 0 to 1, or to 100 %, found "NaN"`,
		"0 1\n":                   "line 1: expected a size above 0, found none",
		"9999999999999999999 1\n": `line 1: expected a size in bytes, a whole number up to 1125899906842624, found "9999999999999999999"`,
		strings.Repeat("1", 5000): "line 1: expected a line of less than 4096 bytes, found a longer one",
	} {
		_, err := Read("x", strings.NewReader(text), CSV, Step)
		if err == nil || err.Error() != want {
			t.Errorf("%.20q: error %v, want %s", text, err, want)
		}
	}
}
