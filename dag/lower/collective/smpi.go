package collective

// smpiMPICH models SMPI's collectives with the option smpi/coll-selector:mpich (SimGrid 3.32,
// src/smpi/colls/smpi_mpich_selector.cpp) for commutative operations. Allgatherv and reduce-scatter count elements, as
// the selector does; other decisions assume elements of 8 bytes.
// docs/reference/lowering.md lists how it differs from MPICH.
const smpiMPICH = "barrier=dissemination;bcast=relaybinomial:whole&!shared,blockbinomial:whole&pernode>=2," +
	"binomial:<12KiB,binomial:ranks<=8,scatterrecdoublingspread:<512KiB&evenranks,scatterallgatherup;" +
	"reduce=twolevel:whole&shared,binomial:<2KiB,binomial:block<8,rabenseifnernear;" +
	"allreduce=recdoubling:whole&!shared,twolevel:whole,recdoubling:leaders,recdoubling:<=2KiB,recdoubling:block<8," +
	"rabenseifnernear;gather=binomial;gatherv=nonblocking;" +
	"scatter=binomialascending;scatterv=nonblocking;allgather=recdoubling:<512KiB&pof2,bruck:<=80KiB,shift;" +
	"allgatherv=recdoubling:elements<524288&pof2,bruck:elements<=81920,ringsegments;" +
	"alltoall=bruck:block<256&ranks>=8,scattered:block<32KiB,shift;alltoallv=scattered;" +
	"reducescatter=recdoubling:elements<=524288,pairwise;scan=ordered;exscan=ordered"

// smpiOMPI models SMPI's collectives with the option smpi/coll-selector:ompi (SimGrid 3.32,
// src/smpi/colls/smpi_openmpi_selector.cpp) for commutative operations and elements of 8 bytes.
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
	"gather=linearsync:ranks<4&block<2,sequential:ranks<4&block<4,binomial:ranks<4&block<32KiB," +
	"sequential:ranks<4&block<64KiB,binomial:ranks<4&block<128KiB,linearsync:ranks<4,binomial:ranks<8&block<1KiB," +
	"sequential:ranks<8&block<8KiB,binomial:ranks<8&block<32KiB,sequential:ranks<8&block<256KiB," +
	"linearsync:ranks<8,binomial:ranks<256,binomial:ranks<512&block<2KiB,sequential:ranks<512&block<8KiB,binomial;" +
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
const smpiMVAPICH2 = "barrier=recdoublinghigh;bcast=" + smpiMVAPICH2Bcast + ";" + smpiMVAPICH2Reduce + ";" +
	"allreduce=recdoubling:ranks<=16&<=1KiB,rabenseifnernear:ranks<=16,recdoubling:ranks<=512&<=16KiB," +
	"rabenseifnernear:ranks<=512,recdoubling:ranks<=1024&<=8KiB,rabenseifnernear:ranks<=1024,recdoubling:<8KiB," +
	"recdoubling:ranks>=2048&<16KiB,recdoubling:ranks>=4096&<32KiB,rabenseifnernear;" +
	"gather=sequential:ranks<=16&block<=512KiB,binomial:ranks<=16,sequential:ranks<=32&block<=16KiB," +
	"binomial:ranks<=32&block<=128KiB,sequential;gatherv=nonblocking;scatter=binomialascending:ranks<=2," +
	"sequential:ranks<=32,binomialascending:block<=32,sequential;scatterv=nonblocking;allgather=shift:ranks<=2," +
	"recdoublingspread:ranks<=4&block<=256KiB,recdoublingspread:ranks<=16&block<=128KiB," +
	"recdoublingspread:ranks<=32&block<=64KiB,recdoublingspread:block<=32KiB,shift;" +
	"allgatherv=recdoubling:ranks<=32&blockup<=512,recdoubling:blockup<=256,ringsegments;" +
	"alltoall=pairwise:ranks<=2,scattered:ranks<=4&block<=256KiB,pairwise:ranks<=4," +
	"recdoublingspread:ranks<=8&block<=8,scattered:ranks<=8,recdoublingspread:ranks<=16&block<=64," +
	"bruck:ranks<=16&block<=512,scattered:ranks<=16,recdoublingspread:ranks<=32&block<=32," +
	"bruck:ranks<=32&block<=2KiB,scattered:ranks<=32,recdoublingspread:block<=8,bruck:block<=1KiB,scattered;" +
	"alltoallv=pairwise;reducescatter=linear:ranks<=32&<=64&even,recdoubling:ranks<=32&<=64," +
	"rechalvingbuffered:ranks<=16&<=64KiB,pairwise:ranks<=16,rechalvingbuffered:ranks<=32&<=128KiB," +
	"pairwise:ranks<=32,linear:ranks<=64&<=1KiB&even,recdoubling:ranks<=64&<=1KiB," +
	"rechalvingbuffered:ranks<=64&<=256KiB,pairwise:ranks<=64,linear:<=128&even,recdoubling:<=128," +
	"linear:ranks>256&<=256&even,recdoubling:ranks>256&<=256,rechalvingbuffered;scan=ordered;exscan=ordered"

