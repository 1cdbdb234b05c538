// Package gen is the registry of generators of synthetic traces. Package generator has their contract.
package gen

import (
	"github.com/tracedag/tracedag/dag/gen/collective"
	"github.com/tracedag/tracedag/dag/gen/dcnw"
	"github.com/tracedag/tracedag/dag/gen/dlrm"
	"github.com/tracedag/tracedag/dag/gen/fft"
	"github.com/tracedag/tracedag/dag/gen/flows"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/dag/gen/graph500"
	"github.com/tracedag/tracedag/dag/gen/horovod"
	"github.com/tracedag/tracedag/dag/gen/llm"
	"github.com/tracedag/tracedag/dag/gen/masterworker"
	"github.com/tracedag/tracedag/dag/gen/matrix"
	"github.com/tracedag/tracedag/dag/gen/nbody"
	"github.com/tracedag/tracedag/dag/gen/pattern"
	"github.com/tracedag/tracedag/dag/gen/schedgen"
	"github.com/tracedag/tracedag/dag/gen/stencil"
	"github.com/tracedag/tracedag/dag/gen/storage"
	"github.com/tracedag/tracedag/dag/gen/sweep3d"
	"github.com/tracedag/tracedag/dag/gen/workload"
)

// All are the generators, in the order of lists.
var All = []*generator.Generator{
	&horovod.Generator,
	&llm.Generator,
	&dlrm.Generator,
	&fft.Generator,
	&graph500.Generator,
	&masterworker.Generator,
	&nbody.Generator,
	&stencil.Generator,
	&sweep3d.Generator,
	&collective.Generator,
	&pattern.Generator,
	&schedgen.Generator,
	&dcnw.Generator,
	&dcnw.FileGenerator,
	&flows.Generator,
	&matrix.Generator,
	&matrix.JobsGenerator,
	&workload.Generator,
	&storage.Generator,
}

// Named returns the generator of a name, nil if there is none.
func Named(name string) *generator.Generator {
	for _, g := range All {
		if g.Name == name {
			return g
		}
	}
	return nil
}
