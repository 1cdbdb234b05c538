package packet

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/platform"
	"github.com/tracedag/tracedag/sim/topology"
)

// onPlatform runs a trace on a platform file, with rank r on host r.
func (r try) onPlatform(t testing.TB, xml string, trace *dag.Trace) (*Report, error) {
	t.Helper()
	p, err := NewParams(r.transport, r.compat)
	if err != nil {
		t.Fatal(err)
	}
	site, err := platform.Read([]byte(xml), "p.xml")
	if err != nil {
		t.Fatal(err)
	}
	replay, err := Compile(dag.FromTrace(trace), r.compat, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Platform: site, Params: p}
	if o.Placement, err = packed(len(trace.Ranks), len(site.Hosts), 1); err != nil {
		t.Fatal(err)
	}
	if r.set != nil {
		r.set(&o)
	}
	_, report, err := replay.Run(o)
	return report, err
}

// TestPlatformStar compares runs on a star of a platform file with those on a star of parameters: both are equal for
// all transports.
func TestPlatformStar(t *testing.T) {
	const xml = `<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-7" speed="1Gf" bw="12.5GBps" ` +
		`lat="500ns" loopback_bw="40GBps" loopback_lat="150ns"/></platform>`
	var exchange, incast [][3]int
	for a := range 8 {
		for b := range 8 {
			if a != b {
				exchange = append(exchange, [3]int{a, b, 100_000 + 1000*a + b})
			}
		}
		if a > 0 {
			incast = append(incast, [3]int{a, 0, 300_000})
		}
	}
	for _, transport := range Transports {
		for name, list := range map[string][][3]int{"exchange": exchange, "incast": incast} {
			r := try{network: "star:hosts=8,rate=100Gbps,latency=500ns", transport: transport.Name}
			_, want := r.run(t, messages(8, list...))
			got, err := r.onPlatform(t, xml, messages(8, list...))
			if err != nil {
				t.Errorf("%s: %v", transport.Name, err)
				continue
			}
			if len(got.Flows) != len(want.Flows) {
				t.Fatalf("%s: %d flows, expected %d", transport.Name, len(got.Flows), len(want.Flows))
			}
			bad := 0
			for i := range got.Flows {
				if got.Flows[i] != want.Flows[i] || got.Ideal[i] != want.Ideal[i] {
					bad++
				}
			}
			if bad > 0 {
				t.Errorf("%s, %s: %d of %d flows differ", transport.Name, name, bad, len(got.Flows))
			}
			if fmt.Sprint(got.Tiers) != fmt.Sprint(want.Tiers) {
				t.Errorf("%s, %s: tiers %v, expected %v", transport.Name, name, got.Tiers, want.Tiers)
			}
		}
	}
}

// full returns a zone with the routing Full that contains some elements, and hosts named by single letters.
func full(hosts, elements string) string {
	var b strings.Builder
	b.WriteString(`<platform version="4.1"><zone id="z" routing="Full">`)
	for _, host := range hosts {
		fmt.Fprintf(&b, `<host id="%c" speed="1Gf"/>`, host)
	}
	b.WriteString(elements + `</zone></platform>`)
	return b.String()
}

// wire returns a link, and route a route of links, which is not symmetrical.
func wire(id, bandwidth, latency, policy string) string {
	return fmt.Sprintf(`<link id=%q bandwidth=%q latency=%q sharing_policy=%q/>`, id, bandwidth, latency, policy)
}

func route(from, to string, links ...string) string {
	s := fmt.Sprintf(`<route src=%q dst=%q symmetrical="NO">`, from, to)
	for _, l := range links {
		id, direction, _ := strings.Cut(l, ":")
		s += fmt.Sprintf(`<link_ctn id=%q direction=%q/>`, id, direction)
	}
	return s + `</route>`
}

