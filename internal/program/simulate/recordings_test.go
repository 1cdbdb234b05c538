package simulate

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestRecordings fits each machine to its micro-benchmarks, and compares the times of recorded programs with the
// predictions: longest rank and time in MPI, in per cent. Those of recordings as users make them have starts that
// differ and the set-up of communicators, which nothing predicts.
func TestRecordings(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	switch {
	case folder == "":
		t.Skip("set TRACEDAG_VECTORS to the folder of third-party sample files")
	case testing.Short():
		t.Skip("predicts each collective with each algorithm")
	}
	folder, err := filepath.Abs(filepath.Join(folder, "smpi"))
	if err != nil {
		t.Fatal(err)
	}
	for _, machine := range []struct {
		platform, table, collective string
		programs                    map[string][2]float64
	}{
		{"star1g", "16", "smpi-mpich", map[string][2]float64{
			"star-jacobi-16": {0.9, 0.8}, "star-lulesh-27": {2.2, 2.1}, "star-lulesh-27-skew": {33, 34}}},
		{"fattree100g", "16", "smpi-ompi", map[string][2]float64{
			"ft-fft-16": {0.1, 0.1}, "ft-comd-64-skew": {6, 15}}},
		{"dragonfly25g", "32", "smpi-default;barrier=dissemination;", map[string][2]float64{
			"df-ring-32": {0.1, 0.1}, "df-nasis-64": {0.1, 0.1}}},
	} {
		t.Run(machine.platform, func(t *testing.T) {
			t.Chdir(t.TempDir())
			platform := filepath.Join(folder, machine.platform+".xml")
			table := filepath.Join(folder, "micro-"+machine.platform+"-"+machine.table+".csv")
			r := clitest.Run(newCommand, "--fit", "--fit-backend", "flow", "--topology", platform, "--fit-out", "m.json",
				table)
			if r.Status != 0 || !strings.Contains(r.Stdout, "--collective '") ||
				!strings.Contains(r.Stdout, machine.collective) {
				t.Fatalf("status %d, stdout %s, stderr %s", r.Status, r.Stdout, r.Stderr)
			}
			for program, most := range machine.programs {
				unpack(t, filepath.Join(folder, program+".tgz"))
				r := clitest.Run(newCommand, "--params", "./m.json", "--compare", program)
				if r.Status != 0 {
					t.Fatalf("%s: status %d, stderr %s", program, r.Status, r.Stderr)
				}
				longest, inMPI := errorOf(t, r.Stdout, "all"), errorOf(t, r.Stdout, "non-calc")
				t.Logf("%s: longest rank %+.2f %%, time in MPI %+.2f %%", program, longest, inMPI)
				if !(math.Abs(longest) <= most[0] && math.Abs(inMPI) <= most[1]) {
					t.Errorf("%s: errors of %.2f and %.2f %%, expected at most %v", program, longest, inMPI, most)
				}
			}
		})
	}
}

// errorOf returns the error of a row of a comparison in per cent.
func errorOf(t *testing.T, text, name string) float64 {
	t.Helper()
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 4 && f[0] == name {
			v, err := strconv.ParseFloat(strings.TrimSuffix(f[3], "%"), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("no row %s in %s", name, text)
	return 0
}

// unpack unpacks the files of an archive, which are in one folder.
func unpack(t *testing.T, name string) {
	t.Helper()
	for archive := tar.NewReader(bytes.NewReader(unpacked(t, name))); ; {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			t.Fatal(err)
		case header.Typeflag != tar.TypeReg:
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Base(filepath.Dir(header.Name))
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(header.Name)), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
