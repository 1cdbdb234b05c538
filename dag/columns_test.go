package dag

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestFields checks that Fields describes every column of Rank once, and that Op has a value of each.
func TestFields(t *testing.T) {
	r := new(Rank)
	described := map[any]string{}
	for id, f := range Fields {
		if f.Name == "" || f.Of == nil {
			t.Fatalf("field %d has no row in Fields", id)
		}
		at := reflect.ValueOf(f.Of(r)).Pointer()
		if other, ok := described[at]; ok {
			t.Errorf("%s and %s are the same column", f.Name, other)
		}
		described[at] = f.Name
	}
	columns, op := reflect.ValueOf(r).Elem(), reflect.TypeFor[Op]()
	for i := range columns.NumField() {
		name := columns.Type().Field(i).Name
		if _, ok := described[columns.Field(i).Addr().Pointer()]; !ok {
			t.Errorf("Rank.%s has no row in Fields", name)
		}
		if _, ok := op.FieldByName(name); !ok && columns.Field(i).Type() != reflect.TypeFor[Edges]() {
			t.Errorf("Op has no field %s", name)
		}
	}
	if columns.NumField() != len(Fields) {
		t.Errorf("%d rows for the %d columns of Rank", len(Fields), columns.NumField())
	}
}

// fullOp returns an op with a value in every field.
func fullOp(t *testing.T, i int) Op {
	t.Helper()
	var op Op
	v := reflect.ValueOf(&op).Elem()
	for k := range v.NumField() {
		switch f := v.Field(k); f.Kind() {
		case reflect.Uint8:
			f.SetUint(1)
		case reflect.Int32, reflect.Int64:
			f.SetInt(int64(i*100 + k + 1))
		case reflect.String:
			f.SetString(fmt.Sprintf("text %d %d", i, k))
		case reflect.Bool:
			f.SetBool(true)
		default:
			t.Fatalf("Op.%s has kind %v", v.Type().Field(k).Name, f.Kind())
		}
	}
	return op
}

// TestOpFields checks that all fields of ops survive building, cloning, gathering and copying.
func TestOpFields(t *testing.T) {
	var b RankBuilder
	ops := []Op{fullOp(t, 0), {}, fullOp(t, 2), fullOp(t, 3)}
	for i, op := range ops {
		b.Add(op)
		if i > 0 {
			b.Requires(i, i-1)
		}
	}
	r := b.Rank()
	check := func(name string, got *Rank, want ...Op) {
		t.Helper()
		if got.Len() != len(want) {
			t.Fatalf("%s: %d ops, want %d", name, got.Len(), len(want))
		}
		for i := range want {
			if got.Op(i) != want[i] {
				t.Errorf("%s: op %d is %+v, want %+v", name, i, got.Op(i), want[i])
			}
		}
	}
	check("built", &r, ops...)
	for id, f := range Fields {
		column := f.Of(&r)
		if _, ok := column.(*Edges); !ok && column.Present() != 3 {
			t.Errorf("%s: %d values of op fields, want 3", Fields[id].Name, column.Present())
		}
	}
	if !reflect.DeepEqual(*r.Clone(), r) {
		t.Errorf("clone is %+v, want %+v", *r.Clone(), r)
	}
	gathered, ok := r.Gather([]int32{3, -1, 0, 0})
	if !ok {
		t.Fatal("gathering fails")
	}
	check("gathered", &gathered, ops[3], Op{}, ops[0], ops[0])
	if gathered.Deps.Len() > 0 {
		t.Error("gathering copies dependencies")
	}

	copied := Rank{Kind: []Kind{0, ops[2].Kind}}
	var c Copier
	c.Reset(&copied, &r, FieldKind, FieldAttrs)
	if !c.Copy(1, 2) {
		t.Fatal("copying fails")
	}
	want := ops[2]
	want.Attrs = ""
	check("copied", &copied, Op{}, want)
}

func TestFieldNames(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Fields {
		if seen[f.Name] || f.Name != strings.ToLower(f.Name) {
			t.Errorf("field name %q", f.Name)
		}
		seen[f.Name] = true
	}
}