// TestGivenTimes compares deliveries on platforms with times computed by hand, for packets of 1,064 bytes: 85.12 ns at
// 12.5 GB/s, 340.48 ns at 3.125 GB/s.
func TestGivenTimes(t *testing.T) {
	const ns, fast, slow = 1000, 85_120, 340_480 // ps
	chain := wire("l1", "12.5GBps", "500ns", "SHARED") + wire("l2", "3.125GBps", "1us", "SHARED") +
		wire("l3", "12.5GBps", "2us", "SHARED") + wire("l4", "12.5GBps", "7us", "SHARED")
	cables := wire("a", "12.5GBps", "500ns", "SPLITDUPLEX") + wire("b", "12.5GBps", "500ns", "SPLITDUPLEX") +
		wire("c", "12.5GBps", "500ns", "SPLITDUPLEX") + wire("d", "12.5GBps", "500ns", "SPLITDUPLEX")
	through := func(middle ...string) (s string) {
		for _, pair := range []string{"ab", "cd", "ba", "dc"} {
			from, to := pair[:1], pair[1:]
			s += route(strings.ToUpper(from), strings.ToUpper(to),
				append(append([]string{from + ":UP"}, middle...), to+":DOWN")...)
		}
		return s
	}
	for _, test := range []struct {
		name, xml string
		hosts     int
		messages  [][3]int
		want      []dag.Time // deliveries, in the order of messages
		acked     dag.Time   // arrival of the acknowledgement of the first message; 0: not compared
	}{
		{"rates and latencies of an explicit route, another one back",
			full("AB", chain+route("A", "B", "l1", "l2", "l3")+route("B", "A", "l4")), 2, [][3]int{{0, 1, 1000}},
			[]dag.Time{2*fast + slow + 3500*ns}, 2*fast + slow + 3500*ns + 64*80 + 7000*ns},
		{"the route of the file, although the other one is shorter and faster",
			full("AB", chain+route("A", "B", "l4", "l3", "l2", "l1")+route("B", "A", "l1")), 2, [][3]int{{0, 1, 1000}},
			[]dag.Time{3*fast + slow + 10500*ns}, 3*fast + slow + 10500*ns + 64*80 + 500*ns},
		{"packets of a message follow each other on the slowest link",
			full("AB", chain+route("A", "B", "l1", "l2", "l3")+route("B", "A", "l4")), 2, [][3]int{{0, 1, 3 * 4096}},
			[]dag.Time{2*4160*80 + 3*4160*320 + 3500*ns}, 0},
		{"one route in both directions: two messages share the link",
			full("AB", wire("l", "12.5GBps", "500ns", "SHARED")+route("A", "B", "l")+route("B", "A", "l")), 2,
			[][3]int{{0, 1, 1000}, {1, 0, 1000}}, []dag.Time{fast + 500*ns, 2*fast + 500*ns}, 0},
		{"two directions: opposite messages do not meet",
			full("AB", wire("l", "12.5GBps", "500ns", "SPLITDUPLEX")+route("A", "B", "l:UP")+route("B", "A", "l:DOWN")), 2,
			[][3]int{{0, 1, 1000}, {1, 0, 1000}}, []dag.Time{fast + 500*ns, fast + 500*ns}, 0},
		{"two hosts begin with one link",
			full("ABC", wire("bus", "12.5GBps", "500ns", "SHARED")+wire("c", "12.5GBps", "500ns", "SHARED")+
				wire("r", "12.5GBps", "1us", "SHARED")+
				route("A", "C", "bus", "c")+route("B", "C", "bus", "c")+route("C", "A", "r")+route("C", "B", "r")), 3,
			[][3]int{{0, 2, 1000}, {1, 2, 1000}}, []dag.Time{2*fast + 1000*ns, 3*fast + 1000*ns}, 0},
		{"a host with two first links feeds them at the rate of the faster one",
			full("ABC", wire("b", "3.125GBps", "1us", "SHARED")+wire("c", "12.5GBps", "1us", "SHARED")+
				wire("r", "12.5GBps", "1us", "SHARED")+
				route("A", "B", "b")+route("A", "C", "c")+route("B", "A", "r")+route("C", "A", "r")), 3,
			[][3]int{{0, 1, 1000}, {0, 2, 1000}}, []dag.Time{slow + 1000*ns, 2*fast + 1000*ns}, 0},
		{"a shared link in the middle", full("ABCD", cables+wire("x", "12.5GBps", "1us", "SHARED")+through("x")), 4,
			[][3]int{{0, 1, 1000}, {2, 3, 1000}}, []dag.Time{3*fast + 2000*ns, 4*fast + 2000*ns}, 0},
		{"a FATPIPE link in the middle", full("ABCD", cables+wire("x", "12.5GBps", "1us", "FATPIPE")+through("x")), 4,
			[][3]int{{0, 1, 1000}, {2, 3, 1000}}, []dag.Time{3*fast + 2000*ns, 3*fast + 2000*ns}, 0},
		{"a limiter", `<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-2" speed="1Gf" ` +
			`bw="12.5GBps" lat="500ns" limiter_link="3.125GBps"/></platform>`, 3, [][3]int{{0, 1, 1000}},
			[]dag.Time{2*slow + 2*fast + 1000*ns}, 0},
	} {
		for _, transport := range []string{"ndp", "dctcp", "hpcc", "eqds", "dcqcn"} {
			handshake := func(o *Options) {
				if _, has := o.Params.TransportParams[handshake]; has {
					o.Params.TransportParams[handshake] = 0
				}
				if _, has := o.Params.TransportParams["pfc"]; has && strings.Contains(test.xml, "FATPIPE") {
					o.Params.TransportParams["pfc"] = 0
				}
				o.Params.HeaderSize, o.Params.ControlSize, o.Params.MSS = 64, 64, 4096
			}
			report, err := try{transport: transport, set: handshake}.onPlatform(t, test.xml,
				messages(test.hosts, test.messages...))
			if err != nil {
				t.Errorf("%s, %s: %v", test.name, transport, err)
				continue
			}
			for i := range report.Flows {
				f := &report.Flows[i]
				if f.Delivered != test.want[i] {
					t.Errorf("%s, %s: message %d was delivered at %v, expected %v", test.name, transport, i, f.Delivered,
						test.want[i])
				}
				if len(test.messages) == 1 && report.Ideal[i] != test.want[i] {
					t.Errorf("%s, %s: ideal time %v, expected %v", test.name, transport, report.Ideal[i], test.want[i])
				}
			}
			if test.acked > 0 && transport == "ndp" && report.Flows[0].Acknowledged != test.acked {
				t.Errorf("%s: acknowledged at %v, expected %v", test.name, report.Flows[0].Acknowledged, test.acked)
			}
		}
	}
}

