package analytical_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/analytical"
	"google.golang.org/protobuf/encoding/protowire"
)

var tmpFolder = flag.String("tmpcases", "testdata/cases", "")
var tmpOnly = flag.String("tmponly", "", "")

type tnode struct {
	id, dur uint64
	typ     uint64
	deps    []uint64
	ints    map[string]int64
	strs    map[string]string
	dims    int32
	inputs  string
}

func tread(t *testing.T, path string) (nodes []tnode) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := true
	for len(b) > 0 {
		body, n := protowire.ConsumeBytes(b)
		if n < 0 {
			t.Fatal("frame")
		}
		b = b[n:]
		if first {
			first = false
			continue
		}
		nd := tnode{ints: map[string]int64{}, strs: map[string]string{}}
		for len(body) > 0 {
			num, typ, n := protowire.ConsumeTag(body)
			body = body[n:]
			switch typ {
			case protowire.VarintType:
				v, n := protowire.ConsumeVarint(body)
				body = body[n:]
				switch num {
				case 1:
					nd.id = v
				case 3:
					nd.typ = v
				case 7:
					nd.dur = v
				}
			case protowire.BytesType:
				v, n := protowire.ConsumeBytes(body)
				body = body[n:]
				switch num {
				case 4, 5:
					for len(v) > 0 {
						d, n := protowire.ConsumeVarint(v)
						v = v[n:]
						nd.deps = append(nd.deps, d)
					}
				case 10:
					name := ""
					for len(v) > 0 {
						num, typ, n := protowire.ConsumeTag(v)
						v = v[n:]
						switch {
						case typ == protowire.VarintType:
							x, n := protowire.ConsumeVarint(v)
							v = v[n:]
							nd.ints[name] = int64(x)
						case typ == protowire.BytesType:
							x, n := protowire.ConsumeBytes(v)
							v = v[n:]
							if num == 1 {
								name = string(x)
							} else if num == 29 {
								nd.strs[name] = string(x)
							} else if num == 28 {
								_, _, k := protowire.ConsumeTag(x)
								l, _ := protowire.ConsumeBytes(x[k:])
								for i, f := range l {
									if f != 0 {
										nd.dims |= 1 << i
									}
								}
							}
						default:
							n := protowire.ConsumeFieldValue(num, typ, v)
							v = v[n:]
						}
					}
				}
			default:
				n := protowire.ConsumeFieldValue(num, typ, body)
				body = body[n:]
			}
		}
		nodes = append(nodes, nd)
	}
	slices.SortFunc(nodes, func(a, b tnode) int { return int(int64(a.id) - int64(b.id)) })
	return nodes
}

func ttrace(t *testing.T, dir string, c *tcase) *dag.Trace {
	b := dag.NewBuilder(c.NPUs)
	groups := map[string]int32{"": 0, "0": 0}
	if c.CommGroups != "" {
		raw, _ := os.ReadFile(filepath.Join(dir, c.CommGroups))
		var g map[string][]int32
		if err := json.Unmarshal(raw, &g); err != nil {
			t.Fatal(err)
		}
		var names []string
		for k := range g {
			names = append(names, k)
		}
		slices.Sort(names)
		for _, k := range names {
			groups[k] = b.AddComm(dag.NewComm(k, g[k]))
		}
	}
	build := func(r int, nodes []tnode) {
		rb := b.Rank(r)
		at := map[uint64]int{}
		for i, n := range nodes {
			at[n.id] = i
		}
		for _, n := range nodes {
			op := dag.Op{Duration: dag.Time(n.dur) * dag.Microsecond, Host: int32(n.ints["is_cpu_op"])}
			switch n.typ {
			case 0, 1:
				op.Kind, op.Subkind = dag.Calc, dag.Marker
			case 2, 3:
				op.Kind, op.Subkind, op.Bytes = dag.Mem, dag.Load, n.ints["tensor_size"]
			case 4:
				op.Kind, op.Bytes, op.Flops = dag.Calc, n.ints["tensor_size"], n.ints["num_ops"]
			case 5:
				op.Kind, op.Peer, op.Tag, op.Bytes = dag.Send, int32(n.ints["comm_dst"]), n.ints["comm_tag"], n.ints["comm_size"]
			case 6:
				op.Kind, op.Peer, op.Tag, op.Bytes = dag.Recv, int32(n.ints["comm_src"]), n.ints["comm_tag"], n.ints["comm_size"]
			case 7:
				op.Kind, op.Bytes, op.Dims, op.Priority = dag.Coll, n.ints["comm_size"], n.dims, int32(n.ints["comm_priority"])
				op.Comm = groups[n.strs["pg_name"]]
				switch n.ints["comm_type"] {
				case 0:
					op.Subkind = dag.Allreduce
				case 2:
					op.Subkind = dag.Allgather
				case 5:
					op.Subkind, op.Peer = dag.Bcast, -1
				case 6:
					op.Subkind = dag.Alltoall
				case 7:
					op.Subkind = dag.ReduceScatter
				default:
					t.Fatal("comm_type")
				}
			}
			var deps []int
			for _, d := range n.deps {
				deps = append(deps, at[d])
			}
			rb.Add(op, deps...)
		}
	}
	var nodes []tnode
	for r := range c.NPUs {
		if r == 0 || !c.Replicated {
			nodes = tread(t, filepath.Join(dir, c.Workload+"."+strconv.Itoa(r)+".et"))
		}
		build(r, nodes)
	}
	return b.Trace()
}

