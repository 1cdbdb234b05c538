package packet

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/topology"
)

// vector is a run of a reference simulator.
type vector struct {
	ID     string
	Inputs struct{ Traffic string }
	Params struct {
		MSS    int64   `json:"mtu_payload_bytes"`
		Queue  int64   `json:"queue_data_bytes"`
		PS     int64   `json:"ps_per_byte"`
		Window float64 `json:"initial_window_packets"`
	}
	Topology struct{ File string }
	Summary  struct {
		FCT struct{ Mean, P99 float64 } `json:"fct_ps"`
	}
	Counters struct {
		Drops float64 `json:"switch_drops"`
	}
	Flows, Paths, Ports rows
	Incomplete          int `json:"incomplete_flows"`
}

type rows struct {
	Columns []string
	Rows    [][]any
}

// at returns a number of a row by column, false if it is null or the column does not exist.
func (r *rows) at(row []any, column string) (uint64, bool) {
	i := slices.Index(r.Columns, column)
	if i < 0 {
		return 0, false
	}
	v, ok := row[i].(float64)
	return uint64(v), ok
}

// vectorFolder returns the folder of the reference runs. Without it, it skips the test.
func vectorFolder(t testing.TB) string {
	dir := os.Getenv("TRACEDAG_VECTORS")
	if dir == "" {
		t.Skip("TRACEDAG_VECTORS is not set")
	}
	return filepath.Join(dir, "packet")
}

func readVector(t testing.TB, id string) *vector {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(vectorFolder(t), "runs", id+".json"))
	if err != nil {
		t.Fatal(err)
	}
	v := new(vector)
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// network returns the network of the run: that of its file, or the three-tier fat tree with links of 1 us that some of
// the programs always build.
func (v *vector) network(t testing.TB) *topology.Network {
	t.Helper()
	if v.Topology.File == "" {
		hosts := 16
		if strings.Contains(v.Inputs.Traffic, "_128") {
			hosts = 128
		}
		rate := 8_000_000_000_000 / v.Params.PS
		tiers := make([]topology.FatTreeTier, 3)
		for i := range tiers {
			tiers[i] = topology.FatTreeTier{Rate: rate, Latency: dag.Microsecond}
		}
		net, err := topology.FatTree(topology.FatTreeParams{Hosts: hosts, Tiers: tiers})
		if err != nil {
			t.Fatal(err)
		}
		return net
	}
	f, err := os.Open(filepath.Join(vectorFolder(t), v.Topology.File))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	net, err := topology.ReadTopo(f, v.Topology.File)
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// paths returns the paths of the flows.
func (v *vector) paths() Paths {
	paths := make(Paths)
	for _, row := range v.Paths.Rows {
		src, _ := v.Paths.at(row, "src")
		dst, _ := v.Paths.at(row, "dst")
		there, _ := v.Paths.at(row, "path")
		back, ok := v.Paths.at(row, "ack_path")
		if !ok {
			back = there
		}
		paths[[2]uint32{uint32(src), uint32(dst)}] = Path{Forward: uint32(there), Reverse: uint32(back)}
	}
	return paths
}

// connection is a line of a connection matrix.
type connection struct {
	src, dst     uint32
	start, bytes uint64
}

func (v *vector) connections(t testing.TB) []connection {
	t.Helper()
	f, err := os.Open(filepath.Join(vectorFolder(t), v.Inputs.Traffic))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var list []connection
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		if len(w) < 3 || !strings.Contains(w[0], "->") {
			continue
		}
		var c connection
		if _, err := fmt.Sscanf(w[0], "%d->%d", &c.src, &c.dst); err != nil {
			t.Fatal(err)
		}
		for i := 1; i+1 < len(w); i += 2 {
			n, err := strconv.ParseUint(w[i+1], 10, 64)
			switch {
			case err != nil:
				t.Fatal(err)
			case w[i] == "start":
				c.start = n
			case w[i] == "size":
				c.bytes = n
			}
		}
		list = append(list, c)
	}
	return list
}

// quiet is a driver that ignores all notifications.
type quiet struct{}

