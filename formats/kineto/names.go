// This file finds what events are by their categories and names.

package kineto

import (
	"bytes"
	"strings"

	"github.com/tracedag/tracedag/dag"
)

// category is the kind of an event.
type category uint8

const (
	catOther     category = iota // not needed
	catKernel                    // runs on a device
	catCopy                      // copies or sets memory of a device
	catMTIA                      // runs on a device or copies, by its name
	catRuntime                   // a call of the host into the runtime or driver of devices
	catSync                      // the wait of a stream or of the host
	catOperator                  // an operator on the host
	catAnnotate                  // a range that the program annotates
	catUndefined                 // events without a category
)

// categoryOf returns the kind of a category, by names since 2021.
func categoryOf(name []byte) category {
	switch string(name) {
	case "kernel", "Kernel":
		return catKernel
	case "gpu_memcpy", "gpu_memset", "Memcpy", "Memset":
		return catCopy
	case "mtia_ccp_events":
		return catMTIA
	case "cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "xpu_runtime", "xpu_driver", "mtia_runtime",
		"privateuse1_runtime", "privateuse1_driver", "glow_runtime":
		return catRuntime
	case "cuda_sync":
		return catSync
	case "cpu_op", "Operator":
		return catOperator
	case "user_annotation":
		return catAnnotate
	case "":
		return catUndefined
	}
	return catOther
}

// class is the purpose of a device op.
type class uint8

const (
	compute class = iota
	copies
	communicates
	foreign // communicates, but not by NCCL or a library like it
)

// foreignNames are parts of names of kernels that communicate without NCCL.
var foreignNames = []string{"deep_ep::", "nvshmem", "cross_device_reduce", "multimem_", "symm_", "userbuffers_",
	"msccl"}

// classOf returns the purpose of a device op.
func classOf(c category, name string) class {
	for _, prefix := range []string{"nccl", "rccl", "hccl"} {
		if strings.HasPrefix(name, prefix) {
			return communicates
		}
	}
	switch {
	case strings.Contains(name, "ncclKernel"), strings.Contains(name, "ncclDevKernel"), isOneCCL(name):
		return communicates
	case c == catCopy:
		return copies
	}
	for _, prefix := range []string{"Memcpy", "Memset", "hipMemcpy", "hipMemset", "dma"} {
		if strings.HasPrefix(name, prefix) {
			return copies
		}
	}
	for _, part := range foreignNames {
		if strings.Contains(name, part) {
			return foreign
		}
	}
	return compute
}

// isOneCCL reports whether a kernel is one of oneCCL, for the devices of Intel.
func isOneCCL(name string) bool {
	return strings.HasPrefix(name, "void ccl_") || strings.HasPrefix(name, "ccl_") || strings.HasPrefix(name, "oneccl_")
}

// callKind is the purpose of a call of the host.
type callKind uint8

const (
	callOther        callKind = iota // launches, or nothing
	callRecord                       // records an event on a stream
	callStreamWait                   // makes a stream wait for an event
	callDeviceSync                   // waits for all streams
	callStreamSync                   // waits for a stream
	callEventSync                    // waits for an event
	callBlockingCopy                 // launches a copy and waits for it
	callUseless                      // cannot launch
)

// calls are the names of calls behind cuda, cu or hip.
var calls = map[string]callKind{
	"EventRecord": callRecord, "EventRecordWithFlags": callRecord, "StreamWaitEvent": callStreamWait,
	"DeviceSynchronize": callDeviceSync, "CtxSynchronize": callDeviceSync, "StreamSynchronize": callStreamSync,
	"EventSynchronize": callEventSync, "Memcpy": callBlockingCopy, "Memcpy2D": callBlockingCopy,
	"MemcpyWithStream": callBlockingCopy, "MemcpyDtoH": callBlockingCopy, "MemcpyHtoD": callBlockingCopy,
}

// uselessCalls begin the names of calls that launch nothing, behind cuda, cu or hip.
var uselessCalls = []string{"Get", "EventQuery", "EventCreate", "EventDestroy", "EventElapsed", "Func", "Occupancy",
	"PointerGet", "Malloc", "Free", "DeviceGet", "DeviceSet", "DeviceCan", "Peek", "StreamIs", "StreamGet",
	"StreamCreate", "StreamDestroy", "StreamQuery", "HostAlloc", "HostFree", "HostRegister", "ThreadExchange", "Module",
	"SetDevice", "CtxGet", "CtxSet", "MemGet", "TensorMap", "KernelGet", "Library", "Init", "DriverGet"}

// callKindOf returns the purpose of a call.
func callKindOf(name string) callKind {
	for _, prefix := range []string{"cuda", "cu", "hip"} {
		rest, found := strings.CutPrefix(name, prefix)
		if !found {
			continue
		}
		if at := strings.Index(rest, "_v"); at > 0 {
			rest = rest[:at]
		}
		if kind, found := calls[rest]; found {
			return kind
		}
		for _, useless := range uselessCalls {
			if strings.HasPrefix(rest, useless) {
				return callUseless
			}
		}
		return callOther
	}
	return callOther
}

