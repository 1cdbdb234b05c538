package topology

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// htsim's test.topo in shape: slower links above, and bundles of cores.
const bundledTopo = `# three tiers
Nodes 8
TIERS 3
podsize 4

Tier 0
Downlink_speed_Gbps 200
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Queue_Up 30000

Tier 1
Downlink_speed_Gbps	200
Radix_Down 2  # and two up
Radix_Up 4
Downlink_Latency_ns 1000
Bundle 1
Queue_Up 40000
Queue_Down 50000

tier 2
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 0
Switch_Latency_ns 300
Bundle 2
Queue_Down 60000
`

const leafSpineTopo = `Nodes 4
Tiers 2
Podsize 4
Tier 0
Downlink_speed_Gbps 100
Radix_Down 2
Radix_Up 1
Downlink_Latency_ns 1000
Oversubscribed 2
Tier 1
Downlink_speed_Gbps 100
Radix_Down 2
Downlink_Latency_ns 1000`

func readTopo(t testing.TB, text string) *Network {
	t.Helper()
	n, err := ReadTopo(strings.NewReader(text), "a.topo")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestReadTopo(t *testing.T) {
	n := readTopo(t, bundledTopo)
	p := n.FatTree
	if n.Hosts != 8 || p.tors() != 4 || p.aggs() != 4 || p.Cores() != 4 || len(n.Links) != 8+8+16 {
		t.Errorf("%d hosts, %d ToRs, %d aggregation switches, %d cores, %d links", n.Hosts, p.tors(), p.aggs(), p.Cores(),
			len(n.Links))
	}
	for name, want := range map[string]Link{
		"host7-tor3":   {7, 11, 200 * gbps, 1_000_000},
		"tor1-agg0":    {9, 12, 200 * gbps, 1_000_000},
		"agg3-core1#2": {15, 17, 100 * gbps, 0},
	} {
		links, err := n.LinkByName(name)
		if err != nil || len(links) != 1 || n.Links[links[0]] != want {
			t.Errorf("%s: links %v, want %v (%v)", name, links, want, err)
		}
	}
	if n.SwitchLatency[0] != 0 || n.SwitchLatency[11] != 300_000 {
		t.Errorf("latencies %v", n.SwitchLatency)
	}
	queues := map[string]int64{}
	for i, port := range n.Ports() {
		queues[strings.Trim(n.Name(port.From), "0123456789")+" "+strings.Trim(n.Name(port.To), "0123456789")] = n.Queue(i)
	}
	want := map[string]int64{"host tor": 0, "tor host": 0, "tor agg": 30000, "agg tor": 50000, "agg core": 40000,
		"core agg": 60000}
	if !reflect.DeepEqual(queues, want) {
		t.Errorf("queues %v, want %v", queues, want)
	}
	if parse(t, "star:hosts=2").Queue(1) != 0 {
		t.Error("a star has queues of a size")
	}
}

func TestReadTopoErrors(t *testing.T) {
	replace := func(old, new string) string {
		if !strings.Contains(leafSpineTopo, old) {
			t.Fatalf("%q is not there", old)
		}
		return strings.Replace(leafSpineTopo, old, new, 1)
	}
	for _, test := range []struct {
		text, want string
	}{
		{leafSpineTopo, ""},
		{strings.ReplaceAll(leafSpineTopo, "\n", "\r\n\r\n"), ""},
		{replace("Oversubscribed 2\n", ""), ""},
		// As many Gb/s up as down, with half the ports: htsim wants 2, the capacities say 1.
		{replace("Tier 1\nDownlink_speed_Gbps 100", "Tier 1\nDownlink_speed_Gbps 200"), ""},
		{strings.Replace(replace("Tier 1\nDownlink_speed_Gbps 100", "Tier 1\nDownlink_speed_Gbps 200"), "Oversubscribed 2",
			"Oversubscribed 1", 1), ""},
		{replace("Oversubscribed 2", "Oversubscribed 1"), "a.topo: fat tree: tier 0: expected an oversubscription of 2, " +
			"found 1: a switch has 2 ports of 100000000000bps down, 1 of 100000000000bps up"},
		{"", "a.topo: expected a line Nodes, found none"},
		{"Nodes 4\nPodsize 2\n", "a.topo: expected a line Tiers, found none"},
		{"Nodes 4\nTier 0\n", `a.topo:2: expected Tiers before the first Tier, found "Tier"`},
		{"Nodes 4\nnodes 4\n", `a.topo:2: expected one line Nodes, found "a second"`},
		{"Radix_Up 4\n", `a.topo:1: expected Nodes, Tiers, Podsize or Tier, found "Radix_Up"`},
		{"Nodes\n", `a.topo:1: expected a key and a number, found "Nodes"`},
		{"Nodes 4 5\n", `a.topo:1: expected a key and a number, found "Nodes 4 5"`},
		{"Nodes 99999999999\n", `a.topo:1: expected Nodes with a whole number from 1 to 4194304, found "99999999999"`},
		{"\n\nNodes -1\n", `a.topo:3: expected Nodes with a whole number from 1 to 4194304, found "-1"`},
		{replace("Tiers 2", "Tiers 4"), `a.topo:2: expected Tiers with a whole number from 1 to 3, found "4"`},
		{replace("Tiers 2", "Tiers 1"), `a.topo:10: expected Tier with a whole number from 0 to 0, found "1"`},
		{replace("Tiers 2", "Tiers 3"), "a.topo:10: expected a line Radix_Up of tier 1, found none"},
		{replace("Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 2\nDownlink_Latency_ns 1000", ""),
			"a.topo: expected a line Tier 1, found none"},
		{replace("Tier 1", "Tier 0"), `a.topo:10: expected one line Tier 0, found "a second"`},
		{replace("Tier 1", "Tier 2"), `a.topo:10: expected Tier with a whole number from 0 to 1, found "2"`},
		{replace("Radix_Up 1\n", ""), "a.topo:4: expected a line Radix_Up of tier 0, found none"},
		{replace("\nDownlink_Latency_ns 1000\nO", "\nO"), "a.topo:4: expected a line Downlink_Latency_ns of tier 0, found none"},
		{replace("Radix_Up 1", "Radix_Up 1\nRADIX_UP 1"), `a.topo:8: expected one line Radix_Up of tier 0, found "a second"`},
		{replace("Radix_Up 1", "Radix_Up x"), `a.topo:7: expected Radix_Up with a whole number from 1 to 1048576, found "x"`},
		{replace("Radix_Up 1", "Radix_Op 1"),
			`a.topo:7: expected Tier or a key of a tier such as Radix_Down, found "Radix_Op"`},
		{replace("Radix_Up 1", "Bundle 2\nRadix_Up 1"),
			"a.topo: fat tree: tier 0: expected a bundle of 1 since a host has one link, found 2"},
		{replace("Podsize 4", "Podsize 2"),
			"a.topo: fat tree: expected one pod of all 4 hosts with two tiers, found pods of 2"},
		{leafSpineTopo + "\nRadix_Up 3", "a.topo: fat tree: tier 1: expected no ports up from the top tier"},
		{"Nodes 4\n#" + strings.Repeat("x", maxLine) + "\n", "a.topo:2: expected a line of at most 65536 bytes, found a longer one"},
	} {
		got := ""
		if _, err := ReadTopo(strings.NewReader(test.text), "a.topo"); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%q:\nerror %s\n want %s", test.text, got, test.want)
		}
	}
}

