package matrix

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag/gen/openloop"
)

func TestRead(t *testing.T) {
	values, err := Size.ReadValues(strings.NewReader("size\r\n\n 12 \n4e3\r\n1.0"))
	if want := []float64{12, 4000, 1}; err != nil || !reflect.DeepEqual(values, want) {
		t.Errorf("%v, %v", values, err)
	}
	p, err := Interarrival.ReadPMF(strings.NewReader("25,0.25\n0,0.75\n"))
	if want := (&PMF{[]float64{0, 25}, []float64{0.75, 0.25}}); err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("%v, %v", p, err)
	}
	m, err := ReadMatrix(strings.NewReader("0,3\n1,0\n"))
	if want := (&Matrix{N: 2, Cells: []float64{0, 0.75, 0.25, 0}}); err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("%v, %v", m, err)
	}

	sizes := func(text string) error { _, err := Size.ReadValues(strings.NewReader(text)); return err }
	times := func(text string) error { _, err := Interarrival.ReadValues(strings.NewReader(text)); return err }
	pmf := func(text string) error { _, err := Size.ReadPMF(strings.NewReader(text)); return err }
	matrix := func(text string) error { _, err := ReadMatrix(strings.NewReader(text)); return err }
	for _, c := range []struct {
		read       func(string) error
		text, want string
	}{
		{sizes, "", "line 1: expected values, found none"},
		{sizes, "size\n", "line 1: expected values, found none"},
		{sizes, "nan\n1\n", `line 1: expected numbers with commas between them, found "nan"`},
		{sizes, "1\nsize\n", `line 2: expected numbers with commas between them, found "size"`},
		{sizes, "1\n1.5\n", "line 2: expected a whole number of bytes, 1..1125899906842624, found 1.5"},
		{sizes, "0\n", "line 1: expected a whole number of bytes, 1..1125899906842624, found 0"},
		{sizes, "5\n1,2\n", "line 2: expected one number, found 2"},
		{sizes, "0x5\n", `line 1: expected numbers with commas between them, found "0x5"`},
		{times, "-1\n", "line 1: expected 0..1e+13 us, found -1"},
		{times, "5\n" + strings.Repeat("1", maxLine), "line 2: expected a line of less than 1048576 bytes, found a longer one"},
		{pmf, "5\n", "line 1: expected a value and its probability, found 1 numbers"},
		{pmf, "5,1.5\n", "line 1: expected a probability of 0..1, found 1.5"},
		{pmf, "5,0.5\n0,0.5\n", "line 2: expected a whole number of bytes, 1..1125899906842624, found 0"},
		{pmf, "5,0.5\n6,0.4\n", "line 2: expected probabilities that add up to 1, found 0.9"},
		{pmf, "5,0.5\n5,0.5\n", "line 2: expected distinct values, found 5 twice"},
		{pmf, "", "line 1: expected probabilities that add up to 1, found 0"},
		{matrix, "", "line 1: expected 2 rows, found 0"},
		{matrix, "0\n", "line 1: expected 2..16384 numbers, found 1"},
		{matrix, "0,1\n", "line 1: expected 2 rows, found 1"},
		{matrix, "0,1\n1,0,1\n", "line 2: expected 2 rows of 2 numbers each, found 3 numbers in row 2"},
		{matrix, "0,1\n1,0\n1,0\n", "line 3: expected 2 rows of 2 numbers each, found 2 numbers in row 3"},
		{matrix, "0,1\n1,2\n", "line 2: expected 0 from node 1 to itself, found 2"},
		{matrix, "0,1\n-1,0\n", "line 2: expected numbers whose sum is above 0 and finite, found 0"},
		{matrix, "0,1e308\n1e308,0\n", "line 2: expected numbers whose sum is above 0 and finite, found +Inf"},
	} {
		err := c.read(c.text)
		var wrong *openloop.LineError
		if err == nil || err.Error() != c.want || !errors.As(err, &wrong) {
			t.Errorf("%.20q: error %v, want %q", c.text, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{"size\n12\n4e3\n", "25,0.25\n1,0.75\n", "0,3\n1,0\n", "a,b\r\n\n1,2", "0,-1,2\n1,0,1\n5,5,0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if values, err := Interarrival.ReadValues(strings.NewReader(text)); err == nil && len(values) == 0 {
			t.Error("no values and no error")
		}
		if p, err := Size.ReadPMF(strings.NewReader(text)); err == nil {
			s := newSampler(p)
			for seed := range int64(3) {
				if at := s.draw(random(seed, "fuzz")); !(p.Probabilities[at] > 0) {
					t.Errorf("value %v has probability %v and is drawn", p.Values[at], p.Probabilities[at])
				}
			}
		}
		if m, err := ReadMatrix(strings.NewReader(text)); err == nil {
			m.normalise()
			if total := sum(m.Cells); !(math.Abs(total-1) < 1e-6) {
				t.Errorf("the matrix adds up to %v", total)
			}
		}
	})
}

func FuzzLaws(f *testing.F) {
	for _, p := range presets {
		f.Add(p.Sizes)
		f.Add(p.Interarrivals)
		f.Add(p.Matrix)
	}
	f.Add("pairs:list=0-1/3-4,p=0.1/0.2")
	f.Fuzz(func(t *testing.T, text string) {
		if l, err := ParseDistribution(text); err == nil {
			if err := l.check(); err != nil {
				t.Errorf("%q is accepted: %v", text, err)
			}
		}
		if l, err := ParseRecipe(text); err == nil {
			if m, err := l.Matrix(6, random(1, "fuzz")); err == nil {
				for i, v := range m.Cells {
					if !(v >= 0 && v <= 1) {
						t.Fatalf("%q: cell %d is %v", text, i, v)
					}
				}
			}
		}
	})
}
