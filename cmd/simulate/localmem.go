// This file writes what became of the tensors in the memory of NPUs: track-local-mem of ASTRA-sim's system file.

package main

import (
	"fmt"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/formats/chakra"
	"github.com/tracedag/tracedag/internal/cli"
	"github.com/tracedag/tracedag/sim/analytical"
)

// localMem is the tensors in local memory: where to write what became of them, and what knows them.
type localMem struct {
	prefix string // of the files; "": there are none
	trace  *dag.Trace
}

// file returns the name of the file of an NPU.
func (m *localMem) file(npu int) string {
	return fmt.Sprintf("%s.%d.json", m.prefix, npu)
}

// check returns an error if the files cannot be written. Of a sweep there are none.
func (m *localMem) check(p *cli.Program, npus int, sweep bool) error {
	if m.prefix == "" {
		return nil
	}
	if sweep {
		p.Warn("--sweep: no traces of local memory are written, for they would be those of many runs")
		return nil
	}
	for npu := range npus {
		if err := p.CheckOutput(m.file(npu), false); err != nil {
			return err
		}
	}
	return nil
}

// tensors returns what finds the tensors of an op, nil if nobody wants to know.
func (m *localMem) tensors() func(rank, op int) (reads, writes []analytical.Tensor, err error) {
	if m.prefix == "" {
		return nil
	}
	of := chakra.Tensors(m.trace)
	return func(rank, op int) (reads, writes []analytical.Tensor, err error) {
		in, out, err := of(rank, op)
		for _, t := range in {
			reads = append(reads, analytical.Tensor(t))
		}
		for _, t := range out {
			writes = append(writes, analytical.Tensor(t))
		}
		return reads, writes, err
	}
}

// write writes the files.
func (m *localMem) write(p *cli.Program, memories []analytical.LocalMem) error {
	rewrites, used := 0, false
	for npu := range memories {
		rewrites += memories[npu].Rewrites
		used = used || memories[npu].Peak > 0
		if err := m.writeFile(p, npu, &memories[npu]); err != nil {
			return err
		}
	}
	if !used {
		p.Warn("track-local-mem: no op that ran says which tensors it reads or writes")
	}
	if rewrites > 0 {
		p.Warn("track-local-mem: %d writes of tensors that are there already change nothing", rewrites)
	}
	return nil
}

func (m *localMem) writeFile(p *cli.Program, npu int, memory *analytical.LocalMem) error {
	rank := &m.trace.Ranks[npu]
	ids := rank.IDs()
	out, err := p.Create(m.file(npu), false)
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