// TestGivenRefused expects errors for routes and options that packets have no rule for.
func TestGivenRefused(t *testing.T) {
	one := wire("l", "12.5GBps", "500ns", "SHARED")
	plain := full("AB", one+route("A", "B", "l")+route("B", "A", "l"))
	for _, test := range []struct {
		xml, want string
		set       func(o *Options)
	}{
		{full("AB", one+route("A", "B", "l")), "expected a route from B to A, found none", nil},
		{full("AB", one+route("A", "B", "l", "l")+route("B", "A", "l")), "expected each link once, found l twice", nil},
		{full("AB", one+wire("f", "1GBps", "0", "FATPIPE")+route("A", "B", "l", "f")+route("B", "A", "l")),
			"found the slower f; make it SHARED", nil},
		{full("ABC", one+wire("f", "1GBps", "0", "FATPIPE")+route("A", "B", "f")+route("A", "C", "l")+route("B", "A", "l")+
			route("C", "A", "l")), "links of A: expected a FATPIPE link at least as fast", nil},
		{full("AB", wire("l", "2TBps", "0", "SHARED")+route("A", "B", "l")+route("B", "A", "l")),
			"expected links of 1bps to 8Tbps, found l", nil},
		{`<platform version="4.1"><zone id="z" routing="Vivaldi">` +
			`<peer id="A" speed="1Gf" bw_in="1GBps" bw_out="1GBps" coordinates="0 0 0"/>` +
			`<peer id="B" speed="1Gf" bw_in="1GBps" bw_out="1GBps" coordinates="3 4 0"/></zone></platform>`,
			"found 0.005 s more by the coordinates", nil},
		{plain, "expected no platform of SimGrid with --compat htsim",
			func(o *Options) { o.Params.Compat = CompatHTSim }},
		{plain, "found valiant", func(o *Options) { o.Params.Balance = Valiant }},
	} {
		hosts := strings.Count(test.xml, "<host ") + strings.Count(test.xml, "<peer ")
		list := [][3]int{{0, 1, 1000}}
		if hosts > 2 {
			list = append(list, [3]int{0, 2, 1000})
		}
		_, err := try{transport: "ndp", set: test.set}.onPlatform(t, test.xml, messages(hosts, list...))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, expected %s", err, test.want)
		}
	}
}

