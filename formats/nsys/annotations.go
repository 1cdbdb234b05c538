// This file parses the texts of the NVTX annotations of an NCCL patched for ATLAHS. docs/reference/formats/nsys.md
// has the grammar.

package nsys

import (
	"fmt"
	"math"
	"strings"
)

// annotationKind is the kind of an annotation.
type annotationKind uint8

const (
	noAnnotation         annotationKind = iota // any other text
	annotationInit                             // a communicator is created
	annotationRing                             // neighbours in a ring of a communicator
	annotationTree                             // neighbours in a tree of a communicator
	annotationCall                             // call of NCCL for a collective, a send or a receive
	annotationGroupStart                       // ncclGroupStart
	annotationGroupEnd                         // ncclGroupEnd
	annotationColl                             // execution of a collective
	annotationChannel                          // part of a channel in it
	annotationPiece                            // piece of a send or receive
	annotationLaunch                           // launch of a kernel
	annotationStart                            // start of the profiled part
	annotationStop                             // end of the profiled part
)

// opKind is an operation of NCCL, with the numbers of NCCL's own annotations if they exist.
type opKind uint8

const (
	opBroadcast opKind = iota
	opReduce
	opAllGather
	opReduceScatter
	opAllReduce
	opSend
	opRecv
	numOps
)

// opNames are the names in NCCL's functions and kernels.
var opNames = [numOps]string{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "Send", "Recv"}

func (k opKind) String() string { return opNames[k] }

// p2p reports whether the operation has a partner.
func (k opKind) p2p() bool { return k >= opSend }

// Algorithms and protocols, with their numbers in annotations.
const (
	algoTree = 0
	algoRing = 1
	protoLL  = 0
	protoSim = 2
)

var (
	algoNames  = []string{"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree"}
	protoNames = []string{"ll", "ll128", "simple"}
)

// annotation is the fields of a parsed annotation. The kind determines the fields that are set.
type annotation struct {
	kind    annotationKind
	op      opKind // call, coll, piece
	pid     int64
	comm    uint64 // hash of the communicator; in older revisions of the annotations its address
	also    uint64 // init: its address or hash, if the annotation has both; else 0
	id      uint64 // init: id common to all ranks
	rank    int32  // init, ring, tree
	nranks  int32  // init
	channel int32  // ring, tree
	prev    int32  // ring
	next    int32  // ring; tree: the parent, -1: none
	down    [3]int32
	stream  uint64 // call, coll: address of the stream; 0: the null stream
	bytes   int64  // call, coll, piece
	peer    int32  // coll: the root; piece: the partner; call: either

	algo, proto                      uint8
	typeSize                         int64 // call, coll
	chunkSize                        int64 // coll, piece
	chunkSteps, sliceSteps, stepSize int64 // coll

	warps, count, chunkCount, workCount, lastChunk int64 // channel
	sendBuffer, recvBuffer                         uint64
	buffers                                        bool // whether the annotation has buffers
}

// parseAnnotation parses the text of an annotation into n. It returns an error if the text begins like an
// annotation but is malformed. Any other text is noAnnotation.
func parseAnnotation(text string, n *annotation) error {
	if len(text) == 0 {
		n.kind = noAnnotation
		return nil
	}
	*n = annotation{}
	p := annotationParser{text: text}
	switch text[0] {
	case 'c':
		switch {
		case strings.HasPrefix(text, "collType ") && digitAt(text, 9):
			p.coll(n)
		case strings.HasPrefix(text, "commHash 0x") || strings.HasPrefix(text, "comm 0x"):
			p.communicator(n)
		}
	case 'n':
		switch {
		case strings.HasPrefix(text, "nWarps ") && digitAt(text, 7):
			p.element(n)
		case strings.HasPrefix(text, "nccl"):
			p.function(n)
		case strings.HasPrefix(text, "nsys profiling start"):
			n.kind = annotationStart
			p.literal("nsys profiling start, pid: ")
			n.pid = p.number()
		case strings.HasPrefix(text, "nsys profiling stopped"):
			n.kind = annotationStop
			p.literal("nsys profiling stopped, pid: ")
			n.pid = p.number()
		}
	case 'B':
		if strings.HasPrefix(text, "Bytes ") && digitAt(text, 6) && strings.Contains(text, " nWarps ") {
			p.piece(n)
		}
	}
	if n.kind == noAnnotation {
		return nil
	}
	if p.expected == "" && p.at < len(text) {
		p.fail("the end of the annotation")
	}
	if p.expected != "" {
		return fmt.Errorf("annotation %q: expected %s at byte %d", text, p.expected, p.at)
	}
	return nil
}

