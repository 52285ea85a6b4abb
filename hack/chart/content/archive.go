package content

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"time"
)

// ArchiveName returns the name of the archive of the chart of an operator of a version.
func ArchiveName(version string) string { return Name + "-" + chartVersion(version) + ".tgz" }

// chartVersion returns the chart's version, which Helm wants without "v".
func chartVersion(operator string) string { return strings.TrimPrefix(operator, "v") }

// Archive returns files as Helm installs and pushes a chart, all of one date: the same
// files give the same bytes.
func Archive(files []File, date time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		if err := archive.WriteHeader(&tar.Header{Name: Name + "/" + f.Name, Mode: 0o644, Size: int64(len(f.Content)), ModTime: date, Format: tar.FormatUSTAR}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.Content); err != nil {
			return nil, err
		}
	}
	err = errors.Join(archive.Close(), compressed.Close())
	return out.Bytes(), err
}
