package analytical

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// memoryModels are accesses whose times were computed from the equations of the ASTRA-sim 2.0 paper.
type memoryModels struct {
	Hierarchical []struct {
		Nodes          int
		GPUs           int        `json:"gpus_per_node"`
		Switches       int        `json:"out_node_switches"`
		Groups         int        `json:"remote_memory_groups"`
		Chunk          int64      `json:"chunk_bytes"`
		Tensor         int64      `json:"tensor_bytes_per_gpu"`
		MemSide        float64    `json:"mem_side_out_node_bw_GBps"`
		GPUSide        float64    `json:"gpu_side_out_node_bw_GBps"`
		InNode         float64    `json:"in_node_bw_GBps"`
		Stages         float64    `json:"pipeline_stages"`
		Remote         [3]float64 `json:"tx_remote_ns"`
		TotalRemote    float64    `json:"total_remote_ns"`
		InSwitch       [3]float64 `json:"tx_in_switch_ns"`
		TotalInSwitch  float64    `json:"total_in_switch_ns"`
		LoadOfEachLink struct {
			Remote   loads
			InSwitch loads `json:"in_switch"`
		} `json:"load_bytes"`
	}
	Local []struct {
		Latency float64 `json:"latency_ns"`
		Tensor  int64   `json:"tensor_bytes"`
		BW      float64 `json:"bw_GBps"`
		Time    float64 `json:"time_ns"`
	}
	Public []struct {
		Latency float64 `json:"remote_mem_latency"`
		BW      float64 `json:"remote_mem_bw"`
		Tensor  int64   `json:"tensor_bytes"`
		Time    int64   `json:"runtime_ns"`
	} `json:"public_backend"`
}

type loads struct {
	RemToOut float64 `json:"rem_to_out"`
	OutToIn  float64 `json:"out_to_in"`
	InToGPU  float64 `json:"in_to_gpu"`
}

func TestMemoryModels(t *testing.T) {
	text, err := os.ReadFile("testdata/memory_models.json")
	if err != nil {
		t.Fatal(err)
	}
	var models memoryModels
	if err := json.Unmarshal(text, &models); err != nil {
		t.Fatal(err)
	}
	if len(models.Hierarchical) == 0 || len(models.Local) == 0 || len(models.Public) == 0 {
		t.Fatal("a list is empty")
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s: got %v, expected %v", what, got, want)
		}
	}
	for _, c := range models.Hierarchical {
		m := Memory{Kind: HierarchicalPool, npus: c.Nodes * c.GPUs, Nodes: c.Nodes, NPUsPerNode: c.GPUs, Hierarchical: &HierarchicalMemory{
			Switches: c.Switches, Groups: c.Groups, ChunkSize: c.Chunk, MemSideBW: c.MemSide, GPUSideBW: c.GPUSide,
			InNodeBW: c.InNode,
		}}
		for _, in := range []struct {
			inSwitch bool
			stages   [3]float64
			total    float64
			load     loads
		}{
			{false, c.Remote, c.TotalRemote, c.LoadOfEachLink.Remote},
			{true, c.InSwitch, c.TotalInSwitch, c.LoadOfEachLink.InSwitch},
		} {
			m.Hierarchical.InSwitch = in.inSwitch
			for i, stage := range m.Stages(0) {
				near("stage", stage, in.stages[i])
			}
			load := m.Loads(c.Tensor, 0)
			near("load", load[0], in.load.RemToOut)
			near("load", load[1], in.load.OutToIn)
			near("load", load[2], in.load.InToGPU)
			near("chunks", m.Chunks(c.Tensor), c.Stages)
			near("total", m.transferTime(c.Tensor, 0), in.total)
			if got := m.accessTime(c.Tensor, 0); got != int64(in.total) {
				t.Errorf("access: got %d ns, expected %v", got, in.total)
			}
		}
	}
	for _, c := range models.Local {
		m := Memory{Kind: Local, Latency: c.Latency, Bandwidth: c.BW}
		near("local", m.Latency+m.transferTime(c.Tensor, 0), c.Time)
	}
	for _, kind := range []MemoryKind{PerNPU, PerNode, Pool} {
		for _, c := range models.Public {
			m := Memory{Kind: kind, Latency: c.Latency, Bandwidth: c.BW}
			if got := m.accessTime(c.Tensor, 0); got != c.Time {
				t.Errorf("%v: got %d ns, expected %d", kind, got, c.Time)
			}
		}
	}
}

