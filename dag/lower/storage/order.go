package storage

import (
	"fmt"
	"strconv"
	"strings"
)

// order is the issue order of the accesses of a host after its mount.
type order struct {
	kind   string // "serial", "window", "timed" or "none"
	window int64  // outstanding accesses, for "window"
}

func (o *order) Type() string { return "order" }

func (o *order) String() string {
	if o.kind == "window" {
		return "window:" + strconv.FormatInt(o.window, 10)
	}
	return o.kind
}

func (o *order) Set(text string) error {
	number, isWindow := strings.CutPrefix(text, "window:")
	window, err := strconv.ParseInt(number, 10, 32)
	switch {
	case isWindow && err == nil && window >= 1:
		*o = order{"window", window}
	case text == "serial", text == "timed", text == "none":
		*o = order{kind: text}
	default:
		return fmt.Errorf("expected serial, window:N with N of 1 or more, timed or none, found %q", text)
	}
	return nil
}

// distance returns d > 0 if an access waits for the d-th access before it on the same host, and 0 if it waits for none.
func (o *order) distance() int {
	switch o.kind {
	case "serial":
		return 1
	case "window":
		return int(o.window)
	}
	return 0
}
