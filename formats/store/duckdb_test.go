package store

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

// DuckDB answers queries as the trace says, and its own rewriting of the file is the same trace. The environment
// variable names the folder with DuckDB and the queries; .ci/duckdb/run sets it.
func TestDuckDB(t *testing.T) {
	folder := os.Getenv("TRACEDAG_DUCKDB")
	if folder == "" {
		t.Skip("TRACEDAG_DUCKDB is not set: run .ci/duckdb/run")
	}
	for name, trace := range map[string]*dag.Trace{
		"every column":    randomTrace(rand.New(rand.NewPCG(7, 6)), 9, 400),
		"many row groups": family("stencil-jitter").trace(t, 700_000),
		"strings":         namedTrace(),
	} {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(trace.Ranks[3].Kind, dag.Calc) {
				t.Fatal("rank 3, which a query is about, has no calc")
			}
			dir := t.TempDir()
			path := func(name string) string { return filepath.Join(dir, name) }
			expected, err := json.Marshal(expectations(trace))
			if err != nil {
				t.Fatal(err)
			}
			for name, content := range map[string][]byte{
				"trace.parquet": encode(t, trace), "expected.json": expected,
			} {
				if err := os.WriteFile(path(name), content, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			check := exec.Command("node", filepath.Join(folder, "check.mjs"), path("trace.parquet"),
				path("expected.json"), path("rewritten.parquet"))
			if output, err := check.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			rewritten, err := os.ReadFile(path("rewritten.parquet"))
			if err != nil {
				t.Fatal(err)
			}
			sameTrace(t, mustDecode(t, rewritten), trace)
			f, err := openBytes(rewritten)
			if err != nil {
				t.Fatal(err)
			}
			rank, err := f.ReadRanks(3, 4)
			if err != nil {
				t.Fatal(err)
			}
			sameRanks(t, rank, trace.Ranks[3:4])
		})
	}
}

// namedTrace returns a trace with a name and attributes of its own for each op.
func namedTrace() *dag.Trace {
	b := dag.NewBuilder(4)
	for i := range 140_000 {
		b.Rank(i / 35_000).Add(dag.Op{Name: fmt.Sprint("op", i%7), Attrs: fmt.Sprintf(`{"id":%d}`, i)})
	}
	return b.Trace()
}

// expectations returns the answers to the queries of check.mjs.
func expectations(t *dag.Trace) map[string][][]any {
	type group struct{ kind, subkind string }
	type sums struct {
		count int
		bytes *big.Int
	}
	groups := map[group]*sums{}
	deps, most, offsets, startDeps := 0, 0, int64(0), 0
	longest := dag.Time(0)
	for i := range t.Ranks {
		r := t.Ranks[i]
		deps += len(r.Deps.Off)
		startDeps += len(r.StartDeps.Off)
		for _, off := range r.Deps.Off {
			offsets += int64(off)
		}
		for k := range r.Len() {
			op := r.Op(k)
			g := group{op.Kind.String(), op.Subkind.String()}
			if groups[g] == nil {
				groups[g] = &sums{bytes: new(big.Int)}
			}
			groups[g].count++
			groups[g].bytes.Add(groups[g].bytes, big.NewInt(op.Bytes))
			most = max(most, r.Deps.Count(k))
			longest = max(longest, op.Duration)
		}
	}
	var kinds [][]any
	for g, s := range groups {
		kinds = append(kinds, []any{g.kind, g.subkind, strconv.Itoa(s.count), s.bytes.String()})
	}
	slices.SortFunc(kinds, func(a, b []any) int {
		if c := strings.Compare(a[0].(string), b[0].(string)); c != 0 {
			return c
		}
		return strings.Compare(a[1].(string), b[1].(string))
	})
	orNull := func(v int, any bool) any {
		if !any {
			return nil
		}
		return strconv.Itoa(v)
	}
	return map[string][][]any{
		"kinds": kinds,
		"dependencies": {{
			strconv.Itoa(deps), strconv.Itoa(most), orNull(int(offsets), deps > 0), strconv.Itoa(startDeps),
		}},
		"rank":   {rankExpectation(t.Ranks[3])},
		"filter": {filterExpectation(t, longest)},
	}
}

func rankExpectation(r *dag.Rank) []any {
	count, named := 0, 0
	var least, most dag.Time
	var measured any
	total := new(big.Int)
	for k := range r.Len() {
		op := r.Op(k)
		if op.Kind != dag.Calc {
			continue
		}
		if count == 0 || op.Duration < least {
			least = op.Duration
		}
		most = max(most, op.Duration)
		total.Add(total, big.NewInt(int64(op.Duration)))
		count++
		if op.Name != "" {
			named++
		}
		if _, end := r.Measured(k); end != dag.Unmeasured {
			if last, ok := measured.(dag.Time); !ok || end > last {
				measured = end
			}
		}
	}
	text := func(t dag.Time) string { return strconv.FormatInt(int64(t), 10) }
	if last, ok := measured.(dag.Time); ok {
		measured = text(last)
	}
	return []any{strconv.Itoa(count), text(least), text(most), total.String(), strconv.Itoa(named), measured}
}

func filterExpectation(t *dag.Trace, longest dag.Time) []any {
	count, peers := 0, 0
	for i := range t.Ranks {
		r := t.Ranks[i]
		for k := range r.Len() {
			if op := r.Op(k); op.Duration == longest || op.Tag == 17 {
				count++
				peers += int(op.Peer)
			}
		}
	}
	return []any{strconv.Itoa(count), strconv.Itoa(peers)}
}