func TestAccessTimeOfFewChunks(t *testing.T) {
	m := Memory{Kind: HierarchicalPool, Latency: 7, Nodes: 1, NPUsPerNode: 2, Hierarchical: &HierarchicalMemory{
		Switches: 1, Groups: 1, ChunkSize: 100, MemSideBW: 1, GPUSideBW: 2, InNodeBW: 4,
	}}
	// A chunk takes 100, 50 and 12.5 ns in its stages.
	for _, c := range []struct{ bytes, time int64 }{
		{0, 7},
		{1, 7 + 162},   // one chunk
		{50, 7 + 162},  // one, full
		{51, 7 + 262},  // two
		{150, 7 + 362}, // three
	} {
		if got := m.accessTime(c.bytes, 0); got != c.time {
			t.Errorf("%d bytes: got %d ns, expected %d", c.bytes, got, c.time)
		}
	}
}

func TestAccessTimeIsBounded(t *testing.T) {
	for _, m := range []Memory{
		{Kind: PerNPU, Latency: maxTicks, Bandwidth: 1},
		{Kind: Local, Latency: maxTicks, Bandwidth: 1e-300},
	} {
		if got := m.accessTime(math.MaxInt64, 0); got != math.MaxInt64 {
			t.Errorf("%v: got %d", m.Kind, got)
		}
	}
}

func TestServer(t *testing.T) {
	for _, c := range []struct {
		memory Memory
		want   [4]int
	}{
		{Memory{Kind: PerNPU}, [4]int{-1, -1, -1, -1}},
		{Memory{Kind: PerNode, Nodes: 2, NPUsPerNode: 2}, [4]int{0, 0, 1, 1}},
		{Memory{Kind: Pool}, [4]int{0, 0, 0, 0}},
		{Memory{Kind: HierarchicalPool}, [4]int{-1, -1, -1, -1}},
		{Memory{Kind: Local}, [4]int{-1, -1, -1, -1}},
	} {
		for npu, want := range c.want {
			if got := c.memory.server(npu); got != want {
				t.Errorf("%v: NPU %d is served by %d, expected %d", c.memory.Kind, npu, got, want)
			}
		}
	}
}

// TestGroupBandwidth compares the pool of table IV of the paper, 64 KiB chunks of 1 GiB per NPU, with the bandwidths
// within nodes and of memory groups: the smaller of both limits the access.
func TestGroupBandwidth(t *testing.T) {
	const pool = `{"memory-type": "HIERARCHICAL_POOL", "num-nodes": 16, "num-npus-per-node": 16,
		"num-out-node-switches": 16, "num-remote-memory-groups": 256, "chunk-size": 65536, "gpu-side-bw": 1e6,
		"in-node-bw": %v, "%s": %v}`
	access := func(inNode, group float64) float64 {
		t.Helper()
		m, err := ReadMemory(fmt.Appendf(nil, pool, inNode, "remote-mem-group-bw", group), "m.json", t.Errorf)
		if err != nil {
			t.Fatal(err)
		}
		link, err := ReadMemory(fmt.Appendf(nil, pool, inNode, "mem-side-bw", group/16), "m.json", t.Errorf)
		if err != nil || m.accessTime(1<<30, 0) != link.accessTime(1<<30, 0) {
			t.Errorf("%v, error %v: a link of %v GB/s differs from a group of %v", link, err, group/16, group)
		}
		return float64(m.accessTime(1<<30, 0))
	}
	base := access(256, 100)
	if slower := base / (float64(1<<30) / 100); math.Abs(base-10.746e6) > 500 || slower < 1.0005 || slower > 1.001 {
		t.Errorf("256 and 100 GB/s: %v ns, %v times as long as at 100 GB/s per NPU", base, slower)
	}
	for _, c := range []struct{ inNode, group, speedup float64 }{
		{512, 500, 4.99}, {256, 500, 2.56}, {512, 400, 4.00}, {768, 500, 5.00},
	} {
		if got := base / access(c.inNode, c.group); math.Abs(got-c.speedup) > 0.0055 {
			t.Errorf("%v and %v GB/s: %.4f times as fast, expected %v", c.inNode, c.group, got, c.speedup)
		}
	}
	both := fmt.Sprintf(pool, 256, `mem-side-bw": 1, "remote-mem-group-bw`, 1)
	if _, err := ReadMemory([]byte(both), "m.json", nil); err == nil || !strings.Contains(err.Error(), "either this key") {
		t.Errorf("both bandwidths: error %v", err)
	}
}
