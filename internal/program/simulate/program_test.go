package simulate

import (
	"testing"

	"github.com/tracedag/tracedag/dag/gen"
	"github.com/tracedag/tracedag/formats"
	"github.com/tracedag/tracedag/formats/base"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/internal/program/tracegen"
	"github.com/tracedag/tracedag/sim/backends"
)

// newCommand returns the program's command with all backends and generators.
var newCommand = New(backends.All, tracegen.New(gen.All))

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func() int{
		"simulate": func() int { return cli.Main(newCommand, formats.All) },
		"tracegen": func() int { return cli.Main(tracegen.New(gen.All), base.Formats) },
	})
}
