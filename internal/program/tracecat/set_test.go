package tracecat

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/dataset"
)

// shippedSet is a small published set with a trace in each format.
const shippedSet = "../../../testdata/set"

// statistics are the paths of columns of the catalogue in the JSON of --stats.
var statistics = map[string]string{
	"ranks": "ranks", "nodes": "nodes", "jobs": "jobs", "communicators": "communicators", "ops": "ops",
	"calcs": "ops_by_kind.calc", "sends": "ops_by_kind.send", "recvs": "ops_by_kind.recv", "colls": "ops_by_kind.coll",
	"mems": "ops_by_kind.mem", "ios": "ops_by_kind.io", "messages": "messages.count", "bytes_sent": "sent_bytes",
	"bytes_collective": "collective_bytes", "bytes_mem": "mem_bytes", "bytes_io": "io_bytes", "calc_ps": "calc_ps",
	"flops": "flops", "last_release_ps": "last_release_ps", "critical_path_ps": "critical_path.time_ps", "deps": "deps",
}

// TestListSet compares the catalogue of a set with the statistics of its stores, and its forms with each other.
func TestListSet(t *testing.T) {
	listed := clitest.Run(New, "--json", shippedSet)
	if listed.Status != 0 || listed.Stderr != "" {
		t.Fatalf("%+v", listed)
	}
	lines := strings.Split(strings.TrimSpace(listed.Stdout), "\n")
	records, err := csv.NewReader(strings.NewReader(clitest.Run(New, "--csv", shippedSet).Stdout)).ReadAll()
	if err != nil || len(records) != len(lines)+1 {
		t.Fatalf("%d records for %d lines: %v", len(records), len(lines), err)
	}
	table := clitest.Run(New, shippedSet)
	for i, line := range lines {
		row := numbers(t, line)
		store := filepath.Join(shippedSet, row["path"].(string))
		stats := numbers(t, clitest.Run(New, "--stats", "--json", store).Stdout)["stats"].(map[string]any)
		for column, path := range statistics {
			var value any = stats
			for _, name := range strings.Split(path, ".") {
				value = value.(map[string]any)[name]
			}
			if fmt.Sprint(row[column]) != fmt.Sprint(value) {
				t.Errorf("%s: column %s is %v, but %s is %v", row["trace"], column, row[column], path, value)
			}
		}
		for k, name := range records[0] {
			if value := row[name]; name != "tags" && value != nil && records[i+1][k] != fmt.Sprint(value) {
				t.Errorf("%s: column %s is %v in JSON and %q in CSV", row["trace"], name, value, records[i+1][k])
			}
		}
		if !strings.Contains(table.Stdout, "\n"+row["trace"].(string)+" ") {
			t.Errorf("the table lacks %s", row["trace"])
		}
	}
	if got := clitest.Run(New, "--head", "2", shippedSet); strings.Count(got.Stdout, "\n") != 3 {
		t.Errorf("--head 2: %+v", got)
	}
	if got := clitest.Run(New, "--ops", shippedSet); got.Status != 2 || !strings.Contains(got.Stderr, "published set") {
		t.Errorf("--ops: %+v", got)
	}
}

// numbers parses an object and keeps the digits of numbers.
func numbers(t *testing.T, text string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	object := map[string]any{}
	if err := decoder.Decode(&object); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return object
}

func TestVerifySet(t *testing.T) {
	if got := clitest.Run(New, "--verify", shippedSet); got.Status != 0 || got.Stdout != "" ||
		!strings.Contains(got.Stderr, "no findings; set ") {
		t.Errorf("the shipped set: %+v", got)
	}
	folder := filepath.Join(t.TempDir(), "set")
	if err := os.CopyFS(folder, os.DirFS(shippedSet)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(folder, dataset.CatalogueName)); err != nil {
		t.Fatal(err)
	}
	got := clitest.Run(New, "--verify", "--quick", folder)
	if want := filepath.Join(folder, dataset.CatalogueName) + ": missing\n"; got.Status != 1 ||
		!strings.Contains(got.Stdout, want) {
		t.Errorf("without a catalogue: %+v, expected %q", got, want)
	}
	list := clitest.Run(New, folder)
	if list.Status != 0 || !strings.Contains(list.Stderr, "reading every store") ||
		!strings.Contains(list.Stdout, "horovod.parquet") {
		t.Errorf("a list without a catalogue: %+v", list)
	}
	state := filepath.Join(folder, ".tracedag", "new")
	if err := os.MkdirAll(state, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := clitest.Run(New, "--verify", "--quick", folder); !strings.Contains(got.Stdout, "being published") {
		t.Errorf("an interrupted publication: %+v", got)
	}
	if got := clitest.Run(New, "--verify", "--repair", folder); strings.Contains(got.Stdout, "being published") ||
		!strings.Contains(got.Stderr, "undid the interrupted publication") {
		t.Errorf("repair: %+v", got)
	}
	for args, want := range map[string]string{
		"--quick " + folder:                "need --verify",
		"--verify --quick set_test.go":     "set_test.go is a file",
		"--verify " + filepath.Dir(folder): "expected a published set",
	} {
		if got := clitest.Run(New, strings.Fields(args)...); got.Status == 0 || !strings.Contains(got.Stderr, want) {
			t.Errorf("tracecat %s: %+v, expected %q", args, got, want)
		}
	}
}
