package packet

import (
	"errors"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/internal/golden"
	"github.com/tracedag/tracedag/sim/topology"
)

func TestTransportsPage(t *testing.T) {
	var list strings.Builder
	printTransports(&list)
	golden.Section(t, "../../docs/reference/backends/packet.md", "<!-- simulate --list-transports -->\n", "<!-- end -->",
		"\n```text\n"+list.String()+"```\n\n")
}

func TestParsePaths(t *testing.T) {
	for _, test := range []struct {
		text string
		want Paths
		says string
	}{
		{"", Paths{}, ""},
		{"# none\n\n", Paths{}, ""},
		{"0 1 2\n1 0 3 4\n", Paths{{0, 1}: {Forward: 2, Reverse: 2}, {1, 0}: {Forward: 3, Reverse: 4}}, ""},
		{` {"paths":{"columns":["src","dst","flow","path","ack_path"],"rows":[[0,1,9,2,null],[1,0,9,3,4]]}}`,
			Paths{{0, 1}: {Forward: 2, Reverse: 2}, {1, 0}: {Forward: 3, Reverse: 4}}, ""},
		{"0 1\n", nil, "f:1: expected source"},
		{"0 1 2\n\n0 1 3\n", nil, "f:3: expected one path"},
		{"0 1 -2\n", nil, "f:1: expected source"},
		{`{"paths":{"columns":["src","dst"],"rows":[]}}`, nil, "expected the columns"},
		{`{"paths":{"columns":["src","dst","path"],"rows":[[1,2]]}}`, nil, "row 0 has no path"},
		{`{}`, nil, "found none"},
		{`{"paths":`, nil, "f: "},
	} {
		got, err := parsePaths(strings.NewReader(test.text), "f")
		if test.says != "" {
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%q: %v", test.text, err)
			}
			continue
		}
		if err != nil || len(got) != len(test.want) {
			t.Errorf("%q: got %v, %v", test.text, got, err)
		}
		for pair, path := range test.want {
			if got[pair] != path {
				t.Errorf("%q: got %v", test.text, got)
			}
		}
	}
}

func FuzzPacketInputs(f *testing.F) {
	for _, seed := range []string{
		"0\n1\n", "0 1 2\n1 0 3 4\n", "#\n\n0 1 2", `{"paths":{"columns":["src","dst","path"],"rows":[[1,2,3],[1]]}}`,
		`{"paths":{"columns":["path","src","dst"],"rows":[[null,2,3]]}}`, "20%,80%", "1kB,1MB", "none", "tor0-agg0",
		"tor3-agg1@2ms..5ms:25Gbps", "host1@1us", "tor0-agg1#2@0s:8Tbps",
	} {
		f.Add(seed)
	}
	network, err := topology.Parse(leafSpine)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func() error{
			func() error { _, err := parsePaths(strings.NewReader(text), "f"); return err },
		} {
			var syntax *conf.Error
			if err := parse(); errors.As(err, &syntax) && (syntax.File != "f" || syntax.Line < 1) {
				t.Errorf("%v", err)
			}
		}
		var p Params
		if err := parseMarks(text, &p); err == nil && (p.ECNMax < p.ECNMin || p.ECNShares[1] < p.ECNShares[0]) {
			t.Errorf("%q: %+v", text, p)
		}
		if failure, err := topology.ParseFailure(text, network.LinkByName); err == nil && len(failure.Links) == 0 {
			t.Errorf("%q: no link", text)
		}
	})
}
