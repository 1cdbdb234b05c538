package simulate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/cli/clitest"
)

// TestPlacementInLowering checks that collectives are lowered by the hosts of --placement: a hierarchical barrier of 6
// ranks on 2 hosts has 4 messages in each node and 2 among the leaders, on hosts of their own 18 by dissemination. A
// table of one rank per node warns.
func TestPlacementInLowering(t *testing.T) {
	b := dag.NewBuilder(6)
	for rank := range 6 {
		b.Rank(rank).Add(dag.Op{Kind: dag.Coll, Subkind: dag.Barrier})
	}
	trace, hosts := storedFile(t, b.Trace()), filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte("0\n0\n0\n1\n1\n1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const warning = "smpi-mvapich2 has the algorithms of one rank per node, but several ranks share 2 nodes"
	for _, c := range []struct {
		choice, placement, messages string
		warns                       bool
	}{
		{"barrier=hierarchical", hosts, "10, 10B", false},
		{"barrier=hierarchical", "linear", "18, 18B", false},
		{"smpi-mvapich2", hosts, "", true},
		{"smpi-mvapich2", "linear", "", false},
	} {
		r := clitest.Run(newCommand, "--backend", "flow", "--topology", "star:hosts=6", "--placement", c.placement,
			"--collective", c.choice, trace)
		if r.Status != 0 || !strings.Contains(r.Stdout, "messages    "+c.messages) ||
			strings.Contains(r.Stderr, warning) != c.warns {
			t.Errorf("%s, %s: status %d\n%s%s", c.choice, c.placement, r.Status, r.Stdout, r.Stderr)
		}
	}
}
