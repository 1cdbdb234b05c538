// This file builds the networks of GPUs that SimAI's generator has as templates: Spectrum-X, AlibabaHPN and DCN+.

package topology

import (
	"errors"
	"fmt"

	"github.com/tracedag/tracedag/dag"
)

// PodParams describes a network of servers with GPUs: NVSwitches within servers, access switches (ASW), and above them
// switches (PSW) to which all access switches of a plane are connected.
type PodParams struct {
	GPUs       int // a multiple of PerServer
	PerServer  int
	NVSwitches int // per server, each with a link to each GPU of the server

	// Rails connects GPUs with the same number within their servers to the same access switch. Otherwise, all GPUs of
	// a server are at one access switch.
	Rails bool
	// ToRs is the number of access switches, 1 or 2, to which a GPU has a link each.
	ToRs int
	// Planes is 2 if first access switches of GPUs and second ones are connected to different halves of the PSWs. It
	// needs Rails and two ToRs.
	Planes int

	NICs   int // links from GPUs per access switch
	PSWs   int // all planes together
	MaxASW int // access switches that a PSW can connect; those of a second ToR are not counted with Rails. 0: any

	NVRate, Rate, UpRate int64    // bit/s of links to NVSwitches, to access switches, and between ASWs and PSWs
	NVLatency, Latency   dag.Time // of links to NVSwitches, and of all others
	SwitchLatency        dag.Time // of ASWs and PSWs
}

// segments returns the numbers of segments, and of access switches of a ToR in a segment.
func (p *PodParams) segments() (segments, switches int) {
	switches = 1
	if p.Rails {
		switches = p.PerServer
	}
	return (p.GPUs-1)/(p.NICs*switches) + 1, switches
}

// check checks the parameters.
func (p *PodParams) check() error {
	for _, c := range [...]struct {
		name           string
		value, atLeast int
	}{{"GPUs", p.GPUs, 1}, {"GPUs per server", p.PerServer, 1}, {"NVSwitches", p.NVSwitches, 0},
		{"NICs per access switch", p.NICs, 1}, {"PSWs", p.PSWs, 0}, {"access switches per PSW", p.MaxASW, 0}} {
		if c.value < c.atLeast || c.value > maxPorts {
			return fmt.Errorf("%s: expected %d to %d, found %d", c.name, c.atLeast, maxPorts, c.value)
		}
	}
	switch {
	case p.GPUs%p.PerServer != 0:
		return fmt.Errorf("expected a multiple of %d GPUs per server, found %d GPUs", p.PerServer, p.GPUs)
	case p.ToRs != 1 && p.ToRs != 2:
		return fmt.Errorf("expected 1 or 2 access switches per GPU, found %d", p.ToRs)
	case p.Planes != 1 && p.Planes != 2:
		return fmt.Errorf("expected 1 or 2 planes, found %d", p.Planes)
	case p.Planes == 2 && (p.ToRs != 2 || !p.Rails):
		return errors.New("two planes need rails and two access switches per GPU")
	case p.Planes == 2 && p.PSWs == 1:
		return errors.New("expected a PSW for each of two planes, found one in all")
	}
	segments, switches := p.segments()
	capacity := segments * switches
	if !p.Rails {
		capacity *= p.ToRs
	}
	if p.MaxASW > 0 && capacity > p.MaxASW/switches*switches {
		return fmt.Errorf("%d GPUs need %d access switches per PSW: expected at most %d; use fewer GPUs or more NICs "+
			"per access switch", p.GPUs, capacity, p.MaxASW)
	}
	if p.PSWs == 0 && segments*switches > 1 {
		return errors.New("expected PSWs, because there are several access switches, found none")
	}
	ups := int64(segments) * int64(switches) * int64(p.ToRs) * int64(p.PSWs/p.Planes+1)
	if links := int64(p.GPUs)*int64(p.NVSwitches+p.ToRs) + ups; links > maxLinks {
		return fmt.Errorf("expected at most %d links, found about %d", maxLinks, links)
	}
	return nil
}

