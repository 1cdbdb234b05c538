package publish

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/tracedag/tracedag/internal/dataset"
)

// maxName is the greatest length of the name of a trace or of the value of a partition, in bytes.
const maxName = 100

// NameOf derives a name from text: [a-z][a-z0-9._-]{0,99}, without ".." and a dot at the end. Such a name is safe on
// every file system and in URLs, and no reader takes it for a number or a date. Other characters become "-", and "t-"
// precedes a name that would begin with something else than a letter. An empty text becomes "t".
func NameOf(text string) string {
	b := make([]byte, 0, len(text))
	for _, c := range []byte(strings.ToLower(text)) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-':
			b = append(b, c)
		case c == '.':
			if len(b) > 0 && b[len(b)-1] != '.' {
				b = append(b, c)
			}
		case len(b) == 0 || b[len(b)-1] != '-': // one for a run of others
			b = append(b, '-')
		}
	}
	name := strings.Trim(string(b), "-.")
	if name == "" {
		return "t"
	}
	if name[0] < 'a' {
		name = "t-" + strings.TrimLeft(name, "_")
	}
	return strings.TrimRight(name[:min(len(name), maxName)], ".-")
}

// CheckName returns an error unless NameOf would not change the name.
func CheckName(name string) error {
	if want := NameOf(name); name != want {
		return fmt.Errorf("expected a name of the letters a to z, digits, '.', '_' and '-' that begins with a "+
			"letter, at "+
			"most %d characters, found %q; such a name is %q", maxName, name, want)
	}
	return nil
}

// numbered returns the name of the n-th trace, from 1, among those that share a name.
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	suffix := fmt.Sprintf("-%d", n)
	return strings.TrimRight(name[:min(len(name), maxName-len(suffix))], ".-") + suffix
}

// partitionKeys are the keys of Partition that are no tags.
var partitionKeys = []string{"workload", "format", "ranks", "family"}

// checkPartition returns an error unless the keys can be folders before that of the trace. columns are those of the
// store, which no key may be named after.
func checkPartition(keys []string, columns []dataset.Column) error {
	for i, key := range keys {
		switch {
		case key != NameOf(key) || strings.ContainsAny(key, ".-"):
			return fmt.Errorf("partition key %q: expected %s or the key of a tag, of letters, digits and '_'", key,
				strings.Join(partitionKeys, ", "))
		case key == "trace" || key != "ranks" && slices.ContainsFunc(columns,
			func(c dataset.Column) bool { return c.Name == key }):
			return fmt.Errorf("partition key %q: the stores have a column of this name; name the tag otherwise", key)
		case slices.Contains(keys[:i], key):
			return fmt.Errorf("partition key %q: expected it once, found it twice", key)
		}
	}
	return nil
}

// storePath returns the path of a trace's store in the set.
func storePath(keys []string, r *dataset.Row) string {
	parts := []string{dataset.TracesName}
	for _, key := range keys {
		parts = append(parts, key+"="+partitionValue(key, r))
	}
	return path.Join(append(parts, "trace="+r.Trace, r.Trace+".parquet")...)
}

// partitionValue returns the value of a partition key.
func partitionValue(key string, r *dataset.Row) string {
	switch key {
	case "workload":
		return NameOf(r.Workload)
	case "format":
		return NameOf(r.SourceFormat)
	case "ranks":
		return fmt.Sprintf("r%05d", r.Ranks)
	}
	for _, tag := range r.Tags {
		if name, value, _ := strings.Cut(tag, "="); name == key {
			return NameOf(value)
		}
	}
	return "none"
}

// partitionOf returns the partition keys in the path of a store.
func partitionOf(store string) []string {
	keys := []string{}
	for _, part := range strings.Split(path.Dir(store), "/") {
		if key, _, found := strings.Cut(part, "="); found && key != "trace" {
			keys = append(keys, key)
		}
	}
	return keys
}
