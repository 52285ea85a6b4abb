package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// errNoLog is about a data dir that etcd has begun to fill, or that has lost what
// matters most.
var errNoLog = errors.New("there are files but no write-ahead log (member/wal/*.wal)")

// data is what a data dir holds: nothing, the data of an identity, or something
// that isn't whole.
type data struct {
	identity
	damage error
}

func (d data) exists() bool { return d.identity != identity{} }

// readData reads the identity at the head of every segment of the write-ahead
// log. Files without a readable log are damage; directories alone are nothing. The
// error is that of the file system.
func readData(dir string) (data, error) {
	files, segments, err := list(dir)
	if err != nil || files == 0 {
		return data{}, err
	}
	if len(segments) == 0 {
		return data{damage: errNoLog}, nil
	}
	var d data
	for _, path := range segments {
		id, err := readSegment(path)
		switch {
		case errors.Is(err, errFormat):
			return data{damage: err}, nil
		case err != nil:
			return data{}, err
		case d.exists() && id != d.identity:
			return data{damage: fmt.Errorf("its write-ahead log is of two members: of cluster %x, member ID %x, and in %s of cluster %x, member ID %x", d.cluster, d.member, path, id.cluster, id.member)}, nil
		}
		d.identity = id
	}
	return d, nil
}

// Identity returns the IDs, as etcdctl prints them, of the cluster and of the member that a
// data dir has the data of. It fails where there is none, or where it is damaged.
func Identity(dataDir string) (cluster, member string, err error) {
	d, err := readData(dataDir)
	switch {
	case err != nil:
		return "", "", err
	case d.damage != nil:
		return "", "", d.damage
	case !d.exists():
		return "", "", fmt.Errorf("there is no data in %s", dataDir)
	}
	return strconv.FormatUint(d.cluster, 16), strconv.FormatUint(d.member, 16), nil
}

// list counts the files below a data dir, which may be absent, and returns
// those that are segments of the log.
func list(dir string) (files int, segments []string, err error) {
	log := filepath.Join(dir, "member", "wal")
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path == dir:
			return nil
		case err != nil:
			return err
		case entry.IsDir():
			return nil
		}
		files++
		if filepath.Dir(path) == log && filepath.Ext(path) == ".wal" {
			segments = append(segments, path)
		}
		return nil
	})
	return files, segments, err
}

func readSegment(path string) (identity, error) {
	file, err := os.Open(path)
	if err != nil {
		return identity{}, err
	}
	defer func() { _ = file.Close() }()
	id, err := readIdentity(file)
	if err != nil {
		return identity{}, fmt.Errorf("%s: %w", path, err)
	}
	return id, nil
}
