// Package stdout opens standard output of the process and detects that a shell closed it.
package stdout