// Pod builds a network of GPUs. GPUs, switches and links have the order of the files of SimAI's generator: switches are
// NVSwitches, then access switches, those of a second ToR behind all of the first, then PSWs. [Network.GPUs] has the
// ports of the GPUs, those at NVSwitches first.
func Pod(p PodParams) (*Network, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	segments, switches := p.segments()
	asws := segments * switches // of a ToR
	nv := p.GPUs / p.PerServer * p.NVSwitches
	each := p.NVSwitches + p.ToRs
	n := &Network{Hosts: p.GPUs * each, Switches: nv + asws*p.ToRs + p.PSWs,
		GPUs: &GPUs{PerServer: p.PerServer, NVSwitches: nv, First: make([]uint32, p.GPUs+1), uniform: true}}
	n.Tier = make([]int8, n.Switches)
	n.SwitchLatency = make([]dag.Time, n.Switches)
	for s := nv; s < n.Switches; s++ {
		n.SwitchLatency[s] = p.SwitchLatency
		if s >= nv+asws*p.ToRs {
			n.Tier[s] = 1
		}
	}
	for gpu := range p.GPUs {
		port := uint32(gpu * each)
		n.GPUs.First[gpu+1] = port + uint32(each)
		server := gpu / p.PerServer
		for k := range p.NVSwitches {
			n.Links = append(n.Links, Link{port, n.node(server*p.NVSwitches + k), p.NVRate, p.NVLatency})
			port++
		}
		asw := gpu / (p.NICs * switches) * switches
		if p.Rails {
			asw += gpu % p.PerServer
		}
		for tor := range p.ToRs {
			n.Links = append(n.Links, Link{port, n.node(nv + tor*asws + asw), p.Rate, p.Latency})
			port++
		}
	}
	half := (p.PSWs + p.Planes - 1) / p.Planes // PSWs of the first plane
	for tor := range p.ToRs {
		first, last := 0, p.PSWs
		if p.Planes == 2 {
			first, last = tor*half, half+tor*(p.PSWs-half)
		}
		for asw := range asws {
			for psw := first; psw < last; psw++ {
				n.Links = append(n.Links, Link{n.node(nv + tor*asws + asw), n.node(nv + p.ToRs*asws + psw), p.UpRate,
					p.Latency})
			}
		}
	}
	n.nameGPUs()
	if err := n.Validate(); err != nil {
		return nil, err
	}
	return n, nil
}

// podKeys are the keys of networks of GPUs.
var podKeys = []string{"gpus", "server", "nvswitches", "nvrate", "nvlatency", "rate", "latency", "switchlatency",
	"nics", "asws", "psws", "uprate", "maxasws"}

// pod returns the network of the keys; p has the defaults.
func (o *options) pod(p PodParams, rate string) (*Network, error) {
	p.GPUs, p.PerServer = o.count("gpus", p.GPUs), o.count("server", 8)
	p.NVSwitches = o.count("nvswitches", 1)
	p.NICs, p.PSWs, p.MaxASW = o.count("nics", p.NICs), o.count("psws", p.PSWs), o.count("maxasws", p.MaxASW)
	p.NVRate, p.Rate, p.UpRate = o.rate("nvrate", "2880Gbps"), o.rate("rate", rate), o.rate("uprate", "400Gbps")
	p.NVLatency, p.Latency = o.time("nvlatency", "25ns"), o.time("latency", "500ns")
	p.SwitchLatency = o.time("switchlatency", "0")
	o.count("asws", 0) // their number follows, as in SimAI's generator
	if o.err != nil {
		return nil, o.err
	}
	return Pod(p)
}

func parseSpectrumX(o *options) (*Network, error) {
	return o.pod(PodParams{GPUs: 4096, Rails: true, ToRs: 1, Planes: 1, NICs: 64, PSWs: 64, MaxASW: 64}, "400Gbps")
}

func parseAlibabaHPN(o *options) (*Network, error) {
	p := PodParams{GPUs: 15360, Rails: true, ToRs: 2, Planes: o.count("planes", 1), NICs: 128, PSWs: 120, MaxASW: 240}
	if p.Planes == 2 {
		p.MaxASW = 120
	}
	return o.pod(p, "200Gbps")
}

func parseDCN(o *options) (*Network, error) {
	p := PodParams{GPUs: 512, ToRs: o.count("tors", 1), Planes: 1, NICs: 64, PSWs: 8, MaxASW: 8}
	rate := "400Gbps"
	if p.ToRs == 2 {
		p.NICs, rate = 128, "200Gbps"
	}
	return o.pod(p, rate)
}
