package nodes

import "github.com/tracedag/tracedag/param"

// DefaultBandwidth is the bandwidth inside the nodes of the validation of ATLAHS, in bytes per second.
const DefaultBandwidth = 150e9

// NewOptions returns the defaults of programs.
func NewOptions() *Options { return &Options{Bandwidth: DefaultBandwidth} }

// Params returns the table of the options.
func (o *Options) Params() param.Set {
	return param.Set{
		param.Bool(&o.OwnNICs, "unique-nic", "give each rank its own NICs when the ranks of a node are joined"),
		param.Bandwidth(&o.Bandwidth, "intra-bw", "bandwidth of messages inside a node when its ranks are "+
			"joined; each end takes half of their time"),
	}
}
