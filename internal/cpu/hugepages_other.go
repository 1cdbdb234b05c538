//go:build !linux

package cpu

// InHugePages returns s. It does nothing on this operating system.
func InHugePages[T any](s []T) []T {
	return s
}
