// This file shortens paths.

package origin

import (
	"cmp"
	"path/filepath"
	"regexp"
	"strings"
)

// slashed returns a path with slashes, also if it comes from Windows.
func slashed(name string) string {
	if drive.MatchString(name) || filepath.Separator == '\\' {
		return strings.ReplaceAll(name, `\`, "/")
	}
	return name
}

var (
	drive = regexp.MustCompile(`^[A-Za-z]:\\`)

	// rooted matches paths from the root, the folder or the one above.
	rooted = regexp.MustCompile(`^\.{0,2}/`)

	// quantity matches values with a slash that are no paths: rates and fractions.
	quantity = regexp.MustCompile(`^[0-9.]+[A-Za-z]*/[0-9.]*[A-Za-z]*$`)
)

// base returns the last name of a path, "" for a root and a folder without a name.
func base(name string) string {
	name = strings.TrimRight(slashed(name), "/")
	name = name[strings.LastIndexByte(name, '/')+1:]
	if name == "." || name == ".." {
		return ""
	}
	return name
}

// folder returns the absolute folder of a file, by which its base name does not depend on the working directory.
func folder(name string) string {
	if drive.MatchString(name) {
		name = slashed(name)
		return name[:strings.LastIndexByte(name, '/')]
	}
	if at, err := filepath.Abs(name); err == nil {
		name = at
	}
	return filepath.Dir(name)
}

// shorten returns the value of a flag, or another argument, whose paths keep their base name. Paths are separated as in
// the values of --job, --placement and --lower: FILE@START,KEY=FILE and POLICY:FILE.
func shorten(text string) string {
	if strings.HasPrefix(text, "./-") { // by argument
		text = text[len("./"):]
	}
	return mapParts(text, ",;@", func(part string) string {
		// Shortened parts may make a path on a drive, as in q/j:\x.
		for {
			short := shortenPath(part)
			if short == part {
				return part
			}
			part = short
		}
	})
}

// shortenPath returns the base name of a path, or a text KEY=FILE or POLICY:FILE whose paths keep their base name.
func shortenPath(part string) string {
	if drive.MatchString(part) || rooted.MatchString(slashed(part)) {
		return shortenPart(part)
	}
	return mapParts(part, "=:", shortenPart)
}

// shortenPart returns the base name of a path, and any other text unchanged.
func shortenPart(part string) string {
	if path := slashed(part); !strings.Contains(path, "/") || quantity.MatchString(path) {
		return part
	}
	if name := base(part); name != "" {
		return name
	}
	return part
}

// mapParts returns the text with each part between separators replaced.
func mapParts(text, separators string, replace func(string) string) string {
	var b strings.Builder
	for {
		i := strings.IndexAny(text, separators)
		if i < 0 {
			b.WriteString(replace(text))
			return b.String()
		}
		b.WriteString(replace(text[:i]))
		b.WriteByte(text[i])
		text = text[i+1:]
	}
}

// natural compares names in which numbers ascend: x-9 is before x-10.
func natural(a, b string) int {
	digits := func(s string) (number, rest string) {
		rest = strings.TrimLeft(s, "0123456789")
		return strings.TrimLeft(s[:len(s)-len(rest)], "0"), rest
	}
	for a, b := a, b; a != "" && b != ""; a, b = a[1:], b[1:] {
		x, restA := digits(a)
		y, restB := digits(b)
		if len(restA) < len(a) && len(restB) < len(b) {
			if order := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); order != 0 {
				return order
			}
			a, b = " "+restA, " "+restB // what the next step removes
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
	}
	return strings.Compare(a, b)
}
