package nccl

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/param"
)

// NewOptions returns the defaults of programs.
func NewOptions() *Options { return &Options{Machine: Machines[0]} }

// Params returns the table of the options that are keys of --lower nccl.
func (o *Options) Params() param.Set {
	ranks, tune := "nodes", ""
	return param.Set{
		param.String(&o.Algorithm, "algorithm", "algorithm of collectives without trace data").
			Placeholder("NAME").Among(modelled[:]...).Check(o.checkNames).Default("by size"),
		param.String(&o.Protocol, "protocol", "protocol of calls without trace data").
			Placeholder(strings.Join(protocolNames[:], "|")).Check(o.checkNames).Default("by size"),
		param.Count(&o.Channels, "channels", "channels of calls without trace data", maxChannels).
			Default("those of the communicator in the trace, else 2, with tune those of the hardware"),
		param.Choice(&tune, "tune", "choose algorithm and protocol of collectives without trace data by NCCL's model "+
			"of their times", "yes", "no").Placeholder("yes|no").Check(func() error {
			o.Tune, o.Unpredicted = tune == "yes", tune == "no"
			return nil
		}).Default("no; yes with any of the next seven"),
		param.Choice(&o.Version, "version", "version of NCCL whose model chooses", versions...).Default(versions[v220]),
		param.Choice(&o.GPU, "gpu", "GPU in the model", gpus...).Default(gpus[hopper]),
		param.Choice(&o.Intra, "intra", "connection of the GPUs of a node in the model: nvlink through NVSwitches, "+
			"nvlink-mesh without, or pci", intras...).Default(intras[0]),
		param.Count(&o.NICs, "nics-per-node", "NICs of a node in the model", maxChannels).Default("one per GPU"),
		param.ByteRate(&o.NICRate, "nic-rate", "rate of a NIC in the model").Default("that of the GPU's generation"),
		param.ByteRate(&o.LinkRate, "link-rate", "rate of the links of a GPU inside the node, in one direction, in "+
			"the model").Default("that of the GPU's generation"),
		param.Choice(&o.CPU, "cpu", "CPU in the model", cpus...).Default(cpus[0]),
		param.Choice(&o.Machine, "machine", "machine with the measured times of reducing and copying", Machines...),
		param.Choice(&ranks, "ranks", "unit that becomes one rank of the result", "gpus", "nodes").
			Placeholder("gpus|nodes").Check(func() error {
			o.Apart = ranks == "gpus"
			return nil
		}),
	}.AsKeys("Keys of nccl")
}

// Settings are the options of a lowering that are flags.
type Settings struct {
	Sample        bool
	ZeroReduction bool
	Unmodelled    string // "ring", "none", or "" for an error; see the pass
	Version       string // of NCCL, to choose anew for all collectives; "": not
	Registered    bool

	simple, ll, ll128 string // files of tables; "": that of the machine
}

// Params returns the table of the flags.
func (s *Settings) Params() param.Set {
	return param.Set{
		param.File(&s.simple, "npkit-simple",
			"NPKit file of the times to reduce and copy with NCCL's protocol Simple").Default("those of the machine"),
		param.File(&s.ll, "npkit-ll", "NPKit file for the protocol LL").Default("those of the machine"),
		param.File(&s.ll128, "npkit-ll128", "NPKit file for the protocol LL128").
			Default("estimated from the machine's times for Simple; no time with --npkit-simple"),
		param.Bool(&s.Sample, "npkit-sample",
			"draw the times of NPKit files at random instead of using their means"),
		param.Bool(&s.ZeroReduction, "zero-reduction",
			"set the times of reducing, copying and messages inside a node to 0"),
		param.Bool(&s.Registered, "nccl-registered", "register the buffers of NVLS calls: GPUs do not copy their data"),
		param.Choice(&s.Version, "nccl-version", "choose algorithm and protocol of all collectives as this version of "+
			"NCCL does, also of those with trace data", versions...),
		param.Choice(&s.Unmodelled, "assume", "replacement of NCCL algorithms without a model: ring, or none to "+
			"omit their messages; otherwise they are an error", "ring", "none"),
	}
}

// ReadTables reads the tables of times that the settings name. The function opens a file and passes its content on.
func (s *Settings) ReadTables(o *Options, open func(name string, read func(io.Reader) error) error) error {
	for _, table := range []struct {
		path string
		to   **Table
	}{{s.simple, &o.Simple}, {s.ll, &o.LL}, {s.ll128, &o.LL128}} {
		if table.path == "" {
			continue
		}
		err := open(table.path, func(r io.Reader) (err error) {
			*table.to, err = ReadTable(r)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Grouping is the number of ranks per node: equal for all nodes, or from a file. The zero value changes nothing.
type Grouping struct {
	file    string
	perNode int
}

// Params returns the table of the parameters, of which one can be given.
func (g *Grouping) Params() param.Set {
	return param.Set{
		param.File(&g.file, "regroup", "YAML file that assigns ranks to nodes: num_of_nodes and "+
			"num_gpus_per_node, or num_gpus_list"),
		param.Int(&g.perNode, "gpus-per-node", "number of ranks per node").Range(1, math.MaxInt32),
	}
}

// Regroup returns the trace with its ranks assigned to nodes by [Regroup].
func (g *Grouping) Regroup(t *dag.Trace) (*dag.Trace, error) {
	ranks := len(t.Ranks)
	if g.file != "" {
		counts, err := ReadGrouping(g.file, ranks)
		if err != nil {
			return nil, err
		}
		return Regroup(t, counts)
	}
	if g.perNode == 0 {
		return t, nil
	}
	if ranks%g.perNode != 0 {
		return nil, fmt.Errorf("--gpus-per-node: the trace has %d ranks, expected a multiple of %d", ranks, g.perNode)
	}
	return Regroup(t, slices.Repeat([]int{g.perNode}, ranks/g.perNode))
}