// TestGivenFailure takes a link down: packets on it are lost until it is restored, since the routes do not change.
func TestGivenFailure(t *testing.T) {
	xml := full("AB", wire("a", "12.5GBps", "500ns", "SPLITDUPLEX")+wire("x", "12.5GBps", "500ns", "SPLITDUPLEX")+
		route("A", "B", "a:UP", "x:UP")+route("B", "A", "x:DOWN", "a:DOWN"))
	site, err := platform.Read([]byte(xml), "p.xml")
	if err != nil {
		t.Fatal(err)
	}
	links, err := site.LinkByName("x")
	if err != nil {
		t.Fatal(err)
	}
	const down, up = 20 * dag.Microsecond, 300 * dag.Microsecond
	for _, rate := range []int64{0, 1e9} {
		fail := func(o *Options) { o.Failures = []Failure{{Links: links, At: down, Until: up, Rate: rate}} }
		report, err := try{transport: "tcp", set: fail}.onPlatform(t, xml, messages(2, [3]int{0, 1, 1 << 20}))
		if err != nil {
			t.Fatal(err)
		}
		if f := &report.Flows[0]; f.Delivered < up {
			t.Errorf("remaining rate %d: delivered at %v, before the end of the failure", rate, f.Delivered)
		}
		if lost := report.Counters.Unroutable; rate == 0 && lost == 0 {
			t.Error("no packet was lost at the failed link")
		}
	}
}

// TestGivenRandom runs messages over random routes with all transports. All messages arrive, none before its ideal
// time, and equal runs have equal results.
func TestGivenRandom(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 17))
		hosts, links := 2+random.IntN(5), 3+random.IntN(8)
		var b strings.Builder
		split := make([]bool, links)
		for i := range links {
			split[i] = random.IntN(2) == 0
			policy := "SHARED"
			if split[i] {
				policy = "SPLITDUPLEX"
			}
			b.WriteString(wire(fmt.Sprintf("l%d", i), fmt.Sprintf("%dMBps", 100+random.IntN(4000)),
				fmt.Sprintf("%dns", random.IntN(3000)), policy))
		}
		for from := range hosts {
			for to := range hosts {
				if from == to {
					continue
				}
				var list []string
				for _, l := range random.Perm(links)[:1+random.IntN(3)] {
					direction := ""
					if split[l] {
						direction = []string{":UP", ":DOWN"}[random.IntN(2)]
					}
					list = append(list, fmt.Sprintf("l%d%s", l, direction))
				}
				b.WriteString(route(string(rune('A'+from)), string(rune('A'+to)), list...))
			}
		}
		xml := full("ABCDEFG"[:hosts], b.String())
		var list [][3]int
		for range 12 {
			from := random.IntN(hosts)
			list = append(list, [3]int{from, (from + 1 + random.IntN(hosts-1)) % hosts, random.IntN(200_000)})
		}
		transport := Transports[int(seed)%len(Transports)].Name
		var before []Flow
		for range 2 {
			report, err := try{transport: transport}.onPlatform(t, xml, messages(hosts, list...))
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, transport, err)
			}
			if len(report.Deadlock) > 0 { // routes in circles, with flow control
				break
			}
			for i := range report.Flows {
				f := &report.Flows[i]
				if f.Delivered == 0 || f.Delivered-f.Start < report.Ideal[i] {
					t.Errorf("seed %d, %s: message of %d bytes from %d to %d arrived after %v, ideally %v", seed, transport,
						f.Bytes, f.Source, f.Target, f.Delivered-f.Start, report.Ideal[i])
				}
			}
			if before != nil && !slices.Equal(before, report.Flows) {
				t.Errorf("seed %d, %s: a second run differs", seed, transport)
			}
			before = report.Flows
		}
	}
}

