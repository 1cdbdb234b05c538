package grid

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracedag/tracedag/internal/cluster"
	"github.com/tracedag/tracedag/internal/conf"
	"github.com/tracedag/tracedag/internal/units"
	"github.com/tracedag/tracedag/param"
)

// MaxSize is the largest size of a study file in bytes.
const MaxSize = conf.MaxYAMLSize

// keys are the keys of a study file.
var keys = []string{"name", "traces", "set", "vary", "zip", "only", "exclude", "replicas", "seeds", "measure",
	"keep", "threads",
	"limits"}

// reader reads a study file.
type reader struct {
	file    string
	folder  string // paths of traces are relative to it
	numbers Numbers
	check   func(name string) error // of an option
	study   *Study
	seeds   []int64
}

// Read reads a study file. Paths of traces are relative to its folder. numbers returns the parameters of options, and
// check an error about a name that is no option. Both may be nil.
func Read(text []byte, file string, numbers Numbers, check func(name string) error) (*Study, error) {
	root, err := conf.Read(text, file)
	if err != nil {
		return nil, err
	}
	r := &reader{file: file, folder: filepath.Dir(file), numbers: numbers, check: check, study: &Study{Threads: 1}}
	if err := r.read(&root); err != nil {
		return nil, err
	}
	return r.study, nil
}

// fail returns an error at a place of the file.
func (r *reader) fail(n *conf.Node, key, expected string) error {
	return &conf.Error{File: r.file, Line: n.Line, Key: key, Expected: expected, Found: n.Found()}
}

// wrap returns an error at a place of the file.
func (r *reader) wrap(line int64, err error) error {
	return fmt.Errorf("%s:%d: %w", r.file, line, err)
}

// members calls do with each member of a mapping. Keys are unique and, if known is not nil, among it.
func (r *reader) members(n *conf.Node, key string, known []string, do func(m *conf.Member) error) error {
	if n.Kind != conf.Map {
		return r.fail(n, key, "a mapping")
	}
	for i := range n.Members {
		m := &n.Members[i]
		if known != nil && !slices.Contains(known, m.Key) {
			return &conf.Error{File: r.file, Line: m.Line, Key: key, Expected: "a key out of " +
				strings.Join(known, ", "), Found: strconv.Quote(m.Key) + param.Suggest(m.Key, known)}
		}
		if slices.ContainsFunc(n.Members[:i], func(other conf.Member) bool { return other.Key == m.Key }) {
			return &conf.Error{File: r.file, Line: m.Line, Key: m.Key, Expected: "each key once", Found: "a second one"}
		}
		if err := do(m); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) read(root *conf.Node) error {
	if root.Kind == conf.Null {
		return r.fail(root, "", "a mapping with the keys "+strings.Join(keys, ", "))
	}
	// Keys may refer to others in any order: traces are read before the axes that name them.
	parts := make(map[string]*conf.Member)
	err := r.members(root, "", keys, func(m *conf.Member) error {
		parts[m.Key] = m
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		if m := parts[key]; m != nil {
			if err := r.member(m); err != nil {
				return err
			}
		}
	}
	return r.complete(root)
}

// member reads a member of the file.
func (r *reader) member(m *conf.Member) error {
	v := &m.Value
	switch m.Key {
	case "name":
		return r.name(v)
	case "traces":
		return r.list(v, m.Key, r.trace)
	case "set":
		return r.members(v, m.Key, nil, r.set)
	case "vary":
		return r.members(v, m.Key, nil, r.axis)
	case "zip":
		return r.list(v, m.Key, r.zip)
	case "only":
		return r.list(v, m.Key, func(n *conf.Node) error { return r.rule(n, &r.study.Only) })
	case "exclude":
		return r.list(v, m.Key, func(n *conf.Node) error { return r.rule(n, &r.study.Exclude) })
	case "replicas", "seeds":
		return r.replicas(m)
	case "measure":
		return r.list(v, m.Key, func(n *conf.Node) error {
			text, err := r.scalar(n, m.Key)
			r.study.Measure = append(r.study.Measure, text)
			return err
		})
	case "keep":
		return r.list(v, m.Key, func(n *conf.Node) error {
			text, err := r.scalar(n, m.Key)
			if err == nil && text != FlowsName {
				err = r.fail(n, m.Key, FlowsName)
			}
			r.study.Keep = []string{text}
			return err
		})
	case "threads":
		n, err := r.count(v, m.Key, 1, 1<<16)
		r.study.Threads = int(n)
		return err
	}
	return r.members(v, m.Key, []string{"time", "memory"}, r.limit)
}

// complete adds the axes of traces and seeds, and checks the study as a whole.
func (r *reader) complete(root *conf.Node) error {
	s := r.study
	if s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(r.file), filepath.Ext(r.file))
	}
	if len(s.Traces) > 0 && !s.has(TraceName) {
		var a Axis
		for _, t := range s.Traces {
			sets := []Setting{{Name: TraceName, Text: t.Name}}
			v := Value{Sets: sets}
			if len(s.Traces) > 1 {
				v.Factors = sets
			}
			a.Values = append(a.Values, v)
		}
		s.Axes = slices.Insert(s.Axes, 0, a)
	}
	if r.seeds != nil {
		if s.has(SeedName) {
			return r.fail(root, "seeds", "replicas, seeds or an axis seed, not two of them")
		}
		s.Axes = append(s.Axes, Seeds(r.seeds))
	}
	if len(s.Traces) == 0 && len(s.Axes) == 0 && len(s.Set) == 0 {
		return r.fail(root, "", "traces, or options in set or vary")
	}
	return nil
}

