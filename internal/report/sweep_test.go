package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// pageOf returns the page of a report.
func pageOf(t *testing.T, r *Report) string {
	t.Helper()
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

// TestReplicas checks that pages draw points with equal factors as their mean and the interval of their values.
func TestReplicas(t *testing.T) {
	point := func(factor string, seed, makespan int) string {
		return fmt.Sprintf(`{"run":{"factors":{"L":%q},"seed":%d},"makespan_ps":%d}`, factor, seed, makespan)
	}
	const each = `Each point is the mean of <span data-from="/report/replicas">2</span> seeds; `
	upTo := strings.Replace(each, "mean of", "mean of up to", 1)
	many := func(n int) (points []string) {
		for i := range n {
			text := fmt.Sprintf("%dus", i+1)
			points = append(points, point(text, 1, 1000), point(text, 2, 2000))
		}
		return points
	}
	for name, c := range map[string]struct {
		points      []string
		want, lacks string
	}{
		"replicas": {[]string{point("5us", 1, 1000), point("10us", 1, 500), point("5us", 2, 2000),
			point("10us", 2, 1500)},
			each, "up to"},
		"mean": {many(2), strings.ReplaceAll(`r="3.5"><title>: 2_µs, 1.5_ns on average, from 1_ns to 2_ns<`, "_",
			"\u00a0"), "NaN"},
		"bars":    {many(12), `class="line l0 whisker" d="M159.2 151V12m-4 0h8M159.2 151m-4 0h8M`, `l0 band"`},
		"band":    {many(13), `class="dot l0 band" d="M153.8 12L217.7 12L`, "whisker"},
		"missing": {append(many(1), point("3us", 1, 1)), upTo, "NaN"},
		"failed":  {append(many(2), `{"run":{"factors":{"L":"1us"},"seed":3},"error":"no"}`), upTo, "NaN"},
		"one seed": {[]string{point("1us", 1, 5), point("1us", 1, 6)}, strings.Replace(each, "seeds", "runs", 1),
			"NaN"},
		"single": {[]string{point("1us", 1, 5), point("2us", 1, 6)}, `class="line l0"`, "the mean of"},
		"equal":  {[]string{point("1us", 1, 5), point("1us", 2, 5)}, each, "whisker"},
	} {
		page := pageOf(t, pointsOf(t, ofSweep, c.points...))
		_, page, _ = strings.Cut(page, "<main>")
		page, _, _ = strings.Cut(page, "<footer>")
		if !strings.Contains(page, c.want) || strings.Contains(page, c.lacks) {
			t.Errorf("%s: expected %q and no %q in\n%s", name, c.want, c.lacks, page)
		}
	}
}

// TestSaturationPage checks that pages mark the load at saturation, the mean of replicas for each routing.
func TestSaturationPage(t *testing.T) {
	var points []string
	for i, load := range []float64{0.25, 0.5, 0.75, 1} {
		points = append(points, fmt.Sprintf(`{"run":{"factors":{"load":"saturation","routing":"%s"},"seed":%d},`+
			`"accepted_load":%g,"saturation":{"load":%g}}`, []string{"minimal", "valiant"}[i/2], i%2, load/2, load))
	}
	points = append(points, `{"run":{"factors":{"load":"0.5","routing":"minimal"},"seed":0},"accepted_load":0.5}`,
		`{"run":{"factors":{"load":"1","routing":"minimal"},"seed":0},"accepted_load":0.5}`)
	page := pageOf(t, pointsOf(t, ofLoad, points...))
	for _, want := range []string{
		"M401.2 12V290\"><title>saturation 0.375<", "M816.2 12V290\"><title>saturation 0.875<", // 90 + 830*load
		`<title>routing = minimal: 0.375, 0.1875 on average, from 0.125 to 0.25<`, ">load in flits per cycle and host<",
		`at saturation in flits per cycle and host is from <span data-from="/points/0/saturation/load">0.25</span>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s in\n%s", want, page)
		}
	}
	if n := strings.Count(page, "<figure "); n != 1 {
		t.Errorf("%d figures", n)
	}
}