// TestGivenVectors sends a packet over each route of recorded platforms of SimGrid. It arrives after its time on each
// link and all latencies of the links that SimGrid lists.
func TestGivenVectors(t *testing.T) {
	folder := os.Getenv("TRACEDAG_VECTORS")
	if folder == "" {
		t.Skip("TRACEDAG_VECTORS names no folder of vectors")
	}
	cases, err := filepath.Glob(filepath.Join(folder, "flow", "cases", "*.json"))
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	routes := 0
	for _, name := range cases {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			XML    string `json:"platform_xml"`
			Links  []recordedLink
			Routes []struct {
				Src, Dst string
				Links    []string
			}
		}
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		links, hosts := map[string]recordedLink{}, []string{}
		var elements strings.Builder
		for _, l := range c.Links {
			links[l.Name] = l
			elements.WriteString(wire(l.Name, fmt.Sprintf("%.17gBps", l.BW), fmt.Sprintf("%.17gs", l.Lat),
				strings.ToUpper(l.Sharing)))
		}
		for _, r := range c.Routes {
			elements.WriteString(route(r.Src, r.Dst, r.Links...))
			for _, host := range []string{r.Src, r.Dst} {
				if !slices.Contains(hosts, host) {
					hosts = append(hosts, host)
				}
			}
		}
		xml := c.XML
		if xml == "" {
			xml = full("", "")
			var b strings.Builder
			for _, host := range hosts {
				fmt.Fprintf(&b, `<host id=%q speed="1Gf"/>`, host)
			}
			xml = strings.Replace(xml, "</zone>", b.String()+elements.String()+"</zone>", 1)
		}
		site, err := platform.Read([]byte(xml), name)
		if err != nil {
			t.Fatal(err)
		}
		const bytes = 1000
		for _, r := range c.Routes[:min(len(c.Routes), 40)] {
			from, to := slices.Index(site.Hosts, r.Src), slices.Index(site.Hosts, r.Dst)
			want := 0.0
			for _, l := range r.Links {
				want += (bytes+64)*8e12/math.Round(8*links[l].BW) + links[l].Lat*1e12
			}
			report, err := try{transport: "ndp"}.onPlatform(t, xml, messages(len(site.Hosts), [3]int{from, to, bytes}))
			switch {
			case err != nil && strings.Contains(err.Error(), "FATPIPE"):
				continue
			case err != nil:
				t.Errorf("%s: %v", name, err)
				continue
			}
			routes++
			// Times of bytes are whole picoseconds.
			if got := float64(report.Flows[0].Delivered); got > want+1 || got < want-float64(len(r.Links))*(bytes+64) {
				t.Errorf("%s, %s to %s: %g ps, expected %g", name, r.Src, r.Dst, got, want)
			}
		}
	}
	if routes < 500 {
		t.Errorf("%d routes were compared, expected more", routes)
	}
	t.Logf("%d routes", routes)
}

// recordedLink is a link of a recording.
type recordedLink struct {
	Name, Sharing string
	BW, Lat       float64
}

