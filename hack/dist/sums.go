package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// sumsFile is where sums are, in the form that "sha256sum --check" reads.
const sumsFile = "SHA256SUMS"

// writeSums writes the sum of each file that is there, in the order of names.
func writeSums(_ context.Context, _ *release, dir string) error {
	var sums []byte
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		sum, err := sum(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		sums = fmt.Appendf(sums, "%s  %s\n", sum, filepath.ToSlash(relative))
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), sums, 0o644)
}

// sum returns the SHA-256 of a file in hexadecimal digits.
func sum(path string) (string, error) {
	content, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = content.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, content); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
