// This file counts what is odd in a trace but no mistake, so that each oddity is one warning.

package chakra

import "github.com/tracedag/tracedag/formats/format"

// notice is an oddity of nodes.
type notice uint8

const (
	danglingNotice notice = iota // of a control dependency; that of a data dependency follows
	danglingDataNotice
	clampedNotice
	timeNotice
	misfitNotice
	collectiveNotice
	hostNotice
	sizeNotice
	peerNotice
	tagNotice
	unknownNotice
	groupsNotice

	numNotices
)

// noticeTexts say what is odd about the nodes, the first of which has the number %d.
var noticeTexts = [numNotices]string{
	danglingNotice:     "node %d has a control dependency on a node that the file does not have: it is left out",
	danglingDataNotice: "node %d has a data dependency on a node that the file does not have: it is left out",
	clampedNotice:      "node %d has a size or another number out of range: the nearest one in range is taken",
	timeNotice:         "node %d has a time of more than 106 days: a duration is cut to that, a start is left out",
	misfitNotice:       "node %d has an attribute of another kind than its name has: it is left out",
	collectiveNotice:   "node %d is a collective of unknown kind: it is taken for computation",
	hostNotice:         "node %d is communication and is_cpu_op: it is taken to be the accelerator's",
	sizeNotice:         "node %d is communication without comm_size, which no simulator can run: it has no bytes",
	peerNotice: "node %d is a message without comm_dst or comm_src, which no simulator can run: " +
		"rank 0 is taken",
	tagNotice:     "node %d is a message without comm_tag, which no simulator can run: tag 0 is taken",
	unknownNotice: "node %d has fields that Chakra's schema does not have: they are kept",
	groupsNotice:  "node %d is named like a definition of process groups, but cannot be understood as one",
}

// notices counts the oddities of the nodes of one rank or more.
type notices [numNotices]struct {
	count int64
	file  string // of the first
	node  uint64
}

func (n *notices) add(what notice, file string, node uint64) {
	if n[what].count++; n[what].count == 1 {
		n[what].file, n[what].node = file, node
	}
}

// merge adds the oddities of another rank.
func (n *notices) merge(other *notices) {
	for what := range other {
		o := &other[what]
		if n[what].count == 0 {
			n[what] = *o
		} else {
			n[what].count += o.count
		}
	}
}

// warn reports the oddities.
func (n *notices) warn(o *format.ReadOptions) {
	for what, found := range n {
		switch {
		case found.count == 1:
			o.Warn("%s: "+noticeTexts[what], found.file, found.node)
		case found.count > 1:
			o.Warn("%s: "+noticeTexts[what]+" (%d such nodes in all)", found.file, found.node, found.count)
		}
	}
}
