package store

// Column describes a column of stores.
type Column struct {
	Name        string
	Type        string // of its values: int32, int64 or string
	Description string // one line
	List        bool   // a row has a list of values
	Null        bool   // a row may have no value
}

// Columns returns the columns in the order of files. Their descriptions are those of docs/reference/store.md.
func Columns() []Column {
	all := make([]Column, numColumns)
	for i, c := range columns {
		all[i] = Column{Name: c.name, Type: c.shape.typeName(), Description: descriptions[i], List: c.shape == list,
			Null: c.shape == optText || c.shape == optInt64s}
	}
	return all
}

// typeName returns the type of the values of a column.
func (s shape) typeName() string {
	switch s {
	case int64s, optInt64s:
		return "int64"
	case label, optText:
		return "string"
	}
	return "int32"
}

// descriptions are those of the columns.
var descriptions = []string{
	"rank of the op, from 0",
	"calc, send, recv, coll, mem, io",
	"for coll: barrier, bcast, reduce, allreduce, gather, gatherv, scatter, scatterv, allgather, " +
		"allgatherv, alltoall, alltoallv, reducescatter, scan, exscan; for mem: load, store; for io: read, " +
		"write; for calc: empty or marker; otherwise empty",
	"message, tensor or I/O size; collectives: bytes contributed by this rank",
	"collectives: bytes received by this rank, if different from bytes",
	"partner rank, -1: any source; rooted collectives: the root's rank, -1: the trace does not state it",
	"message tag, -1: any; collectives: a number of the source format",
	"communicator, an index of the list in the metadata; 0: all ranks",
	"compute, memory or I/O time in picoseconds",
	"floating-point operations, for roofline models",
	"earliest start after the start of the trace, in picoseconds",
	"compute stream: ops on one stream do not overlap",
	"NIC",
	"job of a merged trace, an index of the list in the metadata",
	"1: runs on the host processor instead of the rank's accelerator (since 1.1)",
	"collectives: participating network dimensions, bit d for dimension d; 0: all (since 1.1)",
	"collectives: higher goes first in backends that schedule by priority (since 1.1)",
	"ops that must finish first, as (this op's number - that op's number): 1 is the previous op",
	"ops that must have started first, in the same form",
	"ops that wait for the end of this one, in order, as (that op's number - this op's number); empty if " +
		"they are in ascending order, as they almost always are",
	"the same for ops that wait for its start",
	"name for people",
	"data of the source format without a place in the model, a JSON object",
	"recorded start of the op, in picoseconds after the start of the trace",
	"recorded end of the op",
	"number of the op's step, from 1; 0: none (since 1.3)",
}
