package memory

import "os"

// machine returns the memory in bytes that the process may use, [NoLimit] if it is unknown.
func machine() int64 { return linuxMemory(os.DirFS("/")) }
