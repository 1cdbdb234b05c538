package main

// layer is a box of the image: a group of packages.
type layer struct {
	row   int // from the top; imports point to higher rows only, except those within a layer
	from  int // left and right edge in pixels
	to    int
	name  string
	about string

	// packages lists paths relative to the module. A final "/..." includes all packages below. A package belongs to
	// the first matching layer.
	packages []string
}

// layers are all layers of the module. Gaps between boxes let vertical arrows pass.
var layers = []layer{
	{row: 0, from: 20, to: 940, name: "cmd", about: "entry points of the programs",
		packages: []string{"cmd/..."}},
	{row: 1, from: 60, to: 700, name: "tracedag", about: "runs a program, with formats, generators and backends of " +
		"callers",
		packages: []string{"."}},
	{row: 2, from: 20, to: 940, name: "internal/program", about: "the programs: flags in, library calls, results out",
		packages: []string{"internal/program/..."}},
	{row: 3, from: 20, to: 940, name: "internal/cli", about: "program shell: outputs, signals, progress, " +
		"exit codes, help",
		packages: []string{"internal/calibrate", "internal/cli/...", "internal/cluster", "internal/dataset",
			"internal/grid",
			"internal/jobs", "internal/limit", "internal/manual", "internal/provenance", "internal/publish",
			"internal/results", "internal/runs", "internal/study"}},
	{row: 4, from: 20, to: 940, name: "formats", about: "front and back ends: Open, Read, Write, one folder per format",
		packages: []string{"formats/..."}},
	{row: 5, from: 20, to: 440, name: "dag/gen", about: "one folder per workload model",
		packages: []string{"dag/gen/..."}},
	{row: 5, from: 500, to: 940, name: "sim/backends", about: "one folder per backend, and their registry",
		packages: []string{"sim/backends", "sim/analytical/...", "sim/busbw", "sim/exec/...", "sim/flit/...",
			"sim/flow", "sim/ideal/...", "sim/loggops/...", "sim/packet/...", "sim/slots"}},
	{row: 6, from: 540, to: 940, name: "sim", about: "Backend, Result, replay engine and shared parts",
		packages: []string{"sim/..."}},
	{row: 7, from: 60, to: 620, name: "dag/lower, dag/compose", about: "passes over traces; merge, edit, place",
		packages: []string{"dag/lower/...", "dag/compose/...", "dag/jobgraph", "dag/rescale"}},
	{row: 8, from: 20, to: 940, name: "param, memory, internal parts", about: "parameter tables, limits of memory, " +
		"units, files",
		packages: []string{"param/...", "memory", "internal/conf", "internal/origin", "internal/parquet/...",
			"internal/tables", "internal/units"}},
	{row: 9, from: 20, to: 940, name: "dag", about: "the model: intermediate representation of all traces",
		packages: []string{"dag", "dag/attr"}},
	{row: 10, from: 20, to: 940, name: "internal parts without the model", about: "no other packages of the module",
		packages: []string{"docs", "internal/batch", "internal/cpu", "internal/disk", "internal/golden",
			"internal/par/...",
			"internal/permute", "internal/profile",
			"internal/report", "internal/shell", "internal/stdout", "internal/testheap"}},
}

// unseen lists packages that the image omits, because they are not part of a program.
var unseen = []string{"internal/tools/...", "docs/examples/..."}
