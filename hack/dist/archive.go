package main

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"
	"time"
)

// packed is a file in an archive or a package. A name that ends with a slash is that of a directory.
type packed struct {
	name string
	// path is where its content is, unless content has it.
	path    string
	content string
	mode    int64
}

// read returns its content.
func (p packed) read() ([]byte, error) {
	if p.path == "" {
		return []byte(p.content), nil
	}
	return os.ReadFile(p.path)
}

// writeArchive writes files, all of one date, as a compressed tar archive.
func writeArchive(name string, date time.Time, files []packed) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return pack(file, date, files)
}

// pack writes files, all of one date, as a compressed tar archive. They are root's.
func pack(w io.Writer, date time.Time, files []packed) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		content, err := f.read()
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(content)), ModTime: date, Format: tar.FormatUSTAR}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag, header.Mode = tar.TypeDir, cmp.Or(f.mode, 0o755)
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}