// smpiMVAPICH2Bcast are the rules of smpiMVAPICH2 for bcast.
const smpiMVAPICH2Bcast = "binomial:<12KiB,binomial:ranks<=8&<=64KiB,binomial:ranks<=16&<=16KiB," +
	"scatterallgatherup:ranks<=16&>64KiB&<=256KiB,scatterrecdoublingspread:ranks<=16&>256KiB&<=512KiB," +
	"scatterallgatherup:ranks<=16&>512KiB,scatterallgatherup:ranks>128&ranks<=256&>128KiB&<=256KiB," +
	"scatterallgatherup:ranks>256&ranks<=512&>256KiB,scatterrecdoublingspread:<512KiB&evenranks,scatterallgatherup"

// smpiMVAPICH2Reduce is the part of smpiMVAPICH2 for reduce.
const smpiMVAPICH2Reduce = "reduce=knomialnonblocking:ranks<=16&<=256KiB,binomial:ranks<=16&<=1MiB," +
	"knomialnonblocking:ranks<=32&<=32KiB,binomial:ranks<=32&<=64KiB,knomialnonblocking:ranks<=32&<=256KiB," +
	"binomial:ranks<=32&<=1MiB,knomialnonblocking:ranks<=1024&<=16KiB,binomial:ranks<=128&<=64KiB," +
	"knomialnonblocking:ranks<=128&<=256KiB,rabenseifnernear:ranks<=64,binomial:ranks<=512&<=1MiB," +
	"rabenseifnernear:ranks<=512,knomialnonblocking:<=4KiB,binomial"