// has reports whether an axis sets an option.
func (s *Study) has(option string) bool {
	return slices.ContainsFunc(s.Axes, func(a Axis) bool {
		return len(a.Values) > 0 && Last(a.Values[0].Sets, option) != nil
	})
}

func (r *reader) name(n *conf.Node) (err error) {
	r.study.Name, err = r.scalar(n, "name")
	if err == nil && (r.study.Name == "" || len(r.study.Name) > 200) {
		err = r.fail(n, "name", "1 to 200 bytes")
	}
	return err
}

// list calls do with each element of a list.
func (r *reader) list(n *conf.Node, key string, do func(n *conf.Node) error) error {
	if n.Kind != conf.List {
		return r.fail(n, key, "a list")
	}
	for i := range n.List {
		if err := do(&n.List[i]); err != nil {
			return err
		}
	}
	return nil
}

// scalar returns the text of a plain value.
func (r *reader) scalar(n *conf.Node, key string) (string, error) {
	switch n.Kind {
	case conf.Text, conf.Number, conf.Bool:
		return n.Text, nil
	}
	return "", r.fail(n, key, "a text or number")
}

func (r *reader) count(n *conf.Node, key string, least, most int64) (int64, error) {
	text, err := r.scalar(n, key)
	if err != nil {
		return 0, err
	}
	count, err := units.ParseCount(text, least, most)
	if err != nil {
		return 0, r.fail(n, key, fmt.Sprintf("a number from %d to %d", least, most))
	}
	return count, nil
}

// trace reads a trace: a mapping with file or generate, or the path of a file, a folder or a pattern.
func (r *reader) trace(n *conf.Node) error {
	var t Trace
	t.Line = n.Line
	if n.Kind != conf.Map {
		path, err := r.scalar(n, "traces")
		if err != nil {
			return err
		}
		return r.files(n, path)
	}
	err := r.members(n, "traces", []string{"name", "file", "generate"}, func(m *conf.Member) (err error) {
		text, err := r.scalar(&m.Value, m.Key)
		switch m.Key {
		case "name":
			t.Name = text
		case "file":
			t.File = r.path(text)
		default:
			if t.Generate, err = cluster.Words(text); err != nil {
				err = r.wrap(m.Line, err)
			}
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case (t.File == "") == (len(t.Generate) == 0):
		return r.fail(n, "traces", "either file or generate")
	case t.Name == "" && t.File != "":
		t.Name = nameOf(t.File)
	case t.Name == "":
		return r.fail(n, "traces", "a name for the generated trace")
	}
	return r.add(n, t)
}

func (r *reader) add(n *conf.Node, t Trace) error {
	if r.study.Trace(t.Name) != nil {
		return r.wrap(n.Line, fmt.Errorf("traces: expected different names, found two traces %q", t.Name))
	}
	r.study.Traces = append(r.study.Traces, t)
	return nil
}

// files adds the files that a path names. A pattern names all files that match.
func (r *reader) files(n *conf.Node, path string) error {
	found := []string{r.path(path)}
	if strings.ContainsAny(path, "*?[") {
		all, err := filepath.Glob(r.path(path))
		if err != nil || len(all) == 0 {
			return r.fail(n, "traces", "a pattern that matches files")
		}
		found = all
	} else if entries, err := os.ReadDir(found[0]); err == nil {
		folder := found[0]
		found = nil
		for _, e := range entries {
			if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				found = append(found, filepath.Join(folder, e.Name()))
			}
		}
	}
	for _, file := range found {
		if err := r.add(n, Trace{Name: nameOf(file), File: file, Line: n.Line}); err != nil {
			return err
		}
	}
	return nil
}

// path returns a path relative to the folder of the study file as one relative to the working folder.
func (r *reader) path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(r.folder, path)
}

