package horovod

// Networks whose tensors a run can reduce.

import "fmt"

// network is a network whose gradients are reduced.
type network struct {
	name, title string
	parameters  []int64 // of each layer, in the order of the forward pass
	workers     int
	batches     int
}

// networks are those of --model. AlexNet stands in for the captured trace of the paper, which is not published: 98
// workers that send 249 GB. Five batches are nearest to that, if allreduces are rings: 236.6 GB.
var networks = []network{{
	name: "alexnet", title: "AlexNet (stand-in, not the capture)",
	// conv1 to conv5, fc6 to fc8 of Krizhevsky et al., with two groups in conv2, conv4 and conv5: 60,965,224.
	parameters: []int64{34_944, 307_456, 885_120, 663_936, 442_624, 37_752_832, 16_781_312, 4_097_000},
	workers:    98, batches: 5,
}}

const (
	bytesOfParameter = 4
	fusionBuffer     = 64 << 20 // of Horovod, by default
)

// Network returns a run that reduces the tensors of a network, with the times and the negotiation of the defaults.
func Network(name string) (Params, error) {
	for _, n := range networks {
		if n.name != name {
			continue
		}
		p := Default()
		p.Network, p.Workers, p.Batches, p.Overrides = n.title, n.workers, n.batches, map[int]Layer{}
		for i, bytes := range fuse(n.parameters, fusionBuffer) {
			l := p.Layer
			l.AllreduceBytes = bytes
			p.Overrides[i] = l
		}
		p.Layers = len(p.Overrides)
		return p, nil
	}
	return Params{}, fmt.Errorf("no model %q, expected one of %q", name, networkNames())
}

func networkNames() (names []string) {
	for _, n := range networks {
		names = append(names, n.name)
	}
	return names
}

// fuse returns the sizes of allreduces: gradients become ready from the last layer to the first, and share an allreduce
// while they fit in a buffer. Larger ones have their own.
func fuse(parameters []int64, buffer int64) (sizes []int64) {
	filled := int64(0)
	for i := len(parameters) - 1; i >= 0; i-- {
		bytes := parameters[i] * bytesOfParameter
		if filled > 0 && filled+bytes > buffer {
			sizes, filled = append(sizes, filled), 0
		}
		filled += bytes
	}
	return append(sizes, filled)
}
