package lower

import (
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag/lower/collective"
	"github.com/tracedag/tracedag/dag/lower/nccl"
	"github.com/tracedag/tracedag/dag/lower/nodes"
	"github.com/tracedag/tracedag/dag/lower/storage"
	"github.com/tracedag/tracedag/internal/golden"
	"github.com/tracedag/tracedag/param"
)

// TestDocumentation checks the tables of passes, collectives, keys and flags in the pages on lowering. -update rewrites
// them.
func TestDocumentation(t *testing.T) {
	check := func(page, begin, end string, set param.Set) {
		golden.Section(t, "../../docs/reference/"+page, "<!-- "+begin+" -->\n", "<!-- end of "+end+" -->",
			set.Markdown("Flags"))
	}
	check("lowering.md", "values of --lower", "values", new(Passes).Rules())
	check("lowering.md", "collectives", "collectives", new(collective.Choice).Params())
	check("lowering.md", "keys of roofline", "keys", new(Machine).Params())
	check("lowering-nccl.md", "keys of nccl", "keys", nccl.NewOptions().Params())
	check("lowering-nccl.md", "flags of nccl", "flags",
		slices.Concat(new(nccl.Settings).Params(), nodes.NewOptions().Params(), new(nccl.Grouping).Params()))
	for _, name := range storage.Names() {
		check("storage.md", "keys of "+name, "keys", storage.Default(name).Params())
	}
}
