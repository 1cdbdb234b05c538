package memory

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCheck(t *testing.T) {
	limited := WithLimit(context.Background(), 64<<20)
	for _, c := range []struct {
		ctx    context.Context
		each   int64
		counts []int64
		want   string // "": allowed
	}{
		{limited, 64, []int64{1 << 20}, ""},
		{limited, 64, []int64{1<<20 + 1}, "1048577 items need at least 67MB of memory, more than the limit of 64MiB; " +
			"set a higher limit with --max-memory"},
		{limited, 640, []int64{1_000_000_000}, "1000000000 items need at least 640GB of memory, more than"},
		{limited, 1, []int64{0, math.MaxInt64}, ""},
		{limited, 1, []int64{-5}, ""},
		{limited, math.MaxInt64, []int64{math.MaxInt64, math.MaxInt64}, "e+38EB of memory"},
		{WithLimit(limited, NoLimit), 1, []int64{math.MaxInt64}, ""},
		{nil, 1, []int64{1}, ""},
		{nil, 1 << 30, []int64{1 << 62}, "4611686018427387904 items"},
		{WithLimit(context.Background(), 0), 1 << 30, []int64{1 << 62}, "4611686018427387904 items"},
	} {
		err := Check(c.ctx, "items", c.each, c.counts...)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d x %v: %v, want %q", c.each, c.counts, err, c.want)
		}
		if bad := new(Error); err != nil && !errors.As(err, &bad) {
			t.Errorf("%T", err)
		}
	}
}

// zeros is an endless input that counts the bytes read.
type zeros struct{ read int64 }

func (z *zeros) Read(b []byte) (int, error) {
	clear(b)
	z.read += int64(len(b))
	return len(b), nil
}

func TestReadContent(t *testing.T) {
	const most = 8 << 20
	ctx := WithLimit(context.Background(), contentShare*most)
	for _, n := range []int64{0, 1, most - 1, most} {
		text, err := ReadContent(ctx, io.LimitReader(new(zeros), n))
		if err != nil || int64(len(text)) != n {
			t.Errorf("%d bytes: read %d, %v", n, len(text), err)
		}
	}
	endless := new(zeros)
	_, err := ReadContent(ctx, endless)
	if want := "contents of more than 8.4MB that are read as a whole need more memory than the limit of 32MiB"; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	if endless.read > most+1 {
		t.Errorf("read %d bytes", endless.read)
	}
	broken := errors.New("broken")
	for _, n := range []int64{0, 5, most} {
		r := io.MultiReader(io.LimitReader(new(zeros), n), &failing{broken})
		if _, err := ReadContent(ctx, r); err != broken {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// The memory of the machine is limited by the control group and its ancestors, in version 1 and 2.
func TestLinuxMemory(t *testing.T) {
	const machine = "proc/meminfo: MemTotal:       24000000 kB\nMemFree: 5 kB\n"
	for name, c := range map[string]struct {
		files string // separated by |
		want  int64
	}{
		"nothing":    {"", NoLimit},
		"no group":   {machine, 24_000_000 << 10},
		"unreadable": {"proc/meminfo: MemTotal: x kB", NoLimit},
		"v2": {machine + "|proc/self/cgroup: 0::/user/app|sys/fs/cgroup/user/app/memory.max: 1000000000\n",
			1_000_000_000},
		"v2 without limit": {machine + "|proc/self/cgroup: 0::/a|sys/fs/cgroup/a/memory.max: max\n", 24_000_000 << 10},
		"v2 ancestor": {machine + "|proc/self/cgroup: 0::/a/b/c|sys/fs/cgroup/a/b/c/memory.max: max\n" +
			"|sys/fs/cgroup/a/memory.max: 500000000", 500_000_000},
		"v2 container": {machine + "|proc/self/cgroup: 0::/../../x|sys/fs/cgroup/memory.max: 300000000", 300_000_000},
		"v1": {machine + "|proc/self/cgroup: 5:cpu,cpuacct:/x\n4:memory:/m/n\n" +
			"|sys/fs/cgroup/memory/m/n/memory.limit_in_bytes: 700000000", 700_000_000},
		"v1 without limit": {machine + "|proc/self/cgroup: 4:memory:/\n" +
			"|sys/fs/cgroup/memory/memory.limit_in_bytes: 9223372036854771712", 24_000_000 << 10},
		"both": {machine + "|proc/self/cgroup: 4:hugetlb,memory:/a\n0::/b\n" +
			"|sys/fs/cgroup/memory/a/memory.limit_in_bytes: 8000|sys/fs/cgroup/b/memory.max: 9000", 8000},
		"group above the machine": {machine + "|proc/self/cgroup: 0::/|sys/fs/cgroup/memory.max: 99000000000",
			24_000_000 << 10},
	} {
		root := fstest.MapFS{}
		for file := range strings.SplitSeq(c.files, "|") {
			if path, text, ok := strings.Cut(file, ": "); ok {
				root[path] = &fstest.MapFile{Data: []byte(text)}
			}
		}
		if got := linuxMemory(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if d := Default(); d < 1<<26 {
		t.Errorf("default limit %d", d)
	}
}

// Data beyond the limit ends the watch with an error. Garbage does not, and the runtime's own limit is restored.
func TestWatch(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	const limit = 128 << 20
	failed := make(chan error, 1)
	stop := Watch(limit, func(err error) { failed <- err })
	for range 100 { // 400 MiB of garbage
		garbage := make([]byte, 4<<20)
		for i := 0; i < len(garbage); i += 4096 {
			garbage[i] = 1
		}
	}
	select {
	case err := <-failed:
		t.Fatalf("garbage: %v", err)
	default:
	}
	var data [][]byte
	for range 2 * limit >> 20 {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		data = append(data, block)
	}
	err := <-failed
	runtime.KeepAlive(data)
	want := "the program needs more memory than the limit of 128MiB; set a higher limit with --max-memory"
	if err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	stop()
	stop()
	if after := debug.SetMemoryLimit(-1); after != before {
		t.Errorf("the limit of the runtime is %d, was %d", after, before)
	}
}

// The limit of the runtime that a user sets stays if it is lower.
func TestWatchKeepsLowerLimit(t *testing.T) {
	before := debug.SetMemoryLimit(100 << 20)
	defer debug.SetMemoryLimit(before)
	for limit, want := range map[int64]int64{1 << 30: 100 << 20, 80 << 20: 70 << 20, NoLimit: 100 << 20} {
		stop := Watch(limit, func(error) {})
		if got := debug.SetMemoryLimit(-1); got != want {
			t.Errorf("limit %d: the runtime's is %d, want %d", limit, got, want)
		}
		stop()
	}
}

// ReadFile reads whole files up to a quarter of the limit, and names the file in errors.
func TestReadFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	ctx := WithLimit(context.Background(), 4000)
	for size, fits := range map[int64]bool{0: true, 1000: true, 1001: false, 1 << 40: false} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, size); err != nil {
			t.Skip(err)
		}
		switch content, err := ReadFile(ctx, name); {
		case fits && (err != nil || int64(len(content)) != size):
			t.Errorf("%d bytes: %d bytes, %v", size, len(content), err)
		case !fits && (err == nil || !strings.HasPrefix(err.Error(), name+": contents of more than 1.0kB")):
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if _, err := ReadFile(ctx, name+"x"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
