package simulate

import (
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestReport checks on each backend that the page has the object of --json, and that the parts of the last rank add up
// to its finish.
func TestReport(t *testing.T) {
	folder := t.TempDir()
	trace := filepath.Join(folder, "x.goal")
	text := "num_ranks 2\nrank 0 {\na: calc 700\nb: send 5000b to 1\nb requires a\n}\n" +
		"rank 1 {\na: recv 5000b from 0\n}\n"
	if err := os.WriteFile(trace, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string]string{
		"loggops": "", "ideal": "", "flit": "", "analytical": "--network Ring(2)@100GB/s,500ns",
		"packet": "--topology star:hosts=2,rate=100Gbps", "flow": "--topology star:hosts=2,rate=100Gbps",
	} {
		page := filepath.Join(folder, name+".html")
		all := append(strings.Fields(args), "--backend", name, "--json", "--report", page, trace)
		r := clitest.Run(newCommand, all...)
		if r.Status != 0 {
			t.Fatalf("%s: %s", name, r.Stderr)
		}
		written, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(written), `id="result">`)
		embedded, _, _ := strings.Cut(after, "</script>")
		embedded = strings.ReplaceAll(embedded, `\u003c`, "<")
		if embedded != strings.TrimSpace(r.Stdout) {
			t.Errorf("%s: the page has\n%s\nprinted\n%s", name, embedded, r.Stdout)
		}
		var result struct {
			Makespan big.Int `json:"makespan_ps"`
			Report   struct {
				Ranks struct {
					Last map[string]any `json:"last"`
				} `json:"ranks"`
			} `json:"report"`
		}
		decoder := json.NewDecoder(strings.NewReader(r.Stdout))
		decoder.UseNumber()
		if err := decoder.Decode(&result); err != nil {
			t.Fatal(err)
		}
		sum := new(big.Int)
		for part, v := range result.Report.Ranks.Last {
			if n, is := v.(json.Number); is && part != "rank" && part != "finish_ps" {
				ps, _ := new(big.Int).SetString(string(n), 10)
				sum.Add(sum, ps)
			}
		}
		if sum.Cmp(&result.Makespan) != 0 || sum.Sign() == 0 {
			t.Errorf("%s: parts of the last rank add up to %v, not %v", name, sum, &result.Makespan)
		}
	}
	for args, message := range map[string]string{
		"--report x.txt":                   "expected a name that ends with .html",
		"--report x.json --lowered y.json": "--report FILE.json and --lowered exclude each other",
		"--report x.json":                  "--lowered needs either --lower nccl or --lower of storage",
	} {
		r := clitest.Run(newCommand, append(strings.Fields(args), trace)...)
		if r.Status == 0 || !strings.Contains(r.Stderr, message) {
			t.Errorf("%s: status %d, %q", args, r.Status, r.Stderr)
		}
	}
}

// TestFromResult checks the page of a kept result, the page of two, and errors.
func TestFromResult(t *testing.T) {
	folder := t.TempDir()
	trace := filepath.Join(folder, "x.goal")
	text := "num_ranks 2\nrank 0 {\na: calc 700\nb: send 5000b to 1\nb requires a\n}\n" +
		"rank 1 {\na: recv 5000b from 0\n}\n"
	if err := os.WriteFile(trace, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		r := clitest.Run(newCommand, args...)
		if r.Status != 0 {
			t.Fatalf("%v: %s", args, r.Stderr)
		}
		return r.Stdout
	}
	page := func(name string) string {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var kept []string
	for i, latency := range []string{"1us", "2us"} {
		name := filepath.Join(folder, string(rune('a'+i)))
		kept = append(kept, name+".json")
		result := run("--L", latency, "--json", "--report", name+".html", trace)
		if err := os.WriteFile(name+".json", []byte(result), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run("--report", filepath.Join(folder, "again.html"), "--from-result", kept[0])
	// A kept result has no picture of the timeline.
	picture := regexp.MustCompile(`(?s)<section id="timeline">.*?</section>|figure-[0-9]+|` +
		`<script type="application/json" id="timeline-data">.*?</script>\n`)
	if picture.ReplaceAllString(page("again.html"), "") != picture.ReplaceAllString(page("a.html"), "") {
		t.Error("the page of a kept result differs from that of the run")
	}
	run("--report", filepath.Join(folder, "both.html"), "--plot", filepath.Join(folder, "both.svg"), "--from-result",
		kept[0], "--from-result", kept[1])
	if !strings.Contains(page("both.svg"), ">Comparison of results</text>") {
		t.Error("the picture of two results lacks its title")
	}
	for _, want := range []string{`data-from="/results/1/makespan_ps"`, `>makespan_ps<`,
		`/difference" title="1000000 ps">1\u00a0µs<`} {
		if !strings.Contains(page("both.html"), strings.ReplaceAll(want, `\u00a0`, "\u00a0")) {
			t.Errorf("the page of two results lacks %s", want)
		}
	}
	for args, message := range map[string]string{
		"--from-result " + kept[0]:                                                  "--from-result needs --report or --plot",
		"--from-result " + kept[0] + " --report x.html " + trace:                    "and no trace",
		"--from-result " + kept[0] + " --report x.html --L 1us":                     "--L has no effect",
		"--from-result " + kept[0] + " --report x.txt":                              "expected a name that ends with .html",
		"--report " + folder + "/x.html --from-result " + trace:                     "expected",
		"--plot ranks=x.svg --from-result " + kept[0] + " --from-result " + kept[1]: "no picture of several results",
	} {
		r := clitest.Run(newCommand, strings.Fields(args)...)
		if r.Status == 0 || !strings.Contains(r.Stderr, message) {
			t.Errorf("%s: status %d, %q", args, r.Status, r.Stderr)
		}
	}
}
