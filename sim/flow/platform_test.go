package flow

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPlatformVectors compares links and routes of clusters with SimGrid.
func TestPlatformVectors(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS names no folder of vectors")
	}
	paths, err := filepath.Glob(filepath.Join(folder, "flow", "cases", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	clusters := 0
	for _, name := range paths {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var v struct {
			vector
			XML string `json:"platform_xml"`
		}
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		if v.XML == "" {
			continue
		}
		clusters++
		p, err := readPlatform([]byte(v.XML), name)
		if err != nil {
			t.Error(err)
			continue
		}
		number := map[string]int{}
		for i := range p.wires {
			number[p.wires[i].name] = i
		}
		for _, l := range v.Links {
			i, known := number[l.Name]
			if !known {
				t.Errorf("%s: no link %s", name, l.Name)
				continue
			}
			w := &p.wires[i]
			latency := uint64(math.Round(l.Lat * psPerSecond))
			if w.rate != l.BW || w.latency != latency || w.fat != (l.Sharing == "fatpipe") {
				t.Errorf("%s: link %+v, in SimGrid %+v", name, *w, l)
			}
		}
		for _, r := range v.Routes {
			from, to := slices.Index(p.hosts, r.Src), slices.Index(p.hosts, r.Dst)
			if found := p.names(uint32(from), uint32(to)); !slices.Equal(found, r.Links) {
				t.Errorf("%s: route from %s to %s is %v, in SimGrid %v", name, r.Src, r.Dst, found, r.Links)
			}
		}
	}
	if clusters == 0 {
		t.Error("no cases with a platform")
	}
}

// names returns the names of the links between two hosts.
func (p *platform) names(from, to uint32) (names []string) {
	for _, i := range p.between(from, to) {
		names = append(names, p.wires[i].name)
	}
	return names
}

// full wraps elements in a zone.
func full(text string) string {
	return `<platform version="4.1"><zone id="z" routing="Full">` + text + `</zone></platform>`
}

// clusterOf returns a platform of one cluster.
func clusterOf(text string) string {
	return `<platform version="4.1"><cluster id="c" prefix="n" suffix="" speed="1Gf" bw="1GBps" lat="1us" ` + text +
		`/></platform>`
}

const twoHosts = `<host id="a" speed="1f"/><host id="b" speed="1f"/>`

func TestPlatformRoutes(t *testing.T) {
	for _, c := range []struct {
		name, text string
		from, to   uint32
		want       string
	}{
		{"symmetrical", full(twoHosts + `<link id="x" bandwidth="1Bps"/><link id="y" bandwidth="8bps" latency="1ns"
			sharing_policy="SPLITDUPLEX"/><route src="a" dst="b"><link_ctn id="x"/><link_ctn id="y"
			direction="UP"/></route>`), 1, 0, "y_DOWN x"},
		{"direction by name", full(twoHosts + `<link id="y" bandwidth="1Bps" sharing_policy="SPLITDUPLEX"/>
			<route src="a" dst="b" symmetrical="NO"><link_ctn id="y_DOWN"/></route>`), 0, 1, "y_DOWN"},
		{"not symmetrical", full(twoHosts + `<link id="x" bandwidth="1Bps"/>
			<route src="a" dst="b" symmetrical="NO"><link_ctn id="x"/></route>`), 1, 0, ""},
		{"zone around a cluster", strings.NewReplacer("<cluster", `<zone id="z" routing="Full"><cluster`,
			"</platform>", "</zone></platform>").Replace(clusterOf(`radical="0-3"`)), 2, 0,
			"c_link_2_UP c_link_0_DOWN"},
		{"loopback", clusterOf(`radical="0-3" loopback_bw="1GBps"`), 2, 2, "c_link_2_loopback"},
		{"no loopback", clusterOf(`radical="0-3"`), 2, 2, ""},
		{"limiter and backbone", clusterOf(`radical="4,6-7" limiter_link="1GBps" bb_bw="1GBps" bb_lat="1us"`), 0, 1,
			"c_link_0_limiter c_link_4_UP c_backbone c_link_6_DOWN c_link_1_limiter"},
		{"torus with limiter", clusterOf(`radical="0-8" topology="TORUS" topo_parameters="3,3" limiter_link="1GBps"
			sharing_policy="SHARED"`), 0, 5,
			"c_link_0_limiter c_link_from_2_to_0 c_link_2_limiter c_link_from_2_to_5 c_link_5_limiter"},
		{"fat tree with limiter", clusterOf(`radical="0-3" topology="FAT_TREE" topo_parameters="2;2,2;1,2;1,1"
			limiter_link="1GBps"`), 0, 3, "c_link_0_limiter link_from_0_7_0_UP c_link_4_limiter link_from_7_4_5_UP " +
			"link_from_6_4_7_DOWN c_link_7_limiter link_from_3_6_3_DOWN c_link_5_limiter c_link_3_limiter"},
		{"fat tree with parallel links", clusterOf(`radical="0-3" topology="FAT_TREE" topo_parameters="1;4;1;2"`), 1, 2,
			"link_from_1_7_2_UP link_from_2_7_5_DOWN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := readPlatform([]byte(c.text), "p.xml")
			if err != nil {
				t.Fatal(err)
			}
			if found := strings.Join(p.names(c.from, c.to), " "); found != c.want {
				t.Errorf("found %s, expected %s", found, c.want)
			}
		})
	}
}

