// This file lists the functions of MPI: the fields of their lines and their conversion.

package mpi

import (
	"bytes"

	"github.com/tracedag/tracedag/dag"
	"github.com/tracedag/tracedag/dag/attr"
)

// action is the conversion of a call.
type action uint8

const (
	nothing     action = iota // local to the rank: its time counts as computation
	initialize                // MPI_Init: time starts
	finalize                  // MPI_Finalize: the last computation ends
	abort                     // MPI_Abort: as MPI_Finalize
	send                      // a message
	receive                   //
	exchange                  // MPI_Sendrecv
	exchangeOne               // MPI_Sendrecv_replace
	sendLater                 // the persistent kinds
	receiveLater
	start
	startAll
	free
	cancel
	waitOne
	waitAll
	waitAny
	waitSome
	testOne
	testSome // or any, or all
	collective
	commInfo  // uses a communicator; a new one is found by other means
	commSplit // creates a communicator
	commDup
	commFree
	probe    // waits for a message that another call receives
	nextStep // MPI_Pcontrol
)

// call is a function of MPI.
type call struct {
	do action
	// The fields between start and end, one letter each:
	//
	//	x  ignored
	//	p  an address that is used
	//	q  the address of a request, or of a communicator's variable
	//	n  a number
	//	t  a datatype
	//	v  an array of numbers, one for each rank of the communicator
	//	c  a communicator
	//
	// A line may have more fields. "" marks calls whose fields are ignored.
	fields string
	kind   dag.Subkind // of collectives
	later  bool        // returns before its end; the request is the last "q"
	mode   string      // mode of a send: attrs of the op
	local  bool        // a send whose end depends on no receive
	parts  bool        // creates communicators of some of the ranks, whose members the trace does not show
}

// calls are the supported functions by name.
var calls = makeCalls()

// callsFolded are the same functions by lower-case name.
var callsFolded = foldNames(calls)

func makeCalls() map[string]*call {
	all := map[string]*call{
		"MPI_Init":        {do: initialize},
		"MPI_Init_thread": {do: initialize},
		"MPI_Finalize":    {do: finalize},
		"MPI_Abort":       {do: abort},
		"MPI_Pcontrol":    {do: nextStep},

		"MPI_Probe":            {do: probe, fields: "nnc"},
		"MPI_Recv":             {do: receive, fields: "xntnnc"},
		"MPI_Irecv":            {do: receive, fields: "xntnncq", later: true},
		"MPI_Recv_init":        {do: receiveLater, fields: "xntnncq"},
		"MPI_Sendrecv":         {do: exchange, fields: "xntnnxntnnc"},
		"MPI_Sendrecv_replace": {do: exchangeOne, fields: "xntnnnnc"},
		"MPI_Start":            {do: start, fields: "q"},
		"MPI_Startall":         {do: startAll, fields: "nq"},
		"MPI_Request_free":     {do: free, fields: "q"},
		"MPI_Cancel":           {do: cancel, fields: "q"},
		"MPI_Wait":             {do: waitOne, fields: "q"},
		"MPI_Waitall":          {do: waitAll, fields: "nq"},
		"MPI_Waitany":          {do: waitAny, fields: "nq"},
		"MPI_Waitsome":         {do: waitSome, fields: "nq"},
		"MPI_Test":             {do: testOne, fields: "q"},
		"MPI_Testall":          {do: testSome, fields: "nq"},
		"MPI_Testany":          {do: testSome, fields: "nq"},
		"MPI_Testsome":         {do: testSome, fields: "nq"},

		"MPI_Comm_rank":          {do: commInfo, fields: "c"},
		"MPI_Comm_size":          {do: commInfo, fields: "c"},
		"MPI_Comm_split":         {do: commSplit, fields: "cnnq"},
		"MPI_Comm_dup":           {do: commDup, fields: "cq"},
		"MPI_Comm_dup_with_info": {do: commDup, fields: "cxq"},
		"MPI_Comm_idup":          {do: commDup, fields: "cqx"},
		"MPI_Comm_create":        {do: commInfo, fields: "c", parts: true},
		"MPI_Comm_create_group":  {do: commInfo, fields: "c", parts: true},
		"MPI_Comm_split_type":    {do: commInfo, fields: "c", parts: true},
		"MPI_Cart_create":        {do: commInfo, fields: "c", parts: true},
		"MPI_Cart_sub":           {do: commInfo, fields: "c", parts: true},
		"MPI_Graph_create":       {do: commInfo, fields: "c"},
		"MPI_Comm_free":          {do: commFree, fields: "q"},
		"MPI_Comm_disconnect":    {do: commFree, fields: "q"},
	}
	for infix, mode := range map[string]string{"s": "", "ss": attr.Synchronous, "bs": attr.Buffered, "rs": attr.Ready} {
		name, attrs := infix+"end", ""
		if mode != "" {
			attrs = attr.SendMode(mode)
		}
		all["MPI_"+capital(name)] = &call{do: send, fields: "xntnnc", mode: attrs,
			local: mode == attr.Buffered}
		all["MPI_I"+name] = &call{do: send, fields: "xntnncq", mode: attrs, later: true}
		all["MPI_"+capital(name)+"_init"] = &call{do: sendLater, fields: "xntnncq",
			mode: attr.PersistentSend(mode)}
	}
	for name, c := range map[string]call{
		"barrier":              {kind: dag.Barrier, fields: "c"},
		"bcast":                {kind: dag.Bcast, fields: "xntnc"},
		"reduce":               {kind: dag.Reduce, fields: "pxntxnc"},
		"allreduce":            {kind: dag.Allreduce, fields: "pxntxc"},
		"scan":                 {kind: dag.Scan, fields: "pxntxc"},
		"exscan":               {kind: dag.Exscan, fields: "pxntxc"},
		"gather":               {kind: dag.Gather, fields: "pntxntnc"},
		"gatherv":              {kind: dag.Gatherv, fields: "pntxvvtnc"},
		"scatter":              {kind: dag.Scatter, fields: "xntpntnc"},
		"scatterv":             {kind: dag.Scatterv, fields: "xvvtpntnc"},
		"allgather":            {kind: dag.Allgather, fields: "pntxntc"},
		"allgatherv":           {kind: dag.Allgatherv, fields: "pntxvvtc"},
		"alltoall":             {kind: dag.Alltoall, fields: "pntxntc"},
		"alltoallv":            {kind: dag.Alltoallv, fields: "pvvtxvvtc"},
		"reduce_scatter":       {kind: dag.ReduceScatter, fields: "pxvtxc"},
		"reduce_scatter_block": {kind: dag.ReduceScatter, fields: "pxntxc"},
	} {
		c.do = collective
		all["MPI_"+capital(name)] = &c
		later := c
		later.later, later.fields = true, c.fields+"q"
		all["MPI_I"+name] = &later
	}
	for _, name := range local {
		all["MPI_"+name] = &call{}
	}
	return all
}

