// This file finds the tensors that nodes read and write: the attributes inputs and outputs, lists of names and
// sizes.

package chakra

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/tracedag/tracedag/dag/attr"

	"github.com/tracedag/tracedag/dag"
)

// Tensor is a tensor that an op reads or writes.
type Tensor = attr.Tensor

// Names of the attributes with tensors.
const (
	inputsName  = "inputs"
	outputsName = "outputs"
)

// Tensors returns a function that returns the tensors which an op of the trace reads and writes, as recorded in
// the op's node. Several goroutines may call it. It returns an error if a list does not alternate names and sizes.
func Tensors(t *dag.Trace) func(rank, op int) (reads, writes []Tensor, err error) {
	p := &plan{t: t, layouts: make(map[string]layout)}
	p.remember()
	return func(rank, op int) (reads, writes []Tensor, err error) {
		w := rankWriter{p: p}
		r := t.Ranks[rank]
		o := r.Op(op)
		var a opAttrs
		if text := r.Attrs.At(op); text == "" || !p.ours(o.Job) || json.Unmarshal([]byte(text), &a) != nil {
			return nil, nil, nil
		}
		_, attrs, _ := w.stored(&o, &a)
		for i := range attrs {
			switch attrs[i].Name {
			case inputsName:
				reads, err = attrs[i].tensors()
			case outputsName:
				writes, err = attrs[i].tensors()
			}
			if err != nil {
				return nil, nil, fmt.Errorf("%s of rank %d, op %d: %w", attrs[i].Name, rank, op, err)
			}
		}
		return reads, writes, nil
	}
}

// tensors returns the tensors that an attribute lists; none if it is no list of text.
func (a *Attr) tensors() ([]Tensor, error) {
	if a.Kind != StringVal+listOf {
		return nil, nil
	}
	if len(a.texts)%2 != 0 {
		return nil, fmt.Errorf("expected names and sizes, found %d texts", len(a.texts))
	}
	var tensors []Tensor
	for i := 0; i < len(a.texts); i += 2 {
		size, err := tensorSize(a.texts[i+1])
		if err != nil {
			return nil, fmt.Errorf("size of tensor %.40q: %w", a.texts[i], err)
		}
		tensors = append(tensors, Tensor{Name: a.texts[i], Bytes: size})
	}
	return tensors, nil
}

// tensorSize parses a number of bytes, which may have a fraction, such as 1048576.0.
func tensorSize(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		return n, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x < math.MaxInt64) {
		return 0, fmt.Errorf("expected a number of bytes, found %.40q", text)
	}
	return int64(x), nil
}