func TestPlatformQuantities(t *testing.T) {
	for text, want := range map[string]float64{"1": 1, "12.5GBps": 12.5e9, "100Gbps": 12.5e9, "1KiBps": 1024,
		"1Mibps": 131072, "2e3kBps": 2e6} {
		if rate, err := platformRate("bw", text); rate != want || err != nil {
			t.Errorf("%s: %v, %v, expected %v", text, rate, err, want)
		}
	}
	for text, want := range map[string]uint64{"": 0, "1": 1e12, "1.5us": 1.5e6, "0.0005ns": 1, "2m": 120e12, "3ps": 3} {
		if latency, err := platformTime("lat", text); latency != want || err != nil {
			t.Errorf("%s: %v, %v, expected %v", text, latency, err, want)
		}
	}
}

func TestPlatformErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "expected a <cluster>"},
		{"<platform", "XML syntax error"},
		{"<platform version=\"3\"/>", "p.xml:1: <platform>: expected version 4.1"},
		{"\n" + full(`<host id="a"/>`+"\n"+`<host id="a"/>`), "p.xml:3: <host>: expected a unique id"},
		{full(`<link id="x" bandwidth="1 furlong"/>`), "expected a bandwidth such as"},
		{full(`<link id="x" bandwidth="1GBps" latency="-1s"/>`), "expected a time such as"},
		{full(`<link id="x" bandwidth="1GBps" bandwidth_file="f"/>`), "bandwidth_file is not supported"},
		{full(`<link id="x" bandwidth="1GBps" sharing_policy="WIFI"/>`), "expected SHARED, FATPIPE or SPLITDUPLEX"},
		{full(`<link id="x" bandwidth="1GBps"/><link id="x" bandwidth="1GBps"/>`), "expected a unique id"},
		{full(twoHosts + `<route src="a" dst="c"/>`), "dst: expected a host"},
		{full(twoHosts + `<route src="a" dst="b"/>`), "expected at least one <link_ctn>"},
		{full(twoHosts + `<route src="a" dst="b"><link_ctn id="q"/></route>`), "expected a link that is declared"},
		{full(twoHosts + `<link id="x" bandwidth="1Bps" sharing_policy="SPLITDUPLEX"/><route src="a" dst="b">
			<link_ctn id="x"/></route>`), "expected UP or DOWN"},
		{full(twoHosts + `<link id="x" bandwidth="1Bps"/><route src="a" dst="b"><link_ctn id="x"/></route>
			<route src="b" dst="a"><link_ctn id="x"/></route>`), "found a second one"},
		{full(`<zone id="y" routing="Full">` + twoHosts + `</zone><host id="c"/>`), "routes between zones"},
		{`<platform version="4.1"><zone id="y" routing="Floyd"/></platform>`, "expected routing Full"},
		{`<platform version="4.1"><config><prop id="network/model" value="CM02"/></config></platform>`, "--flow-model"},
		{`<platform version="4.1">` + strings.Repeat(`<zone id="" routing="Full">`, 100), "nested elements"},
		{`<!DOCTYPE p [<!ENTITY e "x">]><platform version="&e;"/>`, "invalid character entity"},
		{clusterOf(`radical="0-9999999"`), "radical: expected"},
		{clusterOf(`radical="0-3" topology="TORUS" topo_parameters="2,3"`), "expected 6 hosts"},
		{clusterOf(`radical="0-3" topology="TORUS" topo_parameters="1000000,1000000"`), "at most 4194304 links"},
		{clusterOf(`radical="0-3" topology="FAT_TREE" topo_parameters="2;4;1;1"`), "expected a list of 2"},
		{clusterOf(`radical="0-3" topology="DRAGONFLY" topo_parameters="2,1;1,1;1,1;2"`), "as many routers"},
		{clusterOf(`radical="0" topology="TORUS" topo_parameters="1` + strings.Repeat(",1", 64) + `"`), "at most 64"},
		{clusterOf(`radical="0-3" sharing_policy="FATPIPE"`), "expected SPLITDUPLEX or SHARED"},
	} {
		if _, err := readPlatform([]byte(c.text), "p.xml"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\nfound %v, expected %s", c.text, err, c.want)
		}
	}
}

// FuzzPlatform reads platforms and follows their routes: routes consist of existing links.
func FuzzPlatform(f *testing.F) {
	f.Add(full(twoHosts + `<link id="x" bandwidth="1Bps"/><route src="a" dst="b"><link_ctn id="x"/></route>`))
	f.Add(clusterOf(`radical="0-3" topology="FAT_TREE" topo_parameters="2;2,2;1,2;3,2" limiter_link="1GBps"`))
	f.Add(clusterOf(`radical="0-8" topology="TORUS" topo_parameters="3,3" loopback_bw="1GBps"`))
	f.Add(clusterOf(`radical="0-15" topology="DRAGONFLY" topo_parameters="2,1;2,1;2,1;2" sharing_policy="SHARED"`))
	f.Add(clusterOf(`radical="1,3-5" bb_bw="1GBps"`))
	f.Fuzz(func(t *testing.T, text string) {
		p, err := readPlatform([]byte(text), "p.xml")
		if err != nil {
			return
		}
		n := uint32(len(p.hosts))
		for i := range min(n, 20) {
			for j := range min(n, 20) {
				for _, l := range p.between(i, n-1-j) {
					if int(l) >= len(p.links) {
						t.Fatalf("link %d of %d", l, len(p.links))
					}
				}
			}
		}
	})
}
