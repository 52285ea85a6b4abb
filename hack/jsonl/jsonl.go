// Package jsonl keeps rows in files of JSON lines (https://jsonlines.org).
package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Read returns the rows of a file, in its order; none when there is no such file. The error
// names the line that is no row.
func Read[R any](path string) (rows []R, _ error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	number := 0
	for line := range bytes.Lines(content) {
		number++
		var row R
		if err := json.Unmarshal(line, &row); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Append adds a row to a file, which it makes when there is none, in one write: rows of
// processes that do so at once don't mix.
func Append(path string, row any) error {
	line, err := json.Marshal(row)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}