type tcase struct {
	ID           string
	NPUs         int
	Workload     string
	Replicated   bool   `json:"replicated_rank0"`
	CommGroups   string `json:"comm_groups"`
	Network      string
	System       string
	RemoteMemory string  `json:"remote_memory"`
	Queues       int     `json:"num_queues_per_dim"`
	Rendezvous   bool    `json:"rendezvous"`
	Injection    float64 `json:"injection_scale"`
	Expected     map[string]map[string]struct {
		All    *json.Number
		PerNPU []json.Number `json:"per_npu"`
	}
}

func TestTmp(t *testing.T) {
	dir := *tmpFolder
	raw, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []tcase
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	bad, good := 0, 0
	for _, c := range cases {
		if *tmpOnly != "" && c.ID != *tmpOnly {
			continue
		}
		tr := ttrace(t, dir, &c)
		p, err := analytical.Compile(dag.NewInMemory(tr))
		if err != nil {
			t.Errorf("%s: %v", c.ID, err)
			bad++
			continue
		}
		for _, backend := range []string{"unaware", "aware", "aware_multidim"} {
			exp, ok := c.Expected[backend]
			if !ok {
				continue
			}
			warn := func(string, ...any) {}
			read := func(name string) []byte {
				b, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				return b
			}
			network, err := analytical.ReadNetwork(read(c.Network), c.Network, warn)
			if err != nil {
				t.Fatal(err)
			}
			network.Aware = backend != "unaware"
			file, err := analytical.ReadSystem(read(c.System), c.System, warn)
			if err != nil {
				t.Fatal(c.System, err)
			}
			file.System.Queues = c.Queues
			file.System.Rendezvous = c.Rendezvous
			if c.Injection != 0 && c.Injection != 1 {
				continue
			}
			memory, err := analytical.ReadMemory(read(c.RemoteMemory), c.RemoteMemory, warn)
			if err != nil {
				t.Fatal(err)
			}
			res, err := p.Run(analytical.Options{Network: network, System: file.System, Memory: memory, ExactSizes: true})
			if err != nil {
				t.Errorf("%s %s: %v", c.ID, backend, err)
				bad++
				continue
			}
			doc, _ := json.Marshal(res.NPUs)
			var stats map[string][]json.Number
			json.Unmarshal(doc, &stats)
			okk := true
			var keys []string
			for k := range exp {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			for _, k := range keys {
				w := exp[k].PerNPU
				if exp[k].All != nil {
					w = slices.Repeat([]json.Number{*exp[k].All}, c.NPUs)
				}
				g := stats[k]
				for i := range w {
					if i >= len(g) || g[i] != w[i] {
						x, _ := w[i].Float64()
						y := 0.0
						if i < len(g) {
							y, _ = g[i].Float64()
						}
						if x == y && x < 1e15 {
							continue
						}
						if okk {
							fmt.Printf("%s %s %s npu %d: got %v want %v complete %v\n", c.ID, backend, k, i, g[i], w[i], res.Complete)
						}
						okk = false
						break
					}
				}
			}
			if okk {
				good++
			} else {
				bad++
			}
		}
	}
	fmt.Println("good", good, "bad", bad)
}
