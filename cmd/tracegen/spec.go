package main

import (
	"path/filepath"

	"github.com/tracedag/tracedag/dag/gen/dcnw"
	"github.com/tracedag/tracedag/dag/gen/flows"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/dag/gen/horovod"
	"github.com/tracedag/tracedag/formats/vef/ext"
	"github.com/tracedag/tracedag/internal/cli"
)

// specs are the generators that an extended VEF trace can describe. The function returns it, and the parameters besides
// the seed that the file has no place for.
var specs = map[string]func(c generator.Config, env *generator.Env, output string) (*ext.Model, []string, error){
	horovod.Generator.Name:  horovodSpec,
	dcnw.Generator.Name:     dcnwSpec,
	dcnw.FileGenerator.Name: dcnwSpec,
	flows.Generator.Name:    flowsSpec,
}

func horovodSpec(c generator.Config, _ *generator.Env, _ string) (*ext.Model, []string, error) {
	p, err := c.(*horovod.Config).Resolve()
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return nil, nil, err
	}
	m, err := ext.Horovod(p)
	return m, []string{"jitter", "time-step"}, err
}

func dcnwSpec(c generator.Config, env *generator.Env, output string) (*ext.Model, []string, error) {
	config := c.(*dcnw.Config)
	p, err := config.Resolve(env)
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return nil, nil, err
	}
	missing := []string{"gauss-sigma-frac"}
	if config.File() == "" {
		return ext.DCNW(p), missing, nil
	}
	file, err := relativeTo(output, config.File())
	if err != nil {
		return nil, nil, err
	}
	m, err := ext.CDCNW(p, file)
	return m, missing, err
}

func flowsSpec(c generator.Config, _ *generator.Env, _ string) (*ext.Model, []string, error) {
	p, err := c.(*flows.Config).Resolve()
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return nil, nil, err
	}
	return ext.Flows(p), []string{"gauss-sigma-frac"}, nil
}

// relativeTo returns the path of a file from the folder of an output.
func relativeTo(output, file string) (string, error) {
	if file == "-" {
		return "", cli.Usagef("--emit-spec: the sizes must be in a file that the extended trace can name")
	}
	if filepath.IsAbs(file) || output == "" || output == "-" {
		return file, nil
	}
	folder, err := filepath.Abs(filepath.Dir(output))
	if err != nil {
		return "", err
	}
	absolute, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	return filepath.Rel(folder, absolute)
}