// smpiIMPI models SMPI's collectives with the option smpi/coll-selector:impi (SimGrid 3.32,
// src/smpi/colls/smpi_intel_mpi_selector.cpp) for one rank per host, commutative operations and elements of 8 bytes.
// docs/reference/lowering.md lists the simplifications.
const smpiIMPI = "barrier=recdoublinghigh:ranks<=2,fan:ranks<=4,fan:ranks<=8,recdoublinghigh:ranks<=64,fan;" +
	"bcast=relaychain(segment=8KiB):ranks<=2&>=402&<682,relaybinomial:ranks<=2&>=682&<1433," +
	"relaychain(segment=8KiB):ranks<=2&>=21845&<409897,binomial:ranks<=2&>=409897," +
	"relaychain(segment=8KiB):ranks>=5&ranks<=8&<3,relaychain(segment=8KiB):ranks>=5&ranks<=8&>=4&<25," +
	"relaychain(segment=8KiB):ranks>=5&ranks<=8&>=256&<682,relaychain(segment=8KiB):ranks>=5&ranks<=8&>=1264&<6655," +
	"relaychain(segment=8KiB):ranks>=5&ranks<=8&>=3998434," + smpiMVAPICH2Bcast + ";" + smpiMVAPICH2Reduce + ";" +
	"allreduce=ringremainder:ranks<=2&<6,recdoubling:ranks<=2&<85,ringremainder:ranks<=2&<192," +
	"recdoubling:ranks<=2&<853,ringremainder:ranks<=2&<1279,recdoubling:ranks<=2&<16684," +
	"ringremainder:ranks<=2&<34279,reducethenbcast:ranks<=2&<1681224,ringremainder:ranks<=2," +
	"ringremainder:ranks<=4&<16,recdoubling:ranks<=4&<47,ringremainder:ranks<=4&<2062,recdoubling:ranks<=4&<16699," +
	"ringremainder:ranks<=4&<70732,reducethenbcast:ranks<=4&<1300705,ringremainder:ranks<=4," +
	"recdoubling:ranks<=8&<36364,ringremainder:ranks<=8&<315710,reducethenbcast:ranks<=8&<3220366," +
	"ringremainder:ranks<=8,recdoubling:ranks<=16&<15505,halvingthenallgather:ranks<=16&<52730," +
	"ringremainder:ranks<=16&<563680,reducethenbcast:ranks<=16,recdoubling:<93784,halvingthenallgather:<817658," +
	"reducethenbcast;allgather=chosengatherthenbcast:ranks<=4&block<1,recdoublingspread:ranks<=4&block<384," +
	"chosengatherthenbcast:ranks<=4&block<1533,recdoublingspread:ranks<=4&block<3296," +
	"chosengatherthenbcast:ranks<=4&block<10763,shift:ranks<=4&block<31816," +
	"chosengatherthenbcast:ranks<=4&block<193343,shift:ranks<=4&block<405857," +
	"chosengatherthenbcast:ranks<=4&block<597626,shift:ranks<=4&block<1844323,chosengatherthenbcast:ranks<=4," +
	"chosengatherthenbcast:ranks<=8&block<12,recdoublingspread:ranks<=8&block<46," +
	"chosengatherthenbcast:ranks<=8&block<205,bruck:ranks<=8&block<3422,chosengatherthenbcast:ranks<=8&block<4200," +
	"recdoublingspread:ranks<=8&block<8748,shift:ranks<=8&block<24080,chosengatherthenbcast:ranks<=8&block<33244," +
	"recdoublingspread:ranks<=8&block<371159,shift:ranks<=8,chosengatherthenbcast:ranks<=16&block<3," +
	"recdoublingspread:ranks<=16&block<53,chosengatherthenbcast:ranks<=16&block<100," +
	"recdoublingspread:ranks<=16&block<170,chosengatherthenbcast:ranks<=16&block<6077," +
	"recdoublingspread:ranks<=16&block<127644,chosengatherthenbcast:ranks<=16&block<143741,shift:ranks<=16," +
	"recdoublingspread:block<184,chosengatherthenbcast:block<320,recdoublingspread:block<759," +
	"chosengatherthenbcast:block<1219,recdoublingspread:block<2633,chosengatherthenbcast:block<8259," +
	"recdoublingspread:block<123678,chosengatherthenbcast:block<160801,recdoublingspread:block<284341," +
	"chosengatherthenbcast;allgatherv=shift:ranks<=2&<259668,gatherthenbcast:ranks<=2&<635750,shift:ranks<=2," +
	"recdoublingspread:ranks<=4&<1,gatherthenbcast:ranks<=4&<5,recdoublingspread:ranks<=4&<46,bruck:ranks<=4&<2590," +
	"shift:ranks<=4&<1177259,gatherthenbcast:ranks<=4&<2767234,shift:ranks<=4,bruck:ranks<=8&<99," +
	"recdoublingspread:ranks<=8&<143,bruck:ranks<=8&<4646,shift:ranks<=8&<63522,gatherthenbcast:ranks<=8&<2187806," +
	"shift:ranks<=8,recdoublingspread:<1,gatherthenbcast:<5,recdoublingspread:<46,bruck:<2590,shift:<1177259," +
	"gatherthenbcast:<2767234,shift;alltoall=pairwise:ranks<=2,scattered:ranks<=4,scattered:ranks<=8," +
	"scattered:ranks<=16&block<84645,pairwise:ranks<=16&block<167570,scattered:ranks<=16,bruck:ranks<=32&block<61," +
	"scattered:ranks<=32&block<164,bruck:ranks<=32&block<696,scattered:ranks<=32&block<143254," +
	"pairwise:ranks<=32&block<387024,scattered:ranks<=32,bruck:ranks<=64&block<523,scattered:ranks<=64," +
	"bruck:block<628,scattered;alltoallv=ordered;reducescatter=linear:ranks<=2&<5&even," +
	"recdoubling:ranks<=2&<5&elements<=524288,pairwise:ranks<=2&<5,pairwise:ranks<=2&<522429," +
	"linear:ranks<=2&<1375877&even,recdoubling:ranks<=2&<1375877&elements<=524288,pairwise:ranks<=2&<1375877," +
	"pairwise:ranks<=2&<2932736,linear:ranks<=2&even,recdoubling:ranks<=2&elements<=524288,pairwise:ranks<=2," +
	"linear:ranks<=4&<4&even,recdoubling:ranks<=4&<4&elements<=524288,pairwise:ranks<=4&<4," +
	"rechalvingbuffered:ranks<=4&<15,recdoubling:ranks<=4&<120,rechalvingbuffered:ranks<=4&<651," +
	"recdoubling:ranks<=4&<12188,rechalvingbuffered:ranks<=4&<33890,pairwise:ranks<=4&<572117," +
	"linear:ranks<=4&<1410202&even,recdoubling:ranks<=4&<1410202&elements<=524288,pairwise:ranks<=4&<1410202," +
	"pairwise:ranks<=4,linear:ranks<=8&<4&even,recdoubling:ranks<=8&<4&elements<=524288,pairwise:ranks<=8&<4," +
	"rechalvingbuffered:ranks<=8&<2263,recdoubling:ranks<=8&<25007,rechalvingbuffered:ranks<=8&<34861," +
	"pairwise:ranks<=8&<169625,linear:ranks<=8&<2734000&even,recdoubling:ranks<=8&<2734000&elements<=524288," +
	"pairwise:ranks<=8&<2734000,pairwise:ranks<=8,linear:ranks<=16&<4&even," +
	"recdoubling:ranks<=16&<4&elements<=524288,pairwise:ranks<=16&<4,rechalvingbuffered:ranks<=16&<14228," +
	"recdoubling:ranks<=16&<46084,pairwise:ranks<=16&<522139,linear:ranks<=16&even," +
	"recdoubling:ranks<=16&elements<=524288,pairwise:ranks<=16,linear:ranks<=32&<4&even," +
	"recdoubling:ranks<=32&<4&elements<=524288,pairwise:ranks<=32&<4,rechalvingbuffered:ranks<=32&<27516," +
	"recdoubling:ranks<=32&<61693,pairwise:ranks<=32&<2483469,linear:ranks<=32&even," +
	"recdoubling:ranks<=32&elements<=524288,pairwise:ranks<=32,linear:ranks<=64&<4&even," +
	"recdoubling:ranks<=64&<4&elements<=524288,pairwise:ranks<=64&<4,rechalvingbuffered:ranks<=64&<100396," +
	"pairwise:ranks<=64,linear:<4&even,recdoubling:<4&elements<=524288,pairwise:<4,rechalvingbuffered:<186926," +
	"recdoubling:<278259,pairwise:<1500100,linear:even,recdoubling:elements<=524288,pairwise;" +
	"gather=sequential:ranks<=8&block<17561,binomial:ranks<=8&block<44791,sequential:ranks<=8&block<=512KiB," +
	"binomial:ranks<=8,sequential:ranks<=16&block<16932,binomial:ranks<=16&block<84425," +
	"sequential:ranks<=16&block<158363,binomial:ranks<=16,sequential:ranks<=32&block<=16KiB," +
	"sequential:ranks>32&block<47187,binomial:block<349696,sequential;scatter=binomialascending:ranks<=2," +
	"sequential:ranks<=4&block<16723,binomialascending:ranks<=4&block<153541,sequential:ranks<=4&block<425631," +
	"binomialascending:ranks<=4&block<794142,sequential:ranks<=4&block<1257027,binomialascending:ranks<=4," +
	"sequential:ranks<=8&block<2633,binomialascending:ranks<=8&block<6144,sequential:ranks<=8&block<14043," +
	"binomialascending:ranks<=8&block<24576,sequential:ranks<=8&block<107995," +
	"binomialascending:ranks<=8&block<1752729,sequential:ranks<=8,sequential:ranks<=16&block<2043," +
	"binomialascending:ranks<=16&block<2252,sequential:ranks<=16&block<17749," +
	"binomialascending:ranks<=16&block<106020,sequential:ranks<=16&block<628654," +
	"binomialascending:ranks<=16&block<3751354,sequential:ranks<=16,binomialascending:ranks>32&block<=32," +
	"sequential:block<65907,binomialascending:block<245132,sequential:block<1042439,binomialascending;" +
	"gatherv=nonblocking;scatterv=nonblocking;scan=ordered;exscan=ordered"

// smpiDefault models SMPI's collectives without the option smpi/coll-selector (SimGrid 3.32,
// src/smpi/colls/smpi_default_selector.cpp) for commutative operations on basic types.
// It has smpiMPICH's algorithms for reduce-scatters with different blocks.
const smpiDefault = "barrier=fan;bcast=binomial;reduce=nonblocking;allreduce=reducethenbcast;gather=nonblocking;" +
	"gatherv=nonblocking;scatter=nonblocking;scatterv=nonblocking;allgather=ordered;allgatherv=ordered;" +
	"alltoallv=ordered;reducescatter=linear:even,recdoubling:elements<=524288,pairwise;scan=ordered;" +
	"exscan=ordered;" + smpiAlltoall
