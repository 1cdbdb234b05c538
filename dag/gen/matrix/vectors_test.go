package matrix

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// vector is a case of testdata; its README describes the fields.
type vector struct {
	N          int     `json:"n"`
	Racks      int     `json:"racks"`
	Capacity   float64 `json:"ep_capacity"`
	TargetLoad float64 `json:"target_load"`
	Expected   struct {
		SumSizes     float64 `json:"sum_sizes"`
		RawDuration  float64 `json:"raw_duration"`
		Factor       float64 `json:"interarrival_factor"`
		Duration     float64 `json:"duration_after"`
		LoadRate     float64 `json:"load_rate"`
		PortRoom     float64 `json:"port_room"`
		SizeDistance float64 `json:"size_sample_distance"`
		TimeDistance float64 `json:"interarrival_sample_distance"`
		Corrected    bool    `json:"matrix_corrected"`
	} `json:"expected"`
	Reference struct {
		Vectorised struct {
			Distances []float64 `json:"packing_distance"`
			Error     bool      `json:"error"`
		} `json:"vectorised"`
	} `json:"reference"`
	Tolerance struct {
		Vectorised float64 `json:"vectorised_relative"`
		Original   float64 `json:"original_relative"`
	} `json:"tolerance"`
	Distance float64 `json:"expected_distance"`

	folder string
	params Params
}

