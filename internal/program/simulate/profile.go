package simulate

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"

	"github.com/tracedag/tracedag/internal/cli"
)

// startProfile begins to write a profile of this program, for go tool pprof: of the processor time or, if the file's
// name begins with mem, of the memory that is in use at the end. stop completes it.
func startProfile(p *cli.Program, path string) (stop func() error, err error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	out, err := p.Create(path, false)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(filepath.Base(path), "mem") {
		return func() error {
			defer out.Close()
			runtime.GC() // what is garbage is not in use
			if err := pprof.WriteHeapProfile(out); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return out.Commit()
		}, nil
	}
	if err := pprof.StartCPUProfile(out); err != nil {
		out.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return func() error {
		defer out.Close()
		pprof.StopCPUProfile()
		return out.Commit()
	}, nil
}
