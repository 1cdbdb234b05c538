package tables

import "testing"

func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		pattern, path, scope string
		want                 bool
	}{
		{"fct_ps.p99", "fct_ps.p99", "", true},
		{"fct_ps.p99", "fct_ps.p99.9", "", false},
		{"fct_ps.*", "fct_ps.p99.9", "", true},
		{"fct_ps", "fct_ps.p99", "", false},
		{"*", "makespan_ps", "", true},
		{"jobs.*.makespan_ps", "jobs.makespan_ps", "job=llm", true},
		{"jobs.llm.makespan_ps", "jobs.makespan_ps", "job=llm", true},
		{"jobs.llm.makespan_ps", "jobs.makespan_ps", "job=other", false},
		{"tiers.tor up.use", "tiers.use", "tier=tor up", true},
		{"makespan_ps", "jobs.makespan_ps", "job=llm", false},
	} {
		var all Tables
		all.Measure([]string{c.pattern})
		if got := all.measures(&metric{path: c.path, scope: c.scope}); got != c.want {
			t.Errorf("%s selects %s of %q: %v, expected %v", c.pattern, c.path, c.scope, got, c.want)
		}
	}
}
