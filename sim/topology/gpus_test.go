package topology

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
)

// podFiles are topology files of SimAI's generator, with the same networks.
var podFiles = map[string]string{
	"Spectrum-X_16g_8gps_400Gbps_H100":                     "Spectrum-X:gpus=16,psws=2",
	"AlibabaHPN_64g_8gps_DualToR_SinglePlane_200Gbps_H100": "AlibabaHPN:gpus=64,psws=4",
	"DCN+SingleToR_32g_8gps_400Gbps_H100":                  "DCN+:gpus=32,psws=2",
}

// links returns the links of a network by their ends, in order.
func links(n *Network) (list []string) {
	for _, l := range n.Links {
		list = append(list, fmt.Sprint(n.Name(l.A), " ", n.Name(l.B), " ", l.Rate, " ", l.Latency))
	}
	return list
}

// TestPodFiles compares the networks of specifications with the files of SimAI's generator, link by link.
func TestPodFiles(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("set TRACEDAG_VECTORS to the folder of vectors")
	}
	for _, name := range slices.Sorted(maps.Keys(podFiles)) {
		read, err := Load(filepath.Join(folder, "simai", "topo", name))
		if err != nil {
			t.Fatal(err)
		}
		built, err := Load(podFiles[name])
		if err != nil {
			t.Fatal(err)
		}
		if got, want := links(built), links(read); !slices.Equal(got, want) {
			t.Errorf("%s: %d links\n%s\nwant %d\n%s", name, len(got), strings.Join(got, "\n"), len(want),
				strings.Join(want, "\n"))
		}
		if !slices.Equal(built.GPUs.First, read.GPUs.First) || built.GPUs.NVSwitches != read.GPUs.NVSwitches ||
			built.GPUs.PerServer != read.GPUs.PerServer || !slices.Equal(built.Tier, read.Tier) || !read.GPUs.uniform {
			t.Errorf("%s: %+v, want %+v", name, *built.GPUs, *read.GPUs)
		}
	}
}

// TestPlanes checks the links of two planes with three PSWs, of which the first plane has two, and of pairs of access
// switches without rails.
func TestPlanes(t *testing.T) {
	for text, want := range map[string]string{
		"hpn:gpus=4,server=2,nics=1,psws=3,planes=2,nvswitches=2": "gpu0.nv0 nvs0, gpu0.nv1 nvs1, gpu0.nic0 asw0, " +
			"gpu0.nic1 asw4, gpu1.nv0 nvs0, gpu1.nv1 nvs1, gpu1.nic0 asw1, gpu1.nic1 asw5, gpu2.nv0 nvs2, " +
			"gpu2.nv1 nvs3, gpu2.nic0 asw2, gpu2.nic1 asw6, gpu3.nv0 nvs2, gpu3.nv1 nvs3, gpu3.nic0 asw3, " +
			"gpu3.nic1 asw7, asw0 psw0, asw0 psw1, asw1 psw0, asw1 psw1, asw2 psw0, asw2 psw1, asw3 psw0, asw3 psw1, " +
			"asw4 psw2, asw5 psw2, asw6 psw2, asw7 psw2",
		"dcn+:gpus=4,server=2,nics=2,psws=1,tors=2": "gpu0.nv0 nvs0, gpu0.nic0 asw0, gpu0.nic1 asw2, gpu1.nv0 nvs0, " +
			"gpu1.nic0 asw0, gpu1.nic1 asw2, gpu2.nv0 nvs1, gpu2.nic0 asw1, gpu2.nic1 asw3, gpu3.nv0 nvs1, " +
			"gpu3.nic0 asw1, gpu3.nic1 asw3, asw0 psw0, asw1 psw0, asw2 psw0, asw3 psw0",
	} {
		n, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range n.Links {
			got = append(got, n.Name(l.A)+" "+n.Name(l.B))
		}
		if list := strings.Join(got, ", "); list != want {
			t.Errorf("%s: %s\nwant %s", text, list, want)
		}
	}
}

