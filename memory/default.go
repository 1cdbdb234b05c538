package memory

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
	"sync"
)

// Default returns the limit without another one: three quarters of the memory of the machine or, if that is less, of
// the process's control group (cgroup, version 1 or 2). It is [NoLimit] if neither is known.
var Default = sync.OnceValue(func() int64 {
	total := machine()
	if total == NoLimit {
		return NoLimit
	}
	return total / 4 * 3
})

// linuxMemory returns the memory of the machine or, if that is less, of the control group of the process, in bytes.
// root is the root of the file system.
func linuxMemory(root fs.FS) int64 {
	least := int64(NoLimit)
	take := func(bytes int64, ok bool) {
		if ok && bytes > 0 {
			least = min(least, bytes)
		}
	}
	if text, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if words := strings.Fields(line); len(words) == 3 && words[0] == "MemTotal:" && words[2] == "kB" {
				kilobytes, err := strconv.ParseInt(words[1], 10, 64)
				take(kilobytes<<10, err == nil && kilobytes < math.MaxInt64>>10)
			}
		}
	}
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return least
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(fields) != 3 {
			continue
		}
		mount, file := "", ""
		switch {
		case fields[0] == "0" && fields[1] == "":
			mount, file = "sys/fs/cgroup", "memory.max"
		case hasController(fields[1], "memory"):
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// The limits of all ancestors apply. In a container, the group may be the root of the mounted tree.
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			text, err := fs.ReadFile(root, path.Join(mount, group, file))
			if err == nil {
				bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max": none
				take(bytes, err == nil)
			}
			if group == "/" {
				break
			}
		}
	}
	return least
}

func hasController(list, name string) bool {
	for c := range strings.SplitSeq(list, ",") {
		if c == name {
			return true
		}
	}
	return false
}