// read reads a file of the case, which may be compressed.
func read[T any](t testing.TB, v *vector, name string, parse func(io.Reader) (T, error)) T {
	t.Helper()
	path := filepath.Join(v.folder, name)
	f, err := os.Open(path)
	var r io.Reader = f
	if err != nil {
		if f, err = os.Open(path + ".gz"); err == nil {
			r, err = gzip.NewReader(f)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	parsed, err := parse(r)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return parsed
}

func readVector(t testing.TB, name string) *vector {
	t.Helper()
	v := &vector{folder: filepath.Join("testdata", name)}
	text, err := os.ReadFile(filepath.Join(v.folder, "case.json"))
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatal(err)
	}
	v.params = Default()
	v.params.Nodes, v.params.Capacity, v.params.Load = v.N, v.Capacity, v.TargetLoad
	v.params.AutoCorrect = true
	v.params.Matrix = read(t, v, "node_matrix.csv", ReadMatrix)
	v.params.Sizes = Values{Given: read(t, v, "sizes.csv", Size.ReadValues), PMF: read(t, v, "size_pmf.csv", Size.ReadPMF)}
	v.params.Interarrivals = Values{
		Given: read(t, v, "interarrival_raw.csv", Interarrival.ReadValues),
		PMF:   read(t, v, "interarrival_pmf.csv", Interarrival.ReadPMF),
	}
	return v
}

func near(a, b, relative float64) bool {
	return math.Abs(a-b) <= relative*math.Abs(b)
}

func TestVectors(t *testing.T) {
	folders, err := filepath.Glob("testdata/*/case.json")
	if err != nil || len(folders) != 11 {
		t.Fatalf("%d cases, %v", len(folders), err)
	}
	for _, path := range folders {
		name := filepath.Base(filepath.Dir(path))
		t.Run(name, func(t *testing.T) {
			v := readVector(t, name)
			_, r, err := NewSource(v.params, 1)
			if v.Reference.Vectorised.Error {
				var unpackable *UnpackableError
				if !errors.As(err, &unpackable) {
					t.Fatalf("error %v, want that it cannot be packed", err)
				}
				if unpackable.Flow != 0 || unpackable.Port != int64(v.Expected.PortRoom) {
					t.Errorf("error %+v", unpackable)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			v.check(t, r)
		})
	}
}

func (v *vector) check(t *testing.T, r *Report) {
	t.Helper()
	want := &v.Expected
	if float64(r.SumSizes) != want.SumSizes || r.MatrixCorrected != want.Corrected {
		t.Errorf("%d bytes, corrected: %v; want %v, %v", r.SumSizes, r.MatrixCorrected, want.SumSizes, want.Corrected)
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"raw duration", r.RawDuration, want.RawDuration}, {"factor", r.InterarrivalFactor, want.Factor},
		{"duration", r.Duration, want.Duration}, {"load rate", r.LoadRate, want.LoadRate},
		{"room", r.PortRoom, want.PortRoom}, {"load", r.Load, v.TargetLoad},
		{"distance of sizes", *r.SizeDistance, want.SizeDistance},
		{"distance of times", *r.IntervalDistance, want.TimeDistance},
	} {
		if !near(c.got, c.want, 1e-9) {
			t.Errorf("%s is %v, want %v", c.what, c.got, c.want)
		}
	}
	for _, use := range []float64{r.MaxSourceUse, r.MaxDestinationUse} {
		if use > 1 {
			t.Errorf("a port is used %v times", use)
		}
	}
	t.Logf("distance %v, use %v %v", r.PackingDistance, r.MaxSourceUse, r.MaxDestinationUse)
	distances := append(v.Reference.Vectorised.Distances, v.Distance)
	if v.Distance == 0 {
		distances = distances[:len(distances)-1]
	}
	tolerance := v.Tolerance.Vectorised
	if want.Corrected {
		tolerance = v.Tolerance.Original // the corrected matrix adds up to 1 here
	}
	for _, d := range distances {
		if !near(r.PackingDistance, d, tolerance) {
			t.Errorf("packing distance %v, want %v within %v", r.PackingDistance, d, tolerance)
		}
	}
}

// TestCorrectedAsReference packs the corrected matrix as the vectorised reference does. It does not bring the matrix
// back to a sum of 1, and then takes the targets twice.
func TestCorrectedAsReference(t *testing.T) {
	v := readVector(t, "skewed005_n40_load09_w_corrected")
	m := v.params.Matrix
	m.correct(v.Expected.LoadRate, v.Capacity)
	corrected := read(t, v, "node_matrix_corrected.csv", func(file io.Reader) (cells []float64, err error) {
		_, err = rows(file, nil, func(_ int64, fields []float64) error {
			cells = append(cells, fields...)
			return nil
		})
		return cells, err
	})
	for i, c := range corrected {
		if !near(m.Cells[i], c, 1e-9) {
			t.Fatalf("cell %d is %v, want %v", i, m.Cells[i], c)
		}
	}
	if total := sum(m.Cells); math.Abs(total-0.98699) > 1e-5 {
		t.Errorf("the corrected matrix adds up to %v, want 0.98699", total)
	}
	sizes := descending(v.params.Sizes.Given)
	bytes := int64(v.Expected.SumSizes)
	p := newPacker(v.N, func(pair int) float64 { return 2 * m.Cells[pair] * float64(bytes) }, bytes,
		portRoom(v.Expected.PortRoom), random(1, "ties"))
	packed := make([]int64, len(m.Cells))
	for _, z := range sizes {
		packed[p.place(z)] += z
	}
	for _, want := range v.Reference.Vectorised.Distances {
		if got := packingDistance(m.Cells, packed, bytes); !near(got, want, v.Tolerance.Vectorised) {
			t.Errorf("distance %v, want %v", got, want)
		}
	}
}

// TestRackRecipe: the racks of a uniform matrix leave nothing to chance.
func TestRackRecipe(t *testing.T) {
	v := readVector(t, "rack02_n32_w")
	m, err := (&Recipe{Kind: "uniform"}).Matrix(v.N, nil)
	if err != nil {
		t.Fatal(err)
	}
	if below := m.shareRacks(v.Racks, 0.8); below != 0 {
		t.Errorf("%d cells below 0", below)
	}
	for i, c := range v.params.Matrix.Cells {
		if !near(m.Cells[i], c, 1e-12) {
			t.Fatalf("cell %d is %v, want %v", i, m.Cells[i], c)
		}
	}
}
