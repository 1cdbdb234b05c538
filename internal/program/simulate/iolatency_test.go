package simulate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower/storage"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/store"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestIOLatency reads once from idle storage and compares the latency with one computed by hand.
func TestIOLatency(t *testing.T) {
	b := dag.NewBuilder(1)
	b.Rank(0).Add(dag.Op{Kind: dag.IO, Subkind: dag.Read, Bytes: 4096, Tag: 8192})
	choice, err := storage.ParseChoice("directdrive")
	if err != nil {
		t.Fatal(err)
	}
	lowered, _, err := storage.Lower(context.Background(), b.Trace(), choice)
	if err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	if err := store.Format.Write(&content, lowered, format.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.parquet")
	if err := os.WriteFile(path, content.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	const L, o, G = 2500, 1500, 6 // ns
	message := func(bytes int64) int64 { return o + L + (bytes-1)*G + o }
	// To the change coordinator and back, with 683 ns there; to the block store and back, which reads 6 bytes in a ns.
	loggops := message(1024) + 683 + message(4096) + message(1024) + 683 + message(4096)
	// The mount is three messages to the metadata service and three back, with 683 ns there.
	mount := map[string]int64{"loggops": 1000 * (6*message(4096) + 683), "ideal": 683_000}
	for backend, want := range map[string]int64{"loggops": loggops, "ideal": 683 + 683} {
		list := filepath.Join(t.TempDir(), "accesses.csv")
		r := clitest.Run(newCommand, "--backend", backend, "--json", "--accesses", list, path)
		var got struct {
			IO map[string]int64 `json:"io_latency"`
		}
		if r.Status != 0 || json.Unmarshal([]byte(r.Stdout), &got) != nil || got.IO == nil {
			t.Fatalf("%s: status %d, %s%s", backend, r.Status, r.Stdout, r.Stderr)
		}
		ps := want * int64(dag.Nanosecond)
		if !maps.Equal(got.IO, map[string]int64{"count": 1, "mean_ps": ps, "p50_ps": ps, "p99_ps": ps, "p99.9_ps": ps, "max_ps": ps}) {
			t.Errorf("%s: %+v, expected %v", backend, got.IO, ps)
		}
		text, err := os.ReadFile(list)
		lines := fmt.Sprintf("access,host,unit,kind,bytes,start_ps,latency_ps\n0,0,0,\"read\",4096,%d,%d\n", mount[backend], ps)
		if err != nil || string(text) != lines {
			t.Errorf("%s: %s, expected %s, %v", backend, text, lines, err)
		}
	}
	plain := filepath.Join(t.TempDir(), "x.goal")
	if err := os.WriteFile(plain, []byte("num_ranks 1\nrank 0 {\nl1: calc 10\n}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--sweep", "L=1us", path}, "--accesses and --sweep exclude each other"},
		{[]string{plain}, "the trace has no lowered storage accesses"},
	} {
		list := filepath.Join(t.TempDir(), "accesses.csv")
		r := clitest.Run(newCommand, append([]string{"--accesses", list}, test.args...)...)
		if _, err := os.Stat(list); r.Status == 0 || !strings.Contains(r.Stderr, test.want) || err == nil {
			t.Errorf("%v: status %d, %s", test.args, r.Status, r.Stderr)
		}
	}
}
