package model

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tracedag/tracedag/dag/gen/dcnw"
	"github.com/tracedag/tracedag/dag/gen/flows"
	"github.com/tracedag/tracedag/dag/gen/generator"
	"github.com/tracedag/tracedag/dag/gen/horovod"
)

// Describes reports whether an extended trace can describe the configurations of a generator.
func Describes(c generator.Config) bool {
	switch c.(type) {
	case *horovod.Config, *dcnw.Config, *flows.Config:
		return true
	}
	return false
}

// Describe returns the extended trace of a configuration, and the names of the parameters, other than the seed,
// that it cannot represent. File names in it are relative to the folder of the output.
func Describe(c generator.Config, env *generator.Env, output string) (m *Model, missing []string, err error) {
	switch c := c.(type) {
	case *horovod.Config:
		m, err = describeHorovod(c)
		return m, []string{"jitter", "time-step"}, err
	case *dcnw.Config:
		m, err = describeDCNW(c, env, output)
	case *flows.Config:
		m, err = describeFlows(c)
	default:
		err = fmt.Errorf("no extended trace describes a %T", c)
	}
	return m, []string{"gauss-sigma-frac"}, err
}

func describeHorovod(c *horovod.Config) (*Model, error) {
	p, err := c.Resolve()
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return nil, err
	}
	return Horovod(p)
}

func describeDCNW(c *dcnw.Config, env *generator.Env, output string) (*Model, error) {
	p, err := c.Resolve(env)
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return nil, err
	}
	if c.File() == "" {
		return DCNW(p), nil
	}
	file, err := relativeTo(output, c.File())
	if err != nil {
		return nil, err
	}
	return CDCNW(p, file)
}

func describeFlows(c *flows.Config) (*Model, error) {
	p, err := c.Resolve()
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return nil, err
	}
	return Flows(p), nil
}

// relativeTo returns the path of a file relative to the folder of an output.
func relativeTo(output, file string) (string, error) {
	if file == "-" {
		return "", errors.New("--emit-spec: the sizes must be in a file that the extended trace can name")
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
