package collective

// smpiMPICH models SMPI's collectives with the option smpi/coll-selector:mpich (SimGrid 3.32,
// src/smpi/colls/smpi_mpich_selector.cpp) for one rank per host and commutative operations. Allgatherv and
// reduce-scatter count elements, as the selector does; other decisions assume elements of 8 bytes.
// docs/reference/lowering.md lists how it differs from MPICH.
const smpiMPICH = "barrier=dissemination;bcast=relaybinomial;reduce=binomial:<2KiB,binomial:block<8," +
	"rabenseifnernear;allreduce=recdoubling;gather=binomial;gatherv=nonblocking;" +
	"scatter=binomialascending;scatterv=nonblocking;allgather=recdoubling:<512KiB&pof2,bruck:<=80KiB,shift;" +
	"allgatherv=recdoubling:elements<524288&pof2,bruck:elements<=81920,ring;" +
	"alltoall=bruck:block<256&ranks>=8,scattered:block<32KiB,shift;alltoallv=scattered;" +
	"reducescatter=recdoubling:elements<=524288,pairwise;scan=ordered;exscan=ordered"

// smpiOMPI models SMPI's collectives with the option smpi/coll-selector:ompi (SimGrid 3.32,
// src/smpi/colls/smpi_openmpi_selector.cpp) for one rank per host, commutative operations and elements of 8 bytes.
// docs/reference/lowering.md lists how it differs from Open MPI.
const smpiOMPI = "barrier=recdoublinghigh:ranks<4,fan:ranks<8,recdoublinghigh:ranks<64,dissemination:ranks<256," +
	"binomial:ranks<512,dissemination:ranks<1024,binomial:ranks<4096,dissemination;" +
	"bcast=chainnonblocking(segment=128KiB):ranks<4&<32,relaybinary(segment=8KiB):ranks<4&<256," +
	"chainnonblocking(segment=128KiB):ranks<4&<512,knomiallevels:ranks<4&<1KiB," +
	"relaychain(segment=8KiB):ranks<4&<32KiB,relaybinary(segment=8KiB):ranks<4&<128KiB," +
	"chainnonblocking(segment=128KiB):ranks<3&<256KiB,chainnonblocking(segment=16KiB):ranks<4&<256KiB," +
	"relaychain(segment=8KiB):ranks<4&<512KiB,binomial:ranks<4&<1MiB,relaybinary(segment=8KiB):ranks<4," +
	"relaybinary:ranks<8&<64,binomial:ranks<8&<128,relaybinary:ranks<8&<2KiB,binomial:ranks<8&<8KiB," +
	"relaychain(segment=8KiB):ranks<8&<1MiB,chainnonblocking(segment=16KiB):ranks<5&<1171316," +
	"chainnonblocking(segment=16KiB):ranks<6&ranks>=5&<1613819," +
	"chainnonblocking(segment=64KiB):ranks<6&ranks>=5&<1791125," +
	"chainnonblocking(segment=16KiB):ranks<7&ranks>=6&<2036108," +
	"chainnonblocking(segment=64KiB):ranks<7&ranks>=6&<2410927," +
	"chainnonblocking(segment=16KiB):ranks<8&ranks>=7&<2458507," +
	"chainnonblocking(segment=64KiB):ranks<8&ranks>=7&<3030730,chainnonblocking(segment=128KiB):ranks<8," +
	"knomiallevels:ranks<16&<8,relaybinary:ranks<16&<64,knomiallevels:ranks<16&<4KiB," +
	"relaybinary(segment=8KiB):ranks<16&<16KiB,binomial:ranks<16&<32KiB,relaychain(segment=8KiB):ranks<16," +
	"knomiallevels:ranks<32&<4KiB,binomial:ranks<32&<1MiB,scatterrecdoubling:ranks<32,binomial:ranks<64&<2KiB," +
	"knomiallevels:ranks<128,binomial:ranks<256&<2,relaybinary(segment=8KiB):ranks<256&<16KiB," +
	"relaychain(segment=8KiB):ranks<256&<32KiB,relaybinary(segment=8KiB):ranks<256&<64KiB,knomiallevels:ranks<256," +
	"knomiallevels:ranks<1024&<16KiB,binary:ranks<1024&<32KiB,knomiallevels:ranks<1024," +
	"knomiallevels:ranks<2048&<512KiB,scatterrecdoubling:ranks<2048,knomiallevels:ranks<4096&<256KiB," +
	"scatterrecdoubling:ranks<4096,knomiallevels:<8KiB,relaybinary(segment=8KiB):<16KiB,knomiallevels:<256KiB," +
	"scatterrecdoubling;reduce=sequential:ranks<4&<8,binaryinterleaved:ranks<4&<16,chainbuffered:ranks<4&<32," +
	"sequential:ranks<4&<256KiB,chainbuffered(segment=64KiB):ranks<4,binaryinterleaved:ranks<8&<4KiB," +
	"chainbuffered(chains=2,segment=64KiB):ranks<6&<64KiB,chainbuffered(chains=3,segment=64KiB):ranks<8&<64KiB," +
	"binomialtuned:ranks<8&<256KiB,sequential:ranks<8&<512KiB,binomialtuned:ranks<8&<1MiB,sequential:ranks<8," +
	"binaryinterleaved:ranks<16&<8KiB,binomialtuned:ranks<16,binaryinterleaved:ranks<32&<4KiB,binomialtuned;" +
	"allreduce=reducethenbcast:ranks<4&<8,recdoubling:ranks<4&<4KiB,ring:ranks<4&<8KiB,recdoubling:ranks<4&<16KiB," +
	"ring:ranks<4&<256KiB,rabenseifnernear:ranks<4,reducethenbcast:ranks<8&<16,recdoubling:ranks<8&<8KiB," +
	"rabenseifnernear:ranks<8,recdoubling:ranks<16&<8KiB,rabenseifnernear:ranks<16,reducethenbcast:ranks<32&<64," +
	"recdoubling:ranks<32&<4KiB,rabenseifnernear:ranks<32,reducethenbcast:ranks<64&<128,rabenseifnernear:ranks<64," +
	"recdoubling:ranks<128&<256KiB,rabenseifnernear:ranks<128,reducethenbcast:ranks<256&<128KiB," +
	"recdoubling:ranks<256&<256KiB,rabenseifnernear:ranks<256,reducethenbcast:ranks<512&<4KiB," +
	"rabenseifnernear:ranks<512,reducethenbcast:ranks<2048&<2KiB,recdoubling:ranks<2048&<16KiB," +
	"rabenseifnernear:ranks<2048,reducethenbcast:ranks<4096&<4KiB,recdoubling:ranks<4096&<16KiB," +
	"rabenseifnernear:ranks<4096,reducethenbcast:<16KiB,recdoubling:<32KiB,rabenseifnernear;" +
	"gather=nonblocking:ranks<4&block<2,sequential:ranks<4&block<4,binomial:ranks<4&block<32KiB," +
	"sequential:ranks<4&block<64KiB,binomial:ranks<4&block<128KiB,nonblocking:ranks<4,binomial:ranks<8&block<1KiB," +
	"sequential:ranks<8&block<8KiB,binomial:ranks<8&block<32KiB,sequential:ranks<8&block<256KiB,nonblocking:ranks<8," +
	"binomial:ranks<256,binomial:ranks<512&block<2KiB,sequential:ranks<512&block<8KiB,binomial;gatherv=nonblocking;" +
	"scatterv=nonblocking;scatter=nonblocking:ranks<4&block<2,sequential:ranks<4&block<128KiB," +
	"nonblocking:ranks<4&block<256KiB,sequential:ranks<4,binomialascending:ranks<8&block<2KiB," +
	"sequential:ranks<8&block<4KiB,binomialascending:ranks<8&block<8KiB,sequential:ranks<8&block<32KiB," +
	"nonblocking:ranks<8&block<1MiB,sequential:ranks<8,binomialascending:ranks<16&block<16KiB," +
	"nonblocking:ranks<16&block<1MiB,sequential:ranks<16,binomialascending:ranks<32&block<16KiB," +
	"sequential:ranks<32&block<32KiB,nonblocking:ranks<32,binomialascending:ranks<64&block<512," +
	"nonblocking:ranks<64&block<8KiB,binomialascending:ranks<64&block<16KiB,nonblocking:ranks<64," +
	"binomialascending:block<512,nonblocking;allgather=shift:ranks<3,recdoublingspread:ranks<32," +
	"recdoublingspread:ranks<64&block<1KiB,neighborexchange:ranks<64&block<64KiB,shift:ranks<64," +
	"recdoublingspread:ranks<128&block<512,neighborexchange:ranks<128&block<64KiB,shift:ranks<128," +
	"recdoublingspread:ranks<256&block<512,neighborexchange:ranks<256&block<128KiB,shift:ranks<256&block<512KiB," +
	"neighborexchange:ranks<256&block<1MiB,shift:ranks<256,recdoublingspread:ranks<512&block<32," +
	"bruck:ranks<512&block<128,recdoublingspread:ranks<512&block<1KiB,neighborexchange:ranks<512&block<128KiB," +
	"shift:ranks<512&block<512KiB,neighborexchange:ranks<512&block<1MiB,shift:ranks<512," +
	"recdoublingspread:ranks<1024&block<64,bruck:ranks<1024&block<256,recdoublingspread:ranks<1024&block<2KiB," +
	"neighborexchange:ranks<1024,recdoublingspread:ranks<2048&block<4,bruck:ranks<2048&block<8," +
	"recdoublingspread:ranks<2048&block<16,bruck:ranks<2048&block<32,recdoublingspread:ranks<2048&block<256," +
	"bruck:ranks<2048&block<512,recdoublingspread:ranks<2048&block<4KiB,neighborexchange:ranks<2048," +
	"bruck:ranks<4096&block<32,recdoublingspread:ranks<4096&block<128,bruck:ranks<4096&block<512," +
	"recdoublingspread:ranks<4096&block<4KiB,neighborexchange:ranks<4096,recdoublingspread:block<2,bruck:block<8," +
	"recdoublingspread:block<16,bruck:block<512,recdoublingspread:block<4KiB,neighborexchange;" +
	"allgatherv=ring:ranks<3,gatherthenbcast:ranks<8&block<256,neighborexchange:ranks<8&block<4KiB," +
	"ring:ranks<8&block<8KiB,neighborexchange:ranks<8&block<16KiB,bruck:ranks<8&block<256KiB," +
	"neighborexchange:ranks<8,gatherthenbcast:ranks<16&block<1KiB,bruck:ranks<16,gatherthenbcast:ranks<32&block<128," +
	"bruck:ranks<32&block<256KiB,ring:ranks<32,gatherthenbcast:ranks<64&block<256,bruck:ranks<64&block<8KiB," +
	"ring:ranks<64,gatherthenbcast:ranks<128&block<256,bruck:ranks<128&block<4KiB,ring:ranks<128," +
	"bruck:ranks<256&block<1KiB,neighborexchange:ranks<256&block<64KiB,ring:ranks<256,bruck:ranks<512&block<1KiB," +
	"ring:ranks<512,bruck:ranks<1024&block<512,gatherthenbcast:ranks<1024&block<1KiB,bruck:ranks<1024&block<4KiB," +
	"neighborexchange:ranks<1024&block<1MiB,ring:ranks<1024,bruck:block<4KiB,neighborexchange;" +
	"alltoallv=pairwise:ranks<4,ordered:ranks<64,pairwise:ranks<128,ordered:ranks<256,pairwise:ranks<1024,ordered;" +
	"reducescatter=ringbuffered:ranks<4&<64KiB,butterfly:ranks<4&<128KiB,ringbuffered:ranks<4,linear:ranks<8&<8," +
	"rechalving:ranks<8&<256KiB,ringbuffered:ranks<8,rechalving:ranks<32&<256KiB,ringbuffered:ranks<32," +
	"linear:ranks<64&<64,rechalving:ranks<64&<2KiB,butterfly:ranks<64&<512KiB,ringbuffered:ranks<64," +
	"linear:ranks<128&<256,rechalving:ranks<128&<512,butterfly:ranks<128&<2KiB,rechalving:ranks<128&<4KiB," +
	"butterfly:ranks<128,linear:ranks<512&<256,rechalving:ranks<256&<512,butterfly:ranks<256," +
	"rechalving:ranks<512&<1KiB,butterfly:ranks<512,linear:ranks<4096&<512,rechalving:ranks<1024&<2KiB," +
	"butterfly:ranks<1024&<8KiB,rechalving:ranks<1024&<16KiB,butterfly:ranks<1024,rechalving:ranks<4096&<4KiB," +
	"butterfly:ranks<2048&<16KiB,rechalving:ranks<2048&<32KiB,butterfly:ranks<4096,linear:<1KiB,rechalving:<8KiB," +
	"butterfly;scan=ordered;exscan=ordered;" + smpiAlltoall