func TestWriteTopo(t *testing.T) {
	for _, n := range []*Network{readTopo(t, bundledTopo), readTopo(t, leafSpineTopo), parse(t, "fattree:k=4"),
		parse(t, "fattree:k=8,oversubscription=2/2,bundle=2,rate=400"), parse(t, "leafspine:hosts=9,tor=3,spines=2")} {
		var b bytes.Buffer
		if err := WriteTopo(&b, n); err != nil {
			t.Fatal(err)
		}
		again := readTopo(t, b.String())
		if !reflect.DeepEqual(again.Links, n.Links) || !reflect.DeepEqual(again.SwitchLatency, n.SwitchLatency) ||
			!reflect.DeepEqual(again.Tier, n.Tier) || !reflect.DeepEqual(again.FatTree.Tiers, n.FatTree.Tiers) {
			t.Errorf("another network after writing\n%s", b.String())
		}
	}
	for spec, want := range map[string]string{
		"star:hosts=4": "topo file: expected a fat tree, found another network",
		"fattree:k=4,rate=2.5": "topo file: tier 0: expected whole Gb/s and nanoseconds, found 2500000000 bit/s, 1us " +
			"and 0s",
		"fattree:k=4,switchlatency=0/1.5": "topo file: tier 1: expected whole Gb/s and nanoseconds, found 100000000000 " +
			"bit/s, 1us and 1.5ns",
	} {
		if err := WriteTopo(new(bytes.Buffer), parse(t, spec)); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", spec, err, want)
		}
	}
}