// nameOf returns the name of the trace in a file.
func nameOf(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	if name == "" {
		name = filepath.Base(file)
	}
	return name
}

// Trace returns the trace with a name, or nil.
func (s *Study) Trace(name string) *Trace {
	for i := range s.Traces {
		if s.Traces[i].Name == name {
			return &s.Traces[i]
		}
	}
	return nil
}

// checked returns an error about a name that is no option.
func (r *reader) checked(m *conf.Member) error {
	name := m.Key
	if r.check == nil || name == TraceName || r.inGenerator(name) {
		return nil
	}
	if err := r.check(name); err != nil {
		return r.wrap(m.Line, err)
	}
	return nil
}

// inGenerator reports whether the command line of a generator contains {name}.
func (r *reader) inGenerator(name string) bool {
	return slices.ContainsFunc(r.study.Traces, func(t Trace) bool { return t.Uses(name) })
}

// Uses reports whether the generator's command line has the axis {name}.
func (t *Trace) Uses(name string) bool {
	return slices.ContainsFunc(t.Generate, func(word string) bool { return strings.Contains(word, "{"+name+"}") })
}

// set reads an option of all points. A list repeats the option.
func (r *reader) set(m *conf.Member) error {
	if err := r.checked(m); err != nil {
		return err
	}
	values := []conf.Node{m.Value}
	if m.Value.Kind == conf.List {
		values = m.Value.List
	}
	for i := range values {
		s, err := r.setting(m.Key, &values[i])
		if err != nil {
			return err
		}
		r.study.Set = append(r.study.Set, s)
	}
	return nil
}

// setting reads the value of an option; null selects the default.
func (r *reader) setting(name string, n *conf.Node) (s Setting, err error) {
	s = Setting{Name: name, Absent: n.Kind == conf.Null}
	if !s.Absent {
		s.Text, err = r.scalar(n, name)
	}
	return s, err
}

// axis reads an axis: a value or list of values, or a mapping with the option and its values.
func (r *reader) axis(m *conf.Member) error {
	option, values := m.Key, &m.Value
	if values.Kind == conf.Map {
		given := values
		values = nil
		err := r.members(given, m.Key, []string{"flag", "values"}, func(part *conf.Member) (err error) {
			if part.Key == "values" {
				values = &part.Value
				return nil
			}
			option, err = r.scalar(&part.Value, part.Key)
			if err == nil {
				err = r.checked(&conf.Member{Key: option, Line: part.Line})
			}
			return err
		})
		if err != nil {
			return err
		}
		if values == nil || option == m.Key {
			return r.fail(given, m.Key, "the keys flag and values")
		}
	} else if err := r.checked(m); err != nil {
		return err
	}
	items := []conf.Node{*values}
	if values.Kind == conf.List {
		items = values.List
	}
	axis := Axis{Line: m.Line}
	for i := range items {
		if items[i].Kind == conf.Null {
			absent := []Setting{{Name: m.Key, Absent: true}}
			axis.Values = append(axis.Values, Value{absent, []Setting{{Name: option, Absent: true}}})
			continue
		}
		text, err := r.scalar(&items[i], m.Key)
		if err != nil {
			return err
		}
		part, err := newAxis(m.Key, option, []string{text}, r.numbers)
		if err != nil {
			return r.wrap(items[i].Line, err)
		}
		axis.Values = append(axis.Values, part.Values...)
	}
	if len(axis.Values) == 0 {
		return r.fail(values, m.Key, "one value or more")
	}
	return r.addAxis(axis)
}

