package topology

import (
	"reflect"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

func TestFatTree(t *testing.T) {
	tier := FatTreeTier{Rate: 100 * gbps, Latency: dag.Microsecond}
	plain := []FatTreeTier{tier, tier, tier}
	with := func(change func(p *FatTreeParams)) FatTreeParams {
		p := FatTreeParams{Tiers: append([]FatTreeTier(nil), plain...)}
		change(&p)
		return p
	}
	for name, test := range map[string]struct {
		p                        FatTreeParams
		hosts, tors, aggs, cores int
		links                    int
		err                      string
	}{
		"k":                {with(func(p *FatTreeParams) { p.K = 4 }), 16, 8, 8, 4, 48, ""},
		"hosts":            {with(func(p *FatTreeParams) { p.Hosts = 8192 }), 8192, 512, 512, 256, 24576, ""},
		"two tiers, k":     {with(func(p *FatTreeParams) { p.K = 8; p.Tiers = p.Tiers[:2] }), 32, 8, 4, 0, 64, ""},
		"two tiers, hosts": {with(func(p *FatTreeParams) { p.Hosts = 128; p.Tiers = p.Tiers[:2] }), 128, 16, 8, 0, 256, ""},
		"leaf-spine": {with(func(p *FatTreeParams) {
			p.Hosts = 30
			p.Tiers = p.Tiers[:2]
			p.Tiers[0].Down, p.Tiers[0].Up = 10, 4
		}), 30, 3, 4, 0, 42, ""},
		"oversubscription": {with(func(p *FatTreeParams) { p.Hosts = 128; p.Tiers[0].Oversubscription = 4 }),
			128, 32, 8, 4, 128 + 32 + 32, ""},
		"oversubscription twice": {with(func(p *FatTreeParams) {
			p.Hosts = 128
			p.Tiers[0].Oversubscription, p.Tiers[1].Oversubscription = 2, 2
		}), 128, 32, 16, 4, 128 + 64 + 32, ""},
		"rates": {with(func(p *FatTreeParams) { p.K = 8; p.Tiers[1].Rate, p.Tiers[2].Rate = 200*gbps, 400*gbps }),
			128, 32, 16, 4, 128 + 64 + 32, ""},
		"bundles": {with(func(p *FatTreeParams) { p.K = 8; p.Tiers[1].Bundle, p.Tiers[2].Bundle = 2, 4 }),
			128, 32, 16, 4, 128 + 128 + 128, ""},
		"given": {with(func(p *FatTreeParams) {
			p.Hosts, p.PodHosts = 128, 32
			p.Tiers[0].Down, p.Tiers[0].Up, p.Tiers[0].Oversubscription = 8, 2, 4
			p.Tiers[1].Down, p.Tiers[1].Up = 4, 4
			p.Tiers[2].Down = 4
		}), 128, 16, 8, 8, 192, ""},
		"nothing": {p: with(func(p *FatTreeParams) {}), err: "fat tree: expected hosts or k, found neither"},
		"odd k":   {p: with(func(p *FatTreeParams) { p.K = 3 }), err: "fat tree: expected an even k from 2 to 4096, found 3"},
		"k is big": {p: with(func(p *FatTreeParams) { p.K = 4096 }),
			err: "fat tree: expected at most 4194304 hosts, found 17179869184"},
		"no k": {p: with(func(p *FatTreeParams) { p.Hosts = 100 }),
			err: "fat tree: expected k^3/4 hosts with an even k, unless tor and pod are given, found 100"},
		"tiers": {p: FatTreeParams{Hosts: 16, Tiers: plain[:1]}, err: "fat tree: expected 2 or 3 tiers, found 1"},
		"no rate": {p: FatTreeParams{Hosts: 16, Tiers: make([]FatTreeTier, 2)},
			err: "fat tree: tier 0: expected a rate of 1bps to 8Tbps, found 0bps"},
		"negative": {p: with(func(p *FatTreeParams) { p.K = 4; p.Tiers[1].Up = -1 }),
			err: "fat tree: tier 1: ports up: expected at most 1048576, found -1"},
		"hosts of a bundle": {p: with(func(p *FatTreeParams) { p.K = 4; p.Tiers[0].Bundle = 2 }),
			err: "fat tree: tier 0: expected a bundle of 1 since a host has one link, found 2"},
		"ports above the top": {p: with(func(p *FatTreeParams) { p.K = 4; p.Tiers[2].Up = 2 }),
			err: "fat tree: tier 2: expected no ports up from the top tier"},
		"pods": {p: with(func(p *FatTreeParams) { p.Hosts, p.PodHosts, p.Tiers[0].Down = 10, 4, 2 }),
			err: "fat tree: expected a multiple of the pod's 4 hosts, found 10 hosts"},
		"tors": {p: with(func(p *FatTreeParams) { p.Hosts, p.PodHosts, p.Tiers[0].Down = 8, 4, 3 }),
			err: "fat tree: expected a multiple of the ToR's 3 hosts per pod, found 4 hosts"},
		"pods of two tiers": {p: with(func(p *FatTreeParams) { p.K, p.PodHosts, p.Tiers = 4, 4, p.Tiers[:2] }),
			err: "fat tree: expected one pod of all 8 hosts with two tiers, found pods of 4"},
		"ports down": {p: with(func(p *FatTreeParams) { p.K = 4; p.Tiers[1].Down = 3 }),
			err: "fat tree: tier 1: expected 2 ports down, found 3, 1 for each of a pod's 2 ToRs"},
		"ports of a core": {p: with(func(p *FatTreeParams) { p.K = 4; p.Tiers[2].Down = 3 }),
			err: "fat tree: tier 2: expected 4 ports down, found 3, 1 for each of 4 pods"},
		"half a port": {p: with(func(p *FatTreeParams) { p.K = 4; p.Tiers[0].Oversubscription = 4 }),
			err: "fat tree: tier 0: expected a whole number of ports up, found 2 ports of 100000000000bps down, " +
				"100000000000bps up and an oversubscription of 4"},
		"another oversubscription": {p: with(func(p *FatTreeParams) {
			p.K = 8
			p.Tiers[0].Up, p.Tiers[0].Oversubscription = 1, 2
		}), err: "fat tree: tier 0: expected an oversubscription of 4, found 2: a switch has 4 ports of 100000000000bps down, " +
			"1 of 100000000000bps up"},
		"bundle and ports": {p: with(func(p *FatTreeParams) { p.K = 8; p.Tiers[1].Bundle = 3 }),
			err: "fat tree: tier 0: expected a multiple of the bundle of tier 1 as ports up, 3, found 4"},
		"links": {p: with(func(p *FatTreeParams) {
			p.Hosts = maxNodes
			p.Tiers = p.Tiers[:2]
			p.Tiers[0].Down, p.Tiers[0].Up = 1, maxPorts
		}), err: "fat tree: expected at most 4194304 links, found 4398050705408"},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := FatTree(test.p)
			if err != nil || test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Fatalf("error %v, want %s", err, test.err)
				}
				return
			}
			p := n.FatTree
			got := []int{n.Hosts, p.tors(), p.aggs(), p.Cores(), len(n.Links), n.Switches}
			want := []int{test.hosts, test.tors, test.aggs, test.cores, test.links, test.tors + test.aggs + test.cores}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("hosts, ToRs, aggregation switches, cores, links, switches: %v, want %v", got, want)
			}
			again, err := FatTree(*p)
			if err != nil || !reflect.DeepEqual(again.Links, n.Links) || !reflect.DeepEqual(again.FatTree, p) {
				t.Errorf("complete parameters make another network (%v)", err)
			}
			if !connected(routes(t, n, nil)) {
				t.Error("some hosts do not reach others")
			}
		})
	}
	if !reflect.DeepEqual(plain, []FatTreeTier{tier, tier, tier}) {
		t.Error("FatTree changed what it was given")
	}
}