// libraries begin the annotations of communication.
var libraries = []string{"nccl:", "rccl:", "hccl:", "gloo:", "xccl:", "mpi:"}

// communicationOf returns the part of an annotation of communication after the library.
func communicationOf(name []byte) (call []byte, ok bool) {
	if len(name) < 5 || name[4] != ':' && name[3] != ':' {
		return nil, false
	}
	for _, library := range libraries {
		if call, ok = bytes.CutPrefix(name, []byte(library)); ok {
			return call, true
		}
	}
	return nil, false
}

// operation is what a communication does.
type operation uint8

const (
	opUnknown  operation = iota
	opNone               // nothing of its own, such as a wait or the end of a group
	opSendRecv           // any of sends, receives and alltoalls
	opSend
	opRecv
	opCollective // dag.Subkind(op - opCollective)
)

func collective(s dag.Subkind) operation { return opCollective + operation(s) }

// subkind returns the collective; ok is false for others.
func (o operation) subkind() (s dag.Subkind, ok bool) {
	if o < opCollective {
		return 0, false
	}
	return dag.Subkind(o - opCollective), true
}

// sized reports whether all members of the operation have the same bytes.
func (o operation) sized() bool {
	s, ok := o.subkind()
	return !ok || s != dag.Alltoallv && s != dag.Alltoall && s != dag.Gather && s != dag.Scatter &&
		s != dag.Allgatherv
}

// operations are the collectives by parts of their names without other characters than letters, the first that fits.
var operations = []struct {
	part string
	op   operation
}{
	{"allreduce", collective(dag.Allreduce)}, {"reducescatter", collective(dag.ReduceScatter)},
	{"allgather", collective(dag.Allgather)}, {"broadcast", collective(dag.Bcast)},
	{"alltoallv", collective(dag.Alltoallv)}, {"alltoall", collective(dag.Alltoall)},
	{"reduce", collective(dag.Reduce)},
}

// idle are names of calls that move no data of their own.
var idle = []string{"wait", "init", "coalesced", "coalescing", "pointtopoint", "groupstart", "groupend"}

// operationOf returns the operation by the name of a call, of an annotation behind the library, or of a kernel.
func operationOf(name []byte) operation {
	word := make([]byte, 0, 64)
	for _, c := range name {
		if c |= 0x20; c >= 'a' && c <= 'z' {
			word = append(word, c)
		}
	}
	has := func(prefix string) bool { return bytes.HasPrefix(word, []byte(prefix)) }
	for _, name := range idle {
		if has(name) {
			return opNone
		}
	}
	switch {
	case has("sendrecv"):
		return opSendRecv
	case has("send"):
		return opSend
	case has("recv"):
		return opRecv
	case bytes.Contains(word, []byte("barrier")):
		return collective(dag.Barrier)
	case has("gather"):
		return collective(dag.Gather)
	case has("scatter"):
		return collective(dag.Scatter)
	}
	for _, o := range operations {
		if bytes.Contains(word, []byte(o.part)) {
			return o.op
		}
	}
	return opUnknown
}

// kernelOperation returns the operation in the name of a kernel of NCCL.
func kernelOperation(name string) operation {
	for _, prefix := range []string{"ncclDevKernel_", "ncclSymDevKernel_", "ncclSymkDevKernel_", "ncclKernel_", "nccl",
		"rccl", "hccl::", "hccl"} {
		if rest, found := strings.CutPrefix(name, prefix); found {
			name = rest
			break
		}
	}
	name, _, _ = strings.Cut(name, "(")
	if at := strings.Index(name, "Kernel_"); at >= 0 { // of NCCL up to 2.7, or with namespaces
		name = name[:at]
	}
	return operationOf([]byte(name))
}

// elementSizes are the bytes of the types of elements: those of PyTorch's tensors, and of C++ in annotations.
var elementSizes = map[string]int64{
	"Byte": 1, "Char": 1, "Bool": 1, "Float8_e5m2": 1, "Float8_e4m3fn": 1, "Float8_e5m2fnuz": 1, "Float8_e4m3fnuz": 1,
	"Float8_e8m0fnu": 1, "QInt8": 1, "QUInt8": 1, "Short": 2, "Half": 2, "BFloat16": 2, "UInt16": 2, "Int": 4,
	"Float":  4,
	"UInt32": 4, "ComplexHalf": 4, "QInt32": 4, "Long": 8, "Double": 8, "UInt64": 8, "ComplexFloat": 8,
	"ComplexDouble": 16,

	"float": 4, "double": 8, "int": 4, "long": 8, "long int": 8, "c10::Half": 2, "c10::BFloat16": 2, "signed char": 1,
	"unsigned char": 1, "char": 1, "bool": 1, "short": 2, "c10::complex<float>": 8, "c10::complex<double>": 16,
}

// elementSize returns the bytes of a type of elements; 0: unknown.
func elementSize(name []byte) int64 {
	if size, ok := elementSizes[string(name)]; ok {
		return size
	}
	if bytes.HasPrefix(name, []byte("Float8")) || bytes.HasPrefix(name, []byte("c10::Float8")) {
		return 1
	}
	return 0
}