// smpiAlltoall is the part of smpiOMPI for alltoall, which SMPI's default selection shares.
const smpiAlltoall = "alltoall=pairwise:ranks<3&block<2,linearreverse:ranks<3&block<4,pairwise:ranks<3&block<16," +
	"linearreverse:ranks<3&block<64,pairwise:ranks<3&block<256,linearreverse:ranks<3&block<4KiB," +
	"pairwise:ranks<3&block<32KiB,linearreverse:ranks<3&block<1MiB,pairwise:ranks<3," +
	"linearreverse:ranks<8&block<512KiB,pairwise:ranks<8&block<1MiB,linearreverse:ranks<16," +
	"linearreverse:ranks<32&block<4,bruck:ranks<32&block<512,linearreverse:ranks<32,bruck:ranks<64&block<512," +
	"linearreverse:ranks<64,bruck:ranks<256&block<1KiB,linearreverse:ranks<256&block<256KiB,pairwise:ranks<256," +
	"bruck:ranks<512&block<1KiB,linearreverse:ranks<512&block<32KiB,pairwise:ranks<512,bruck:ranks<1024&block<512," +
	"linearreverse:ranks<1024&block<256KiB,pairwise:ranks<1024,bruck:ranks<2048&block<512,linearreverse:ranks<2048," +
	"bruck:ranks<4096&block<1KiB,linearreverse:ranks<4096,bruck:block<2KiB,linearreverse"

// smpiDefault models SMPI's collectives without the option smpi/coll-selector (SimGrid 3.32,
// src/smpi/colls/smpi_default_selector.cpp) for commutative operations on basic types.
// It has smpiMPICH's algorithms for reduce-scatters with different blocks.
const smpiDefault = "barrier=fan;bcast=binomial;reduce=nonblocking;allreduce=reducethenbcast;gather=nonblocking;" +
	"gatherv=nonblocking;scatter=nonblocking;scatterv=nonblocking;allgather=ordered;allgatherv=ordered;" +
	"alltoallv=ordered;reducescatter=linear:even,recdoubling:elements<=524288,pairwise;scan=ordered;" +
	"exscan=ordered;" + smpiAlltoall
