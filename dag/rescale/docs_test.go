package rescale_test

import (
	"testing"

	"github.com/tracedag/tracedag/dag/rescale"
	"github.com/tracedag/tracedag/internal/golden"
)

func TestOptionTable(t *testing.T) {
	golden.Section(t, "../../docs/reference/rescale.md", "<!-- flags of rescale -->\n", "<!-- end of flags -->",
		new(rescale.Options).Params().Markdown("Flags"))
}
