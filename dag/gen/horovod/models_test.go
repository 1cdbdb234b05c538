package horovod

import (
	"slices"
	"testing"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/gen/generator"
)

// TestFuse: gradients share a buffer from the last layer on, and larger ones have their own.
func TestFuse(t *testing.T) {
	for _, c := range []struct {
		parameters, want []int64
		buffer           int64
	}{
		{[]int64{1, 2, 3}, []int64{24}, 24},
		{[]int64{1, 2, 3}, []int64{20, 4}, 23},
		{[]int64{1, 9, 1}, []int64{4, 36, 4}, 16},
		{[]int64{5}, []int64{20}, 1},
	} {
		if got := fuse(c.parameters, c.buffer); !slices.Equal(got, c.want) {
			t.Errorf("%v in %d bytes: %v, expected %v", c.parameters, c.buffer, got, c.want)
		}
	}
}

// TestNetwork: AlexNet has 60,965,224 parameters. Its trace has the allreduces of all of them in each batch, and sends
// within 5 % of the 249 GB of the captured one as rings, in which 98 workers send 194 times the bytes.
func TestNetwork(t *testing.T) {
	c := Generator.New()
	if err := generator.Assign(c.Params(), "model", "alexnet"); err != nil {
		t.Fatal(err)
	}
	s, err := c.Source(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := dag.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	if want := "Horovod with AlexNet (stand-in, not the capture), 98 workers, 5 batches, 4 layers"; tr.Title != want {
		t.Errorf("title is %q", tr.Title)
	}
	var sizes []int64
	sum := int64(0)
	r := tr.Ranks[0]
	for i := range r.Len() {
		if op := r.Op(i); op.Kind == dag.Coll && op.Subkind == dag.Allreduce {
			sizes = append(sizes, op.Bytes)
			sum += op.Bytes
		}
	}
	if batch := []int64{16_388_000, 67_125_248, 151_011_328, 9_336_320}; !slices.Equal(sizes[:4], batch) ||
		len(sizes) != 20 || sum != 5*4*60_965_224 {
		t.Errorf("allreduces have %v bytes", sizes)
	}
	if _, err := Network("resnet"); err == nil {
		t.Error("there is a resnet")
	}
}

// TestNetworkFlags: other flags take precedence.
func TestNetworkFlags(t *testing.T) {
	c := Generator.New().(*Config)
	for _, set := range [][2]string{{"model", "alexnet"}, {"ranks", "4"}, {"batches", "2"}, {"compute", "1ms"}} {
		if err := generator.Assign(c.Params(), set[0], set[1]); err != nil {
			t.Fatal(err)
		}
	}
	p, err := c.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	l := p.layer(1)
	if p.Workers != 4 || p.Batches != 2 || l.Compute != dag.Millisecond || l.AllreduceBytes != 67_125_248 {
		t.Errorf("parameters are %+v", p)
	}
}
