#include "textflag.h"

// func PrefetchLine(at uintptr)
TEXT ·PrefetchLine(SB), NOSPLIT, $0-8
	MOVQ at+0(FP), AX
	PREFETCHT0 (AX)
	RET

// func PrefetchLines(a, b uintptr)
TEXT ·PrefetchLines(SB), NOSPLIT, $0-16
	MOVQ a+0(FP), AX
	MOVQ b+8(FP), BX
	PREFETCHT0 (AX)
	PREFETCHT0 (BX)
	RET
