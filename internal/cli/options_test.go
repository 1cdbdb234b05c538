package cli

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/internal/manual"
	"github.com/tracedag/tracedag/param"
)

// TestGiven checks that a flag is given by each of its names.
func TestGiven(t *testing.T) {
	for arg, want := range map[string]bool{"--cross-traffic": true, "--crosstraffic": true, "--other": false} {
		var on, other bool
		cmd := &cobra.Command{}
		o := NewOptions(cmd)
		o.Add(cmd, manual.Group{Owner: "flow", Params: param.Set{
			param.Bool(&on, "cross-traffic", "acknowledgements take part of the rate").Alias("crosstraffic"),
			param.Bool(&other, "other", "another flag"),
		}})
		if err := cmd.ParseFlags([]string{arg}); err != nil {
			t.Fatal(err)
		}
		if got := o.Given("cross-traffic"); got != want {
			t.Errorf("%s: given %v, expected %v", arg, got, want)
		}
	}
}
