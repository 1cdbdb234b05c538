package simulate

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/sim/fit"
)

var recordingsAll = flag.Bool("recordings.all", false, "fit the machines that take long, too")

// recording has the largest errors of the predictions for a recorded program in per cent, by backend: of the longest
// rank and of the time in MPI. network is that of analytical for its ranks.
type recording struct {
	flow, packet, analytical [2]float64
	network                  string
}

// TestRecordings fits each machine to its micro-benchmarks, and compares the times of recorded programs with the
// predictions: longest rank and time in MPI, in per cent. Those of recordings as users make them have starts that
// differ and the set-up of communicators, which nothing predicts. The algorithms of collectives for packet are those
// that flow identifies. Without TRACEDAG_LONG, flow is the only backend, and machines whose fit takes long
// need -recordings.all.
func TestRecordings(t *testing.T) {
	long := os.Getenv("TRACEDAG_LONG") != ""
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
		slow                        bool   // the fit
		network                     string // of analytical, for the fit
		programs                    map[string]recording
	}{
		{"star1g", "16", "smpi-mpich", true, "Switch(16)", map[string]recording{
			"star-jacobi-16":      {[2]float64{0.9, 0.8}, [2]float64{3, 4}, [2]float64{65, 100}, "Switch(16)"},
			"star-lulesh-27":      {[2]float64{2.2, 2.1}, [2]float64{6, 8}, [2]float64{200, 235}, "Switch(27)"},
			"star-lulesh-27-skew": {[2]float64{33, 34}, [2]float64{39, 40}, [2]float64{105, 110}, "Switch(27)"}}},
		{"fattree100g", "16", "smpi-ompi", false, "Switch(8)_Switch(8)", map[string]recording{
			"ft-fft-16":       {[2]float64{0.1, 0.1}, [2]float64{0.2, 1.1}, [2]float64{3, 20}, "Switch(8)_Switch(2)"},
			"ft-comd-64-skew": {[2]float64{6, 15}, [2]float64{6, 15}, [2]float64{2, 5}, "Switch(8)_Switch(8)"}}},
		{"dragonfly25g", "32", "smpi-default;barrier=dissemination;", false, "Switch(4)_FC(4)_FC(2)", map[string]recording{
			"df-ring-32":  {[2]float64{0.1, 0.1}, [2]float64{3.5, 9.5}, [2]float64{40, 68}, "Switch(4)_FC(4)_FC(2)"},
			"df-nasis-64": {[2]float64{0.1, 0.1}, [2]float64{9, 9}, [2]float64{}, ""}}},
	} {
		if machine.slow && !long && !*recordingsAll {
			continue
		}
		t.Run(machine.platform, func(t *testing.T) {
			t.Chdir(t.TempDir())
			platform := filepath.Join(folder, machine.platform+".xml")
			table := filepath.Join(folder, "micro-"+machine.platform+"-"+machine.table+".csv")
			r := clitest.Run(newCommand, "--fit", "--fit-backend", "flow", "--topology", platform, "--fit-out",
				"flow.json", table)
			if r.Status != 0 || !strings.Contains(r.Stdout, "--collective '") ||
				!strings.Contains(r.Stdout, machine.collective) {
				t.Fatalf("status %d, stdout %s, stderr %s", r.Status, r.Stdout, r.Stderr)
			}
			f, err := fit.ReadFile("flow.json")
			if err != nil {
				t.Fatal(err)
			}
			if long {
				fitOthers(t, platform, table, machine.network)
			}
			for program, p := range machine.programs {
				unpack(t, filepath.Join(folder, program+".tgz"))
				checkRecording(t, program, p.flow, "--params", "./flow.json")
				if !long {
					continue
				}
				checkRecording(t, program, p.packet, "--params", "./packet.json", "--collective", f.Collective)
				if p.network != "" {
					checkRecording(t, program, p.analytical, "--params", "./analytical.json", "--network",
						p.network+"@1GB/s,1us")
				}
			}
		})
	}
}

// TestFitTraceOfRecording fits a machine to the recording of one program, and predicts it and another one.
func TestFitTraceOfRecording(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("set TRACEDAG_VECTORS to the folder of third-party sample files")
	}
	folder, err := filepath.Abs(filepath.Join(folder, "smpi"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, program := range []string{"star-lulesh-27", "star-jacobi-16"} {
		unpack(t, filepath.Join(folder, program+".tgz"))
	}
	r := clitest.Run(newCommand, "--fit", "--fit-backend", "flow", "--topology", filepath.Join(folder, "star1g.xml"),
		"--fit-trace", "star-lulesh-27", "--fit-out", "flow.json")
	if r.Status != 0 || !strings.Contains(r.Stdout, "the factors are those of --flow-model smpi") ||
		!strings.Contains(r.Stdout, "--collective 'smpi-mpich'") {
		t.Fatalf("status %d, stdout %s, stderr %s", r.Status, r.Stdout, r.Stderr)
	}
	checkRecording(t, "star-lulesh-27", [2]float64{0.1, 0.5}, "--params", "./flow.json")
	checkRecording(t, "star-jacobi-16", [2]float64{1, 1}, "--params", "./flow.json")
}

// fitOthers fits packet and analytical to the messages of a table.
func fitOthers(t *testing.T, platform, table, network string) {
	t.Helper()
	writeMessages(t, table, "messages.csv")
	for _, args := range [][]string{
		{"--fit-backend", "packet", "--topology", platform, "--fit-out", "packet.json"},
		{"--fit-backend", "analytical", "--network", network + "@1GB/s,1us", "--fit-out", "analytical.json"},
	} {
		r := clitest.Run(newCommand, append(args, "--fit", "messages.csv")...)
		if r.Status != 0 {
			t.Fatalf("%v: status %d, stderr %s", args, r.Status, r.Stderr)
		}
	}
}

// checkRecording compares a recorded program with its prediction.
func checkRecording(t *testing.T, program string, most [2]float64, args ...string) {
	t.Helper()
	r := clitest.Run(newCommand, append(args, "--compare", program)...)
	if r.Status != 0 {
		t.Fatalf("%s, %v: status %d, stderr %s", program, args, r.Status, r.Stderr)
	}
	longest, inMPI := errorOf(t, r.Stdout, "all"), errorOf(t, r.Stdout, "non-calc")
	t.Logf("%s, %s: longest rank %+.2f %%, time in MPI %+.2f %%", program, args[1], longest, inMPI)
	if !(math.Abs(longest) <= most[0] && math.Abs(inMPI) <= most[1]) {
		t.Errorf("%s, %s: errors of %.2f and %.2f %%, expected at most %v", program, args[1], longest, inMPI, most)
	}
}

// writeMessages writes the measurements of single messages of a table to another one.
func writeMessages(t *testing.T, table, name string) {
	t.Helper()
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		switch test, _, _ := strings.Cut(line, ","); test {
		case "test", fit.PingPong, fit.SendCall, fit.SendLate, fit.RecvLate:
			kept.WriteString(line)
		}
	}
	if err := os.WriteFile(name, []byte(kept.String()), 0o666); err != nil {
		t.Fatal(err)
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
