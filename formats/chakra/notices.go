// This file counts harmless anomalies of a trace, so that each kind is one warning.

package chakra

import "github.com/tracedag/tracedag/formats/format"

// notice is a kind of anomaly of nodes.
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
	nameNotice

	numNotices
)

// noticeTexts describe the anomalies; %d is the number of the first node.
var noticeTexts = [numNotices]string{
	danglingNotice:     "node %d has a control dependency on a missing node; the dependency is skipped",
	danglingDataNotice: "node %d has a data dependency on a missing node; the dependency is skipped",
	clampedNotice:      "node %d has a number out of range; the nearest number in range is used",
	timeNotice:         "node %d has a time of more than 106 days; a duration is limited to that, a start is skipped",
	misfitNotice:       "node %d has an attribute of an unexpected kind; the attribute is skipped",
	collectiveNotice:   "node %d is a collective of unknown kind; it becomes computation",
	hostNotice:         "node %d is communication with is_cpu_op; it is assigned to the accelerator",
	sizeNotice:         "node %d is communication without comm_size, which no simulator accepts; its size is 0",
	peerNotice: "node %d is a message without comm_dst or comm_src, which no simulator accepts; " +
		"rank 0 is used",
	tagNotice:     "node %d is a message without comm_tag, which no simulator accepts; tag 0 is used",
	unknownNotice: "node %d has fields outside Chakra's schema; they are kept",
	groupsNotice:  "node %d has the name of a process-group definition, but no valid definition",
	nameNotice:    "node %d has an attribute whose name differs from one of Chakra's in one letter; it has no effect",
}

// notices counts the anomalies of the nodes of one or more ranks.
type notices [numNotices]struct {
	count int64
	file  string // of the first
	node  uint64
}

func (n *notices) add(kind notice, file string, node uint64) {
	if n[kind].count++; n[kind].count == 1 {
		n[kind].file, n[kind].node = file, node
	}
}

// merge adds the anomalies of another rank.
func (n *notices) merge(other *notices) {
	for kind := range other {
		o := &other[kind]
		if n[kind].count == 0 {
			n[kind] = *o
		} else {
			n[kind].count += o.count
		}
	}
}

// warn reports the anomalies.
func (n *notices) warn(o *format.ReadOptions) {
	for kind, found := range n {
		switch {
		case found.count == 1:
			o.Warn("%s: "+noticeTexts[kind], found.file, found.node)
		case found.count > 1:
			o.Warn("%s: "+noticeTexts[kind]+" (%d such nodes in all)", found.file, found.node, found.count)
		}
	}
}
