package storage

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// readSPC returns the trace of the first records of a file of the Storage Performance Council's format.
func readSPC(t testing.TB, path string, records int) *dag.Trace {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []record
	for lines := bufio.NewScanner(f); len(all) < records && lines.Scan(); {
		fields := strings.Split(lines.Text(), ",")
		whole, decimals, _ := strings.Cut(fields[4], ".")
		all = append(all, record{
			unit: int32(number(t, fields[0])), address: 512 * number(t, fields[1]), bytes: number(t, fields[2]),
			write: strings.EqualFold(fields[3], "w"),
			time:  dag.Time(number(t, whole))*dag.Second + dag.Time(number(t, (decimals + "000000")[:6]))*dag.Microsecond,
		})
	}
	return traceOf(all...)
}

func number(t testing.TB, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCounts compares the counts for excerpts of two well-known traces with those of the public converter, and with an
// independent calculation for the mapping.
func TestCounts(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS is not set: the traces of other projects are not read")
	}
	folder = filepath.Join(folder, "spc")
	text, err := os.ReadFile(filepath.Join(folder, "directdrive_counts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Cases map[string]struct {
			Input      string
			Records    int
			PublicTool map[string]json.RawMessage `json:"public_tool"`
			Replicas8  map[string]json.RawMessage `json:"corrected_8_replicas"`
			Replicas3  map[string]json.RawMessage `json:"corrected_3_replicas"`
		}
	}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for name, c := range want.Cases {
		tr := readSPC(t, filepath.Join(folder, c.Input), c.Records)
		expect := func(choice string, want map[string]json.RawMessage) {
			lowered, report := mustLower(t, tr, choice)
			text, err := json.Marshal(report)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]json.RawMessage
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			for key, value := range want {
				if key == "per_rank_sends_recvs_calcs_bytes" {
					comparePerRank(t, name, lowered, value)
				} else if string(got[key]) != string(value) {
					t.Errorf("%s, %s: %s is %s, expected %s", name, choice, key, got[key], value)
				}
			}
		}
		expect("directdrive:compat", c.PublicTool)
		for _, order := range []string{"serial", "timed", "none", "window:4"} {
			for _, space := range []string{"per-asu", "shared"} {
				parameters := ",order=" + order + ",space=" + space
				expect("directdrive:replicas=8"+parameters, c.Replicas8)
				expect("directdrive:replicas=3"+parameters, c.Replicas3)
			}
		}
	}
}

func comparePerRank(t *testing.T, name string, tr *dag.Trace, text []byte) {
	t.Helper()
	var want map[int][4]int64
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for rank := range tr.Ranks {
		var got [4]int64
		r := tr.Ranks[rank]
		for i, kind := range r.Kind {
			switch kind {
			case dag.Send:
				got[0]++
				got[3] += r.Bytes[i]
			case dag.Recv:
				got[1]++
			case dag.Calc:
				got[2]++
			}
		}
		if got != want[rank] {
			t.Errorf("%s: rank %d has %v sends, receives, calcs and bytes sent, expected %v", name, rank, got, want[rank])
		}
	}
}
