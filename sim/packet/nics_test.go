package packet_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim"
	"github.com/tracedag/tracedag/sim/backends"
)

// TestNICsOfFlow compares the hosts of messages between ranks with several NICs on platforms with failed links with
// those of the flow backend.
func TestNICsOfFlow(t *testing.T) {
	compared, moved := 0, 0
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 23))
		nics, ranks, links := 2+random.IntN(2), 3, 8
		var b strings.Builder
		b.WriteString(`<platform version="4.1"><zone id="z" routing="Full">`)
		for host := range ranks * nics {
			fmt.Fprintf(&b, `<host id="h%d" speed="1Gf"/>`, host)
		}
		for l := range links {
			fmt.Fprintf(&b, `<link id="l%d" bandwidth="%dMBps" latency="1us" sharing_policy="SHARED"/>`, l,
				1000+random.IntN(1000))
		}
		for from := range ranks * nics {
			for to := range from {
				if from%nics > 0 && to%nics > 0 && random.IntN(4) == 0 {
					continue // only the first NICs have all routes
				}
				fmt.Fprintf(&b, `<route src="h%d" dst="h%d">`, from, to)
				for _, l := range random.Perm(links)[:1+random.IntN(3)] {
					fmt.Fprintf(&b, `<link_ctn id="l%d"/>`, l)
				}
				b.WriteString(`</route>`)
			}
		}
		b.WriteString(`</zone></platform>`)
		file := filepath.Join(t.TempDir(), "p.xml")
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		set := []string{"topology=" + file, fmt.Sprintf("nics=%d", nics)}
		intact := hosts(t, "flow", set, mixed(seed, ranks, 4, 20_000))
		for range 1 + random.IntN(3) {
			set = append(set, fmt.Sprintf("fail=l%d@0s", random.IntN(links)))
		}
		want := hosts(t, "flow", set, mixed(seed, ranks, 4, 20_000))
		if want == nil {
			continue // a message has no working route
		}
		got := hosts(t, "packet", set, mixed(seed, ranks, 4, 20_000))
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: hosts %v, expected %v", seed, got, want)
		}
		compared++
		if !slices.Equal(intact, want) {
			moved++
		}
	}
	if compared < 15 || moved < 10 {
		t.Errorf("%d runs were compared, of which %d moved messages to other NICs, expected more", compared, moved)
	}
}

// TestEntropyOfPlatforms expects an error for entropy values, which select among paths, on a platform, whose routes are
// given.
func TestEntropyOfPlatforms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.xml")
	if err := os.WriteFile(file, []byte(`<platform version="4.1"><cluster id="c" prefix="c" suffix="" radical="0-3" `+
		`speed="1Gf" bw="1GBps" lat="1us"/></platform>`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ set, want string }{
		{"topology=" + file, ""},
		{"topology=star:hosts=4 entropy=7", ""},
		{"topology=" + file + " entropy=128", "entropy: expected a network with several paths, found a platform"},
		{"topology=" + file + " balance=spray entropy=7", "remove --entropy"},
	} {
		_, err := backends.Run(mixed(1, 4, 4, 20_000), "packet", backends.Set(strings.Fields(test.set)...))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, expected %q", test.set, err, test.want)
		}
	}
}

// hosts returns the hosts and bytes of the messages of a run in ascending order; nil if messages did not arrive.
func hosts(t *testing.T, backend string, set []string, trace *dag.Trace) (list []string) {
	t.Helper()
	r, err := backends.Run(trace, backend, backends.Set(set...))
	if err != nil {
		t.Fatal(set, err)
	}
	if !r.Complete {
		return nil
	}
	var text strings.Builder
	r.Section("flows").Value.(*sim.Table).WriteCSV(&text)
	for _, line := range strings.Split(strings.TrimSpace(text.String()), "\n")[1:] {
		list = append(list, strings.Join(strings.Split(line, ",")[:3], ","))
	}
	slices.Sort(list)
	return list
}
