package disk

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestLock(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no locks on this system")
	}
	name := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first, second := open(), open()
	defer second.Close()
	if ok, err := Lock(first, true); !ok || err != nil {
		t.Fatalf("first lock: %v, %v", ok, err)
	}
	if ok, err := Lock(second, false); ok || err != nil {
		t.Fatalf("lock of a locked file: %v, %v", ok, err)
	}
	first.Close()
	if ok, err := Lock(second, false); !ok || err != nil {
		t.Fatalf("lock after the first was closed: %v, %v", ok, err)
	}
}

func TestSync(t *testing.T) {
	if err := Sync(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := Sync(filepath.Join(t.TempDir(), "missing")); err != nil {
		t.Error(err)
	}
}
