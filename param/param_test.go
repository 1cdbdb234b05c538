package param

import (
	"errors"
	"math"
	"math/big"
	"testing"

	"github.com/tracedag/tracedag/dag"
)

type config struct {
	preset string
	queue  int64
	delay  dag.Time
	rate   *big.Rat
	bits   int64
	count  int
	factor float64
	on     bool
	mode   string
	files  []string
	jitter *float64
}

func (c *config) params() Set {
	return Set{
		Choice(&c.preset, "preset", "named set of defaults", "none", "small").Check(func() error {
			if c.preset == "small" {
				c.queue = 1024
			}
			return nil
		}),
		Size(&c.queue, "queue", "queue capacity per port").Range(0, 1<<40).Sweep(),
		TimeIn(&c.delay, dag.Nanosecond, "delay", "delay of a link").Sweep(),
		RateIn(&c.rate, "ns/B", "rate", "rate of a link").Sweep(),
		BitRate(&c.bits, "bits", "rate in bits"),
		Int(&c.count, "count", "number of ports").Range(1, 100).Sweep().Alias("ports"),
		Float(&c.factor, "factor", "scale factor").Only().Sweep(),
		Bool(&c.on, "on", "switch"),
		Choice(&c.mode, "mode", "mode of operation", "unaware", "aware"),
		Strings(&c.files, "file", "name of a file"),
		Given(&c.jitter, "jitter", "relative deviation").Between(0, 1),
	}
}

func TestApplyFollowsTheTable(t *testing.T) {
	c := &config{preset: "none", queue: 5, mode: "unaware"}
	texts := Texts{
		"queue": {"64KiB"}, "preset": {"small"}, "delay": {"1.5us"}, "rate": {"0.04"}, "bits": {"400Gbps"}, "ports": {"7"},
		"on": {"true"}, "mode": {"aware"}, "file": {"a", "b"}, "jitter": {"0.5"}, "other": {"x"},
	}
	if err := c.params().Apply(texts); err != nil {
		t.Fatal(err)
	}
	want := &config{preset: "small", queue: 65536, delay: 1500 * dag.Nanosecond, bits: 400e9, count: 7, on: true, mode: "aware"}
	if c.queue != want.queue || c.delay != want.delay || c.bits != want.bits || c.count != want.count || !c.on ||
		c.mode != want.mode || c.rate.Cmp(big.NewRat(40, 1)) != 0 || len(c.files) != 2 || *c.jitter != 0.5 {
		t.Errorf("got %+v", c)
	}
	c = &config{queue: 5}
	if err := c.params().Apply(Texts{"preset": {"small"}}); err != nil || c.queue != 1024 || c.jitter != nil {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestBadValuesNameTheirParameter(t *testing.T) {
	for name, text := range map[string]string{
		"preset": "big", "queue": "-1", "delay": "1h", "rate": "fast", "bits": "3", "count": "0", "ports": "101", "on": "maybe",
		"mode": "", "jitter": "2",
	} {
		c := &config{count: 1}
		err := c.params().Apply(Texts{name: {text}})
		var bad *Error
		if !errors.As(err, &bad) || bad.Name != name || bad.Text != "" && bad.Text != text {
			t.Errorf("%s=%q: got %v", name, text, err)
		}
	}
	c := &config{}
	for _, text := range []string{"factor", "queue=3", "nothing=1", "factor=x"} {
		if c.params().Assign(text) == nil {
			t.Errorf("%q is taken", text)
		}
	}
	if err := c.params().Assign("factor=2.5"); err != nil || c.factor != 2.5 {
		t.Errorf("factor is %v, %v", c.factor, err)
	}
}

func TestSweepsRoundHalfAwayFromZero(t *testing.T) {
	c := &config{}
	err := c.params().Override([]Setting{
		{"queue", big.NewRat(5, 2)}, {"delay", big.NewRat(7, 3)}, {"rate", big.NewRat(1, 3)}, {"factor", big.NewRat(1, 4)},
	})
	if err != nil || c.queue != 3 || c.delay != 2 || c.rate.Cmp(big.NewRat(1, 3)) != 0 || c.factor != 0.25 {
		t.Errorf("got %+v, %v", c, err)
	}
	for _, s := range []Setting{{"mode", big.NewRat(1, 1)}, {"none", big.NewRat(1, 1)}, {"queue", new(big.Rat).SetFloat64(math.MaxFloat64)}} {
		if c.params().Override([]Setting{s}) == nil {
			t.Errorf("%s can be swept to %v", s.Name, s.Number)
		}
	}
	if n, err := Rounded(big.NewRat(-5, 2)); n != -3 || err != nil {
		t.Errorf("-2.5 is rounded to %d, %v", n, err)
	}
}

func TestTablesAreIndependent(t *testing.T) {
	c := &config{count: 3}
	s := c.params()
	if got := s.Flags().Find("factor"); got != nil {
		t.Error("a key is a flag")
	}
	if got := s.Keys().Names(); len(got) != 1 || got[0] != "factor" {
		t.Errorf("the keys are %q", got)
	}
	if p := s.Find("ports"); p == nil || p.Name != "count" || p.Initial != "3" || p.ArgName() != "int" {
		t.Errorf("found %+v", p)
	}
}
