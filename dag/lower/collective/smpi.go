package collective

// smpiMPICH models SMPI's collectives with the option smpi/coll-selector:mpich (SimGrid 3.32,
// src/smpi/colls/smpi_mpich_selector.cpp) for one rank per host and commutative operations. Allgatherv and
// reduce-scatter count elements, as the selector does; other decisions assume elements of 8 bytes.
// docs/reference/lowering.md lists how it differs from MPICH.
const smpiMPICH = "barrier=dissemination;bcast=relaybinomial;reduce=binomial:<2KiB,binomial:block<8," +
	"rabenseifnernear;allreduce=recdoubling;gather=binomial;gatherv=nonblocking;" +
	"scatter=binomialascending;scatterv=nonblocking;allgather=recdoubling:<512KiB&pof2,bruck:<=80KiB,shift;" +
	"allgatherv=recdoubling:elements<524288&pof2,bruck:elements<=81920,ringsegments;" +
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
	"knomiallevels:ranks<32&<4KiB,binomial:ranks<32&<1MiB,scatterrecdoublingspread:ranks<32," +
	"binomial:ranks<64&<2KiB,knomiallevels:ranks<128,binomial:ranks<256&<2," +
	"relaybinary(segment=8KiB):ranks<256&<16KiB,relaychain(segment=8KiB):ranks<256&<32KiB," +
	"relaybinary(segment=8KiB):ranks<256&<64KiB,knomiallevels:ranks<256,knomiallevels:ranks<1024&<16KiB," +
	"binary:ranks<1024&<32KiB,knomiallevels:ranks<1024,knomiallevels:ranks<2048&<512KiB," +
	"scatterrecdoublingspread:ranks<2048,knomiallevels:ranks<4096&<256KiB,scatterrecdoublingspread:ranks<4096," +
	"knomiallevels:<8KiB,relaybinary(segment=8KiB):<16KiB,knomiallevels:<256KiB,scatterrecdoublingspread;" +
	"reduce=sequential:ranks<4&<8,binaryinterleaved:ranks<4&<16,chainbuffered:ranks<4&<32," +
	"sequential:ranks<4&<256KiB,chainbuffered(segment=64KiB):ranks<4,binaryinterleaved:ranks<8&<4KiB," +
	"chainbuffered(chains=2,segment=64KiB):ranks<6&<64KiB,chainbuffered(chains=3,segment=64KiB):ranks<8&<64KiB," +
	"binomialtuned:ranks<8&<256KiB,sequential:ranks<8&<512KiB,binomialtuned:ranks<8&<1MiB,sequential:ranks<8," +
	"binaryinterleaved:ranks<16&<8KiB,binomialtuned:ranks<16,binaryinterleaved:ranks<32&<4KiB,binomialtuned;" +
	"allreduce=reducethenbcast:ranks<4&<8,recdoubling:ranks<4&<4KiB,ringremainder:ranks<4&<8KiB," +
	"recdoubling:ranks<4&<16KiB,ringremainder:ranks<4&<256KiB,rabenseifnernear:ranks<4,reducethenbcast:ranks<8&<16," +
	"recdoubling:ranks<8&<8KiB,rabenseifnernear:ranks<8,recdoubling:ranks<16&<8KiB,rabenseifnernear:ranks<16," +
	"reducethenbcast:ranks<32&<64,recdoubling:ranks<32&<4KiB,rabenseifnernear:ranks<32," +
	"reducethenbcast:ranks<64&<128,rabenseifnernear:ranks<64,recdoubling:ranks<128&<256KiB," +
	"rabenseifnernear:ranks<128,reducethenbcast:ranks<256&<128KiB,recdoubling:ranks<256&<256KiB," +
	"rabenseifnernear:ranks<256,reducethenbcast:ranks<512&<4KiB,rabenseifnernear:ranks<512," +
	"reducethenbcast:ranks<2048&<2KiB,recdoubling:ranks<2048&<16KiB,rabenseifnernear:ranks<2048," +
	"reducethenbcast:ranks<4096&<4KiB,recdoubling:ranks<4096&<16KiB,rabenseifnernear:ranks<4096," +
	"reducethenbcast:<16KiB,recdoubling:<32KiB,rabenseifnernear;" +
	"gather=nonblocking:ranks<4&block<2,sequential:ranks<4&block<4,binomial:ranks<4&block<32KiB," +
	"sequential:ranks<4&block<64KiB,binomial:ranks<4&block<128KiB,nonblocking:ranks<4,binomial:ranks<8&block<1KiB," +
	"sequential:ranks<8&block<8KiB,binomial:ranks<8&block<32KiB,sequential:ranks<8&block<256KiB," +
	"nonblocking:ranks<8,binomial:ranks<256,binomial:ranks<512&block<2KiB,sequential:ranks<512&block<8KiB,binomial;" +
	"gatherv=nonblocking;scatterv=nonblocking;scatter=nonblocking:ranks<4&block<2,sequential:ranks<4&block<128KiB," +
	"nonblocking:ranks<4&block<256KiB,sequential:ranks<4,binomialascending:ranks<8&block<2KiB," +
	"sequential:ranks<8&block<4KiB,binomialascending:ranks<8&block<8KiB,sequential:ranks<8&block<32KiB," +
	"nonblocking:ranks<8&block<1MiB,sequential:ranks<8,binomialascending:ranks<16&block<16KiB," +
	"nonblocking:ranks<16&block<1MiB,sequential:ranks<16,binomialascending:ranks<32&block<16KiB," +
	"sequential:ranks<32&block<32KiB,nonblocking:ranks<32,binomialascending:ranks<64&block<512," +
	"nonblocking:ranks<64&block<8KiB,binomialascending:ranks<64&block<16KiB,nonblocking:ranks<64," +
	"binomialascending:block<512,nonblocking;allgather=shift:ranks<3,recdoublingspread:ranks<32," +
	"recdoublingspread:ranks<64&block<1KiB,shift:ranks<64&block<64KiB&!evenranks," +
	"neighborexchange:ranks<64&block<64KiB,shift:ranks<64,recdoublingspread:ranks<128&block<512," +
	"shift:ranks<128&block<64KiB&!evenranks,neighborexchange:ranks<128&block<64KiB,shift:ranks<128," +
	"recdoublingspread:ranks<256&block<512,shift:ranks<256&block<128KiB&!evenranks," +
	"neighborexchange:ranks<256&block<128KiB,shift:ranks<256&block<512KiB,shift:ranks<256&block<1MiB&!evenranks," +
	"neighborexchange:ranks<256&block<1MiB,shift:ranks<256,recdoublingspread:ranks<512&block<32," +
	"bruck:ranks<512&block<128,recdoublingspread:ranks<512&block<1KiB,shift:ranks<512&block<128KiB&!evenranks," +
	"neighborexchange:ranks<512&block<128KiB,shift:ranks<512&block<512KiB,shift:ranks<512&block<1MiB&!evenranks," +
	"neighborexchange:ranks<512&block<1MiB,shift:ranks<512,recdoublingspread:ranks<1024&block<64," +
	"bruck:ranks<1024&block<256,recdoublingspread:ranks<1024&block<2KiB,shift:ranks<1024&!evenranks," +
	"neighborexchange:ranks<1024,recdoublingspread:ranks<2048&block<4,bruck:ranks<2048&block<8," +
	"recdoublingspread:ranks<2048&block<16,bruck:ranks<2048&block<32,recdoublingspread:ranks<2048&block<256," +
	"bruck:ranks<2048&block<512,recdoublingspread:ranks<2048&block<4KiB,shift:ranks<2048&!evenranks," +
	"neighborexchange:ranks<2048,bruck:ranks<4096&block<32,recdoublingspread:ranks<4096&block<128," +
	"bruck:ranks<4096&block<512,recdoublingspread:ranks<4096&block<4KiB,shift:ranks<4096&!evenranks," +
	"neighborexchange:ranks<4096,recdoublingspread:block<2,bruck:block<8,recdoublingspread:block<16," +
	"bruck:block<512,recdoublingspread:block<4KiB,shift:!evenranks,neighborexchange;" +
	"allgatherv=shift:ranks<3,gatherthenbcast:ranks<8&block<256,shift:ranks<8&block<4KiB&!evenranks," +
	"neighborexchange:ranks<8&block<4KiB,ringsegments:ranks<8&block<8KiB,shift:ranks<8&block<16KiB&!evenranks," +
	"neighborexchange:ranks<8&block<16KiB,bruck:ranks<8&block<256KiB,shift:ranks<8&!evenranks," +
	"neighborexchange:ranks<8,gatherthenbcast:ranks<16&block<1KiB,bruck:ranks<16," +
	"gatherthenbcast:ranks<32&block<128,bruck:ranks<32&block<256KiB,ringsegments:ranks<32," +
	"gatherthenbcast:ranks<64&block<256,bruck:ranks<64&block<8KiB,ringsegments:ranks<64," +
	"gatherthenbcast:ranks<128&block<256,bruck:ranks<128&block<4KiB,ringsegments:ranks<128," +
	"bruck:ranks<256&block<1KiB,shift:ranks<256&block<64KiB&!evenranks,neighborexchange:ranks<256&block<64KiB," +
	"ringsegments:ranks<256,bruck:ranks<512&block<1KiB,ringsegments:ranks<512,bruck:ranks<1024&block<512," +
	"gatherthenbcast:ranks<1024&block<1KiB,bruck:ranks<1024&block<4KiB,shift:ranks<1024&block<1MiB&!evenranks," +
	"neighborexchange:ranks<1024&block<1MiB,ringsegments:ranks<1024,bruck:block<4KiB,shift:!evenranks," +
	"neighborexchange;alltoallv=pairwise:ranks<4,ordered:ranks<64,pairwise:ranks<128,ordered:ranks<256," +
	"pairwise:ranks<1024,ordered;reducescatter=ringbuffered:ranks<4&<64KiB,butterfly:ranks<4&<128KiB," +
	"ringbuffered:ranks<4,linear:ranks<8&<8,rechalvingbuffered:ranks<8&<256KiB,ringbuffered:ranks<8," +
	"rechalvingbuffered:ranks<32&<256KiB,ringbuffered:ranks<32,linear:ranks<64&<64," +
	"rechalvingbuffered:ranks<64&<2KiB,butterfly:ranks<64&<512KiB,ringbuffered:ranks<64,linear:ranks<128&<256," +
	"rechalvingbuffered:ranks<128&<512,butterfly:ranks<128&<2KiB,rechalvingbuffered:ranks<128&<4KiB," +
	"butterfly:ranks<128,linear:ranks<512&<256,rechalvingbuffered:ranks<256&<512,butterfly:ranks<256," +
	"rechalvingbuffered:ranks<512&<1KiB,butterfly:ranks<512,linear:ranks<4096&<512," +
	"rechalvingbuffered:ranks<1024&<2KiB,butterfly:ranks<1024&<8KiB,rechalvingbuffered:ranks<1024&<16KiB," +
	"butterfly:ranks<1024,rechalvingbuffered:ranks<4096&<4KiB,butterfly:ranks<2048&<16KiB," +
	"rechalvingbuffered:ranks<2048&<32KiB,butterfly:ranks<4096,linear:<1KiB,rechalvingbuffered:<8KiB,butterfly;" +
	"scan=ordered;exscan=ordered;" + smpiAlltoall

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

