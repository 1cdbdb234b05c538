// This file reads the metadata of a file and the arguments of communication.

package kineto

import (
	"bytes"
	"math"
	"strings"
)

// metadata is what a file states about its process.
type metadata struct {
	rank, world int64 // -1: not stated
	base        int64 // nanoseconds to add to every time
	host        string
	groups      []processGroup
	mtia        bool // devices are MTIA
}

// processGroup is a process group that the file describes.
type processGroup struct {
	name, about string
	size        int64
	ranks       []int32 // nil: not stated
	all         bool    // an empty list: all ranks
}

// set sets what a member of the file states.
func (m *metadata) set(name string, value []byte) {
	switch name {
	case "baseTimeNanoseconds":
		if v, ok := parseInt(unquote(value)); ok && v >= 0 {
			m.base = v
		}
	case "host_name", "hostname":
		m.host = string(plain(unquote(value)))
	case "pg_config":
		m.setGroups(value)
	case "distributedInfo":
		l := lexer{b: value, final: true}
		l.each(span{0, len(value)}, func(name, value []byte) bool {
			v, ok := parseInt(unquote(value))
			ok = ok && v >= 0 && v <= math.MaxInt32
			switch {
			case string(name) == "rank" && ok:
				m.rank = v
			case string(name) == "world_size" && ok:
				m.world = v
			case string(name) == "pg_config":
				m.setGroups(value)
			case string(name) == "backend":
				m.mtia = bytes.Contains(value, []byte("mtia:hccl"))
			}
			return true
		})
	}
}

// setGroups reads a list of process groups.
func (m *metadata) setGroups(list []byte) {
	m.groups = m.groups[:0]
	elements(list, func(value []byte) {
		var g processGroup
		l := lexer{b: value, final: true}
		l.each(span{0, len(value)}, func(name, value []byte) bool {
			switch string(name) {
			case "pg_name":
				g.name = string(plain(unquote(value)))
			case "pg_desc", "uid":
				g.about = string(plain(unquote(value)))
			case "pg_size":
				g.size, _ = parseInt(unquote(value))
			case "ranks":
				list := rankList{size: math.MaxInt32}
				if list.read(value) {
					g.ranks, g.all = list.ranks, len(list.ranks) == 0
				}
			}
			return true
		})
		m.groups = append(m.groups, g)
	})
}

// rankList reads lists of ranks, which profilers cut after 30 numbers.
type rankList struct {
	size  int64 // of the group, if the list is cut
	ranks []int32
	cut   bool // the rest continues the first two
}

// mostMembers is the largest number of members of a group whose list is cut.
const mostMembers = 1 << 24

// read reads a list, possibly as a text. It returns false for other values.
func (r *rankList) read(value []byte) bool {
	text := bytes.Trim(unquote(value), " []")
	r.ranks = r.ranks[:0]
	for len(text) > 0 {
		var number []byte
		number, text, _ = bytes.Cut(text, []byte(","))
		number = bytes.TrimSpace(number)
		if string(number) == "..." {
			r.cut = true
			break
		}
		v, ok := parseInt(unquote(number))
		if !ok || v < 0 || v > math.MaxInt32 {
			return false
		}
		r.ranks = append(r.ranks, int32(v))
	}
	if !r.cut {
		return true
	}
	if len(r.ranks) < 2 || r.size < int64(len(r.ranks)) || r.size > mostMembers {
		return false
	}
	stride := int64(r.ranks[1]) - int64(r.ranks[0])
	for i := int64(len(r.ranks)); i < r.size; i++ {
		v := int64(r.ranks[0]) + i*stride
		if v < 0 || v > math.MaxInt32 {
			return false
		}
		r.ranks = append(r.ranks, int32(v))
	}
	return true
}

// regular reports whether all numbers of a list continue the first two.
func regular(ranks []int32) bool {
	for i := 2; i < len(ranks); i++ {
		if int64(ranks[i])-int64(ranks[i-1]) != int64(ranks[1])-int64(ranks[0]) {
			return false
		}
	}
	return true
}

// commArgs are the arguments of a communication. Texts are numbers of texts.
type commArgs struct {
	present         bool // there is a name
	sized           bool // bytes are known from the tensors of an annotation
	uneven          bool // the splits of an alltoall differ
	call            int32
	group, about    int32
	ranks           int32
	gives, gets     int32 // parts of an uneven alltoall by member, as elements
	in, out         int64 // elements, or bytes without a type
	element         int64 // bytes; 0: unknown
	size            int64 // of the group; 0: unknown
	source, target  int64 // -1: unknown
	seq             int64 // -1: unknown
	start, stride   int64 // of the ranks
	hasSeq, hasPeer bool
	hasRoot         bool
	root            int32  // rank in the job
	dims, types     []byte // of tensors until both are known
}

