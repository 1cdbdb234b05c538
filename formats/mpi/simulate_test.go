package mpi

import (
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/sim/loggops"
)

// Schedules run in the time that LogGOPSim takes for Schedgen's, also where the clock of a trace ran backwards.
func TestLogGOPSim(t *testing.T) {
	runs := 0
	for _, folder := range vectorFolders(t) {
		paths, err := filepath.Glob(filepath.Join(folder, "*.schedgen.expected.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.Contains(path, "sweep3d") {
				continue // large
			}
			e := readExpectation(t, path)
			trace, err := read(traceFiles(t, filepath.Join(folder, e.Trace)), format.ReadOptions{
				Own: parseOptions(t, e), Compat: true, Warn: func(string, ...any) {}})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range e.LogGOPSim {
				if want.Status != "complete" {
					continue
				}
				replay, err := loggops.Compile(dag.FromTrace(trace), loggops.LogGOPSim, t.Logf)
				if err != nil {
					t.Fatal(err)
				}
				p := want.Params
				ns := func(name string) dag.Time { return dag.Time(p[name]) * dag.Nanosecond }
				got, err := replay.Run(loggops.Options{Params: loggops.Params{L: ns("L"), Overhead: ns("o"), Gap: ns("g"),
					GPerByte: big.NewRat(int64(ns("G")), 1), OPerByte: big.NewRat(int64(ns("O")), 1), S: p["S"]}})
				if err != nil {
					t.Fatal(err)
				}
				var finish []uint64
				for _, c := range got.Finish {
					finish = append(finish, c.Ticks)
				}
				if !slices.Equal(finish, want.Finish) {
					t.Errorf("%s %v: finish %v, want %v", filepath.Base(path), p, finish, want.Finish)
				}
				runs++
			}
		}
	}
	if runs < 10 {
		t.Errorf("only %d runs", runs)
	}
}
