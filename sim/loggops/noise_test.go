package loggops_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/sim/loggops"
)

// TestReferenceNoise compares noise in the loggopsim model with runs of the reference program with known seeds.
func TestReferenceNoise(t *testing.T) {
	text, err := os.ReadFile(vectors + "/noise.expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var expected struct {
		Runs []struct {
			Schedule         string
			Seed             int64
			Cosched          bool
			Params           params
			Finish, Injected []uint64
		}
	}
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	if len(expected.Runs) == 0 {
		t.Fatal("no runs")
	}
	for _, want := range expected.Runs {
		noise := readNoise(t, vectors+"/noise_trace.txt")
		noise.Seed, noise.Coscheduled = want.Seed, want.Cosched
		got, err := run(readBinary(t, filepath.Join(vectors, want.Schedule+".bin")),
			loggops.LogGOPSim, loggops.Options{Params: want.Params.loggops(t), Noise: noise}, t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		var finish, injected []uint64
		for _, c := range got.Finish {
			finish = append(finish, c.Ticks)
		}
		for _, c := range got.Section("backend_stats").Value.(loggops.Stats).Noise {
			injected = append(injected, c.Ticks)
		}
		if !slices.Equal(finish, want.Finish) || !slices.Equal(injected, want.Injected) {
			t.Errorf("%s, seed %d, coscheduled %v, %v:\nfinish %v, expected %v\nnoise %v, expected %v", want.Schedule,
				want.Seed, want.Cosched, want.Params.values, finish, want.Finish, injected, want.Injected)
		}
	}
}

func readNoise(t *testing.T, path string) *loggops.NoiseTrace {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	noise, err := loggops.ReadNoise(f, path)
	if err != nil {
		t.Fatal(err)
	}
	return noise
}

func TestReadNoiseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "at least one detour"},
		{"# only a comment\n", "at least one detour"},
		{"0\t5\n", "at least one detour after time 0"},
		{"1 2 3\n", ":1: expected the start and length"},
		{"1\n", ":1: expected the start and length"},
		{"5 1\n4 1\n", ":2: expected a start not before"},
		{"x 1\n", ":1: expected two times"},
		{"-1 1\n", ":1: expected two times"},
		{"1 1e300\n", ":1: expected two times"},
		{"1 NaN\n", ":1: expected two times"},
		{"1 2\n\n3 4\n", ":2: expected the start and length"},
	} {
		_, err := loggops.ReadNoise(strings.NewReader(c.text), "n.txt")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, expected %q", c.text, err, c.want)
		}
	}
}
