package flow_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/sim/backends"
)

// TestGPUs compares completions in networks of GPUs with hand calculations. A byte takes 10 ps on NVLink, 20 ps on a
// link of 400 Gb/s and 40 ps on one of 200 Gb/s.
func TestGPUs(t *testing.T) {
	const us, mb = dag.Microsecond, 1_000_000
	pair := []message{{0, 4, mb, 0}, {0, 4, mb, 0}} // both at once
	for _, c := range []struct {
		name     string
		messages []message
		topology string
		want     []dag.Time
	}{
		{"NVLink", []message{{0, 1, mb, 0}}, "spectrumx:", []dag.Time{10*us + 50*dag.Nanosecond}},
		{"NVLinks to one GPU", []message{{0, 2, mb, 0}, {1, 2, mb, 0}}, "spectrumx:",
			[]dag.Time{20*us + 50*dag.Nanosecond, 20*us + 50*dag.Nanosecond}},
		{"a rail", []message{{0, 4, mb, 0}}, "spectrumx:", []dag.Time{21 * us}},
		{"two rails", []message{{0, 5, mb, 0}}, "spectrumx:", []dag.Time{22 * us}},
		{"one NIC", pair, "spectrumx:", []dag.Time{41 * us, 41 * us}},
		{"two NICs", pair, "alibabahpn:", []dag.Time{41 * us, 41 * us}},
		{"two segments, two NICs", []message{{0, 8, mb, 0}, {0, 8, mb, 0}}, "alibabahpn:", []dag.Time{42 * us, 42 * us}},
		{"two planes", []message{{0, 8, mb, 0}, {0, 8, mb, 0}}, "alibabahpn:planes=2,", []dag.Time{42 * us, 42 * us}},
		{"NVLink before a shared access switch", []message{{0, 1, mb, 0}}, "dcn+:",
			[]dag.Time{10*us + 50*dag.Nanosecond}},
		{"an access switch", []message{{0, 5, mb, 0}}, "dcn+:", []dag.Time{21 * us}},
		{"NVLink and NIC", []message{{0, 1, mb, 0}, {0, 4, mb, 0}}, "dcn+:",
			[]dag.Time{10*us + 50*dag.Nanosecond, 21 * us}},
	} {
		nics := "2"
		if strings.HasPrefix(c.topology, "dcn") {
			nics = "8"
		}
		topology := "topology=" + c.topology + "gpus=16,server=4,psws=4,maxasws=8,nvrate=800Gbps,nics=" + nics
		got := ends(t, traceOf(16, c.messages...), topology)
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Bundles of links change no time: single paths have the same load if there is one PSW per plane.
func TestGPUBundles(t *testing.T) {
	var messages []message
	for from := range 16 {
		for to := range 16 {
			if from != to {
				messages = append(messages, message{from, to, int64(1000 * (from + 2*to + 1)), 0})
			}
		}
	}
	for _, topology := range []string{"spectrumx:psws=1", "alibabahpn:psws=2,planes=2", "dcn+:psws=1,tors=2,nics=8"} {
		if !strings.Contains(topology, "nics") {
			topology += ",nics=2"
		}
		topology = "topology=" + topology + ",gpus=16,server=4,maxasws=8"
		trace := traceOf(16, messages...)
		spray, fixed := ends(t, trace, topology), ends(t, trace, topology, "balance=fixed")
		for i := range spray {
			if d := spray[i] - fixed[i]; d > 1 || d < -1 {
				t.Fatalf("%s: flow %d ends at %v, with single links at %v", topology, i, spray[i], fixed[i])
			}
		}
	}
}

// TestRails checks that traffic uses the other NICs of a host when the switch of one has failed, and returns to the
// former one afterwards. Without failures, two messages take 40 us on a NIC each, on links of 200 Gb/s.
func TestRails(t *testing.T) {
	const us, mb = dag.Microsecond, 1_000_000
	gpus := "topology=alibabahpn:gpus=16,server=4,psws=4,maxasws=8,planes=2,nvrate=800Gbps,nics=2"
	pair := []message{{0, 4, mb, 0}, {0, 4, mb, 0}} // a rail of two NICs, 1 us
	far := []message{{0, 8, mb, 0}, {0, 8, mb, 0}}  // in another segment, 2 us
	// Two hosts of two NICs, one at each of two switches without a connection.
	list := filepath.Join(t.TempDir(), "rails")
	text := "host a0\nhost a1\nhost b0\nhost b1\na0 s0 200Gbps 500ns\na1 s1 200Gbps 500ns\n" +
		"b0 s0 200Gbps 500ns\nb1 s1 200Gbps 500ns\n"
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		messages []message
		set      []string
		want     []dag.Time
	}{
		{"both switches", pair, []string{gpus}, []dag.Time{41 * us, 41 * us}},
		{"one switch from the start", pair, []string{gpus, "fail=asw0@0s"}, []dag.Time{81 * us, 81 * us}},
		{"one switch after half of the bytes", pair, []string{gpus, "fail=asw0@21us"}, []dag.Time{61 * us, 61 * us}},
		{"for a time", pair, []string{gpus, "fail=asw0@11us..31us"}, []dag.Time{51 * us, 51 * us}},
		{"the switches above one rail", far, []string{gpus, "fail=psw0@0s", "fail=psw1@0s"},
			[]dag.Time{82 * us, 82 * us}},
		{"hosts of two NICs", pair[:1], []string{"topology=" + list, "nics=2"}, []dag.Time{41 * us}},
		{"the first NIC of a host", pair[:1], []string{"topology=" + list, "nics=2", "fail=s0@0s"},
			[]dag.Time{41 * us}},
		{"during the message", pair[:1], []string{"topology=" + list, "nics=2", "fail=s0@21us"}, []dag.Time{41 * us}},
	} {
		messages := slices.Clone(c.messages)
		ranks := 16
		if strings.Contains(c.name, "host") || c.name == "during the message" {
			ranks, messages[0].to = 2, 1
		}
		got := ends(t, traceOf(ranks, messages...), c.set...)
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
		if ranks == 2 { // packets of the other NIC take the time of their bytes and headers
			set := slices.DeleteFunc(slices.Clone(c.set), func(s string) bool { return strings.HasSuffix(s, "@21us") })
			r, err := backends.Run(traceOf(ranks, messages...), "packet", backends.Set(set...))
			if err != nil || !r.Complete || r.Makespan.Ticks > uint64(44*us) {
				t.Errorf("%s: packet ends at %v, error %v", c.name, r.Makespan, err)
			}
		}
	}
}

func TestGPUErrors(t *testing.T) {
	trace := traceOf(17, message{0, 16, 1, 0})
	for _, backend := range []string{"flow", "packet", "slots", "flit"} {
		if _, err := backends.Run(trace, backend, backends.Set("topology=spectrumx:gpus=16")); err == nil {
			t.Errorf("%s: 17 ranks on 16 GPUs are accepted", backend)
		}
	}
	if _, err := backends.Run(traceOf(2, message{0, 1, 1, 0}), "flow",
		backends.Set("topology=spectrumx:gpus=16", "nics=2")); err == nil {
		t.Error("two NICs per rank are accepted")
	}
}
