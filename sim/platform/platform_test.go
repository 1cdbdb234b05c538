package platform

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
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
			Links []struct {
				Name    string
				BW, Lat float64
				Sharing string
			}
			Routes []struct {
				Src, Dst string
				Links    []string
			}
			XML string `json:"platform_xml"`
		}
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(err)
		}
		if v.XML == "" {
			continue
		}
		clusters++
		p, err := Read([]byte(v.XML), name)
		if err != nil {
			t.Error(err)
			continue
		}
		number := map[string]int{}
		for i := range p.Links {
			number[p.Links[i].Name] = i
		}
		for _, l := range v.Links {
			i, known := number[l.Name]
			if !known {
				t.Errorf("%s: no link %s", name, l.Name)
				continue
			}
			w := &p.Links[i]
			if w.Rate != l.BW || math.Abs(w.Latency-l.Lat) > 1e-15*l.Lat || w.Fat != (l.Sharing == "fatpipe") {
				t.Errorf("%s: link %+v, in SimGrid %+v", name, *w, l)
			}
		}
		for _, r := range v.Routes {
			from, to := slices.Index(p.Hosts, r.Src), slices.Index(p.Hosts, r.Dst)
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
func (p *Platform) names(from, to uint32) (names []string) {
	path, err := NewRouter(p).Route(from, to)
	if err != nil {
		return nil
	}
	for _, i := range path.Links {
		names = append(names, p.Links[i].Name)
	}
	return names
}

// routed is a platform of two hosts, which are far from each other, and a router.
func routed(routing string) string {
	return strings.Replace(full(`<host id="a"/><host id="b"/><host id="c"/><router id="r"/>
		<link id="l1" bandwidth="1GBps"/><link id="l2" bandwidth="1GBps" sharing_policy="SPLITDUPLEX"/>
		<link id="l3" bandwidth="1GBps"/>`+routes(routing)), "Full", routing, 1)
}

func routes(routing string) string {
	if routing == "None" {
		return ""
	}
	return `<route src="a" dst="b"><link_ctn id="l1"/><link_ctn id="l1"/><link_ctn id="l1"/></route>
		<route src="a" dst="r"><link_ctn id="l3"/></route>
		<route src="r" dst="b"><link_ctn id="l2" direction="DOWN"/></route>
		<route src="r" dst="c"><link_ctn id="l1"/></route>
		<route src="a" dst="c"><link_ctn id="l3"/></route>`
}

// starZone is a zone of hosts around a backbone.
const starZone = `<platform version="4"><AS id="s" routing="Cluster"><host id="a"/><host id="b"/><host id="l"/>
	<router id="r"/><backbone id="b_" bandwidth="1GBps" latency="0"/><link id="u" bandwidth="1Bps"/>
	<link id="d" bandwidth="1Bps"/><host_link id="a" up="u" down="u"/><host_link id="b" up="u" down="d"/>
	<cabinet id="k" prefix="c" suffix="" radical="4-5" speed="1f" bw="1Bps" lat="1us"/>
	<route src="l" dst="l"><link_ctn id="d"/></route></AS></platform>`

const vivaldi = `<platform version="4.1"><zone id="s" routing="Vivaldi">
	<peer id="p" speed="1f" bw_in="1MBps" bw_out="2MBps" coordinates="3 4 5"/>
	<peer id="q" speed="1f" bw_in="1MBps" bw_out="2MBps" coordinates="0 0 -1"/></zone></platform>`

// chained has zones in a zone with the routing Dijkstra.
const chained = `<platform version="4.1"><zone id="z" routing="Dijkstra">
	<cluster id="c" prefix="c" suffix="" radical="0-1" speed="1f" bw="1GBps" lat="1us" router_id="cr"/>
	<cluster id="d" prefix="d" suffix="" radical="0-1" speed="1f" bw="1GBps" lat="1us" router_id="dr"/>
	<cluster id="e" prefix="e" suffix="" radical="0-1" speed="1f" bw="1GBps" lat="1us" router_id="er"/>
	<link id="g" bandwidth="1Bps" latency="1us"/><link id="h" bandwidth="1Bps" latency="1us"/>
	<zoneRoute src="c" dst="d" gw_src="cr" gw_dst="dr"><link_ctn id="g"/><link_ctn id="h"/></zoneRoute>
	<zoneRoute src="d" dst="e" gw_src="dr" gw_dst="er"><link_ctn id="h"/><link_ctn id="g"/><link_ctn id="g"/></zoneRoute>
	</zone></platform>`

// nested has zones in zones.
const nested = `<platform version="4.1"><zone id="top" routing="Floyd">
	<cluster id="c" prefix="c" suffix="" radical="0-3" speed="1f" bw="1GBps" lat="1us"/>
	<zone id="in" routing="Full"><cluster id="f" prefix="f" suffix="" radical="0-1" speed="1f" bw="1GBps" lat="1us"
		topology="FAT_TREE" topo_parameters="1;2;1;3"/></zone>
	<zone id="w" routing="Full"><host id="m"/><host id="n"/><link id="x" bandwidth="1Bps"/>
		<bypassRoute src="m" dst="n"><link_ctn id="x"/></bypassRoute></zone>
	<cluster id="t" prefix="t" suffix="" radical="0-3" speed="1f" bw="1GBps" lat="1us" topology="FAT_TREE"
		topo_parameters="1;4;1;3"/>
	<link id="g" bandwidth="1Bps"/><link id="h" bandwidth="1Bps"/>
	<zoneRoute src="c" dst="in" gw_src="c1" gw_dst="f1"><link_ctn id="g"/></zoneRoute>
	<zoneRoute src="in" dst="w" gw_src="f0" gw_dst="m"><link_ctn id="h"/></zoneRoute>
	<bypassZoneRoute src="w" dst="c" gw_src="m" gw_dst="c1"><link_ctn id="x"/></bypassZoneRoute>
	</zone></platform>`

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
		{"no loopback", clusterOf(`radical="0-3"`), 2, 2, "c_link_2_UP c_link_2_DOWN"},
		{"no loopback and shared links", clusterOf(`radical="0-3" sharing_policy="FATPIPE" bb_bw="1GBps"`), 2, 2,
			"c_link_2 c_backbone"},
		{"no loopback in a torus", clusterOf(`radical="0-3" topology="TORUS" topo_parameters="4"`), 2, 2,
			"__loopback__"},
		{"no loopback in a zone", full(twoHosts), 1, 1, "__loopback__"},
		{"loopback of a zone", full(twoHosts + `<link id="x" bandwidth="1Bps"/><route src="a" dst="a">
			<link_ctn id="x"/></route>`), 0, 0, "x"},
		{"limiter and backbone", clusterOf(`radical="4,6-7" limiter_link="1GBps" bb_bw="1GBps" bb_lat="1us"`), 0, 1,
			"c_link_4_limiter c_link_4_UP c_backbone c_link_6_DOWN c_link_6_limiter"},
		{"torus with limiter", clusterOf(`radical="0-8" topology="TORUS" topo_parameters="3,3" limiter_link="1GBps"
			sharing_policy="SHARED"`), 0, 5,
			"c_link_0_limiter c_link_from_2_to_0 c_link_2_limiter c_link_from_2_to_5 c_link_5_limiter"},
		{"fat tree with limiter", clusterOf(`radical="0-3" topology="FAT_TREE" topo_parameters="2;2,2;1,2;1,1"
			limiter_link="1GBps"`), 0, 3, "c_link_0_limiter link_from_0_7_0_UP c_link_7_limiter link_from_7_4_5_UP " +
			"link_from_6_4_7_DOWN c_link_4_limiter link_from_3_6_3_DOWN c_link_6_limiter c_link_3_limiter"},
		{"shorter of two routes", routed("Floyd"), 0, 2, "l3"},
		{"shortest route over routers", routed("Floyd"), 0, 1, "l3 l2_DOWN"},
		{"shortest route back", routed("Dijkstra"), 1, 0, "l2_UP l3"},
		{"no route", routed("None"), 0, 1, ""},
		{"host links", starZone, 0, 1, "u b_ d"},
		{"host links of one host", starZone, 0, 0, "u b_"},
		{"cabinet", starZone, 1, 3, "u b_ link_c4_DOWN"},
		{"loopback in a star", starZone, 2, 2, "d"},
		{"peers", vivaldi, 0, 1, "link_p_UP link_q_DOWN"},
		{"between zones", nested, 0, 4, "c_link_0_UP c_link_1_DOWN g link_from_1_3_3_UP link_from_0_3_1_DOWN"},
		{"back between zones", nested, 4, 0, "link_from_0_3_1_UP link_from_1_3_3_DOWN g c_link_1_UP c_link_0_DOWN"},
		{"between zones through a third one", nested, 0, 6, "c_link_0_UP c_link_1_DOWN g link_from_1_3_3_UP " +
			"link_from_0_3_1_DOWN h"},
		{"bypass between zones", nested, 6, 0, "__loopback__ x c_link_1_UP c_link_0_DOWN"},
		{"bypass in a zone", nested, 6, 7, "x"},
		{"chain of zones, links in SimGrid's order", chained, 0, 5, "c_link_0_UP h g g g h e_link_1_DOWN"},
		{"fat trees count the hosts of those before", nested, 8, 11, "link_from_0_7_8_UP link_from_3_7_17_DOWN"},
		{"fat tree with parallel links", clusterOf(`radical="0-3" topology="FAT_TREE" topo_parameters="1;4;1;2"`), 1, 2,
			"link_from_1_7_2_UP link_from_2_7_5_DOWN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := Read([]byte(c.text), "p.xml")
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
		if rate, err := parseRate("bw", text); rate != want || err != nil {
			t.Errorf("%s: %v, %v, expected %v", text, rate, err, want)
		}
	}
	for text, want := range map[string]float64{"": 0, "1": 1, "1.5us": 1.5e-6, "2m": 120, "3ps": 3e-12,
		"160us": 0.00015999999999999999} {
		if latency, err := parseTime("lat", text); latency != want || err != nil {
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
		{full(`<link id="x" bandwidth="1GBps" bandwidth_file="f"/>`), `"bandwidth_file" is not supported`},
		{full(`<link id="x" bandwidth="1GBps" sharing_policy="WIFI"/>`), "expected SHARED, FATPIPE or SPLITDUPLEX"},
		{full(`<link id="x" bandwidth="1GBps"/><link id="x" bandwidth="1GBps"/>`), "expected a unique id"},
		{full(twoHosts + `<route src="a" dst="c"/>`), "dst: expected a host"},
		{full(twoHosts + `<route src="a" dst="b"/>`), "expected at least one <link_ctn>"},
		{full(twoHosts + `<route src="a" dst="b"><link_ctn id="q"/></route>`), "expected a link that is declared"},
		{full(twoHosts + `<link id="x" bandwidth="1Bps" sharing_policy="SPLITDUPLEX"/><route src="a" dst="b">
			<link_ctn id="x"/></route>`), "expected UP or DOWN"},
		{full(twoHosts + `<link id="x" bandwidth="1Bps"/><route src="a" dst="b"><link_ctn id="x"/></route>
			<route src="b" dst="a"><link_ctn id="x"/></route>`), "found a second one"},
		{full(`<zone id="y" routing="Full">` + twoHosts + `</zone><host id="c"/>`), "hosts or zones inside a zone, found both"},
		{`<platform version="4.1"><zone id="y" routing="Wifi"/></platform>`, "routing: expected Full"},
		{`<platform version="4.1"><zone id="y" routing="Floyd"/></platform>`, "expected a <cluster>"},
		{`<platform version="4.1"><zone id="y" routing="Full"/><zone id="z" routing="Full"/></platform>`,
			"expected one outermost zone"},
		{`<platform version="4.1"><zone id="y" routing="Full"><zone id="y" routing="Full"/></zone></platform>`,
			"expected a unique id"},
		{`<platform version="4.1"><config><prop id="network/loopback-bw" value="-1"/></config>` +
			strings.TrimPrefix(full(twoHosts), `<platform version="4.1">`), "network/loopback-bw: expected"},
		{`<platform version="4.1">` + zones(100), "nested elements"},
		{`<platform version="4.1"><host id="a"/></platform>`, "found it in <platform>"},
		{`<platform version="4.1"><zone id="y" routing="Cluster"><host_link id="a" up="b" down="c"/></zone></platform>`,
			"expected a host of the zone"},
		{`<platform version="4.1"><zone id="y" routing="Cluster"><zone id="z" routing="Full"/></zone></platform>`,
			"expected no zones inside"},
		{full(`<peer id="p" speed="1f" bw_in="1MBps" bw_out="1MBps"/>`), "routing Vivaldi"},
		{full(`<host id="a" speed="1 knot"/>`), "speed: expected a speed"},
		{full(`<host id="a" core="0"/>`), "core: expected 1 or more"},
		{full(`<trace_connect kind="BANDWIDTH" trace="t" element="l"/>`), "not supported"},
		{strings.Replace(nested, `gw_dst="m"`, `gw_dst="f0"`, 1), "gw_dst: expected a host or router in the zone"},
		{strings.Replace(nested, `dst="w"`, `dst="x"`, 1), "dst: expected a zone"},
		{strings.Replace(starZone, "Cluster", "None", 1), "expected it in a zone with the routing Cluster"},
		{strings.Replace(vivaldi, "3 4 5", "3 4", 1), "expected three numbers"},
		{`<!DOCTYPE p [<!ENTITY e "x">]><platform version="&e;"/>`, "invalid character entity"},
		{clusterOf(`radical="0-9999999"`), "radical: expected"},
		{clusterOf(`radical="0-3" topology="TORUS" topo_parameters="2,3"`), "expected 6 hosts"},
		{clusterOf(`radical="0-3" topology="TORUS" topo_parameters="1000000,1000000"`), "at most 4194304 links"},
		{clusterOf(`radical="0-3" topology="FAT_TREE" topo_parameters="2;4;1;1"`), "expected a list of 2"},
		{clusterOf(`radical="0-3" topology="DRAGONFLY" topo_parameters="2,1;1,1;1,1;2"`), "as many routers"},
		{clusterOf(`radical="0" topology="TORUS" topo_parameters="1` + strings.Repeat(",1", 64) + `"`), "at most 64"},
		{clusterOf(`radical="0-3" sharing_policy="WIFI"`), "expected SPLITDUPLEX or SHARED"},
	} {
		if _, err := Read([]byte(c.text), "p.xml"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\nfound %v, expected %s", c.text, err, c.want)
		}
	}
}

// TestPlatformSize expects errors for clusters with too many links before their hosts and links are made.
func TestPlatformSize(t *testing.T) {
	const wide = "2147483647"
	for _, text := range []string{
		`radical="0-1048575" topology="FAT_TREE" topo_parameters="2;1024,1024;1,1024;1,4"`,
		`radical="0-1048575" topology="FAT_TREE" topo_parameters="2;1024,1024;1,1048576;1,1048576"`,
		`radical="0-1048575" topology="TORUS" topo_parameters="1024,1024,1"`,
		`radical="0-1048575" topology="TORUS" topo_parameters="1024,1024" limiter_link="1GBps"`,
		`radical="0-1048575" topology="DRAGONFLY" topo_parameters="2,1;2,1;262144,1;1"`,
		`radical="0-1048575" topology="DRAGONFLY" topo_parameters="1,1;1024,1;1024,1;1"`,
		`radical="0-3" topology="FAT_TREE" topo_parameters="2;` + wide + `,1;1,1;1,1"`,
	} {
		r := &reader{p: &Platform{Settings: map[string]string{}}, names: map[string]int32{}}
		values := map[string]string{"id": "c", "prefix": "n", "speed": "1Gf", "bw": "1GBps", "lat": "1us"}
		for _, m := range regexp.MustCompile(`(\w+)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
			values[m[1]] = m[2]
		}
		err := r.readCluster(values)
		if err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("%s: error %v", text, err)
		}
		if len(r.p.Links)+len(r.p.Hosts) > 0 {
			t.Errorf("%s: %d hosts and %d links were made", text, len(r.p.Hosts), len(r.p.Links))
		}
	}
}

// TestRouterToItself follows a route through the router of a cluster whose hosts have loopbacks: the route from the
// router to itself has no links.
func TestRouterToItself(t *testing.T) {
	text := `<platform version="4.1"><zone id="all" routing="Full"><zone id="inner" routing="Full">` +
		`<cluster id="c" prefix="c" suffix="" radical="0-1" speed="1Gf" bw="1GBps" lat="1us" loopback_bw="1GBps"/>` +
		`<cluster id="d" prefix="d" suffix="" radical="0-1" speed="1Gf" bw="1GBps" lat="1us" loopback_bw="1GBps"/>` +
		`<link id="x" bandwidth="1GBps"/><bypassZoneRoute src="d" dst="c" gw_src="dd_router" gw_dst="cc_router">` +
		`<link_ctn id="x"/></bypassZoneRoute></zone>` +
		`<cluster id="e" prefix="e" suffix="" radical="0-1" speed="1Gf" bw="1GBps" lat="1us" loopback_bw="1GBps"/>` +
		`<link id="y" bandwidth="1GBps"/><zoneRoute src="inner" dst="e" gw_src="cc_router" gw_dst="ee_router" ` +
		`symmetrical="NO"><link_ctn id="y"/></zoneRoute></zone></platform>`
	p, err := Read([]byte(text), "p.xml")
	if err != nil {
		t.Fatal(err)
	}
	from, to := slices.Index(p.Hosts, "d0"), slices.Index(p.Hosts, "e1")
	got := strings.Join(p.names(uint32(from), uint32(to)), " ")
	if want := "d_link_0_UP x y e_link_1_DOWN"; got != want {
		t.Errorf("route %s, expected %s", got, want)
	}
}

// FuzzPlatform reads platforms and follows their routes: routes consist of existing links.
func FuzzPlatform(f *testing.F) {
	f.Add(full(twoHosts + `<link id="x" bandwidth="1Bps"/><route src="a" dst="b"><link_ctn id="x"/></route>`))
	f.Add(clusterOf(`radical="0-3" topology="FAT_TREE" topo_parameters="2;2,2;1,2;3,2" limiter_link="1GBps"`))
	f.Add(clusterOf(`radical="0-8" topology="TORUS" topo_parameters="3,3" loopback_bw="1GBps"`))
	f.Add(clusterOf(`radical="0-15" topology="DRAGONFLY" topo_parameters="2,1;2,1;2,1;2" sharing_policy="SHARED"`))
	f.Add(clusterOf(`radical="1,3-5" bb_bw="1GBps"`))
	f.Add(routed("Floyd"))
	f.Add(routed("DijkstraCache"))
	f.Add(starZone)
	f.Add(vivaldi)
	f.Add(nested)
	f.Add(`<platform version="4.1"><actor><zone id="a"/></actor></platform>`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Read([]byte(text), "p.xml")
		if err != nil {
			return
		}
		n, r := uint32(len(p.Hosts)), NewRouter(p)
		for i := range min(n, 20) {
			for j := range min(n, 20) {
				path, err := r.Route(i, n-1-j)
				if err != nil {
					continue
				}
				for _, l := range path.Links {
					if int(l) >= len(p.Links) {
						t.Fatalf("link %d of %d", l, len(p.Links))
					}
				}
			}
		}
	})
}

// zones returns the starts of zones inside zones.
func zones(number int) string {
	var b strings.Builder
	for i := range number {
		fmt.Fprintf(&b, `<zone id="z%d" routing="Full">`, i)
	}
	return b.String()
}

// TestVivaldi checks that the latency has the distance of the coordinates, in milliseconds.
func TestVivaldi(t *testing.T) {
	p, err := Read([]byte(vivaldi), "p.xml")
	if err != nil {
		t.Fatal(err)
	}
	path, err := NewRouter(p).Route(0, 1)
	if err != nil || path.Latency != 0.011 {
		t.Errorf("%v, %v, expected 11 ms", path, err)
	}
}

// TestDeepGateways checks that a path of exponentially many parts is an error.
func TestDeepGateways(t *testing.T) {
	var text strings.Builder
	text.WriteString(`<platform version="4.1">`)
	const depth = 50
	for i := range depth {
		fmt.Fprintf(&text, `<zone id="z%d" routing="Full">`, i)
	}
	text.WriteString(twoHosts + `<link id="l" bandwidth="1Bps"/><route src="a" dst="b"><link_ctn id="l"/></route>`)
	for i := depth - 1; i > 0; i-- {
		fmt.Fprintf(&text, `</zone><zone id="y%d" routing="Full"><host id="h%d"/></zone><link id="l%d" bandwidth="1Bps"/>
			<zoneRoute src="z%d" dst="y%d" gw_src="a" gw_dst="h%d"><link_ctn id="l%d"/></zoneRoute>
			<bypassZoneRoute src="z%d" dst="z%d" gw_src="b" gw_dst="a"><link_ctn id="l%d"/></bypassZoneRoute>`,
			i, i, i, i, i, i, i, i, i, i)
	}
	text.WriteString("</zone></platform>")
	p, err := Read([]byte(text.String()), "p.xml")
	if err != nil {
		t.Fatal(err)
	}
	r := NewRouter(p)
	for i := range p.Hosts {
		for j := range p.Hosts {
			if path, err := r.Route(uint32(i), uint32(j)); err == nil && len(path.Links) > maxHops {
				t.Fatal("a path without limit")
			}
		}
	}
}
