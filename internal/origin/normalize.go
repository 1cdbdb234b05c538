// This file normalizes entries of older programs, which recorded the whole command line.

package origin

import (
	"path"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// Flags of traceconv and tracegen by long name, as older programs recorded them.
var (
	// dropped do not shape a trace and take a value.
	dropped = strings.Fields(`citation creator croissant date description exclude include jobs kaggle keyword license
		lowered max-memory meta name output partition publish remove report rescale-report set-version shard
		shard-base shards tag to url`)
	// droppedBare do not shape a trace and take no value.
	droppedBare = strings.Fields(`all-or-nothing approx bump dry-run frictionless meta-template no-sync no-wait quiet
		record-paths replace skip-existing strict verbose`)
	// bare shape a trace and take no value, or one after "=".
	bare = strings.Fields(`align-clocks any-order any-source auto-correct biases causal compat
		concurrent-collectives csv dedup diagonal dims-split emit-spec fixed-rounds from-graph gelu growing-rounds
		h-intdiv ignore-ports inverse json keep-ends keep-host learned-positions lenient likeliest listing
		matrix-only measure merge merge-calcs merge-non-overlap nccl-registered no-clock no-init npkit-sample
		offload one-rank-per-node only-present outcast periodic print-model replicate sequence-parallel share-nic
		share-streams skip-bad sleep start-calc sync-edges tied traces-nocolls traces-nop2p unique-nic
		zero-reduction`)

	letters = map[byte]string{'o': "output", 'j': "jobs", 'q': "quiet", 'v': "verbose", 's': "ranks", 'd': "bytes"}
)

// Normalize returns an entry that depends on the trace alone. An entry of this version is returned unchanged, unless it
// has paths.
func Normalize(step dag.Provenance) dag.Provenance {
	step.Inputs = names(step.Inputs, func(name string) string { return path.Dir(slashed(name)) })
	if len(step.Command) == 0 || step.Program != "traceconv" && step.Program != "tracegen" {
		return step
	}
	words, flags := parse(step.Program, step.Command[1:])
	inputs := []string(nil)
	if step.Program == "traceconv" {
		composed := slices.ContainsFunc(flags, func(f flag) bool { return f.name == "job" || f.name == "plan" })
		switch {
		case composed || len(step.Inputs) == 0:
			for _, word := range words {
				inputs = append(inputs, shorten(word))
			}
		default:
			inputs = []string{step.Inputs[0].Name}
		}
		words = nil
	}
	step.Command = line(step.Program, words, flags, inputs, false)
	return step
}

// parse returns the arguments of a command line and the flags that shape the trace.
func parse(program string, args []string) (words []string, flags []flag) {
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case word == "--":
			return append(words, args...), flags
		case len(word) < 2 || word[0] != '-':
			words = append(words, word)
			continue
		case word[1] != '-':
			word, args = long(word, args)
		}
		name, value, joined := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		f := flag{name: name, value: value}
		switch isBare := slices.Contains(bare, name) || slices.Contains(droppedBare, name); {
		case isBare:
			f.bare, f.joined = !joined || value == "true", true
		case !joined && len(args) > 0:
			f.value, args = args[0], args[1:]
		}
		shapes := program == "tracegen" && name == "jobs" || !slices.Contains(dropped, name) // see tracegen jobs
		if name != "" && shapes && !slices.Contains(droppedBare, name) {
			flags = append(flags, f)
		}
	}
	return words, flags
}

// long returns the long form of a word of flags of one letter, and the arguments after it.
func long(word string, args []string) (flag string, rest []string) {
	name, known := letters[word[1]]
	if !known {
		name = word[1:2]
	}
	switch value := word[2:]; {
	case value == "":
		return "--" + name, args
	case slices.Contains(droppedBare, name): // further letters follow
		return "--" + name, append([]string{"-" + value}, args...)
	default:
		return "--" + name + "=" + strings.TrimPrefix(value, "="), args
	}
}