// TestGivenNICs fails links of routes between ranks with two NICs: messages take the next pair of NICs with a working
// route. Times are computed by hand, for packets of 1,064 bytes.
func TestGivenNICs(t *testing.T) {
	const us, fast, slow = dag.Microsecond, 85_120, 340_480 // ps
	cables := wire("x", "12.5GBps", "500ns", "SPLITDUPLEX") + wire("y", "3.125GBps", "1us", "SPLITDUPLEX")
	for _, host := range "abcd" {
		cables += wire(string(host), "12.5GBps", "500ns", "SPLITDUPLEX")
	}
	first := cables + route("A", "C", "a:UP", "x:UP", "c:DOWN") + route("C", "A", "c:UP", "x:DOWN", "a:DOWN")
	both := first + route("B", "D", "b:UP", "y:UP", "d:DOWN") + route("D", "B", "d:UP", "y:DOWN", "b:DOWN")
	const direct, detour = 3*fast + 3*us/2, 2*fast + slow + 2*us
	for _, test := range []struct {
		name, routes string
		failures     []string
		sources      []uint32 // of messages at 0, 15 us and 30 us
		times        []dag.Time
	}{
		{"no failure", both, nil, []uint32{0, 0, 0}, []dag.Time{direct, direct, direct}},
		{"the first NIC", both, []string{"a"}, []uint32{1, 1, 1}, []dag.Time{detour, detour, detour}},
		{"in the middle", both, []string{"x"}, []uint32{1, 1, 1}, []dag.Time{detour, detour, detour}},
		{"the NIC of the receiver", both, []string{"c"}, []uint32{1, 1, 1}, []dag.Time{detour, detour, detour}},
		{"of the other NICs", both, []string{"y"}, []uint32{0, 0, 0}, []dag.Time{direct, direct, direct}},
		{"for a while", both, []string{"x@10us..20us"}, []uint32{0, 1, 0}, []dag.Time{direct, detour, direct}},
		{"a lower rate", both, []string{"x@10us..20us:12.5Gbps"}, []uint32{0, 0, 0},
			[]dag.Time{direct, direct + 7*fast, direct}},
		{"of a link that no route uses", first, []string{"y"}, []uint32{0, 0, 0}, []dag.Time{direct, direct, direct}},
		{"no other route", first, []string{"x@10us..12us"}, []uint32{0, 0, 0}, []dag.Time{direct, direct, direct}},
	} {
		b := dag.NewBuilder(2)
		var after []int
		for i := range 3 {
			if i > 0 {
				after = []int{b.Rank(0).Calc(15*us, after...)}
			}
			b.Rank(0).Send(1, 1000, int64(i), after...)
			b.Rank(1).Recv(0, 1000, int64(i))
		}
		set := func(o *Options) {
			o.Placement = Placement{Hosts: []uint32{0, 2}, NICs: 2}
			o.Params.HeaderSize, o.Params.ControlSize, o.Params.MSS = 64, 64, 4096
			for _, text := range test.failures {
				f, err := topology.ParseFailure(text, o.Platform.LinkByName)
				if err != nil {
					t.Fatal(err)
				}
				o.Failures = append(o.Failures, f)
			}
		}
		report, err := try{transport: "ndp", set: set}.onPlatform(t, full("ABCD", test.routes), b.Trace())
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if len(report.Flows) != 3 {
			t.Fatalf("%s: %d flows, expected 3", test.name, len(report.Flows))
		}
		for i := range report.Flows {
			f := &report.Flows[i]
			if f.Source != test.sources[i] || f.Target != f.Source+2 || f.Delivered-f.Start != test.times[i] {
				t.Errorf("%s: message %d from host %d to %d took %v, expected %v from %d", test.name, i, f.Source, f.Target,
					f.Delivered-f.Start, test.times[i], test.sources[i])
			}
		}
	}
	missing := func(o *Options) { o.Placement = Placement{Hosts: []uint32{0, 1}, NICs: 2} }
	if _, err := (try{transport: "ndp", set: missing}).onPlatform(t, full("ABCD", both),
		messages(2, [3]int{0, 1, 1000})); err == nil || !strings.Contains(err.Error(), "route from A to B") {
		t.Errorf("error %v, expected one of the missing route", err)
	}
}
