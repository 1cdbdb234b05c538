package store

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestColumns checks that the columns are those of the documentation, in their order.
func TestColumns(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/store.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (list of )?(int32|int64|string)( or NULL)? \\| (.*) \\|$")
	rows := row.FindAllSubmatch(page, -1)
	all := Columns()
	if len(rows) != len(all) {
		t.Fatalf("%d columns are documented, expected %d", len(rows), len(all))
	}
	for i, r := range rows {
		want := Column{Name: string(r[1]), Type: string(r[3]), Description: strings.ReplaceAll(string(r[5]), "`", ""),
			List: len(r[2]) > 0, Null: len(r[4]) > 0}
		if all[i] != want {
			t.Errorf("column %d is %+v, documented as %+v", i, all[i], want)
		}
	}
}