func packetVectors(t *testing.T) string {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS is not set")
	}
	return filepath.Join(folder, "packet")
}

func TestTopoVectors(t *testing.T) {
	folder := packetVectors(t)
	for name, want := range map[string]struct {
		hosts, tors, aggs, cores, links int
		gbps                            int64
	}{
		"ft3_128_1os":   {128, 32, 32, 16, 128 + 128 + 128, 200},
		"ft3_128_4os":   {128, 16, 8, 8, 128 + 32 + 32, 200},
		"ft3_128_8os":   {128, 16, 4, 4, 128 + 16 + 16, 200},
		"ls128_1os":     {128, 8, 16, 0, 128 + 128, 200},
		"ls128_4os":     {128, 8, 4, 0, 128 + 32, 200},
		"ls128_8os":     {128, 8, 2, 0, 128 + 16, 200},
		"ls16_1os":      {16, 4, 4, 0, 16 + 16, 200},
		"ls16_1os_100g": {16, 4, 4, 0, 16 + 16, 100},
		"ls16_4os":      {16, 4, 1, 0, 16 + 4, 200},
		"ls32_1os":      {32, 4, 8, 0, 32 + 32, 200},
		"ls32_4os":      {32, 4, 2, 0, 32 + 8, 200},
		"ls32_4os_sw":   {32, 4, 2, 0, 32 + 8, 400},
	} {
		n, err := open(filepath.Join(folder, "inputs", name+".topo"))
		if err != nil {
			t.Error(err)
			continue
		}
		p := n.FatTree
		if n.Hosts != want.hosts || p.tors() != want.tors || p.aggs() != want.aggs || p.Cores() != want.cores ||
			len(n.Links) != want.links || n.Links[0].Rate != want.gbps*gbps {
			t.Errorf("%s: %d hosts, %d ToRs, %d aggregation switches, %d cores, %d links of %d bit/s, want %v", name, n.Hosts,
				p.tors(), p.aggs(), p.Cores(), len(n.Links), n.Links[0].Rate, want)
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "inputs", "*.topo"))
	if err != nil || len(files) != 12 {
		t.Errorf("%d files, want 12 (%v)", len(files), err)
	}
}

// The ports of the reference runs have the names that networks give them, and there are as many paths as the runs say.
func TestPortsAndPathsOfVectors(t *testing.T) {
	folder := packetVectors(t)
	files, err := filepath.Glob(filepath.Join(folder, "runs", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	type rows struct {
		Rows [][]any
	}
	ports, paths := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var run struct {
			Topology struct {
				File string
			}
			Ports, Paths rows
		}
		if err := json.Unmarshal(data, &run); err != nil || run.Topology.File == "" {
			continue
		}
		n, err := open(filepath.Join(folder, run.Topology.File))
		if err != nil {
			t.Fatal(err)
		}
		r := routes(t, n, nil)
		for _, row := range run.Ports.Rows {
			name := strings.Replace(row[0].(string), "->", "-", 1)
			if links, err := n.LinkByName(name); err != nil || len(links) != 1 {
				t.Errorf("%s: %s: %d links (%v)", filepath.Base(file), name, len(links), err)
			}
			ports++
		}
		for _, row := range run.Paths.Rows {
			from, to := r.Edge(uint32(row[0].(float64))), r.Edge(uint32(row[1].(float64)))
			if want := fmt.Sprint(row[4]); fmt.Sprint(r.Paths(from, to)) != want {
				t.Errorf("%s: %v to %v: %d paths, want %s", filepath.Base(file), row[0], row[1], r.Paths(from, to), want)
			}
			paths++
		}
	}
	if ports == 0 || paths == 0 {
		t.Errorf("%d ports and %d paths of runs", ports, paths)
	}
}

func FuzzReadTopo(f *testing.F) {
	f.Add(bundledTopo)
	f.Add(leafSpineTopo)
	f.Add("Nodes 4194304\nTiers 2\nPodsize 4194304\nTier 1\nTier 0\nRadix_Down 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ReadTopo(strings.NewReader(text), "a.topo")
		if err != nil || len(n.Links) > 10000 {
			return
		}
		if !connected(routes(t, n, nil)) {
			t.Error("some hosts do not reach others")
		}
		var b bytes.Buffer
		if err := WriteTopo(&b, n); err != nil {
			t.Fatal(err)
		}
		if again := readTopo(t, b.String()); !reflect.DeepEqual(again.Links, n.Links) {
			t.Errorf("another network after writing\n%s", b.String())
		}
	})
}
