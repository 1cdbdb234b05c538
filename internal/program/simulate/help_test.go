package simulate

import (
	"strings"
	"testing"

	"github.com/tracedag/tracedag/internal/cli/clitest"
	"github.com/tracedag/tracedag/sim/backends"
)

// TestHelpIsShort checks that the main help fits a few screens of 80 columns, and names all backends and topics.
func TestHelpIsShort(t *testing.T) {
	got := clitest.Run(newCommand, "--help")
	lines := strings.Split(strings.TrimSpace(got.Stdout), "\n")
	if got.Status != 0 || len(lines) > 60 {
		t.Errorf("exit status %d, %d lines", got.Status, len(lines))
	}
	for _, line := range lines {
		if len(line) > 80 {
			t.Errorf("%d columns: %q", len(line), line)
		}
	}
	for _, kind := range backends.All {
		if !strings.Contains(got.Stdout, "\n  "+kind.Name+" ") {
			t.Errorf("the help lacks the backend %s", kind.Name)
		}
	}
	for _, text := range []string{"\nMore: simulate --help ", "nsys", "sweep", "\nCommon flags:\n"} {
		if !strings.Contains(got.Stdout, text) {
			t.Errorf("the help lacks %q", text)
		}
	}
	for _, flag := range []string{"--transport", "--preset", "--critical-path", "--merge-non-overlap", "--npkit-ll"} {
		if strings.Contains(got.Stdout, "\n      "+flag+" ") {
			t.Errorf("the help lists %s, which belongs to a topic", flag)
		}
	}
}

// TestHelpTopics checks that the help of each backend lists its parameters.
func TestHelpTopics(t *testing.T) {
	for _, kind := range backends.All {
		got := clitest.Run(newCommand, "--help", kind.Name)
		if again := clitest.Run(newCommand, "help", kind.Name); again.Stdout != got.Stdout || again.Status != 0 {
			t.Errorf("help %s differs from --help %s", kind.Name, kind.Name)
		}
		if got.Status != 0 || !strings.HasPrefix(got.Stdout, kind.Name+"\n") {
			t.Errorf("%s: exit status %d, %.60q", kind.Name, got.Status, got.Stdout)
		}
		for _, section := range kind.New().Params().Sections() {
			for _, p := range section.Params {
				if !strings.Contains(got.Stdout, " "+p.Signature()) {
					t.Errorf("%s: help lacks %s", kind.Name, p.Signature())
				}
			}
		}
		for _, list := range kind.Lists {
			if !strings.Contains(got.Stdout, "--list-"+list.Name) {
				t.Errorf("%s: help lacks --list-%s", kind.Name, list.Name)
			}
		}
	}
	for args, want := range map[string]string{
		"--help jobs": "--alone", "--help sweep": "FROM..TO:N", "--help result": "makespan_ps", "--help lowering": "--npkit-simple",
		"--help flags": "--critical-path", "--help formats": "\n  goalbin ", "--help --json": "\nUsage:\n",
		"--backend packet x.parquet --help": "\nUsage:\n",
	} {
		if got := clitest.Run(newCommand, strings.Fields(args)...); got.Status != 0 || !strings.Contains(got.Stdout, want) {
			t.Errorf("%s: exit status %d, output lacks %q", args, got.Status, want)
		}
	}
	got := clitest.Run(newCommand, "--help", "pakcet")
	if got.Status != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, `no topic "pakcet", expected one of loggops, `) {
		t.Errorf("unknown topic: exit status %d, stderr %q", got.Status, got.Stderr)
	}
}

func TestCompletion(t *testing.T) {
	for flag, want := range map[string]string{
		"--backend": "loggops\nanalytical\n", "--transport": "ndp\n", "--preset": "vef-switch\n", "--from": "store\n",
		"--placement": "packed\n", "--topology": "fattree:\n", "help": "analytical\n", "--congestion": "unaware\naware\n",
	} {
		if got := clitest.Run(newCommand, "__complete", flag, ""); !strings.HasPrefix(got.Stdout, want) {
			t.Errorf("%s is completed with %.60q", flag, got.Stdout)
		}
	}
	for _, c := range [][3]string{
		{"--set", "", "input-arbiter=rr\n"}, {"--set", "flit-bytes=8,", "flit-bytes=8,pipeline=\n"},
		{"--collective", "allreduce=ring,alltoall=", "allreduce=ring,alltoall=pairwise\n"}, {"--sweep", "L=1us;", "L=1us;G=\n"},
	} {
		if got := clitest.Run(newCommand, "__complete", c[0], c[1]); !strings.Contains(got.Stdout, c[2]) {
			t.Errorf("%s %s is completed with %.200q", c[0], c[1], got.Stdout)
		}
	}
}
