package fit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSendLateWithoutBytes estimates S if even an empty send waits for its receive.
func TestSendLateWithoutBytes(t *testing.T) {
	var text strings.Builder
	text.WriteString("test,bytes,s\n")
	for i := range 5 {
		fmt.Fprintf(&text, "pingpong,%d,%d\n", 1+1000*i, 1+i)
	}
	text.WriteString("pingpong,0,1\nsend_late,0,9\nsend_late,5000,99\n")
	table, err := Read("table", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	f, err := LogGOPS([]*Table{table}, Options{Draws: 10})
	if err != nil {
		t.Fatal(err)
	}
	if p, known := f.Parameters["S"]; known && p.Value != 0 {
		t.Errorf("S is %v, expected 0", p)
	}
	if remarks := strings.Join(f.Remarks, "\n"); strings.Contains(remarks, "-1 bytes") {
		t.Error(remarks)
	}
}

// TestSplitManySizes expects an error instead of a table of all pairs of sizes.
func TestSplitManySizes(t *testing.T) {
	points := make([]Point, maxRows)
	for i := range points {
		points[i] = Point{Bytes: int64(i), Seconds: 1e-6}
	}
	if _, err := Split(points); err == nil || !strings.Contains(err.Error(), "found 1048576 sizes") {
		t.Errorf("error %v, expected one about the number of sizes", err)
	}
}

// TestReadFileLarge expects an error that names a file without end, which is not read as a whole.
func TestReadFileLarge(t *testing.T) {
	name := filepath.Join(t.TempDir(), "large.json")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(1 << 40); err != nil {
		t.Skip(err)
	}
	want := name + ": expected a parameter file of at most 1048576 bytes"
	if _, err := ReadFile(name); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, expected %s", err, want)
	}
}

// TestPipe checks that a parameter file is no pipe: programs read it several times.
func TestPipe(t *testing.T) {
	if _, err := ReadFile(os.DevNull); err == nil || !strings.Contains(err.Error(), "found a pipe or device") {
		t.Errorf("ReadFile of a device: error %v", err)
	}
}
