// Package store reads and writes objects in an object store, or in a directory, which is a
// store of the same kind. It is the only package that links the SDKs of clouds, and the
// helper the only program that links it.
//
// Its errors are for people, who have nothing else to go by: they name the store and say
// what to do. They never have a credential in them.
package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
	"golang.org/x/sys/unix"
)

// Errors that callers decide by.
var (
	// ErrExists is about an object that was to be written and is already there.
	ErrExists = errors.New("it exists")
	// ErrAbsent is about an object that is not there.
	ErrAbsent = errors.New("it does not exist")
)

const (
	// partBytes is how much of an object is uploaded at a time, and kept in memory for that.
	// It is the least that S3 allows, which takes 10,000 parts and so objects of 50 GB.
	partBytes = 5 << 20
	// answering is how long a request may take that transfers next to nothing.
	answering = time.Minute
)

// Store is an open store. It can be used from several goroutines.
type Store struct {
	bucket   *blob.Bucket
	config   Config
	secrets  []string
	location string
}

// Object is what a listing says of an object.
type Object struct {
	Key     string
	Bytes   int64
	ModTime time.Time // by the store's clock
}

// Location returns where an object is, such as s3://backups/prod/manifest.json.
func (s *Store) Location(key string) string { return s.location + "/" + key }

// Close releases what the store holds.
func (s *Store) Close() error { return s.bucket.Close() }

// Put writes an object that is not there yet, or fails with ErrExists. It has its name only
// when it is whole. What an interrupted upload has left is nothing that is ever listed; an
// object store may keep, and charge for, the parts until a lifecycle rule removes them.
func (s *Store) Put(ctx context.Context, key string, content io.Reader) error {
	return s.write(ctx, key, content, true)
}

// Replace writes a small object, in place of one that is there.
func (s *Store) Replace(ctx context.Context, key string, content []byte) error {
	return s.write(ctx, key, bytes.NewReader(content), false)
}

func (s *Store) write(ctx context.Context, key string, content io.Reader, ifNotExist bool) error {
	options := &blob.WriterOptions{BufferSize: partBytes, MaxConcurrency: 1, ContentType: "application/octet-stream", IfNotExist: ifNotExist, BeforeWrite: s.config.beforeWrite}
	if s.config.Kind == Azure {
		// The driver's writer panics when an upload fails (gocloud.dev v0.47.0); this has
		// none, and writes no object when the content can't be read to its end.
		if err := s.bucket.Upload(ctx, key, struct{ io.Reader }{content}, options); err != nil {
			return s.explainWrite(key, err)
		}
		return nil
	}
	// A writer that is closed with a context that ended does not write the object.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := s.bucket.NewWriter(ctx, key, options)
	if err != nil {
		return s.explainWrite(key, err)
	}
	if _, err := io.Copy(w, content); err != nil {
		cancel()
		_ = w.Close() // its error is that of the copy, or that it was canceled
		return s.explainWrite(key, err)
	}
	if err := w.Close(); err != nil {
		return s.explainWrite(key, err)
	}
	return s.flush()
}

// flush has the file system of a directory write to disk what it only has in memory.
func (s *Store) flush() error {
	if s.config.Kind != Directory {
		return nil
	}
	dir, err := os.Open(s.config.Bucket)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()                 // it was not written to
	if err := unix.Syncfs(int(dir.Fd())); err != nil { //nolint:gosec // a descriptor is small
		return fmt.Errorf("write %s to disk: %w", s.config.Bucket, err)
	}
	return nil
}

// Open returns the content of an object, or fails with ErrAbsent. The caller closes it.
func (s *Store) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	r, err := s.bucket.NewReader(ctx, key, nil)
	if s.config.Kind == GCS && gcerrors.Code(err) == gcerrors.NotFound && advice(err) == "" {
		// It does not say whether that is the object or the bucket, and a backup without its
		// snapshot is damaged, while one in a bucket that is gone may come back with it.
		if _, _, why := s.page(ctx, key, blob.FirstPageToken); why != nil {
			err = why
		}
	}
	if err != nil {
		return nil, s.explain("read "+key, err)
	}
	return reader{r, s, key}, nil
}

// reader explains the errors of a transfer.
type reader struct {
	*blob.Reader
	store *Store
	key   string
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.store.explain("read "+r.key, err)
	}
	return n, err
}

// WriteTo hides that of the embedded reader, which would not explain its errors.
func (r reader) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{r})
}

// Read returns the content of a small object, or fails with ErrAbsent. More bytes than the
// limit are an error.
func (s *Store) Read(ctx context.Context, key string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answering, errSlow)
	defer cancel()
	r, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was read
	content, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(content)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", s.Location(key), limit)
	}
	return content, err
}

// List returns all objects whose keys begin with a prefix, which ends with a slash.
func (s *Store) List(ctx context.Context, prefix string) ([]Object, error) {
	var out []Object
	token := blob.FirstPageToken
	for {
		page, next, err := s.page(ctx, prefix, token)
		if err != nil {
			return nil, s.explain("list "+prefix, err)
		}
		for _, o := range page {
			out = append(out, Object{Key: o.Key, Bytes: o.Size, ModTime: o.ModTime})
		}
		if len(next) == 0 {
			return out, nil
		}
		token = next
	}
}

func (s *Store) page(ctx context.Context, prefix string, token []byte) ([]*blob.ListObject, []byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answering, errSlow)
	defer cancel()
	page, next, err := s.bucket.ListPage(ctx, token, 1000, &blob.ListOptions{Prefix: prefix})
	if err != nil && context.Cause(ctx) != nil {
		err = errors.Join(context.Cause(ctx), err)
	}
	return page, next, err
}

// Delete deletes an object. That there is none is no error.
func (s *Store) Delete(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answering, errSlow)
	defer cancel()
	if err := s.bucket.Delete(ctx, key); err != nil {
		// A refusal has the code of what is not there, where a store does not let on which it is.
		if err := s.explain("delete "+key, err); !errors.Is(err, ErrAbsent) {
			return err
		}
	}
	return s.flush()
}