// Core c is connected with aggregation switch c mod (those of a pod), and tiers have the rates and latencies given.
func TestFatTreeLinks(t *testing.T) {
	n := parse(t, "fattree:k=4,rate=100/200/400,latency=1us/2us/3us,switchlatency=10/20/30,"+
		"oversubscription=1/1,bundle=1/1,tor=8,pod=16,hosts=32")
	// 2 pods of 2 ToRs with 8 hosts and 4 uplinks, 4 aggregation switches with 1 uplink, 4 cores.
	names := []string{}
	for _, l := range []int{0, 8, 31, 32, 33, 36, 40, 47, 48, 49, 52, 55} {
		link := n.Links[l]
		names = append(names, n.Name(link.A)+"-"+n.Name(link.B)+" "+link.Latency.String())
		if want := int64(100*gbps) << (int64(link.Latency/dag.Microsecond) - 1); link.Rate != want {
			t.Errorf("link %d: rate %d, want %d", l, link.Rate, want)
		}
	}
	want := []string{"host0-tor0 1us", "host8-tor1 1us", "host31-tor3 1us", "tor0-agg0 2us", "tor0-agg1 2us", "tor1-agg0 2us",
		"tor2-agg4 2us", "tor3-agg7 2us", "agg0-core0 3us", "agg1-core1 3us", "agg4-core0 3us", "agg7-core3 3us"}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("links %q, want %q", names, want)
	}
	if len(n.Links) != 56 {
		t.Errorf("%d links, want 56", len(n.Links))
	}
	for s, tier := range n.Tier {
		if want := dag.Time(tier+1) * 10 * dag.Nanosecond; n.SwitchLatency[s] != want {
			t.Errorf("%s: latency %v, want %v", n.Name(n.node(s)), n.SwitchLatency[s], want)
		}
	}
}

func TestCoreLink(t *testing.T) {
	n := parse(t, "fattree:k=8,bundle=1/2")
	for _, test := range []struct {
		agg, up int
		name    string
	}{
		{0, 0, "agg0-core0#1"}, {0, 1, "agg0-core0#2"}, {0, 2, "core4-agg0#1"}, {5, 3, "agg5-core5#2"}, {31, 0, "agg31-core3#1"},
	} {
		link, err := n.CoreLink(test.agg, test.up)
		want, err2 := n.LinkByName(test.name)
		if err != nil || err2 != nil || len(want) != 1 || link != want[0] {
			t.Errorf("aggregation switch %d, up %d: link %d (%v), want %v (%v)", test.agg, test.up, link, err, want, err2)
		}
	}
	for _, test := range []struct {
		spec    string
		agg, up int
		want    string
	}{
		{"fattree:k=4", 8, 0, "expected an aggregation switch from 0 to 7, found 8"},
		{"fattree:k=4", 0, 2, "expected a link of agg0 up from 0 to 1, found 2"},
		{"fattree:k=4,tiers=2", 0, 0, "expected a fat tree of three tiers, which has links between aggregation switches and cores"},
		{"star:hosts=4", 0, 0, "expected a fat tree of three tiers, which has links between aggregation switches and cores"},
	} {
		if _, err := parse(t, test.spec).CoreLink(test.agg, test.up); err == nil || err.Error() != test.want {
			t.Errorf("%s: error %v, want %s", test.spec, err, test.want)
		}
	}
}
