//go:build !unix

package loggops_test

import "time"

// processorTime returns 0: not known on this system.
func processorTime() time.Duration { return 0 }