// program returns a program with messages between all pairs of ranks, twice.
func pairsProgram(t *testing.T, ranks int) *sim.Program {
	t.Helper()
	b := dag.NewBuilder(ranks)
	for from := range ranks {
		for to := range ranks {
			if from == to {
				continue
			}
			for tag := range int64(2) {
				b.Rank(from).Add(dag.Op{Kind: dag.Send, Peer: int32(to), Bytes: 1, Tag: tag})
				b.Rank(to).Add(dag.Op{Kind: dag.Recv, Peer: int32(from), Bytes: 1, Tag: tag})
			}
		}
	}
	p, err := sim.Compile(dag.FromTrace(b.Trace()), sim.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPodRoutes checks the paths of messages between all pairs of GPUs: NVLink within servers, one access switch within
// a rail or, without rails, a segment, and a PSW otherwise.
func TestPodRoutes(t *testing.T) {
	for _, c := range []struct {
		text  string
		gpus  int
		hops  func(a, b int) int // links of a path between servers
		ports int                // NICs of a GPU
	}{
		{"spectrumx:gpus=16,server=4,nics=2,psws=3,maxasws=8", 16, func(a, b int) int {
			if a%4 == b%4 && a/8 == b/8 {
				return 2
			}
			return 4
		}, 1},
		{"alibabahpn:gpus=16,server=4,nics=2,psws=3,maxasws=8", 16, func(a, b int) int {
			if a%4 == b%4 && a/8 == b/8 {
				return 2
			}
			return 4
		}, 2},
		{"alibabahpn:gpus=16,server=4,nics=2,psws=4,planes=2,maxasws=8", 16, func(a, b int) int {
			if a%4 == b%4 && a/8 == b/8 {
				return 2
			}
			return 4
		}, 2},
		{"dcn+:gpus=16,server=4,nics=8,psws=2", 16, func(a, b int) int {
			if a/8 == b/8 {
				return 2
			}
			return 4
		}, 1},
		{"dcn+:gpus=16,server=4,nics=8,psws=2,tors=2", 16, func(a, b int) int {
			if a/8 == b/8 {
				return 2
			}
			return 4
		}, 2},
	} {
		n, err := Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		routes, err := NewRoutes(t.Context(), n, nil)
		if err != nil {
			t.Fatal(err)
		}
		p := pairsProgram(t, c.gpus)
		placement := DefaultPlacement
		first, err := n.Place(&placement, c.gpus, 1, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		ends := NewEnds(n, routes, first, 1, p)
		used := map[[2]int]int{} // by GPU and port
		for i := range p.Ops {
			op := &p.Ops[i]
			if op.Flags&sim.IsSend == 0 {
				continue
			}
			from, to := ends.Of(op, uint32(i))
			a, b := int(op.Rank), int(op.Peer)
			if n.GPUs.gpuOf(from) != a || n.GPUs.gpuOf(to) != b {
				t.Fatalf("%s: message from %d to %d takes the ports %s and %s", c.text, a, b, n.Name(from), n.Name(to))
			}
			used[[2]int{a, int(from - n.GPUs.First[a])}]++
			links, ok := ends.gpus.hops(routes.Edge(from), routes.Edge(to))
			want := c.hops(a, b)
			if a/4 == b/4 {
				want = 2
				if !strings.Contains(n.Name(from), ".nv") || !strings.Contains(n.Name(to), ".nv") {
					t.Errorf("%s: %s to %s, want NVLink", c.text, n.Name(from), n.Name(to))
				}
			}
			if links += 2; !ok || links != want {
				t.Errorf("%s: %s to %s: %d links, want %d", c.text, n.Name(from), n.Name(to), links, want)
			}
		}
		for gpu := range c.gpus { // 12 GPUs on other servers, two messages each
			for port := range c.ports {
				if got, want := used[[2]int{gpu, 1 + port}], 24/c.ports; got != want {
					t.Errorf("%s: %d messages of GPU %d on NIC %d, want %d", c.text, got, gpu, port, want)
				}
			}
		}
	}
}

// Messages avoid NICs whose links have failed.
func TestFailedNIC(t *testing.T) {
	n, err := Parse("alibabahpn:gpus=16,server=4,nics=2,psws=4,planes=2,maxasws=8")
	if err != nil {
		t.Fatal(err)
	}
	routes, err := NewRoutes(t.Context(), n, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := pairsProgram(t, 16)
	placement := DefaultPlacement
	first, _ := n.Place(&placement, 16, 1, 1, nil)
	ends := NewEnds(n, routes, first, 1, p)
	both := func(works func(name string) bool) {
		ends.SetWorks(func(from, to uint32) bool { return works(n.Name(from)) && works(n.Name(to)) })
	}
	both(func(name string) bool { return !strings.HasSuffix(name, ".nv0") })
	for i := range p.Ops {
		if op := &p.Ops[i]; op.Flags&sim.IsSend != 0 {
			if from, to := ends.Of(op, uint32(i)); !strings.Contains(n.Name(from)+n.Name(to), "nic") {
				t.Fatalf("without NVLink: %s to %s", n.Name(from), n.Name(to))
			}
		}
	}
	both(func(name string) bool { return name != "gpu5.nic0" })
	for i := range p.Ops {
		if op := &p.Ops[i]; op.Flags&sim.IsSend != 0 {
			if from, to := ends.Of(op, uint32(i)); n.Name(from) == "gpu5.nic0" || n.Name(to) == "gpu5.nic0" {
				t.Fatalf("%s to %s", n.Name(from), n.Name(to))
			}
		}
	}
}

// TestPodLinks compares the numbers of nodes and links of the default sizes with those of SimAI's generator.
func TestPodLinks(t *testing.T) {
	for text, want := range map[string][3]int{ // GPUs, switches, links
		"Spectrum-X:":             {4096, 512 + 64 + 64, 4096 + 4096 + 64*64},
		"AlibabaHPN:":             {15360, 1920 + 240 + 120, 3*15360 + 240*120},
		"AlibabaHPN:planes=2":     {15360, 1920 + 240 + 120, 3*15360 + 240*60},
		"DCN+:":                   {512, 64 + 8 + 8, 2*512 + 8*8},
		"DCN+:tors=2":             {512, 64 + 8 + 8, 3*512 + 8*8},
		"DCN+:gpus=24,asws=5":     {24, 3 + 1 + 8, 2*24 + 8},
		"spectrum-x:gpus=520":     {520, 65 + 16 + 64, 2*520 + 16*64},
		"HPN:gpus=8,nvswitches=4": {8, 4 + 16 + 120, 8*4 + 16 + 16*120},
	} {
		n, err := Load(text)
		if err != nil {
			t.Fatal(err)
		}
		if d := n.Describe(text); d.Hosts != want[0] || d.Switches != want[1] || d.Links != want[2] {
			t.Errorf("%s: %+v, want %v", text, d, want)
		}
	}
}

func TestPodErrors(t *testing.T) {
	for text, want := range map[string]string{
		"Spectrum-X:gpus=500":            "multiple of 8 GPUs per server",
		"Spectrum-X:gpus=5120":           "need 80 access switches per PSW: expected at most 64",
		"AlibabaHPN:gpus=64,planes=3":    "1 or 2 planes",
		"AlibabaHPN:planes=2,gpus=16384": "need 128 access switches per PSW: expected at most 120",
		"AlibabaHPN:planes=2,psws=1":     "a PSW for each of two planes",
		"DCN+:gpus=512,tors=3":           "1 or 2 access switches per GPU",
		"DCN+:gpus=640,tors=2":           "need 10 access switches per PSW: expected at most 8",
		"DCN+:hosts=8":                   "expected one of tors, gpus",
		"Spectrum-X:rate=9Tbps":          "rate: expected a rate",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

const small = `5 2 1 2 5 H100
2 3 4
0 2 2880Gbps 0.000025ms 0
0 3 400Gbps 0.0005ms 0
1 2 2880Gbps 0.000025ms 0
1 3 400Gbps 0.0005ms 0
3 4 400Gbps 0.5us 0
`

func TestReadSimAIErrors(t *testing.T) {
	for edit, want := range map[string]string{
		"":                         "",
		"5 2 1 2 5|5 2 1 2":        "expected nodes, GPUs per server",
		"5 2 1 2 5|5 4 1 2 5":      "multiple of 4 GPUs per server, found \"2\"",
		"5 2 1 2 5|5 2 1 2 6":      "expected 6 links as in the first line, found the end of the file after 5",
		"5 2 1 2 5|5 2 1 2 4":      "expected 4 links as in the first line, found \"another\"",
		"2 3 4\n|2 3\n":            "the numbers of 3 switches",
		"2 3 4\n|2 3 3\n":          "each switch once",
		"2 3 4\n|2 3 5\n":          "the number of a switch from 0 to 4",
		"0 3 400|0 1 400":          "one between the GPUs 0 and 1",
		"3 4 400|2 4 400":          "links of NVSwitches to GPUs",
		"3 4 400|3 3 400":          "expected two nodes",
		"3 4 400Gbps|3 4 4":        "",
		"400Gbps 0.5us|fast 0.5us": "a rate such as 400Gbps",
		"0.5us 0|0.5years 0":       "a latency such as 0.0005ms",
		"0.5us 0|0.5us 0.1":        "an error rate of 0",
		"0.5us 0|0.5us":            "NODE NODE RATE LATENCY ERROR_RATE",
		"0 3 400Gbps|4 3 400Gbps":  "",
		"1 2 2880Gbps 0.000025ms 0\n1 3|0 2 2880Gbps 0.000025ms 0\n0 3": "GPU 1: expected at least one port",
	} {
		old, by, _ := strings.Cut(edit, "|")
		text := strings.Replace(small, old, by, 1)
		_, err := ReadSimAI(strings.NewReader(text), "x")
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", edit, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want %s", edit, err, want)
		}
	}
}

// Ranks with the same node number are on the GPUs of a server.
func TestPlaceGPUs(t *testing.T) {
	n, err := Parse("spectrumx:gpus=16,server=4,nics=2,psws=3")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		policy Placement
		nodes  []int32
		want   string
	}{
		{DefaultPlacement, nil, "[0 2 4]"},
		{NodePlacement, []int32{2, 0, 2}, "[16 0 18]"},
		{NodePlacement, []int32{1, 1, 4}, "rank 2 is on node 4, but the network has only 4 servers"},
		{Placement{hosts: []uint32{15, 0, 1}}, nil, "[30 0 2]"},
		{Placement{hosts: []uint32{15, 0, 16}}, nil, "rank 2 is placed on GPU 16"},
	} {
		got, err := n.Place(&c.policy, 3, 1, 1, c.nodes)
		text := fmt.Sprint(got)
		if err != nil {
			text = err.Error()
		}
		if !strings.HasPrefix(text, c.want) {
			t.Errorf("%v: %s, want %s", c.policy, text, c.want)
		}
	}
	if _, err := n.Place(&DefaultPlacement, 3, 2, 1, nil); err == nil {
		t.Error("two NICs per rank are accepted")
	}
}

func FuzzReadSimAI(f *testing.F) {
	f.Add(small)
	f.Add("3 1 0 2 2 A\n1 2\n0 1 1bps 1s 0\n1 2 1bps 1s 0\n")
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := ReadSimAI(strings.NewReader(text), "x"); err == nil {
			if err := n.Validate(); err != nil {
				t.Error(err)
			}
			for node := range uint32(min(n.Hosts+n.Switches, 100)) {
				n.Name(node)
			}
		}
	})
}

// TestRoundRobin sends 900 messages from one GPU with three NICs: consecutive ones take different NICs, and each NIC
// has 300, also beyond the first 256.
func TestRoundRobin(t *testing.T) {
	n, err := ReadSimAI(strings.NewReader("5 1 0 3 6 H100\n2 3 4\n0 2 400Gbps 500ns 0\n0 3 400Gbps 500ns 0\n"+
		"0 4 400Gbps 500ns 0\n1 2 400Gbps 500ns 0\n1 3 400Gbps 500ns 0\n1 4 400Gbps 500ns 0\n"), "rails")
	if err != nil {
		t.Fatal(err)
	}
	routes, err := NewRoutes(t.Context(), n, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := dag.NewBuilder(2)
	for i := range 900 {
		b.Rank(0).Send(1, 1, int64(i))
		b.Rank(1).Recv(0, 1, int64(i))
	}
	p, err := sim.Compile(dag.FromTrace(b.Trace()), sim.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := n.Place(&DefaultPlacement, 2, 1, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	ends := NewEnds(n, routes, first, 1, p)
	count, before := map[uint32]int{}, ^uint32(0)
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Flags&sim.IsColl != sim.IsSend {
			continue
		}
		from, _ := ends.Of(op, uint32(i))
		if from == before {
			t.Fatalf("messages before and at op %d take one NIC", i)
		}
		before = from
		count[from]++
	}
	for nic, messages := range count {
		if messages != 300 || len(count) != 3 {
			t.Errorf("NIC %d of %d has %d messages", nic, len(count), messages)
		}
	}
}
