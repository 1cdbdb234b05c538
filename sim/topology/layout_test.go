package topology

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// TestLayout checks that nodes have places of their own within the drawing.
func TestLayout(t *testing.T) {
	jellyfish := filepath.Join(t.TempDir(), "ring.edges")
	text := ""
	for _, link := range []string{"h0 a", "h1 b", "h2 c", "h3 d", "a b", "b c", "c d", "d a", "a c"} {
		if link[0] == 'h' {
			text += "host " + link[:2] + "\n"
		}
		text += link + " 100Gbps 1us\n"
	}
	if err := os.WriteFile(jellyfish, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]Layout{
		"fattree:k=4": Rows, "fattree:k=8": Rows, "leafspine:hosts=64,tor=8": Rows, "star:hosts=1": Rows,
		"star:hosts=9": Rows, "torus:dims=4x4": Grid, "mesh:dims=3x4x5,p=2": Grid, "mesh:dims=2x3x2x3": Grid,
		"torus:dims=8": Grid, "dragonfly:p=2,a=4,h=2": Groups, "dragonfly:p=1,a=1,h=1": Groups,
		"dragonfly:p=3,a=1,h=3": Groups, jellyfish: Levels,
	} {
		n, err := Load(spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		layout, places := n.Layout()
		if layout != want || len(places) != n.Hosts+n.Switches {
			t.Errorf("%s: layout %v of %d nodes, want %v of %d", spec, layout, len(places), want, n.Hosts+n.Switches)
		}
		for node, at := range places {
			if !(at.X >= 0 && at.X <= 1 && at.Y >= 0 && at.Y <= 1) {
				t.Errorf("%s: %s is at %v", spec, n.Name(uint32(node)), at)
			}
			for other, as := range places[:node] {
				if math.Hypot(at.X-as.X, at.Y-as.Y) < 0.004 {
					t.Errorf("%s: %s and %s are both at %v", spec, n.Name(uint32(node)), n.Name(uint32(other)), at)
				}
			}
		}
	}
}

// TestFigure compares the traffic in figures with that of ports.
func TestFigure(t *testing.T) {
	for spec, drawn := range map[string]bool{"fattree:k=8": true, "fattree:k=16": false, "star:hosts=5000": false} {
		n, err := Load(spec)
		if err != nil {
			t.Fatal(err)
		}
		traffic := make([]Traffic, 2*len(n.Links))
		for port := range traffic {
			traffic[port] = Traffic{Bytes: uint64(port), Use: float64(port%97) / 100}
		}
		text, err := json.Marshal(NewFigure(n, traffic))
		if err != nil {
			t.Fatal(err)
		}
		var f struct {
			Links int
			Most  float64 `json:"max_use"`
			Drawn struct{ Rows [][]any }
			Ports struct {
				Names []string
				Use   [][]float64
			}
		}
		if err := json.Unmarshal(text, &f); err != nil {
			t.Fatal(err)
		}
		if f.Links != len(n.Links) || f.Most != 0.96 {
			t.Errorf("%s: %d links of at most %v, want %d of 0.96", spec, f.Links, f.Most, len(n.Links))
		}
		if drawn {
			for l, row := range f.Drawn.Rows {
				if row[1] != float64(n.Links[l].A) || row[4] != float64(2*l) || row[7] != float64((2*l+1)%97)/100 {
					t.Errorf("%s: link %d is %v", spec, l, row)
				}
			}
		}
		if (len(f.Drawn.Rows) == len(n.Links)) != drawn || (len(f.Ports.Use) == 0) != drawn {
			t.Errorf("%s: %d links and %d rows of ports", spec, len(f.Drawn.Rows), len(f.Ports.Use))
		}
		most := 0.0
		for _, row := range f.Ports.Use {
			for _, use := range row {
				most = max(most, use)
			}
			if len(row) > heatColumns {
				t.Errorf("%s: a row of %d ports", spec, len(row))
			}
		}
		if !drawn && (most != 0.96 || len(f.Ports.Names) != len(f.Ports.Use) || len(f.Ports.Use) > heatRows) {
			t.Errorf("%s: %d rows of ports, at most %v", spec, len(f.Ports.Use), most)
		}
	}
}
