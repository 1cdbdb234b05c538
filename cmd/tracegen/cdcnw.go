// This file binds the generator dag/gen/dcnw to its flags, for curves of files.

package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/dcnw"
	"github.com/tracedag/tracedag/formats/vef/ext"
	"github.com/tracedag/tracedag/internal/cli"
)

func newCDCNW(p *cli.Program) *cobra.Command {
	var o openLoop
	params := dcnw.Default()
	cmd := &cobra.Command{
		Use:   "cdcnw FILE",
		Short: "traffic of messages whose sizes are in a file",
		Long: `Cdcnw makes what dcnw makes, with the sizes of a file: lines with a size in bytes and the part of all
messages that are not larger. A line with a single number, the mean size, may come first.`,
		Example: `  printf '64 0.5\n1500 0.9\n1000000 1\n' > sizes.txt
  tracegen cdcnw sizes.txt --load 2.5Gbps -o traffic.parquet
  tracegen cdcnw sizes.txt --emit-spec -o traffic.vef`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			var input dag.Input
			if params.Sizes, input, err = readSizes(p, args[0]); err != nil {
				return err
			}
			o.inputs = append(o.inputs, input)
			return o.runTraffic(&params, func() (*ext.Model, error) {
				file, err := relativeTo(o.write.Output, args[0])
				if err != nil {
					return nil, err
				}
				return ext.CDCNW(params, file)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	trafficFlags(flags, &params)
	o.register(p, cmd, &params.Clock)
	return cmd
}

func readSizes(p *cli.Program, name string) (*dcnw.Curve, dag.Input, error) {
	in, err := p.Open(name, true, nil)
	if err != nil {
		return nil, dag.Input{}, err
	}
	defer in.Close()
	curve, err := ext.ReadSizes(in.Name, in.Reader, p.Warn)
	if err != nil {
		return nil, dag.Input{}, err
	}
	input, err := in.Digest()
	return curve, input, err
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