// addAxis adds an axis. No two axes have a factor or option in common.
func (r *reader) addAxis(a Axis) error {
	for _, set := range a.Values[0].Sets {
		if r.study.has(set.Name) {
			return r.wrap(a.Line, fmt.Errorf("%s: expected one axis, found two", set.Name))
		}
		if set.Name == TraceName {
			for _, v := range a.Values {
				if name := Last(v.Sets, TraceName).Text; r.study.Trace(name) == nil {
					return r.wrap(a.Line, fmt.Errorf("trace: expected the name of one of the traces, found %q", name))
				}
			}
		}
	}
	r.study.Axes = append(r.study.Axes, a)
	return nil
}

// zip reads lists of equal length, whose values go together.
func (r *reader) zip(n *conf.Node) error {
	axis := Axis{Line: n.Line}
	err := r.members(n, "zip", nil, func(m *conf.Member) error {
		if err := r.checked(m); err != nil {
			return err
		}
		if m.Value.Kind != conf.List || len(m.Value.List) == 0 {
			return r.fail(&m.Value, m.Key, "a list of values")
		}
		if axis.Values == nil {
			axis.Values = make([]Value, len(m.Value.List))
		}
		if len(axis.Values) != len(m.Value.List) {
			return &conf.Error{File: r.file, Line: m.Line, Key: m.Key, Expected: fmt.Sprintf("%d values, as the "+
				"other lists of the zip have", len(axis.Values)), Found: fmt.Sprint(len(m.Value.List))}
		}
		for i := range axis.Values {
			s, err := r.setting(m.Key, &m.Value.List[i])
			if err != nil {
				return err
			}
			v := &axis.Values[i]
			v.Factors = append(v.Factors, s)
			s.Factor = s.Name
			v.Sets = append(v.Sets, s)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(axis.Values) == 0 {
		return r.fail(n, "zip", "lists of values by option")
	}
	return r.addAxis(axis)
}

// rule reads a condition of only or exclude.
func (r *reader) rule(n *conf.Node, to *[]Rule) error {
	var rule Rule
	err := r.members(n, "", nil, func(m *conf.Member) error {
		c := Condition{Name: m.Key}
		values := []conf.Node{m.Value}
		if m.Value.Kind == conf.List {
			values = m.Value.List
		}
		for i := range values {
			text, err := r.scalar(&values[i], m.Key)
			if err != nil {
				return err
			}
			c.Texts = append(c.Texts, text)
		}
		rule = append(rule, c)
		return nil
	})
	*to = append(*to, rule)
	return err
}

// replicas reads a number of seeds, from 1, or a list of them.
func (r *reader) replicas(m *conf.Member) error {
	if r.seeds != nil {
		return r.wrap(m.Line, fmt.Errorf("expected replicas or seeds, found both"))
	}
	if m.Key == "replicas" {
		n, err := r.count(&m.Value, m.Key, 1, MaxRuns)
		for seed := range n {
			r.seeds = append(r.seeds, seed+1)
		}
		return err
	}
	return r.list(&m.Value, m.Key, func(n *conf.Node) error {
		text, err := r.scalar(n, m.Key)
		if err != nil {
			return err
		}
		seed, err := strconv.ParseInt(text, 10, 64)
		if err != nil || slices.Contains(r.seeds, seed) {
			return r.fail(n, m.Key, "different whole numbers")
		}
		r.seeds = append(r.seeds, seed)
		return nil
	})
}

func (r *reader) limit(m *conf.Member) error {
	text, err := r.scalar(&m.Value, m.Key)
	if err != nil {
		return err
	}
	if m.Key == "memory" {
		if r.study.Limits.Memory, err = units.ParseSize(text); err != nil || r.study.Limits.Memory < 1<<25 {
			return r.fail(&m.Value, "memory", "a size of 32MiB or more, such as 8GiB")
		}
		return nil
	}
	if r.study.Limits.Time, err = time.ParseDuration(text); err != nil || r.study.Limits.Time <= 0 {
		return r.fail(&m.Value, "time", "a duration above 0, such as 90s, 30m or 1h")
	}
	return nil
}
