// This file has the flag for lowering high-level ops.

package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/lower"
	"github.com/tracedag/tracedag/dag/lower/storage"
	"github.com/tracedag/tracedag/formats/format"
)

// LowerFlags are the flags of a program that can turn high-level ops into sends, receives and calcs.
type LowerFlags struct {
	rules  []string
	report string
	p      *Program
}

// Register adds the flags to the command.
func (f *LowerFlags) Register(p *Program, cmd *cobra.Command) {
	f.p = p
	cmd.Flags().StringArrayVar(&f.rules, "lower", nil,
		"turn high-level ops into sends, receives and calcs. Collectives: a `choice` of algorithms such as collectives=ring "+
			"or 'mpich;allreduce=ring:>1MiB&ranks>=8,recdoubling', or just collectives for the default ones. Storage: "+
			"a system with its parameters, such as "+strings.Join(storage.Names(), ", ")+
			":replicas=3. Calcs without a duration: roofline:peak-flops=312TFLOPS,mem-bw=2TB/s. May be repeated")
	cmd.Flags().StringVar(&f.report, "report", "",
		"with --lower of storage: write counts of what was made to `FILE`, as JSON")
}

// Asked reports whether the flags ask for anything.
func (f *LowerFlags) Asked() bool {
	return len(f.rules) > 0
}

// Reports reports whether there is to be a report.
func (f *LowerFlags) Reports() bool {
	return f.report != ""
}

// roofline is a machine that gives calcs durations.
type roofline struct {
	peak      FlopRate
	bandwidth Bandwidth
}

const rooflineName = "roofline"

// parseRoofline reads "roofline:peak-flops=RATE,mem-bw=RATE".
func parseRoofline(text string) (*roofline, error) {
	_, parameters, _ := strings.Cut(text, ":")
	var m roofline
	values := map[string]pflag.Value{"peak-flops": &m.peak, "mem-bw": &m.bandwidth}
	for parameter := range strings.SplitSeq(parameters, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		v := values[name]
		if v == nil {
			return nil, fmt.Errorf("%s: expected peak-flops=RATE,mem-bw=RATE, found %q", rooflineName, parameter)
		}
		if err := v.Set(strings.TrimSpace(value)); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", rooflineName, name, err)
		}
	}
	if m.peak == 0 || m.bandwidth == 0 {
		return nil, fmt.Errorf("%s: expected both peak-flops and mem-bw", rooflineName)
	}
	return &m, nil
}

// Pass returns the function that the flags ask for, one that returns its argument where they ask for nothing. Collectives
// are lowered last, while what it returns is read; what comes before has the trace in memory.
func (f *LowerFlags) Pass() (func(format.Source) (format.Source, error), error) {
	if f.report != "" && !f.lowersStorage() {
		return nil, Usagef("--report is for --lower of storage: %s", strings.Join(storage.Names(), ", "))
	}
	if len(f.rules) == 0 {
		return func(s format.Source) (format.Source, error) { return s, nil }, nil
	}
	var choices []storage.Choice
	var machine *roofline
	var rules []string
	collectives := false
	for _, rule := range f.rules {
		switch name, _, _ := strings.Cut(rule, ":"); {
		case storage.IsChoice(rule):
			c, err := storage.ParseChoice(rule)
			if err != nil {
				return nil, Usagef("--lower: %v", err)
			}
			choices = append(choices, c)
		case strings.TrimSpace(name) == rooflineName:
			var err error
			if machine, err = parseRoofline(rule); err != nil {
				return nil, Usagef("--lower: %v", err)
			}
		case strings.TrimSpace(rule) == "collectives":
			collectives = true
		default:
			collectives = true
			rules = append(rules, rule)
		}
	}
	if len(choices) > 1 {
		return nil, Usagef("--lower: a storage system is named twice")
	}
	choice, err := lower.ParseChoice(strings.Join(rules, ";"))
	if err != nil {
		return nil, Usagef("--lower: %v", err)
	}
	return func(s format.Source) (format.Source, error) {
		if len(choices) > 0 || machine != nil {
			t, err := s.Trace()
			if err != nil {
				return nil, err
			}
			if len(choices) > 0 {
				if t, err = f.lowerStorage(t, choices[0]); err != nil {
					return nil, err
				}
			}
			if machine != nil {
				t = lower.Roofline(t, int64(machine.peak), int64(machine.bandwidth))
			}
			s = dag.NewInMemory(t)
		}
		if !collectives {
			return s, nil
		}
		return lower.SourceOf(s, choice)
	}, nil
}

func (f *LowerFlags) lowersStorage() bool {
	for _, rule := range f.rules {
		if storage.IsChoice(rule) {
			return true
		}
	}
	return false
}

// lowerStorage lowers the io ops of a trace, and writes the report.
func (f *LowerFlags) lowerStorage(t *dag.Trace, c storage.Choice) (*dag.Trace, error) {
	lowered, report, err := storage.Lower(t, c)
	if err != nil || f.report == "" {
		return lowered, err
	}
	document, err := json.Marshal(report)
	if err != nil {
		return nil, fmt.Errorf("writing the report: %w", err)
	}
	out, err := f.p.Create(f.report, false)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	out.Write(append(document, '\n'))
	return lowered, out.Commit()
}
