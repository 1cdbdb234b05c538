package dataset

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tracedag/tracedag/param"
)

// Largest sizes of texts in bytes, and of lists.
const (
	maxLine     = 1000
	maxProse    = 1 << 16
	maxElements = 1000
)

// check checks a text. It returns its normal form; or, for a wrong text, what was expected and a hint such as a
// suggestion, which follows the found text.
type check func(text string) (normal, expected, hint string)

// unprintable reports whether a character is a control character or another one that YAML and JSON parsers treat in
// different ways.
func unprintable(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Noncharacter_Code_Point) || r == '\ufeff'
}

// checkLine accepts a line of text.
func checkLine(text string) (normal, expected, hint string) {
	normal = strings.TrimSpace(text)
	if !utf8.ValidString(text) || normal == "" || len(normal) > maxLine || strings.ContainsFunc(normal, unprintable) {
		return "", fmt.Sprintf("a line of 1 to %d bytes of UTF-8 without control characters", maxLine), ""
	}
	return normal, "", ""
}

// checkProse accepts several lines of text. Lines lose spaces at their ends.
func checkProse(text string) (normal, expected, hint string) {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t")
	}
	normal = strings.Trim(strings.Join(lines, "\n"), "\n")
	wrong := func(r rune) bool { return unprintable(r) && r != '\n' && r != '\t' }
	if !utf8.ValidString(text) || normal == "" || len(normal) > maxProse || strings.ContainsFunc(normal, wrong) {
		return "", fmt.Sprintf("text of 1 to %d bytes of UTF-8 without control characters", maxProse), ""
	}
	return normal, "", ""
}

var namePattern = regexp.MustCompile(`^[a-z0-9][-a-z0-9._/]{0,99}$`)

// checkName accepts the name of a set: that of a Frictionless data package.
func checkName(text string) (normal, expected, hint string) {
	if !namePattern.MatchString(text) {
		if near := nameOf(text); near != text && namePattern.MatchString(near) {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return "", "1 to 100 characters out of a-z, 0-9, -, ., _ and /, the first a letter or digit", hint
	}
	return text, "", ""
}

var notName = regexp.MustCompile(`[^a-z0-9._]+`)

// nameOf returns a name of a set that resembles a text.
func nameOf(text string) string {
	if len(text) > maxLine {
		text = text[:maxLine]
	}
	name := strings.Trim(notName.ReplaceAllString(strings.ToLower(text), "-"), "-._")
	if name == "" {
		return "traces"
	}
	return name[:min(len(name), 100)]
}

var traceName = regexp.MustCompile(`^[a-z][a-z0-9._-]{0,99}$`)

// validTraceName reports whether a text is the name of a trace: safe on all file systems and in URLs, and no number.
func validTraceName(text string) bool {
	return traceName.MatchString(text) && !strings.Contains(text, "..") && !strings.HasSuffix(text, ".")
}

var tagPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)

// checkTag accepts KEY=VALUE.
func checkTag(text string) (normal, expected, hint string) {
	key, value, found := strings.Cut(text, "=")
	value, wrong, _ := checkLine(value)
	if !found || wrong != "" || !tagPattern.MatchString(key) {
		return "", "KEY=VALUE with a key of at most 64 letters, digits, -, . and _, the first a letter, " +
			"and a value of one line", ""
	}
	return key + "=" + value, "", ""
}

// checkURL accepts an absolute http or https URL.
func checkURL(text string) (normal, expected, hint string) {
	u, err := url.Parse(text)
	wrong := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("<>\"\\^`{|}", r) }
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || len(text) > maxLine ||
		strings.ContainsFunc(text, wrong) {
		return "", "a URL such as https://example.org/traces", ""
	}
	return text, "", ""
}

// checkDate accepts a day of the calendar.
func checkDate(text string) (normal, expected, hint string) {
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		return "", "a day as YYYY-MM-DD", ""
	}
	return text, "", ""
}

var versionPattern = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$`)

// checkVersion accepts MAJOR.MINOR.PATCH.
func checkVersion(text string) (normal, expected, hint string) {
	if !versionPattern.MatchString(text) {
		return "", "a version MAJOR.MINOR.PATCH such as 1.0.0", ""
	}
	return text, "", ""
}

var orcidPattern = regexp.MustCompile(`^(?:https?://orcid\.org/)?([0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{3}[0-9X])$`)

// checkORCID accepts an ORCID iD, also as a URL, whose check character (ISO 7064, MOD 11-2) is right.
func checkORCID(text string) (normal, expected, hint string) {
	parts := orcidPattern.FindStringSubmatch(text)
	if parts == nil {
		return "", "an ORCID iD such as 0000-0002-1825-0097", ""
	}
	id := parts[1]
	sum := 0
	for _, digit := range strings.ReplaceAll(id[:len(id)-1], "-", "") {
		sum = (sum + int(digit-'0')) * 2 % 11
	}
	if want := "0123456789X"[(12-sum)%11]; id[len(id)-1] != want {
		return "", fmt.Sprintf("an ORCID iD with the check character %c", want), "; one of its digits is wrong"
	}
	return id, "", ""
}

var doiPattern = regexp.MustCompile(`^(?i:(?:https?://(?:dx\.)?doi\.org/|doi: ?)?(10\.[0-9]{4,9}/[!-;=?-~]{1,200}))$`)

// checkDOI accepts a DOI, also as a URL.
func checkDOI(text string) (normal, expected, hint string) {
	parts := doiPattern.FindStringSubmatch(text)
	if parts == nil || strings.ContainsAny(text, "\"\\^`{|}") {
		return "", "a DOI such as 10.5281/zenodo.1234", ""
	}
	return parts[1], "", ""
}

// checkLicense accepts an identifier of the SPDX licence list, and "other".
func checkLicense(text string) (normal, expected, hint string) {
	if text == otherLicense {
		return text, "", ""
	}
	const identifier = "an SPDX identifier such as CC-BY-4.0 (https://spdx.org/licenses), or other with license_url"
	list := spdx()
	id, known := list.byLower[strings.ToLower(text)]
	switch {
	case known && list.deprecated[id]:
		return "", "an SPDX identifier that is not deprecated", replacement(list, id)
	case known:
		return id, "", ""
	}
	return "", identifier, nearLicense(list, text)
}

// nearLicense returns a suggestion for an unknown identifier: it may lack the version, or have spaces.
func nearLicense(list *licenseList, text string) string {
	lower := strings.ReplaceAll(strings.ToLower(text), " ", "-")
	near := list.byLower[lower]
	for _, id := range list.ids {
		version, found := strings.CutPrefix(strings.ToLower(id), lower+"-")
		if found && strings.Trim(version, "0123456789.") == "" {
			near = id // the latest one, because the list is sorted
		}
	}
	if near == "" {
		return param.Suggest(text, list.ids)
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

// replacement returns a suggestion for a deprecated identifier.
func replacement(list *licenseList, id string) string {
	if only, ok := list.byLower[strings.ToLower(id)+"-only"]; ok {
		return fmt.Sprintf("; did you mean %q or %q?", only, id+"-or-later")
	}
	return param.Suggest(id, list.ids)
}
