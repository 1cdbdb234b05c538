// This file exports what names of PyTorch mean, for the other formats of PyTorch.

package kineto

import "github.com/tracedag/tracedag/dag"

// Operation returns the communication that a call of PyTorch or an annotation such as "nccl:all_reduce" names:
// dag.Coll with its kind, dag.Send or dag.Recv. ok is false for names of calls that do not communicate, such as waits.
func Operation(name string) (kind dag.Kind, s dag.Subkind, ok bool) {
	if call, found := communicationOf([]byte(name)); found {
		name = string(call)
	}
	o := operationOf([]byte(name))
	if s, ok := o.subkind(); ok {
		return dag.Coll, s, true
	}
	switch o {
	case opSend:
		return dag.Send, 0, true
	case opRecv:
		return dag.Recv, 0, true
	}
	return 0, 0, false
}

// ElementSize returns the size in bytes of an element of a tensor whose type is called name, in PyTorch or C++; 0 if it
// is unknown.
func ElementSize(name string) int64 { return elementSize([]byte(name)) }
