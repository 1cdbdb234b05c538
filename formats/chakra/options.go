package chakra

import (
	"fmt"
	"os"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// Options are the options of Chakra traces and of all formats that become such.
type Options struct {
	CommGroups string // file that defines the communicators by name; "": the one beside the trace, if there is one
}

// Table is the table of the options.
var Table = &format.OptionTable{
	Name: "chakra", Title: "Chakra traces",
	New:       func() format.Options { return new(Options) },
	Misplaced: Misplaced,
}

const commGroups = "comm-groups"

// Params returns the table of the options.
func (o *Options) Params() param.Set {
	return param.Set{param.File(&o.CommGroups, commGroups,
		"file that defines the communicators by name, as ASTRA-sim has it for Chakra traces; one called empty is none")}
}

// Misplaced warns about a file of communicators for a trace of another format.
func Misplaced(option, value, trace string, f *format.Format) (warning string, err error) {
	if option != commGroups || !namesGroups(value) {
		return "", nil
	}
	return fmt.Sprintf("%s: --comm-groups %s is not used: a trace in %s defines its communicators itself", trace, value,
		f.Name), nil
}

// namesGroups reports whether a name is that of a file of communicators. As with ASTRA-sim, a name with the word
// "empty" in it means none, unless there is such a file.
func namesGroups(name string) bool {
	if name == "" || !strings.Contains(name, "empty") {
		return name != ""
	}
	_, err := os.Stat(name)
	return err == nil
}

// GroupsFile returns the file of communicators that the options name, nil if there is none.
func GroupsFile(o *format.ReadOptions) *format.Input {
	own := format.Own(o.Own, func() *Options { return new(Options) })
	if o.OpenFile == nil || !namesGroups(own.CommGroups) {
		return nil
	}
	return o.OpenFile(own.CommGroups)
}
