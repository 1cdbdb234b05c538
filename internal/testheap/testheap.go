// Package testheap makes the garbage collector of a test program run less often. Tests import it for that effect alone:
// most of them allocate much and keep little, and the default growth, from 4 MiB, costs them up to half of their time.
// It changes nothing if the variable GOGC is set, or for benchmarks, which measure what a program does.
package testheap

import (
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// growth is the growth of the heap between two collections, in percent of what the last one kept. From 400 to 800,
// tests are hardly faster, and their memory doubles.
const growth = 400

func init() {
	benchmark := slices.ContainsFunc(os.Args, func(arg string) bool {
		return strings.HasPrefix(strings.TrimLeft(arg, "-"), "test.bench")
	})
	if os.Getenv("GOGC") == "" && !benchmark {
		debug.SetGCPercent(growth)
	}
}
