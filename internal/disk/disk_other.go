//go:build !unix

package disk

import "os"

// Supported returns nil: folders cannot be flushed here.
func Supported(error) error { return nil }

func lock(*os.File, bool) (bool, error) { return true, nil }