func capital(name string) string {
	return string(name[0]-'a'+'A') + name[1:]
}

// local are the functions, without MPI_, that become no op: other ranks do not depend on them. Iprobe is among them,
// because another call receives the message.
var local = []string{
	"Iprobe", "Mprobe", "Improbe", "Get_count", "Get_elements", "Request_get_status", "Test_cancelled",
	"Status_set_cancelled", "Status_set_elements", "Reduce_local", "Op_commutative",
	"Buffer_attach", "Buffer_detach",
	"Comm_set_info", "Comm_get_info", "Comm_compare", "Comm_group", "Comm_remote_group",
	"Comm_remote_size", "Comm_test_inter", "Comm_get_name",
	"Comm_set_name", "Comm_get_attr", "Comm_set_attr", "Comm_delete_attr", "Comm_create_keyval", "Comm_free_keyval",
	"Comm_get_errhandler", "Comm_set_errhandler", "Comm_create_errhandler", "Comm_call_errhandler", "Comm_get_parent",
	"Group_size", "Group_rank", "Group_translate_ranks", "Group_compare", "Group_union", "Group_intersection",
	"Group_difference", "Group_incl", "Group_excl", "Group_range_incl", "Group_range_excl", "Group_free",
	"Type_commit", "Type_free", "Type_size", "Type_size_x", "Type_extent", "Type_lb", "Type_ub", "Type_get_extent",
	"Type_get_true_extent", "Type_contiguous", "Type_vector", "Type_hvector", "Type_indexed", "Type_hindexed",
	"Type_struct", "Type_create_struct", "Type_create_hvector", "Type_create_hindexed",
	"Type_create_indexed_block", "Type_create_hindexed_block",
	"Type_create_subarray", "Type_create_darray", "Type_create_resized", "Type_create_f90_complex",
	"Type_create_f90_integer", "Type_create_f90_real", "Type_create_keyval", "Type_free_keyval", "Type_dup",
	"Type_get_name", "Type_set_name", "Type_get_attr", "Type_set_attr", "Type_delete_attr", "Type_get_contents",
	"Type_get_envelope", "Type_match_size", "Address", "Get_address", "Aint_add", "Aint_diff",
	"Pack", "Unpack", "Pack_size", "Pack_external",
	"Unpack_external", "Pack_external_size", "Op_create", "Op_free", "Keyval_create", "Keyval_free", "Attr_get",
	"Attr_put", "Attr_delete", "Errhandler_create", "Errhandler_free", "Errhandler_get", "Errhandler_set",
	"Error_class", "Error_string", "Add_error_class", "Add_error_code", "Add_error_string", "Initialized", "Finalized",
	"Is_thread_main", "Query_thread", "Get_processor_name", "Get_version", "Get_library_version",
	"Wtime", "Wtick", "Alloc_mem", "Free_mem",
	"Info_create", "Info_delete", "Info_dup", "Info_free", "Info_get", "Info_get_nkeys", "Info_get_nthkey",
	"Info_get_valuelen", "Info_set", "Topo_test", "Dims_create", "Cart_rank", "Cart_coords", "Cart_shift", "Cart_get",
	"Cart_map", "Cartdim_get", "Graph_get", "Graph_map", "Graph_neighbors", "Graph_neighbors_count", "Graphdims_get",
}

func foldNames(calls map[string]*call) map[string]*call {
	folded := make(map[string]*call, len(calls))
	for name, c := range calls {
		folded[string(bytes.ToLower([]byte(name)))] = c
	}
	return folded
}

// lookUp returns the function with a name in the spelling of C or Fortran (MPI_Send, mpi_send, MPI_SEND,
// mpi_send_), or nil.
func lookUp(name []byte) *call {
	if c := calls[string(name)]; c != nil {
		return c
	}
	const longest = 40
	name = bytes.TrimRight(name, "_")
	if len(name) > longest {
		return nil
	}
	var folded [longest]byte
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		folded[i] = c
	}
	return callsFolded[string(folded[:len(name)])]
}
