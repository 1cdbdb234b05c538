package tracegen

import (
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/fft"
	"github.com/tracedag/tracedag/dag/gen/masterworker"
	"github.com/tracedag/tracedag/dag/gen/nbody"
	"github.com/tracedag/tracedag/dag/gen/stencil"
	"github.com/tracedag/tracedag/dag/gen/sweep3d"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestApplicationFlags checks that every flag of the application generators sets its parameter.
func TestApplicationFlags(t *testing.T) {
	for args, want := range map[string]func() (*dag.Trace, error){
		"stencil":      func() (*dag.Trace, error) { return readAll(stencil.NewSource(stencil.Default())) },
		"sweep3d":      func() (*dag.Trace, error) { return readAll(sweep3d.NewSource(sweep3d.Default())) },
		"fft":          func() (*dag.Trace, error) { return readAll(fft.NewSource(fft.Default())) },
		"masterworker": func() (*dag.Trace, error) { return readAll(masterworker.NewSource(masterworker.Default(), 1)) },
		"nbody":        func() (*dag.Trace, error) { return readAll(nbody.NewSource(nbody.Default())) },
		"stencil --grid 2x3 --cells 10x20 --halo 2 --cell-bytes 16 --periodic --diagonal --iterations 2 " +
			"--compute 7": func() (*dag.Trace, error) {
			return readAll(stencil.NewSource(stencil.Params{
				Grid: []int{2, 3}, Cells: []int64{10, 20}, Halo: []int64{2}, CellBytes: 16, Periodic: true, Diagonal: true,
				Iterations: 2, Compute: 7 * dag.Nanosecond,
			}))
		},
		"sweep3d --grid 2x3 --cells 4x5x6 --z-block 4 --angles 5 --angle-block 2 --flux-bytes 4 --grind 1us " +
			"--iterations 3": func() (*dag.Trace, error) {
			return readAll(sweep3d.NewSource(sweep3d.Params{
				GridX: 2, GridY: 3, X: 4, Y: 5, Z: 6, ZBlock: 4, Angles: 5, AngleBlock: 2, FluxBytes: 4,
				Grind: dag.Microsecond, Iterations: 3,
			}))
		},
		"fft --size 16x32 --grid 2x4 --element-bytes 8 --flop-rate 1000 --inverse=false --iterations 3": func() (
			*dag.Trace, error) {
			return readAll(fft.NewSource(fft.Params{
				Size: []int64{16, 32}, Rows: 2, Columns: 4, ElementBytes: 8, FlopRate: 1000, Iterations: 3,
			}))
		},
		"masterworker --workers 3 --tasks 10 --task-bytes 5 --result-bytes 6 --compute 1us --spread 0.1 --handle 9 " +
			"--any-source=false --seed 4": func() (*dag.Trace, error) {
			return readAll(masterworker.NewSource(masterworker.Params{
				Workers: 3, Tasks: 10, TaskBytes: 5, ResultBytes: 6, Compute: dag.Microsecond, Spread: 0.1,
				Handle: 9 * dag.Nanosecond,
			}, 4))
		},
		"nbody --ranks 3 --bodies 7 --body-bytes 9 --interaction 4 --update 5 --steps 2": func() (*dag.Trace, error) {
			return readAll(nbody.NewSource(nbody.Params{
				Ranks: 3, Bodies: 7, BodyBytes: 9, Interaction: 4 * dag.Nanosecond, Update: 5 * dag.Nanosecond, Steps: 2,
			}))
		},
	} {
		tr, err := want()
		if err != nil {
			t.Fatal(err)
		}
		got, _ := generate(t, strings.Fields(args)...)
		same(t, got, tr)
	}
}

func TestApplicationUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"stencil --grid 4xx4", "expected numbers with x between them, such as 4x4x2"},
		{"stencil --grid -4", "expected numbers with x between them"},
		{"stencil --grid 1x1x1x1x1x1x1", "grid has 7 dimensions, expected 1..6"},
		{"sweep3d --grid 4", "--grid has 1 dimensions, expected 2"},
		{"sweep3d --cells 4x4", "--cells has 2 dimensions, expected 3"},
		{"fft --grid 4x4x4", "--grid has 3 dimensions, expected 2"},
		{"fft --grid 3x4", "grid is 3 x 4, expected powers of two"},
		{"masterworker --spread 2", "spread is 2, expected 0..1"},
		{"nbody --steps 0", "steps is 0, expected 1.."},
	} {
		got := clitest.Run(newCommand, strings.Fields(c.args)...)
		if got.Status != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, c.want) {
			t.Errorf("tracegen %s: exit status %d, stderr %q, expected %q", c.args, got.Status, got.Stderr, c.want)
		}
	}
}
