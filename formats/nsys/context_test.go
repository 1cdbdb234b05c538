package nsys

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracedag/tracedag/formats/format"
	"github.com/tracedag/tracedag/internal/par/partest"
	_ "github.com/tracedag/tracedag/internal/testheap"
)

// TestReadEndsWithContext cancels the context while exports of each form are read.
func TestReadEndsWithContext(t *testing.T) {
	folder := t.TempDir()
	sqlite := twoProcesses(func(p *testProcess, rank int) {
		p.init(0xabc, 0x1, rank, 2)
		for i := range int64(4000) {
			p.allReduce(0xabc, 0x10, 4096, int64(rank), 7, 100*i, 100*i+90)
		}
	}).write(t, folder)
	unsorted := filepath.Join(folder, "x.jsonl")
	lines := `{"data":["ncclDevKernel_AllReduce(ncclDevComm *)"]}` + "\n" +
		strings.Repeat(`{"NvtxEvent":{"Timestamp":"5","Text":"no note","GlobalTid":"72057594037927937"}}`+"\n", 40000)
	if err := os.WriteFile(unsorted, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	tables := map[string]string{
		"x.NVTX_EVENTS.csv":                "start,end,text,globalTid\n" + strings.Repeat("5,6,no note,72057594037927937\n", 40000),
		"x.CUPTI_ACTIVITY_KIND_KERNEL.csv": "start,end,deviceId,streamId,globalPid,demangledName\n",
		"x.StringIds.csv":                  "id,value\n",
	}
	var csv []string
	for name, text := range tables {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		csv = append(csv, path)
	}
	for _, c := range []struct {
		name  string
		files []string
		fails string // error of a complete call
	}{
		{"SQLite", []string{sqlite}, ""},
		{"JSON lines", []string{unsorted}, errNoComm.Error()},
		{"CSV", csv, errNoComm.Error()},
	} {
		t.Run(c.name, func(t *testing.T) {
			partest.EndsWithContext(t, 4, func(ctx context.Context) error {
				var inputs []*format.Input
				for _, path := range c.files {
					f, err := os.Open(path)
					if err != nil {
						return err
					}
					defer f.Close()
					inputs = append(inputs, &format.Input{Name: path, Reader: f})
				}
				_, err := read(inputs, format.ReadOptions{Context: ctx, Warn: func(string, ...any) {}})
				if err != nil && c.fails != "" && strings.Contains(err.Error(), c.fails) {
					return nil
				}
				return err
			})
		})
	}
}
