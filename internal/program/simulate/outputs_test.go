package simulate

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	parquetgo "github.com/parquet-go/parquet-go"

	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/tables"
)

// rowsOf runs the program and returns the rows of the CSV table that it prints, by name of the column.
func rowsOf(t *testing.T, args ...string) []map[string]string {
	t.Helper()
	r := clitest.Run(newCommand, args...)
	rows := rowsIn(t, r.Stdout)
	if len(rows) == 0 {
		t.Fatalf("%v: status %d, %s", args, r.Status, r.Stderr)
	}
	return rows
}

func rowsIn(t *testing.T, text string) (rows []map[string]string) {
	t.Helper()
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, record := range records {
		if i == 0 {
			continue
		}
		row := make(map[string]string)
		for k, cell := range record {
			row[records[0][k]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

const (
	pointsHead = "study,point,run,index,replica,seed,trace,trace_sha256,command,backend,model,transport,topology,placement,routing," +
		"collective,factors,params,status,error,complete,makespan_ps,ops,messages,bytes,version"
	resultsHead = "study,point,run,seed,factors,metric,scope,value,value_int,unit"
)

// TestTables checks the tables of runs, sweeps and load curves of all backends: the same columns, the numbers of --json,
// and the same rows as CSV and as Parquet.
func TestTables(t *testing.T) {
	path := storedFile(t, pairs(4).Trace())
	packet := []string{"-q", "--backend", "packet", "--topology", "star:hosts=4", path}
	flit := []string{"-q", "--backend", "flit", "--topology", "star:hosts=4"}
	for _, args := range [][]string{
		{path}, {"--backend", "ideal", path}, packet, append(flit, path),
		{"--backend", "analytical", "--network", "Ring(4)@25GB/s,500ns", path},
		{"--sweep", "L=1us,2us;o=1us,2us", path}, append(packet, "--transport", "dctcp"),
		append(packet, "--sweep", "seed=1..3:3;mss=1KiB,4KiB"), append(packet, "--sweep", "mss=0,4KiB;seed=1,2"),
		append(flit, "--synthetic", "uniform", "--load", "0.1,0.2"), {path, "--trace", path},
	} {
		folder := t.TempDir()
		all := slices.Clone(args)
		for _, table := range tables.Names {
			all = append(all, "--"+table, filepath.Join(folder, table+".parquet"))
		}
		r := clitest.Run(newCommand, append(slices.Clone(all), "--json")...)
		for _, table := range tables.Names {
			text := clitest.Run(newCommand, append(slices.Clone(args), "--csv="+table)...).Stdout
			head, _, _ := strings.Cut(text, "\n")
			switch {
			case table == "points" && head != pointsHead, table == "results" && head != resultsHead,
				!strings.HasSuffix(head, "metric,unit,n,mean,sd,ci95_low,ci95_high,min,p50,max,failed") && table == "summary":
				t.Errorf("%v: %s: columns %s", args, table, head)
			}
			compareParquet(t, filepath.Join(folder, table+".parquet"), text)
			if table != "summary" {
				compareJSON(t, table, rowsIn(t, text), r.Stdout)
			}
		}
	}
}

// compareParquet checks that a Parquet file has the rows of a CSV table.
func compareParquet(t *testing.T, path, want string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := parquetgo.OpenFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	w := csv.NewWriter(&got)
	var head []string
	for _, field := range file.Schema().Fields() {
		head = append(head, field.Name())
	}
	// The library returns fields in the order of the file.
	w.Write(head)
	rows := parquetgo.NewReader(file)
	for range file.NumRows() {
		row := make(map[string]any)
		if err := rows.Read(&row); err != nil {
			t.Fatal(err)
		}
		var record []string
		for _, name := range head {
			cell := ""
			switch v := row[name].(type) {
			case nil:
			case float64:
				cell = strconv.FormatFloat(v, 'f', -1, 64)
				if v != 0 && math.Abs(v) < 1e-6 {
					cell = strconv.FormatFloat(v, 'e', -1, 64)
				}
			default:
				cell = fmt.Sprint(v)
			}
			record = append(record, cell)
		}
		w.Write(record)
	}
	w.Flush()
	if got.String() != want {
		t.Errorf("%s: got\n%s\nexpected\n%s", path, &got, want)
	}
}

// compareJSON checks rows of points or results against the JSON documents of the runs.
func compareJSON(t *testing.T, table string, rows []map[string]string, documents string) {
	t.Helper()
	for line := range strings.Lines(documents) {
		var d struct {
			Run      struct{ Point, ID string }
			Params   any
			Traffic  any
			Makespan json.Number            `json:"makespan_ps"`
			Finish   []json.Number          `json:"finish_ps"`
			FCT      map[string]json.Number `json:"fct_ps"`
			Error    string
		}
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatal(err)
		}
		finish, fct, found := 0, 0, false
		for _, row := range rows {
			if row["run"] != d.Run.ID {
				continue
			}
			found = true
			var params map[string]any
			switch {
			case row["point"] != d.Run.Point:
				t.Errorf("point %s, expected %s", row["point"], d.Run.Point)
			case table == "points":
				if err := json.Unmarshal([]byte(row["params"]), &params); err != nil {
					t.Fatal(err)
				}
				if delete(params, "traffic"); !reflect.DeepEqual(any(params), d.Params) || row["makespan_ps"] != string(d.Makespan) ||
					row["error"] != d.Error {
					t.Errorf("%v differs from %s", row, line)
				}
			case row["metric"] == "finish_ps":
				if row["scope"] == fmt.Sprintf("rank=%d", finish) && row["value_int"] == string(d.Finish[finish]) && row["unit"] == "ps" {
					finish++
				}
			case strings.HasPrefix(row["metric"], "fct_ps."):
				if row["value"] == string(d.FCT[strings.TrimPrefix(row["metric"], "fct_ps.")]) && row["unit"] == "ps" {
					fct++
				}
			}
		}
		if found != (table == "points" || d.Error == "") || table == "results" && (finish != len(d.Finish) || fct != len(d.FCT)) {
			t.Errorf("%s of %s: %d finish times, %d of FCT", table, d.Run.ID, finish, fct)
		}
	}
}

// TestFewReplicas checks the message about wide intervals.
func TestFewReplicas(t *testing.T) {
	args := []string{"--backend", "packet", "--topology", "star:hosts=4", "--csv=summary", storedFile(t, pairs(4).Trace()), "--sweep"}
	for sweep, want := range map[string]bool{"seed=1..4:4": true, "seed=1..5:5": false, "mss=1KiB,2KiB": false} {
		r := clitest.Run(newCommand, append(slices.Clone(args), sweep)...)
		if r.Status != 0 || strings.Contains(r.Stderr, "use 5 seeds or more") != want {
			t.Errorf("%s: status %d, %s", sweep, r.Status, r.Stderr)
		}
	}
}

// TestIdentities checks that the identity of a run depends on what runs, not on how it is named.
func TestIdentities(t *testing.T) {
	path := storedFile(t, pairs(4).Trace())
	packet := []string{"-q", "--backend", "packet", "--topology", "star:hosts=4"}
	run := func(args ...string) string {
		return describedBy(t, "", append(slices.Clone(packet), args...)...).Run.ID
	}
	want := run(path)
	for _, same := range [][]string{{path, "--threads", "1"}, {path, "--set", "rto=" + "1ms"}, {"--transport", "ndp", path},
		{path, "--seed", "1"}, {path, "--sweep", "seed=1"}, {path, "--timing"}} {
		if got := run(same...); got != want {
			t.Errorf("%v: %s, expected %s", same, got, want)
		}
	}
	for _, other := range [][]string{{path, "--seed", "2"}, {path, "--set", "rto=2ms"}, {path, "--mss", "1KiB"},
		{path, "--transport", "dctcp"}} {
		if got := run(other...); got == want {
			t.Errorf("%v: %s is the identity of another run", other, got)
		}
	}
	if a, b := run(path, "--mss", "1KiB"), run(path, "--sweep", "mss=1024"); a != b {
		t.Errorf("mss 1KiB: %s alone, %s in a sweep", a, b)
	}
	if a, b := run(path, "--set", "rto=2ms"), run(path, "--sweep", "rto=2000us"); a != b {
		t.Errorf("rto 2ms: %s alone, %s in a sweep", a, b)
	}
}
