package origin_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/internal/origin"
)

// flags returns a set of flags with the arguments parsed.
func flags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	f := pflag.NewFlagSet("p", pflag.ContinueOnError)
	f.StringP("output", "o", "", "")
	f.String("title", "", "")
	f.String("plan", "", "a `FILE`")
	f.StringArray("job", nil, "")
	f.String("scale", "", "")
	f.Bool("lenient", false, "")
	f.Bool("share-nic", true, "")
	origin.Mark(f.Lookup("output"), false)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestCommand(t *testing.T) {
	for args, want := range map[string]string{
		"":                               "p",
		"-o /home/u/x.parquet":           "p",
		"--title a/b --lenient -o x":     "p --lenient --title a/b",
		"--share-nic=false --lenient":    "p --lenient --share-nic=false",
		"--scale 1/3":                    "p --scale 1/3",
		"--scale 16GB/s":                 "p --scale 16GB/s",
		"--scale file:/home/u/nodes":     "p --scale file:nodes",
		"--scale profile,sizes=../s.csv": "p --scale profile,sizes=s.csv",
		"--plan 3/4":                     "p --plan 4",
		"--plan=/home/u/p.yaml":          "p --plan p.yaml",
		"--job b/y.goal@5ms,placement=file:b/n,count=4 --job /a=b/x.goal": "p --job y.goal@5ms,placement=file:n,count=4 --job x.goal",
		`--plan C:\Users\u\p.yaml --scale C:\Users\u\x`:                   "p --plan p.yaml --scale x",
	} {
		c := origin.Command{Program: "p", Flags: flags(t, strings.Fields(args)...)}
		if got := strings.Join(c.Line(), " "); got != want {
			t.Errorf("%s: %s, expected %s", args, got, want)
		}
	}
	c := origin.Command{Program: "p", Words: []string{"pattern", "d/x"}, Inputs: []string{"y"}, Paths: true,
		Flags: flags(t, "--plan", "/home/u/p.yaml", "-o", "x")}
	if got := strings.Join(c.Line(), " "); got != "p pattern d/x --plan /home/u/p.yaml y" {
		t.Errorf("with paths: %s", got)
	}
}

func TestNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for names, want := range map[string]string{
		"x.goal":                        "x.goal",
		"/home/u/x.goal":                "x.goal",
		"-":                             "-",
		"/a/t/x.0.et /a/t/x.1.et":       "t/x.0.et t/x.1.et",
		"/a/t/x.0.et /a/t/x.1.et /b/c":  "c t/x.0.et t/x.1.et",
		"../t/x.0.et ../t/x.1.et":       "t/x.0.et t/x.1.et",
		"t/x-10 t/x-9 t/x-0 t/x t/w-11": "t/w-11 t/x t/x-0 t/x-9 t/x-10",
		"/x.0.et /x.1.et":               "x.0.et x.1.et",
		`C:\u\t\x.0.et C:\u\t\x.1.et`:   "t/x.0.et t/x.1.et",
		"/a/t/../t/x.0.et /a/t/x.1.et/": "t/x.0.et t/x.1.et",
	} {
		var inputs []dag.Input
		for _, name := range strings.Fields(names) {
			inputs = append(inputs, dag.Input{Name: name})
		}
		var got []string
		for _, in := range origin.Names(inputs) {
			got = append(got, in.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, expected %s", names, got, want)
		}
	}
}

func TestNormalize(t *testing.T) {
	for _, c := range []struct{ program, command, inputs, want string }{
		{"traceconv", "traceconv -o out/ --jobs 8 -q /home/u/a.goal b.goal c.goal", "b.goal", "traceconv b.goal"},
		{"traceconv", "traceconv -qvo out/ -j8 --to=store b.goal --lower collectives=ring", "b.goal",
			"traceconv --lower collectives=ring b.goal"},
		{"traceconv", "/usr/bin/traceconv --shard 1/2 --strict --report r.json a/ b/", "b/x.0.et b/x.1.et",
			"traceconv b/x.0.et"},
		{"traceconv", "traceconv --share-nic=false --compat --job d/x.goal@1us a/y.goal", "a/y.goal d/x.goal",
			"traceconv --compat --job x.goal@1us --share-nic=false y.goal"},
		{"traceconv", "traceconv --title a/b --repeat 2 --lenient=true x", "x", "traceconv --lenient --repeat 2 --title a/b x"},
		{"traceconv", "traceconv /home/u/x.goal", "", "traceconv x.goal"},
		{"tracegen", "tracegen schedgen -s 4 -d=8 allreduce -o /home/u/x.parquet", "",
			"tracegen schedgen allreduce --bytes 8 --ranks 4"},
		{"tracegen", "tracegen matrix --sizes /home/u/s.csv --report r.json --ranks=64", "/home/u/s.csv",
			"tracegen matrix --ranks 64 --sizes s.csv"},
		{"other", "other -o /home/u/x", "", "other -o /home/u/x"},
		{"traceconv", "", "", ""},
	} {
		step := dag.Provenance{Program: c.program, Command: strings.Fields(c.command)}
		for _, name := range strings.Fields(c.inputs) {
			step.Inputs = append(step.Inputs, dag.Input{Name: name})
		}
		before := slices.Clone(step.Command)
		got := origin.Normalize(step)
		if strings.Join(got.Command, " ") != c.want {
			t.Errorf("%s: %q, expected %s", c.command, got.Command, c.want)
		}
		if again := origin.Normalize(got); !reflect.DeepEqual(again.Command, got.Command) {
			t.Errorf("%q becomes %q", got.Command, again.Command)
		}
		if !slices.Equal(step.Command, before) {
			t.Errorf("the argument is changed to %q", step.Command)
		}
	}
}

func FuzzNormalize(f *testing.F) {
	f.Add("-o x --title a/b -qj 3 --share-nic=false -- y")
	f.Add(`q/j:\`)
	f.Add(`q/j:\a/b=c:\d`)
	f.Fuzz(func(t *testing.T, args string) {
		step := dag.Provenance{Program: "traceconv", Command: append([]string{"traceconv"}, strings.Split(args, " ")...)}
		once := origin.Normalize(step)
		if again := origin.Normalize(once); !slices.Equal(again.Command, once.Command) {
			t.Errorf("%q, then %q", once.Command, again.Command)
		}
	})
}
