package backends_test

import (
	"testing"

	"github.com/tracedag/tracedag/internal/golden"
	"github.com/tracedag/tracedag/sim/backends"
)

// TestDocumentation checks the tables of flags and keys in the page of each backend. -update rewrites them.
func TestDocumentation(t *testing.T) {
	for _, kind := range backends.All {
		page, set := "../../docs/reference/backends/"+kind.Name+".md", kind.New().Params()
		golden.Section(t, page, "<!-- flags -->\n", "<!-- end of flags -->", set.Flags().Markdown("Flags"))
		if keys := set.Keys(); len(keys) > 0 && kind.Name != "packet" { // its page has --list-transports
			golden.Section(t, page, "<!-- keys -->\n", "<!-- end of keys -->", "Keys:\n\n"+keys.Markdown("Keys"))
		}
	}
}
