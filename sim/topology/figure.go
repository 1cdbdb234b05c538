package topology

import (
	"slices"

	"github.com/tracedag/tracedag/sim"
)

// A figure has at most drawnLinks links. That of a larger network has the utilization by switch and port instead, at
// most heatRows by heatColumns numbers.
const (
	drawnLinks  = 2000
	heatRows    = 256
	heatColumns = 128
)

// Figure is the section "network" of a result: the structure of a network with the traffic on its links, for drawings.
type Figure struct {
	Layout   string     `json:"layout"` // see [Layout]
	Hosts    int        `json:"hosts"`
	Switches int        `json:"switches"`
	Links    int        `json:"links"`
	Most     float64    `json:"max_use"` // largest utilization of a direction of a link, from 0 to 1
	Nodes    *sim.Table `json:"nodes,omitempty"`
	Drawn    *sim.Table `json:"drawn,omitempty"` // links, by the indices of their nodes
	Ports    *Heat      `json:"ports,omitempty"` // instead of nodes and links
}

// Heat is the largest utilization of the outputs of switches. A row has SwitchesPerRow switches, a column
// PortsPerColumn of their ports in the order of the links.
type Heat struct {
	SwitchesPerRow int         `json:"switches_per_row"`
	PortsPerColumn int         `json:"ports_per_column"`
	Names          []string    `json:"names"` // of the first switch of each row
	Use            [][]float64 `json:"use"`   // by row and column; rows end with the last port of their switches
}

// Traffic is the traffic of a port of [Network.Ports].
type Traffic struct {
	Bytes   uint64  // sent
	Use     float64 // utilization, from 0 to 1
	Unknown bool
}

// NewFigure returns the figure of a network with the traffic of each port.
func NewFigure(n *Network, traffic []Traffic) *Figure {
	layout, places := Rows, []Position(nil)
	if len(n.Links) <= drawnLinks {
		layout, places = n.Layout()
	}
	f := &Figure{Layout: layout.String(), Hosts: n.Hosts, Switches: n.Switches, Links: len(n.Links)}
	for port := range traffic {
		f.Most = max(f.Most, traffic[port].Use)
	}
	if places == nil {
		f.Layout, f.Ports = "heat", n.heat(traffic)
		return f
	}
	f.Nodes = &sim.Table{Columns: []string{"node", "kind", "x", "y"}}
	for node, at := range places {
		f.Nodes.Begin()
		f.Nodes.Text(n.Name(uint32(node)))
		if node < n.Hosts {
			f.Nodes.Text("host")
		} else {
			f.Nodes.Text("switch")
		}
		f.Nodes.Float(at.X, 4)
		f.Nodes.Float(at.Y, 4)
	}
	f.Drawn = &sim.Table{Columns: []string{"link", "from", "to", "rate_bits_s", "bytes", "back_bytes", "use",
		"back_use"}}
	for l, link := range n.Links {
		f.Drawn.Begin()
		f.Drawn.Text(n.LinkName(l))
		f.Drawn.Uint(uint64(link.A))
		f.Drawn.Uint(uint64(link.B))
		f.Drawn.Int(link.Rate)
		both := traffic[2*l : 2*l+2]
		for _, t := range both {
			if t.Unknown {
				f.Drawn.Null()
			} else {
				f.Drawn.Uint(t.Bytes)
			}
		}
		for _, t := range both {
			if t.Unknown {
				f.Drawn.Null()
			} else {
				f.Drawn.Float(t.Use, 4)
			}
		}
	}
	return f
}

// heat returns the utilization by switch and port.
func (n *Network) heat(traffic []Traffic) *Heat {
	ports := make([]int, n.Switches) // number of the outputs of each switch
	each := func(do func(s, port int)) {
		for l, link := range n.Links {
			for k, node := range [...]uint32{link.A, link.B} {
				if s := int(node) - n.Hosts; s >= 0 {
					do(s, 2*l+k)
				}
			}
		}
	}
	each(func(s, _ int) { ports[s]++ })
	h := &Heat{SwitchesPerRow: (n.Switches + heatRows - 1) / heatRows,
		PortsPerColumn: max(1, (slices.Max(ports)+heatColumns-1)/heatColumns)}
	for s := 0; s < n.Switches; s += h.SwitchesPerRow {
		most := slices.Max(ports[s:min(n.Switches, s+h.SwitchesPerRow)])
		h.Names = append(h.Names, n.Name(n.node(s)))
		h.Use = append(h.Use, make([]float64, (most+h.PortsPerColumn-1)/h.PortsPerColumn))
	}
	clear(ports)
	each(func(s, port int) {
		row, column := s/h.SwitchesPerRow, ports[s]/h.PortsPerColumn
		ports[s]++
		h.Use[row][column] = max(h.Use[row][column], float64(int64(traffic[port].Use*10_000+0.5))/10_000)
	})
	return h
}
