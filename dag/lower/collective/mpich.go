package collective

// mpich models the default selection of MPICH 4.3 (maint/tuning/coll/mpir/generic.json) for communicators within one
// job, commutative built-in operations on elements of 8 bytes, and separate buffers. docs/reference/lowering.md lists
// the simplifications.
const mpich = "barrier=hierarchical;" +
	"bcast=binomial:ranks<8,binomial:<=12288,scatterrecdoubling:<=524288&pof2,scatterallgather;" +
	"reduce=binomial:<=2048,binomial:block<8,rabenseifner;" +
	"allreduce=recdoubling:<=8,recdoubling:block<8,rabenseifner;" +
	"gather=binomial;gatherv=linear;scatter=binomial;scatterv=linear;" +
	"allgather=recdoubling:<524288&pof2,bruck:<81920&!pof2,ring;" +
	"allgatherv=recdoubling:<524288&pof2,bruck:<81920&!pof2,ring;" +
	"alltoall=bruck:block<=256&ranks>=8,linear:block<=32768,pairwise;alltoallv=linear;" +
	"reducescatter=rechalving:<524288,pairwise;scan=recdoubling;exscan=recdoubling"
