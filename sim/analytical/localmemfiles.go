package analytical

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
	"github.com/tracedag/tracedag/sim"
)

// localMemFiles writes the history of the tensors in the NPUs' memories, one file per NPU: track-local-mem of
// ASTRA-sim's system file.
type localMemFiles struct {
	prefix string // file name prefix; "": no files
	env    *sim.Env
	trace  *dag.Trace
}

// file returns the name of an NPU's file.
func (m *localMemFiles) file(npu int) string {
	return fmt.Sprintf("%s.%d.json", m.prefix, npu)
}

// check returns an error if the files cannot be written. A sweep writes none.
func (m *localMemFiles) check(env *sim.Env, npus int) error {
	if m.prefix == "" {
		return nil
	}
	if env.Sweep {
		env.Warnf("--sweep: local memory traces are not written, since a sweep has many runs")
		return nil
	}
	if env.CheckOutput == nil {
		return nil
	}
	for npu := range npus {
		if err := env.CheckOutput(m.file(npu), false); err != nil {
			return err
		}
	}
	return nil
}

// tensors returns a function that finds the tensors of an op, or nil if there are no files.
func (m *localMemFiles) tensors() func(rank, op int) (reads, writes []attr.Tensor, err error) {
	if m.prefix == "" || m.env.Tensors == nil {
		return nil
	}
	return m.env.Tensors(m.trace)
}

// write writes the files.
func (m *localMemFiles) write(memories []LocalMem) error {
	if m.env.Create == nil {
		return nil
	}
	rewrites, used := 0, false
	for npu := range memories {
		rewrites += memories[npu].Rewrites
		used = used || memories[npu].Peak > 0
		if err := m.writeFile(npu, &memories[npu]); err != nil {
			return err
		}
	}
	if !used {
		m.env.Warnf("track-local-mem: the ops that ran do not record the tensors that they read or write")
	}
	if rewrites > 0 {
		m.env.Warnf("track-local-mem: %d writes of existing tensors have no effect", rewrites)
	}
	return nil
}

func (m *localMemFiles) writeFile(npu int, memory *LocalMem) error {
	rank := m.trace.Ranks[npu]
	ids := rank.IDs()
	out, err := m.env.Create(m.file(npu))
	if err != nil {
		return err
	}
	defer out.Close()
	node := func(op int) (string, uint64) { return rank.Name.At(op), ids[op] }
	if err := memory.WriteTrace(out, npu, node); err != nil {
		return fmt.Errorf("%s: %w", m.file(npu), err)
	}
	return out.Commit()
}