func (quiet) lastByteSent(uint32) {}
func (quiet) delivered(uint32)    {}
func (quiet) acknowledged(uint32) {}
func (quiet) event(event, uint32) {}

// runConnections runs flows with numbers from 1 on in their order, until no event is left.
func runConnections(t testing.TB, net *topology.Network, p Params, paths Paths, list []connection) *network {
	t.Helper()
	n, err := newNetwork(&Options{Network: net, Params: p, Paths: paths})
	if err != nil {
		t.Fatal(err)
	}
	n.driver = quiet{}
	for i, c := range list {
		n.at(c.start, flowStart, n.openFlow(c.src, c.dst, uint32(i), uint32(i+1), c.bytes))
	}
	n.run(1 << 62)
	return n
}

// defaults returns the default parameters of a transport.
func defaults(t testing.TB, transport string, c Compat) Params {
	t.Helper()
	p, err := NewParams(transport, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run repeats the reference run with its paths.
func (v *vector) run(t testing.TB, transport string, c Compat, change func(*Params)) (*network, *topology.Network) {
	t.Helper()
	p := defaults(t, transport, c)
	p.MSS, p.Queue, p.Balance, p.PadLastPacket = v.Params.MSS, v.Params.Queue, Fixed, true
	p.TransportParams["window"] = v.Params.Window
	if change != nil {
		change(&p)
	}
	net := v.network(t)
	return runConnections(t, net, p, v.paths(), v.connections(t)), net
}

// compare checks that each flow took as long as in the reference, to the picosecond, and that the ports sent, dropped
// and marked as much. Some of the programs did not measure the queues of hosts.
func (v *vector) compare(t *testing.T, n *network, net *topology.Network) {
	t.Helper()
	if len(v.Flows.Rows) != len(n.records) {
		t.Fatalf("%d flows, want %d", len(n.records), len(v.Flows.Rows))
	}
	wrong := 0
	for i, row := range v.Flows.Rows {
		r := &n.records[i]
		want, _ := v.Flows.at(row, "fct_ps_at_sender")
		delivered, known := v.Flows.at(row, "delivered_ps_after_start")
		if uint64(r.Acknowledged-r.Start) != want || known && uint64(r.Delivered-r.Start) != delivered {
			if wrong++; wrong < 4 {
				t.Errorf("flow %d: acknowledged after %v, delivered after %v, want %v, %v", i,
					int64(r.Acknowledged-r.Start), int64(r.Delivered-r.Start), want, delivered)
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d flows differ", wrong, len(n.records))
	}
	ports := make(map[string]int)
	for i, p := range net.Ports() {
		ports[net.Name(p.From)+"->"+net.Name(p.To)] = i
	}
	wrong = 0
	for _, row := range v.Ports.Rows {
		i, ok := ports[row[0].(string)]
		if !ok {
			t.Fatalf("no port %s", row[0])
		}
		pt := &n.ports[i]
		for column, got := range map[string]uint64{
			"packets": pt.packets, "bytes": pt.sent, "drops": pt.drops, "ecn_marks": pt.marks,
			"max_data_queue_bytes": pt.peak[dataQueue],
		} {
			want, ok := v.Ports.at(row, column)
			if pt.discipline == fairFlows && column == "max_data_queue_bytes" {
				continue
			}
			if ok && got != want {
				if wrong++; wrong < 6 {
					t.Errorf("port %s: %s %d, want %d", row[0], column, got, want)
				}
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d figures of ports differ", wrong)
	}
}

// times returns the mean and the 99th percentile of the completion times of flows at the sender.
func (n *network) times() (mean, p99 float64) {
	var all []float64
	sum := 0.
	for _, r := range n.records {
		if r.Acknowledged > 0 {
			all = append(all, float64(r.Acknowledged-r.Start))
			sum += float64(r.Acknowledged - r.Start)
		}
	}
	slices.Sort(all)
	at := float64(len(all)-1) * 0.99
	i := min(int(at), len(all)-2)
	if len(all) == 1 {
		return sum, sum
	}
	return sum / float64(len(all)), all[i] + (all[i+1]-all[i])*(at-float64(i))
}
