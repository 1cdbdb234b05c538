package measure

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"
)

func TestInterpolate(t *testing.T) {
	got := Interpolate([]float64{4, 1, 3, 2})
	want := Distribution[float64]{
		Count: 4, Min: 1, Mean: 2.5, P50: 2.5, P95: 3.85, P99: 3.97, P999: 3.997, Max: 4,
	}
	for _, pair := range [][2]float64{{got.Min, want.Min}, {got.Mean, want.Mean}, {got.P50, want.P50}, {got.P95, want.P95},
		{got.P99, want.P99}, {got.P999, want.P999}, {got.Max, want.Max}} {
		if math.Abs(pair[0]-pair[1]) > 1e-12 {
			t.Errorf("got %+v, expected %+v", got, want)
		}
	}
	if one := Interpolate([]float64{7}); one.P50 != 7 || one.P99 != 7 || one.Count != 1 {
		t.Errorf("got %+v", one)
	}
	if none := Interpolate(nil); none != (Distribution[float64]{}) {
		t.Errorf("got %+v", none)
	}
}

func TestNearestRank(t *testing.T) {
	var values []int64
	for v := int64(1000); v >= 1; v-- {
		values = append(values, v)
	}
	want := Distribution[int64]{Count: 1000, Mean: 500.5, Min: 1, P50: 500, P95: 950, P99: 990, P999: 999, Max: 1000}
	if got := NearestRank(values); got != want {
		t.Errorf("got %+v, expected %+v", got, want)
	}
	want = Distribution[int64]{Count: 2, Mean: 4, Min: 3, P50: 3, P95: 5, P99: 5, P999: 5, Max: 5}
	if got := NearestRank([]int64{5, 3}); got != want {
		t.Errorf("got %+v, expected %+v", got, want)
	}
	if none := NearestRank([]int64(nil)); none != (Distribution[int64]{}) {
		t.Errorf("got %+v", none)
	}
}

func TestDistributionJSON(t *testing.T) {
	d := Distribution[int64]{Count: 2, Mean: 3.5, Min: 1, P50: 2, P95: 3, P99: 4, Max: 6}
	text, err := json.Marshal(d)
	if want := `{"count":2,"mean":3.5,"min":1,"p50":2,"p95":3,"p99":4,"max":6}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v, expected %s", text, err, want)
	}
	integer := func(v int64) string { return strconv.FormatInt(v, 10) }
	got := d.JSON("_ps", integer, "count", "mean", "p99.9", "max")
	if want := `{"count":2,"mean_ps":4,"p99.9_ps":0,"max_ps":6}`; string(got) != want {
		t.Errorf("got %s, expected %s", got, want)
	}
	f := Distribution[float64]{Mean: 1.25, Min: 1, Max: 2}
	digits := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	if got, want := f.JSON("", digits, "min", "mean"), `{"min":1,"mean":1.25}`; string(got) != want {
		t.Errorf("got %s, expected %s", got, want)
	}
}
