package lower

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/param"
	"github.com/tracedag/tracedag/param/paramtest"
)

func FuzzRules(f *testing.F) {
	paramtest.Fuzz(f, func() param.Set { return new(Passes).Rules() })
}

// FuzzParse parses rules, one per line. Their order does not matter to errors, and parsing has no memory.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"collectives", "needed\nallreduce=ring", "allreduce=ring:>=1MiB\nbcast=chain", "directdrive:replicas=2\nnccl:algo=ring",
		"roofline:peak=1TFLOPS,bandwidth=1TB/s", "needed\ncollectives", "nothing", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules := strings.Split(text, "\n")
		p, err := Parse(rules)
		if err != nil {
			if p != nil || err.Error() == "" {
				t.Errorf("%+v, error %q", p, err)
			}
			return
		}
		if again, err := Parse(rules); err != nil || !reflect.DeepEqual(again.Choice, p.Choice) ||
			again.Collectives != p.Collectives || again.Needed != p.Needed {
			t.Errorf("%+v, then %+v, error %v", p, again, err)
		}
	})
}
