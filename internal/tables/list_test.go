package tables

import (
	"bytes"
	"testing"

	"github.com/parquet-go/parquet-go"
)

func TestWriteList(t *testing.T) {
	var b bytes.Buffer
	list := `{"columns":["src","slowdown","job","none"],"rows":[[1,1.5,"a",null],[2,3,null,null],[null,null,"b",4]]}`
	if err := WriteList(&b, []byte(list)); err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]parquet.Row, 4)
	n, _ := parquet.NewReader(file).ReadRows(rows)
	var got string
	for _, row := range rows[:n] {
		got += "|"
		for _, cell := range row {
			got += " " + cell.String()
		}
	}
	// cells of the file are in the order of its columns
	if want := "| 1 1.5 a <null>| 2 3  <null>| <null> <null> b 4"; got != want {
		t.Errorf("read %q, expected %q", got, want)
	}
	for _, bad := range []string{"", "[]", `{"columns":["a"],"rows":[[1,2]]}`} {
		if err := WriteList(&b, []byte(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

// FuzzWriteList checks that any table is written or an error.
func FuzzWriteList(f *testing.F) {
	f.Add(`{"columns":["a","b"],"rows":[[1,"x"],[2.5,null]]}`)
	f.Fuzz(func(t *testing.T, list string) {
		var b bytes.Buffer
		if err := WriteList(&b, []byte(list)); err == nil && !bytes.HasPrefix(b.Bytes(), []byte("PAR1")) {
			t.Errorf("%q gives %q", list, b.String())
		}
	})
}
