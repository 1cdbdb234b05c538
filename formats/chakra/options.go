package chakra

import (
	"fmt"
	"os"
	"strings"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/param"
)

// Options are the options of Chakra traces and of all formats converted to them.
type Options struct {
	CommGroups string // file that defines the communicators by name; "": the file beside the trace, if it exists
}

// Table is the option table of Chakra traces.
var Table = &format.OptionTable{
	Name: "chakra", Title: "Chakra traces",
	New:       func() format.Options { return new(Options) },
	Misplaced: Misplaced,
}

const commGroups = "comm-groups"

// Params returns the parameters of the options.
func (o *Options) Params() param.Set {
	return param.Set{param.File(&o.CommGroups, commGroups,
		"file that defines the communicators of a Chakra trace, in ASTRA-sim's form; a file called empty is none")}
}

// Misplaced warns about a file of communicators for a trace of another format.
func Misplaced(option, value, trace string, f *format.Format) (warning string, err error) {
	if option != commGroups || !namesGroups(value) {
		return "", nil
	}
	return fmt.Sprintf("%s: --comm-groups %s is not used: a %s trace defines its communicators itself", trace, value,
		f.Name), nil
}

// namesGroups reports whether name is a file of communicators. As in ASTRA-sim, a name that contains "empty" means
// none, unless such a file exists.
func namesGroups(name string) bool {
	if name == "" || !strings.Contains(name, "empty") {
		return name != ""
	}
	_, err := os.Stat(name)
	return err == nil
}

// GroupsFile returns the file of communicators in the options, or nil.
func GroupsFile(o *format.ReadOptions) *format.Input {
	own := format.Own(o.Own, func() *Options { return new(Options) })
	if o.OpenFile == nil || !namesGroups(own.CommGroups) {
		return nil
	}
	return o.OpenFile(own.CommGroups)
}
