package goal

import (
	"strconv"
	"testing"
)

// TestUsualNumber compares with the standard library numbers of all lengths before other bytes.
func TestUsualNumber(t *testing.T) {
	for _, number := range []string{
		"", "0", "7", "9", "10", "42", "99", "100", "12345", "90807060", "99999999", "123456789", "00", "01", "08",
		"1234567", "10000000", "999999999999", "18446744073709551616", "-1", "a1", ":", "/",
	} {
		for _, after := range []string{" ", "\n", ":", "/", "b", "\x00", "\xff", "\x80"} {
			text := []byte("l" + number + after + "0123456789abcdefgh")
			value, next, ok := usualNumber(text, 1)
			want, err := strconv.ParseUint(number, 10, 64)
			usual := err == nil && len(number) <= 8 && (number == "0" || number[0] != '0')
			if ok != usual || ok && (value != want || next != 1+len(number)) {
				t.Errorf("%q: %d, %d, %v", text, value, next, ok)
			}
		}
	}
}
