package tracefile

import (
	"github.com/tracedag/tracedag/formats/format"
)

// Identify returns the format of the trace in the named input, a name as for [Open], without reading the trace. It
// returns nil if neither the content nor the ending of the name is that of a format, as for a file that is no trace.
func Identify(formats format.List, name string, o Options) (*format.Format, error) {
	first := firstOfPrefix(formats, name, o.From)
	names, err := filesOfFolder(formats, first, o.From, o.opener())
	if err != nil {
		return nil, err
	}
	in, err := o.opener().open(names[0])
	if err != nil {
		return nil, err
	}
	defer in.Close()
	readable := formats.Readable()
	if o.From == "" && len(readable.Detect(in.Head)) == 0 && readable.ForPath(in.name) == nil {
		return nil, nil
	}
	return Detect(formats, in, o.From)
}
