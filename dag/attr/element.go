package attr

import "strconv"

// element is the name of the member of [WithElement].
const element = "element"

// WithElement returns attributes with the member "element" behind their other members: the size in bytes of one element
// of the data of a collective, 1 or more.
func WithElement(attrs string, bytes int64) string {
	return with(attrs, `"`+element+`":`+strconv.FormatInt(bytes, 10))
}

// ParseElement returns the member "element" of attributes, in bytes. It returns false if there is none, or if it is
// below 1.
func ParseElement(attrs string) (bytes int64, ok bool) {
	if !Decode(attrs, element, &bytes) || bytes < 1 {
		return 0, false
	}
	return bytes, true
}
