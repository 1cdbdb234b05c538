package topology

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/param"
)

// place parses a policy and returns the hosts of ranks.
func place(policy string, ranks, hosts, nics int, nodes []int32) ([]uint32, error) {
	p := DefaultPlacement
	if err := (param.Set{PlacementParam(&p)}).Apply(param.Texts{"placement": {policy}}); err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	return p.Place(ranks, hosts, nics, 1, nodes)
}

func TestPlacementPolicies(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("# hosts\n3\n\n3\n0\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		policy             string
		ranks, hosts, nics int
		nodes              []int32
		want               []uint32
	}{
		{"packed", 3, 8, 1, nil, []uint32{0, 1, 2}},
		{"packed", 3, 8, 2, nil, []uint32{0, 2, 4}},
		{"strided:3", 5, 8, 1, nil, []uint32{0, 3, 6, 1, 4}},
		{"strided:9", 3, 3, 1, nil, []uint32{0, 1, 2}},
		{"roundrobin", 3, 8, 1, nil, []uint32{0, 1, 2}},
		{"file:" + file, 3, 4, 1, nil, []uint32{3, 3, 0}},
		{"nodes", 3, 8, 2, []int32{3, 0, 3}, []uint32{6, 0, 6}},
		{"nodes", 2, 2, 1, nil, []uint32{0, 1}},
		{file, 3, 4, 1, nil, []uint32{3, 3, 0}},
	} {
		if got, err := place(c.policy, c.ranks, c.hosts, c.nics, c.nodes); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s of %d ranks on %d hosts: %v, %v, expected %v", c.policy, c.ranks, c.hosts, got, err, c.want)
		}
	}
	got, err := place("random", 8, 8, 1, nil)
	if err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), []uint32{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("random: %v, %v", got, err)
	}
	again, err := place("random:1", 8, 8, 1, nil)
	other, err2 := place("random:2", 8, 8, 1, nil)
	if err != nil || err2 != nil || !slices.Equal(again, got) || slices.Equal(other, got) {
		t.Errorf("random:1: %v, %v, expected %v, not as random:2: %v, %v", again, err, got, other, err2)
	}
}

func TestPlacementErrors(t *testing.T) {
	for policy, want := range map[string]string{
		"strided:0": "from 1", "strided:x": "from 1", "random:x": "SEED is a whole number", "nowhere": "nodes or a file, found",
		"packed": "but the network has 2; use a larger --topology",
	} {
		if _, err := place(policy, 3, 2, 1, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", policy, err)
		}
	}
	if _, err := place("nodes", 2, 2, 1, []int32{0, 2}); err == nil || !strings.Contains(err.Error(), "rank 1 is on node 2") {
		t.Errorf("nodes: %v", err)
	}
}

func FuzzHosts(f *testing.F) {
	f.Add("0\n1\n")
	f.Add("# x\n\n5 6")
	f.Fuzz(func(t *testing.T, text string) {
		hosts, err := readHosts(strings.NewReader(text), "f", []string{"a", "3"})
		var wrong *conf.Error
		if errors.As(err, &wrong) && (wrong.File != "f" || wrong.Line < 1) || err == nil && hosts == nil {
			t.Errorf("%v, %v", hosts, err)
		}
	})
}
