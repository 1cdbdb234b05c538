package report

import (
	"fmt"
	"strings"
	"testing"
)

// TestJobMatrix checks the bytes from job to job, with numbers beyond those of float64, and the cases without them.
func TestJobMatrix(t *testing.T) {
	const bytes = `[[1,2,4,9007199254740993],[8,16,32,64],[128,256,512,1024],[0,0,0,0]]`
	const sums = `"job_matrix":{"between_bytes":9007199254741477,"bytes":[[27,9007199254741093],[384,1536]],` +
		`"largest":[{"src":0,"dst":1,"bytes":9007199254741093},{"src":1,"dst":1,"bytes":1536},` +
		`{"src":1,"dst":0,"bytes":384},{"src":0,"dst":0,"bytes":27}],"total_bytes":9007199254743040}`
	jobs := func(ranges ...int) string {
		var all []string
		for i := 0; i < len(ranges); i += 2 {
			all = append(all, fmt.Sprintf(`{"name":"<%d>","first_rank":%d,"ranks":%d}`, i/2, ranges[i], ranges[i+1]))
		}
		return strings.Join(all, ",")
	}
	for name, c := range map[string]struct {
		jobs        string
		edge, ranks int
		want        string
	}{
		"two":           {jobs(0, 2, 2, 2), 1, 4, sums},
		"groups":        {jobs(0, 4, 4, 3), 2, 7, sums},
		"unaligned":     {jobs(0, 3, 3, 4), 2, 7, ""},
		"overlap":       {jobs(0, 2, 1, 3), 1, 4, ""},
		"beyond":        {jobs(0, 2, 2, 3), 1, 4, ""},
		"one":           {jobs(0, 4), 1, 4, ""},
		"negative":      {jobs(0, 2, -2, 2), 1, 4, ""},
		"not in a row":  {`{"ranks":2},{"ranks":2}`, 1, 4, ""},
		"without ranks": {jobs(0, 4, 4, 0), 1, 4, ""},
	} {
		finish := strings.TrimSuffix(strings.Repeat("1,", c.ranks), ",")
		page, document := write(t, fmt.Appendf(nil, `{"finish_ps":[%s],"jobs":[%s],"matrix":{"ranks_per_row":%d,`+
			`"pairs":1,"bytes":%s}}`, finish, c.jobs, c.edge, bytes))
		if has := strings.Contains(string(document), `"job_matrix"`); has != (c.want != "") ||
			!strings.Contains(string(document), c.want) {
			t.Errorf("%s: expected %s in\n%s", name, c.want, document)
		}
		cells := `data-cells="/report/job_matrix/bytes" data-rows="2" data-edge="1" data-names="/jobs"`
		if strings.Contains(page, cells) != (c.want != "") {
			t.Errorf("%s: expected a figure: %t", name, c.want != "")
		}
	}
}
