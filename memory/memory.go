// Package memory bounds the memory that a trace can take. A context carries the limit ([WithLimit]); without one,
// [Default] applies. Code that is about to allocate from a number that it has not checked, such as a count in the
// header of a file, calls [Check] before. [Watch] is the second line: it observes the memory of the process.
package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"os"

	"github.com/tracedag/tracedag/internal/units"
)

// NoLimit is a limit that no process reaches.
const NoLimit = math.MaxInt64

// Error reports that a limit of memory does not suffice. Its message names the flag of the programs that raises it.
type Error struct {
	What  string  // what needs the memory, such as "1000000000 ranks"; "": the whole process
	Need  float64 // lower bound on the need in bytes; 0: unknown
	Limit int64   // in bytes
}

// Error returns a message such as "1000000000 ranks need at least 640GB of memory, more than the limit of 64MiB; ...".
func (e *Error) Error() string {
	const remedy = "; set a higher limit with --max-memory"
	rest := "more than the limit of " + limitText(e.Limit) + remedy
	if e.What == "" {
		return "the program needs more memory than the limit of " + limitText(e.Limit) + remedy
	}
	if e.Need == 0 {
		return e.What + " need more memory than the limit of " + limitText(e.Limit) + remedy
	}
	return fmt.Sprintf("%s need at least %s of memory, %s", e.What, about(e.Need), rest)
}

// limitText returns a limit as users write it, or rounded if that is long.
func limitText(limit int64) string {
	if text := units.FormatSize(limit); len(text) <= len("1023.5MiB") {
		return text
	}
	return about(float64(limit))
}

// about returns a size in bytes with two digits.
func about(size float64) string {
	names := []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	k := 0
	for size >= 1000 && k < len(names)-1 {
		size /= 1000
		k++
	}
	switch {
	case size >= 1e6:
		return fmt.Sprintf("%.0e%s", size, names[k])
	case size >= 10:
		return fmt.Sprintf("%.0f%s", size, names[k])
	}
	return fmt.Sprintf("%.1f%s", size, names[k])
}

type limitKey struct{}

// WithLimit returns a context that limits the memory to a number of bytes; [NoLimit] for none, 0 for [Default].
func WithLimit(ctx context.Context, bytes int64) context.Context {
	if ctx == nil {
		ctx = context.Background()
	}
	return context.WithValue(ctx, limitKey{}, bytes)
}

// Limit returns the limit in bytes that the context carries, else [Default]. The context may be nil.
func Limit(ctx context.Context) int64 {
	if ctx != nil {
		if limit, ok := ctx.Value(limitKey{}).(int64); ok && limit > 0 {
			return limit
		}
	}
	return Default()
}

// Check returns an [*Error] if the product of the counts, times the size of each in bytes, exceeds the limit of the
// context, which may be nil. The size is a lower bound, so that Check refuses no trace that would fit. what names the
// items in the plural; the message begins with their number. Counts of 0 or less are allowed.
func Check(ctx context.Context, what string, each int64, counts ...int64) error {
	limit := Limit(ctx)
	n := big.NewInt(1)
	for _, count := range counts {
		n.Mul(n, big.NewInt(max(count, 0)))
	}
	need := new(big.Int).Mul(n, big.NewInt(each))
	if need.Cmp(big.NewInt(limit)) <= 0 {
		return nil
	}
	size, _ := new(big.Float).SetInt(need).Float64()
	return &Error{What: n.String() + " " + what, Need: size, Limit: limit}
}

// contentShare is the part of the limit that a content may take which is read as a whole: it is copied while it grows,
// and the data that is made from it needs room too.
const contentShare = 4

// ReadContent reads r to its end, as [io.ReadAll], for a content that has to be in memory as a whole. It returns an
// [*Error] for a content that exceeds a quarter of the limit of the context, which may be nil.
func ReadContent(ctx context.Context, r io.Reader) ([]byte, error) {
	return ReadContentInto(ctx, nil, r)
}

// ReadFile is [ReadContent] of a file, as [os.ReadFile].
func ReadFile(ctx context.Context, name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := ReadContent(ctx, f)
	var limit *Error
	if errors.As(err, &limit) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return content, err
}

// ReadContentInto is [ReadContent] in the memory of buffer, if that suffices.
func ReadContentInto(ctx context.Context, buffer []byte, r io.Reader) ([]byte, error) {
	limit := Limit(ctx)
	most := limit / contentShare
	b, idle := buffer[:0], 0
	for {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(max(2*int64(cap(b)), 1<<16), most+1)), b...)
		}
		n, err := r.Read(b[len(b):min(int64(cap(b)), most+1)])
		b = b[:len(b)+n]
		switch idle++; {
		case int64(len(b)) > most:
			what := "contents of more than " + about(float64(most)) + " that are read as a whole"
			return nil, &Error{What: what, Limit: limit}
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, err
		case n > 0:
			idle = 0
		case idle == 100:
			return nil, io.ErrNoProgress
		}
	}
}
