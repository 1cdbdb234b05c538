package permute

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/golden"
)

// targets returns the targets of all hosts.
func targets(t *testing.T, name string, s *Shape) []uint32 {
	t.Helper()
	all := All()
	p := &all[slices.IndexFunc(all, func(p Permutation) bool { return p.Name == name })]
	if err := p.Check(s); err != nil {
		t.Fatal(err)
	}
	to := make([]uint32, s.Hosts)
	for host := range to {
		to[host] = p.To(s, uint32(host))
		if back := p.From(s, to[host]); back != uint32(host) {
			t.Errorf("%s %+v: host %d sends to %d, to which %d sends", name, s, host, to[host], back)
		}
	}
	return to
}

// TestTargets compares the targets of 16 hosts with a file, which was checked by hand.
func TestTargets(t *testing.T) {
	var b strings.Builder
	for _, p := range All() {
		shapes := []Shape{{Hosts: 16}}
		if !p.Bits {
			shapes = []Shape{{Hosts: 16}, {Hosts: 16, Dims: []int{4, 4}, Each: 1}, {Hosts: 16, Dims: []int{8}, Each: 2},
				{Hosts: 15, Dims: []int{5, 3}, Each: 1}, {Hosts: 15, Groups: 5}}
		}
		for _, s := range shapes {
			fmt.Fprintf(&b, "%s hosts=%d dims=%v groups=%d: %v\n", p.Name, s.Hosts, s.Dims, s.Groups,
				targets(t, p.Name, &s))
		}
	}
	golden.Check(t, "testdata/targets.txt", b.String())
}

// TestPermutations checks all sizes: the targets are a permutation, or the size is an error.
func TestPermutations(t *testing.T) {
	for _, p := range All() {
		for hosts := 1; hosts <= 128; hosts++ {
			s := Shape{Hosts: hosts}
			power, four := hosts&(hosts-1) == 0, hosts&(hosts-1) == 0 && hosts&0x55 == hosts
			if err := p.Check(&s); err != nil {
				if !p.Bits || power && !p.Even || four {
					t.Errorf("%s, %d hosts: %v", p.Name, hosts, err)
				}
				continue
			} else if p.Bits && (!power || p.Even && !four) {
				t.Errorf("%s, %d hosts is no error", p.Name, hosts)
			}
			to := targets(t, p.Name, &s)
			slices.Sort(to)
			for i, host := range to {
				if int(host) != i {
					t.Fatalf("%s, %d hosts: no permutation", p.Name, hosts)
				}
			}
		}
	}
	s := Shape{Hosts: 1 << 31}
	for _, p := range All() {
		if p.Even {
			continue
		}
		if got := p.From(&s, p.To(&s, 1<<30+5)); got != 1<<30+5 {
			t.Errorf("%s of 2^31 hosts: %d", p.Name, got)
		}
	}
}

// TestErrors checks that errors name the next size.
func TestErrors(t *testing.T) {
	for want, s := range map[string]Shape{
		"expected a power of four, found 72; the next one is 256":                {Hosts: 72},
		"expected a power of four, found 32; the next one is 64":                 {Hosts: 32},
		"expected 1 to 2^31, found 0":                                            {},
		"expected groups of equal size, found 16 hosts in 3 groups":              {Hosts: 16, Groups: 3},
		"expected a power of four, found 2147483648; the next one is 4294967296": {Hosts: 1 << 31},
	} {
		if err := All()[0].Check(&s); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	for _, s := range []Shape{{Hosts: 15, Dims: []int{4, 4}, Each: 1}, {Hosts: 15, Dims: []int{0}, Each: 1},
		{Hosts: 15, Dims: []int{1 << 40, 1 << 40}, Each: 15}} {
		if err := All()[5].Check(&s); err == nil {
			t.Errorf("%+v is no error", s)
		}
	}
}