// set sets an argument.
func (a *commArgs) set(t *texts, name, value []byte) {
	number := func(to *int64) bool {
		v, ok := parseInt(unquote(value))
		if ok {
			*to = v
		}
		return ok
	}
	switch string(name) {
	case "Collective name":
		a.present, a.call = true, t.number(plain(unquote(value)))
		if !a.hasPeer {
			a.source, a.target = -1, -1
		}
		if !a.hasSeq {
			a.seq = -1
		}
	case "In msg nelems":
		number(&a.in)
	case "Out msg nelems":
		number(&a.out)
	case "dtype":
		a.element = elementSize(unquote(value))
	case "In split size", "Out split size":
		if !differ(value) {
			return
		}
		a.uneven = true
		if n := t.number(unquote(value)); string(name) == "In split size" {
			a.gives = n
		} else {
			a.gets = n
		}
	case "Process Group Name":
		a.group = t.number(plain(unquote(value)))
	case "Process Group Description":
		a.about = t.number(plain(unquote(value)))
	case "Process Group Ranks":
		a.ranks = t.number(unquote(value))
	case "Group size":
		number(&a.size)
	case "Src Rank":
		a.peers()
		number(&a.source)
	case "Dst Rank":
		a.peers()
		number(&a.target)
	case "Global rank start":
		number(&a.start)
	case "Global rank stride":
		number(&a.stride)
	case "Seq":
		a.hasSeq = number(&a.seq) && a.seq >= 0
	case "Input Dims":
		a.dims = bytes.Clone(value)
		a.tensors()
	case "Input type":
		a.types = bytes.Clone(value)
		a.tensors()
	}
}

// peers makes the partners unknown before the first is set.
func (a *commArgs) peers() {
	if !a.hasPeer {
		a.hasPeer, a.source, a.target = true, -1, -1
	}
}

// differ reports whether a list of splits has different sizes.
func differ(value []byte) bool {
	list := bytes.Trim(unquote(value), " []")
	first, rest, more := bytes.Cut(list, []byte(","))
	first = bytes.TrimSpace(first)
	for more {
		var next []byte
		next, rest, more = bytes.Cut(rest, []byte(","))
		if next = bytes.TrimSpace(next); string(next) != "..." && !bytes.Equal(first, next) {
			return true
		}
	}
	return false
}

// part returns the part of a member in a list of the parts of an alltoall; ok is false if the list lacks it.
func part(list string, member int) (n int64, ok bool) {
	list = trimList(list)
	for ; member > 0; member-- {
		if _, list, ok = strings.Cut(list, ","); !ok {
			return 0, false
		}
	}
	list, _, _ = strings.Cut(list, ",")
	n, ok = parseInt([]byte(strings.TrimSpace(list)))
	return n, ok && n >= 0
}

// tensors computes the bytes of the tensors of an annotation once their dimensions and types are known.
func (a *commArgs) tensors() {
	if a.dims == nil || a.types == nil {
		return
	}
	var sizes []int64
	elements(a.types, func(value []byte) { sizes = append(sizes, elementSize(unquote(value))) })
	i := 0
	total := int64(0)
	elements(a.dims, func(value []byte) {
		if i < len(sizes) && len(value) > 2 && sizes[i] > 0 {
			total = addBytes(total, mulBytes(numel(value, 0), sizes[i]))
			a.sized = true
		}
		i++
	})
	if a.sized {
		a.in, a.element = total, 1
	}
	a.dims, a.types = nil, nil
}

// numel returns the number of elements of a tensor by its dimensions, or of a list of tensors.
func numel(dims []byte, depth int) int64 {
	product, sum, lists := int64(1), int64(0), false
	elements(dims, func(value []byte) {
		if value[0] == '[' {
			if lists = true; depth < 4 {
				sum = addBytes(sum, numel(value, depth+1))
			}
			return
		}
		v, _ := parseInt(value)
		product = mulBytes(product, max(v, 0))
	})
	if lists {
		return sum
	}
	return product
}

// mostBytes is the largest size of a communication, so that sums of members do not overflow.
const mostBytes = 1 << 50

// mulBytes returns the product of sizes, at most mostBytes.
func mulBytes(a, b int64) int64 {
	if a > 0 && b > 0 && a > mostBytes/b {
		return mostBytes
	}
	return max(a*b, 0)
}

// addBytes returns the sum of sizes, at most mostBytes.
func addBytes(a, b int64) int64 { return min(a+b, mostBytes) }