func digitAt(text string, i int) bool {
	return i < len(text) && text[i]-'0' <= 9
}

// annotationParser parses an annotation sequentially. After the first error it does nothing.
type annotationParser struct {
	text     string
	at       int
	expected string // at the first error; "": none
}

func (p *annotationParser) fail(expected string) {
	if p.expected == "" {
		p.expected = expected
	}
}

// literal skips the required text s.
func (p *annotationParser) literal(s string) {
	if p.expected == "" && !p.maybe(s) {
		p.fail(fmt.Sprintf("%q", s))
	}
}

// maybe skips s if it is next.
func (p *annotationParser) maybe(s string) bool {
	if p.expected != "" || !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

// number parses a decimal number of 0..2^63-1.
func (p *annotationParser) number() int64 {
	v := p.unsigned()
	if v > math.MaxInt64 {
		p.fail("a number below 2^63")
		return 0
	}
	return int64(v)
}

// field is literal and number.
func (p *annotationParser) field(name string) int64 {
	p.literal(name)
	return p.number()
}

func (p *annotationParser) unsigned() uint64 {
	if p.expected != "" {
		return 0
	}
	v, start := uint64(0), p.at
	for p.at < len(p.text) {
		d := uint64(p.text[p.at] - '0')
		if d > 9 {
			break
		}
		if v > math.MaxUint64/10 || v == math.MaxUint64/10 && d > math.MaxUint64%10 {
			p.fail("a number below 2^64")
			return 0
		}
		v = v*10 + d
		p.at++
	}
	if p.at == start {
		p.fail("a number")
	}
	return v
}

// rank parses a number of -1 (none) to 2^31-1.
func (p *annotationParser) rank() int32 {
	if p.maybe("-1") {
		return -1
	}
	v := p.unsigned()
	if v > math.MaxInt32 {
		p.fail("a number below 2^31")
		return 0
	}
	return int32(v)
}

// small parses a number below n.
func (p *annotationParser) small(n int) uint8 {
	v := p.unsigned()
	if p.expected == "" && v >= uint64(n) {
		p.fail(fmt.Sprintf("a number below %d", n))
		return 0
	}
	return uint8(v)
}

// pointer parses 0x and hexadecimal digits, or (nil).
func (p *annotationParser) pointer() uint64 {
	if p.maybe("(nil)") {
		return 0
	}
	p.literal("0x")
	if p.expected != "" {
		return 0
	}
	v, start := uint64(0), p.at
	for p.at < len(p.text) {
		c := p.text[p.at]
		var d byte
		switch {
		case c-'0' <= 9:
			d = c - '0'
		case c-'a' <= 5:
			d = c - 'a' + 10
		case c-'A' <= 5:
			d = c - 'A' + 10
		default:
			d = 16
		}
		if d == 16 {
			break
		}
		if v>>60 != 0 {
			p.fail("at most 16 hexadecimal digits")
			return 0
		}
		v = v<<4 | uint64(d)
		p.at++
	}
	if p.at == start {
		p.fail("hexadecimal digits")
	}
	return v
}

// commName parses the name of a communicator: a hash, in older revisions an address, or both.
func (p *annotationParser) commName(n *annotation) {
	if p.maybe("comm ") {
		n.comm = p.pointer()
		if p.maybe(" commHash ") {
			n.also = p.pointer()
		}
		return
	}
	p.literal("commHash ")
	n.comm = p.pointer()
}

func (p *annotationParser) pid(n *annotation, before string) {
	p.literal(before)
	n.pid = p.number()
}

// communicator parses the annotations that begin with the name of a communicator.
func (p *annotationParser) communicator(n *annotation) {
	p.commName(n)
	switch {
	case p.maybe(" commId "):
		n.kind = annotationInit
		n.id = p.pointer()
		p.literal(" rank ")
		n.rank = p.rank()
		p.literal(" nranks ")
		n.nranks = p.rank()
		if p.expected == "" && (n.rank < 0 || n.rank >= n.nranks) {
			p.fail(fmt.Sprintf("a rank below %d before", n.nranks))
		}
	case p.maybe(" Rings ["):
		n.kind = annotationRing
		n.channel = p.rank()
		p.literal("] ")
		n.prev = p.rank()
		p.literal("->")
		n.rank = p.rank()
		p.literal("->")
		n.next = p.rank()
	case p.maybe(" Trees ["):
		n.kind = annotationTree
		n.channel = p.rank()
		p.literal("] ")
		n.down[0] = p.rank()
		p.literal("/")
		n.down[1] = p.rank()
		p.literal("/")
		n.down[2] = p.rank()
		p.literal("->")
		n.rank = p.rank()
		p.literal("->")
		n.next = p.rank()
	default:
		return
	}
	if n.channel < 0 || n.channel >= maxChannels {
		p.fail(fmt.Sprintf("a channel below %d before", maxChannels))
	}
	p.pid(n, " pid ")
}

// maxChannels is a limit above NCCL's own.
const maxChannels = 256

// function parses the annotations of calls of NCCL's functions.
func (p *annotationParser) function(n *annotation) {
	name, _, ok := strings.Cut(p.text[len("nccl"):], "(): ")
	if !ok {
		return
	}
	p.at = len("nccl") + len(name) + len("(): ")
	switch name {
	case "GroupStart":
		n.kind = annotationGroupStart
	case "GroupEnd":
		n.kind = annotationGroupEnd
	case "LaunchKernel":
		n.kind = annotationLaunch
	default:
		for op, known := range opNames {
			if name == known {
				n.op = opKind(op)
				p.call(n)
			}
		}
		return
	}
	p.pid(n, "pid ")
}

func (p *annotationParser) call(n *annotation) {
	n.kind = annotationCall
	p.commName(n)
	p.literal(", stream ")
	n.stream = p.pointer()
	n.bytes = p.field(", data_size ")
	n.typeSize = p.field(", type_size ")
	if p.maybe(", red_op ") {
		p.number()
	}
	switch n.op {
	case opBroadcast, opReduce:
		p.literal(", root ")
		n.peer = p.rank()
	case opSend:
		p.literal(", receiver_rank ")
		n.peer = p.rank()
	case opRecv:
		p.literal(", sender_rank ")
		n.peer = p.rank()
	}
	p.pid(n, ", pid ")
}

func (p *annotationParser) coll(n *annotation) {
	n.kind = annotationColl
	p.literal("collType ")
	n.op = opKind(p.small(int(opSend)))
	p.literal(" root ")
	n.peer = p.rank()
	p.field(" redOp ")
	p.literal(" algo ")
	n.algo = p.small(len(algoNames))
	p.literal(" proto ")
	n.proto = p.small(len(protoNames))
	p.literal(" ")
	p.commName(n)
	p.literal(" stream ")
	n.stream = p.pointer()
	n.bytes = p.field(" data_size ")
	n.typeSize = p.field(" type_size ")
	n.chunkSize = p.field(" chunkSize ")
	n.chunkCount = p.field(" chunkCount ")
	n.chunkSteps = p.field(" chunkSteps ")
	n.sliceSteps = p.field(" sliceSteps ")
	n.stepSize = p.field(" stepSize ")
	p.pid(n, " pid ")
}

func (p *annotationParser) element(n *annotation) {
	n.kind = annotationChannel
	n.warps = p.field("nWarps ")
	n.count = p.field(" count ")
	n.chunkCount = p.field(" chunkCount ")
	n.workCount = p.field(" workCount ")
	n.lastChunk = p.field(" lastChunkCount ")
	p.field(" workOffset ")
	if p.maybe(" sendbuff ") {
		n.buffers = true
		n.sendBuffer = p.address()
		p.literal(" recvbuff ")
		n.recvBuffer = p.address()
	}
	p.pid(n, " pid ")
}

// address parses a decimal number or a pointer.
func (p *annotationParser) address() uint64 {
	if p.expected == "" && digitAt(p.text, p.at) && !strings.HasPrefix(p.text[p.at:], "0x") {
		return p.unsigned()
	}
	return p.pointer()
}

func (p *annotationParser) piece(n *annotation) {
	n.kind = annotationPiece
	n.bytes = p.field("Bytes ")
	p.field(" nWarps ")
	switch p.field(" p2pType ") {
	case 1:
		n.op = opSend
	case 2:
		n.op = opRecv
	default:
		p.fail("p2pType 1 or 2")
	}
	p.literal(" peer ")
	n.peer = p.rank()
	p.literal(" proto ")
	n.proto = p.small(len(protoNames))
	high, low := p.field(" countHi32 "), p.field(" countLo32 ")
	if p.expected == "" && (high > math.MaxInt32 || low > math.MaxUint32 || high<<32|low != n.bytes) {
		p.fail("counts that make up Bytes before")
	}
	n.chunkSize = p.field(" chunkSize ")
	p.pid(n, " pid ")
}