// smpiMVAPICH2 models SMPI's collectives with the option smpi/coll-selector:mvapich2 (SimGrid 3.32,
// src/smpi/colls/smpi_mvapich2_selector.cpp and smpi_mvapich2_selector_stampede.hpp) for one rank per host and
// commutative operations.
const smpiMVAPICH2 = "barrier=recdoublinghigh;bcast=binomial:<12KiB,binomial:ranks<=8&<=64KiB," +
	"binomial:ranks<=16&<=16KiB,scatterallgather:ranks<=16&>64KiB&<=256KiB," +
	"scatterrecdoublingspread:ranks<=16&>256KiB&<=512KiB,scatterallgather:ranks<=16&>512KiB," +
	"scatterallgather:ranks>128&ranks<=256&>128KiB&<=256KiB,scatterallgather:ranks>256&ranks<=512&>256KiB," +
	"scatterrecdoublingspread:<512KiB&evenranks,scatterallgather;" +
	"reduce=knomialnonblocking:ranks<=16&<=256KiB,binomial:ranks<=16&<=1MiB,knomialnonblocking:ranks<=32&<=32KiB," +
	"binomial:ranks<=32&<=64KiB,knomialnonblocking:ranks<=32&<=256KiB,binomial:ranks<=32&<=1MiB," +
	"knomialnonblocking:ranks<=1024&<=16KiB,binomial:ranks<=128&<=64KiB,knomialnonblocking:ranks<=128&<=256KiB," +
	"rabenseifnernear:ranks<=64,binomial:ranks<=512&<=1MiB,rabenseifnernear:ranks<=512,knomialnonblocking:<=4KiB," +
	"binomial;allreduce=recdoubling:ranks<=16&<=1KiB,rabenseifnernear:ranks<=16,recdoubling:ranks<=512&<=16KiB," +
	"rabenseifnernear:ranks<=512,recdoubling:ranks<=1024&<=8KiB,rabenseifnernear:ranks<=1024,recdoubling:<8KiB," +
	"recdoubling:ranks>=2048&<16KiB,recdoubling:ranks>=4096&<32KiB,rabenseifnernear;" +
	"gather=sequential:ranks<=16&block<=512KiB,binomial:ranks<=16,sequential:ranks<=32&block<=16KiB," +
	"binomial:ranks<=32&block<=128KiB,sequential;gatherv=nonblocking;" +
	"scatter=binomialascending:ranks<=2,sequential:ranks<=32,binomialascending:block<=32,sequential;" +
	"scatterv=nonblocking;allgather=shift:ranks<=2,recdoublingspread:ranks<=4&block<=256KiB," +
	"recdoublingspread:ranks<=16&block<=128KiB,recdoublingspread:ranks<=32&block<=64KiB," +
	"recdoublingspread:block<=32KiB,shift;allgatherv=recdoubling:ranks<=32&blockup<=512,recdoubling:blockup<=256," +
	"ringsegments;alltoall=pairwise:ranks<=2,scattered:ranks<=4&block<=256KiB,pairwise:ranks<=4," +
	"recdoublingspread:ranks<=8&block<=8,scattered:ranks<=8,recdoublingspread:ranks<=16&block<=64," +
	"bruck:ranks<=16&block<=512,scattered:ranks<=16,recdoublingspread:ranks<=32&block<=32," +
	"bruck:ranks<=32&block<=2KiB,scattered:ranks<=32,recdoublingspread:block<=8,bruck:block<=1KiB,scattered;" +
	"alltoallv=pairwise;reducescatter=linear:ranks<=32&<=64&even,recdoubling:ranks<=32&<=64," +
	"rechalvingbuffered:ranks<=16&<=64KiB,pairwise:ranks<=16,rechalvingbuffered:ranks<=32&<=128KiB," +
	"pairwise:ranks<=32,linear:ranks<=64&<=1KiB&even,recdoubling:ranks<=64&<=1KiB," +
	"rechalvingbuffered:ranks<=64&<=256KiB,pairwise:ranks<=64,linear:<=128&even,recdoubling:<=128," +
	"linear:ranks>256&<=256&even,recdoubling:ranks>256&<=256,rechalvingbuffered;" +
	"scan=ordered;exscan=ordered"

// smpiDefault models SMPI's collectives without the option smpi/coll-selector (SimGrid 3.32,
// src/smpi/colls/smpi_default_selector.cpp) for commutative operations on basic types.
// It has smpiMPICH's algorithms for reduce-scatters with different blocks.
const smpiDefault = "barrier=fan;bcast=binomial;reduce=nonblocking;allreduce=reducethenbcast;gather=nonblocking;" +
	"gatherv=nonblocking;scatter=nonblocking;scatterv=nonblocking;allgather=ordered;allgatherv=ordered;" +
	"alltoallv=ordered;reducescatter=linear:even,recdoubling:elements<=524288,pairwise;scan=ordered;" +
	"exscan=ordered;" + smpiAlltoall
