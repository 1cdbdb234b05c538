#include "textflag.h"

// func PrefetchLine(at uintptr)
TEXT ·PrefetchLine(SB), NOSPLIT, $0-8
	MOVD at+0(FP), R0
	PRFM (R0), PLDL1KEEP
	RET

// func PrefetchLines(a, b uintptr)
TEXT ·PrefetchLines(SB), NOSPLIT, $0-16
	MOVD a+0(FP), R0
	MOVD b+8(FP), R1
	PRFM (R0), PLDL1KEEP
	PRFM (R1), PLDL1KEEP
	RET
