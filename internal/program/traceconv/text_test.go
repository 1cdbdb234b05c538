package traceconv

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/formats/goal"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// largeText returns a GOAL text of 8.3 MiB, of a ring of ranks with steps, with changes of the last block.
func largeText(last func(block string) string) string {
	const ranks, steps = 40, 2600
	var text strings.Builder
	fmt.Fprintf(&text, "num_ranks %d\n", ranks)
	for rank := range ranks {
		var block strings.Builder
		for i := range steps {
			fmt.Fprintf(&block, "l%d: calc %d\nl%d: send %db to %d tag 3\nl%d requires l%d\nl%d: recv %db from %d tag 3\n", 3*i+1,
				rank*i, 3*i+2, i, (rank+1)%ranks, 3*i+2, 3*i+1, 3*i+3, i, (rank+ranks-1)%ranks)
		}
		content := block.String()
		if rank == ranks-1 {
			content = last(content)
		}
		fmt.Fprintf(&text, "rank %d {\n%s", rank, content)
		if rank < ranks-1 {
			text.WriteString("}\n")
		}
	}
	return text.String()
}

// TestLargeText checks that a large text is converted batch by batch, with the outputs, messages and exit status of a
// conversion in memory, unless an edit needs the whole trace or the output replaces the input.
func TestLargeText(t *testing.T) {
	whole, streamed := 0, 0
	list := func(streams bool) formats.List {
		list := slices.Clone(formats.All)
		for i := range list {
			if list[i].Name == goal.Text.Name {
				read, stream := list[i].Read, list[i].Stream
				list[i].Read = func(in []*format.Input, o format.ReadOptions) (*dag.Trace, error) {
					whole++
					return read(in, o)
				}
				list[i].Stream = func(in *format.Input, o format.ReadOptions) (format.Stream, error) {
					if !streams {
						return nil, nil
					}
					streamed++
					return stream(in, o)
				}
			}
		}
		return list
	}
	texts := []struct {
		name string
		last func(block string) string
	}{
		{"sound", func(b string) string { return b + "}\n" }},
		{"ends early", func(b string) string { return b + "calc 5" }},
		{"disagreement", func(b string) string { return b + "send 8b to 2\nsend 8b to 1\n}\nmore" }},
		{"wildcard", func(b string) string { return strings.Replace(b, "from 38", "from -1", 1) + "}\n" }},
		{"error", func(b string) string { return b + "calc x\n}\n" }},
		{"release times", func(b string) string {
			return "// clock\nc1: calc 9 cpu 3\nm: calc 1\nm requires c1\n" + b + "}\n"
		}},
		{"high cpu", func(b string) string { return b + "calc 5 cpu 700\n}\n" }},
	}
	if testing.Short() {
		texts = texts[:3]
	}
	for i, c := range texts {
		content := largeText(c.last)
		in(t, map[string]string{"x.goal": content})
		conversions := []string{"x.goal -o y.bin", "x.goal -o y.parquet", "x.goal --to goalbin"}
		if c.name == "sound" {
			conversions = append(conversions, "x.goal -o y.goal", "x.goal -o y.bin --strict --no-clock --title T",
				"x.goal -o x.goal", "x.goal -o y.goal --only-ranks 0-1", "-v x.goal -o folder/ --to goalbin --report r.csv")
		} else if os.Getenv("TRACEDAG_LONG") == "" {
			conversions = conversions[i%3 : i%3+1]
		}
		for _, args := range conversions {
			run := func(streams bool) (clitest.Result, string) {
				os.WriteFile("x.goal", []byte(content), 0o666)
				whole, streamed = 0, 0
				got := clitest.Session{Formats: list(streams)}.Run(New, strings.Fields(args)...)
				output := ""
				for _, name := range []string{"y.bin", "y.goal", "y.parquet", "x.goal", "folder/x.bin"} {
					b, err := os.ReadFile(name)
					if err != nil && !errors.Is(err, os.ErrNotExist) {
						t.Fatal(err)
					}
					output += string(b)
					os.Remove(name)
				}
				return got, output
			}
			want, wantOutput := run(false)
			got, output := run(true)
			if strings.Contains(args, "-v") { // durations differ
				want.Stderr, got.Stderr = want.Stderr[:strings.Index(want.Stderr, " in ")],
					got.Stderr[:strings.Index(got.Stderr, " in ")]
			}
			if got != want || output != wantOutput {
				t.Errorf("%s, %s: exit status %d, stderr %q, %d bytes; expected %d, %q, %d", c.name, args, got.Status, got.Stderr,
					len(output)+len(got.Stdout), want.Status, want.Stderr, len(wantOutput)+len(want.Stdout))
			}
			inMemory := strings.Contains(args, "only-ranks") || strings.HasSuffix(args, "x.goal")
			if (whole > 0) != inMemory || (streamed > 0) == inMemory {
				t.Errorf("%s, %s: read as a whole %d times, streamed %d times", c.name, args, whole, streamed)
			}
		}
	}
}
