package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tracedag/tracedag/internal/grid"
	"github.com/tracedag/tracedag/internal/tables"
)

// flowsPath returns the name of the file with the messages of a run.
func (f Folder) flowsPath(id string) string {
	return filepath.Join(string(f), grid.FlowsName, id+".parquet")
}

// LacksFlows reports whether a kept run has messages whose file is missing.
func (f Folder) LacksFlows(id string, k *Kept) bool {
	if !bytes.Contains(k.Line, []byte(`"flows_not_listed":`)) && !bytes.Contains(k.Line, []byte(`"flows_kept":`)) {
		return false
	}
	_, err := os.Stat(f.flowsPath(id))
	return errors.Is(err, fs.ErrNotExist)
}

// KeepFlows moves the messages of a run from its line to a file. Their number remains as the member flows_kept.
func (f Folder) KeepFlows(id string, line []byte) ([]byte, error) {
	begin, end, err := memberOf(line, grid.FlowsName)
	if err != nil || begin < 0 {
		return line, err
	}
	var list struct {
		Rows []json.RawMessage
	}
	value := line[begin+len(`"flows":`) : end]
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, err
	}
	var file bytes.Buffer
	if err := tables.WriteList(&file, value); err != nil {
		return nil, err
	}
	name := f.flowsPath(id)
	if err := replace(name, file.Bytes()); err != nil {
		return nil, err
	}
	rest := append([]byte(nil), line[:begin]...)
	rest = strconv.AppendInt(append(rest, `"flows_kept":`...), int64(len(list.Rows)), 10)
	return append(rest, line[end:]...), nil
}

// memberOf returns the place of a member of an object, from its name to the end of its value; -1 without one.
func memberOf(object []byte, name string) (begin, end int, err error) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	if _, err := decoder.Token(); err != nil {
		return -1, -1, err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return -1, -1, err
		}
		after := int(decoder.InputOffset())
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return -1, -1, err
		}
		if key == name {
			return after - len(name) - 2, int(decoder.InputOffset()), nil
		}
	}
	return -1, -1, nil
}
