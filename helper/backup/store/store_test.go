package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// directory opens a store in a new directory.
func directory(t *testing.T) (*Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(t.Context(), Config{Kind: Directory, Bucket: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, dir
}

func read(t *testing.T, s *Store, key string) string {
	t.Helper()
	content, err := s.Read(t.Context(), key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestDirectory(t *testing.T) {
	s, dir := directory(t)
	if err := s.Put(t.Context(), "prod/one/a", strings.NewReader("first")); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "prod/one/a", strings.NewReader("second")); !errors.Is(err, ErrExists) {
		t.Errorf("written twice: %v", err)
	}
	if got := read(t, s, "prod/one/a"); got != "first" {
		t.Errorf("it was overwritten with %q", got)
	}
	if err := s.Replace(t.Context(), "prod/one/a", []byte("third")); err != nil || read(t, s, "prod/one/a") != "third" {
		t.Errorf("it is not replaced: %v", err)
	}
	if _, err := s.Read(t.Context(), "prod/one/b", 1); !errors.Is(err, ErrAbsent) {
		t.Errorf("of an object that is not there: %v", err)
	}
	if _, err := s.Read(t.Context(), "prod/one/a", 4); err == nil || !strings.Contains(err.Error(), dir+"/prod/one/a has more than 4 bytes") {
		t.Errorf("of one that is too large: %v", err)
	}
	for _, key := range []string{"prod/one/b/c", "prod/one2/a", "other"} {
		if err := s.Put(t.Context(), key, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	found, err := s.List(t.Context(), "prod/one/")
	var keys []string
	for _, o := range found {
		keys = append(keys, o.Key)
		if o.ModTime.IsZero() || o.Bytes == 0 {
			t.Errorf("%+v has no time or size", o)
		}
	}
	if want := []string{"prod/one/a", "prod/one/b/c"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("listed are %v, %v; want %v", keys, err, want)
	}
	if found, err := s.List(t.Context(), "prod/none/"); err != nil || len(found) > 0 {
		t.Errorf("listed are %v, %v", found, err)
	}
	for range 2 {
		if err := s.Delete(t.Context(), "prod/one/a"); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Read(t.Context(), "prod/one/a", 1); !errors.Is(err, ErrAbsent) {
		t.Errorf("it is deleted: %v", err)
	}
}

// broken is a source that breaks in the middle.
type broken struct{ left int }

var errBroken = errors.New("the disk is gone")

func (b *broken) Read(p []byte) (int, error) {
	if b.left--; b.left < 0 {
		return 0, errBroken
	}
	return copy(p, bytes.Repeat([]byte("x"), len(p))), nil
}

// TestInterrupted leaves no object of which only a part was written.
func TestInterrupted(t *testing.T) {
	s, dir := directory(t)
	if err := s.Put(t.Context(), "prod/a", &broken{left: 3}); err == nil || !strings.Contains(err.Error(), errBroken.Error()) {
		t.Errorf("its source broke: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	source := io.MultiReader(strings.NewReader("x"), reading(func() { cancel() }))
	if err := s.Put(ctx, "prod/b", source); !errors.Is(err, context.Canceled) {
		t.Errorf("it was canceled: %v", err)
	}
	if found, err := s.List(t.Context(), ""); err != nil || len(found) > 0 {
		t.Errorf("left are %v, %v", found, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "prod", "*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// reading does something when it is read, and is empty.
type reading func()

func (r reading) Read([]byte) (int, error) {
	r()
	return 0, io.EOF
}

func TestDirectoryRefusals(t *testing.T) {
	if _, err := Open(t.Context(), Config{Kind: Directory, Bucket: filepath.Join(t.TempDir(), "absent")}); err == nil || !strings.Contains(err.Error(), "the volume has no such directory") {
		t.Errorf("a directory that is not there: %v", err)
	}
	s, dir := directory(t)
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "file/a", strings.NewReader("x")); err == nil || !strings.HasPrefix(err.Error(), "store "+dir+": write file/a: ") {
		t.Errorf("below a file: %v", err)
	}
}

func TestConfig(t *testing.T) {
	secret := func(keys ...string) string {
		dir := t.TempDir()
		for _, key := range keys {
			if err := os.WriteFile(filepath.Join(dir, key), []byte("value\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	t.Setenv("AWS_CA_BUNDLE", "") // that of this computer would count
	for reason, test := range map[string]struct {
		config Config
		says   string
	}{
		"no kind":                     {Config{Bucket: "b"}, `"" is not a kind of store: choose s3, gcs, azure or directory`},
		"another kind":                {Config{Kind: "ftp", Bucket: "b"}, `"ftp" is not a kind of store`},
		"no bucket":                   {Config{Kind: S3}, "no bucket, container or directory is given"},
		"no account":                  {Config{Kind: Azure, Bucket: "b"}, "no storage account is given"},
		"no TLS":                      {Config{Kind: S3, Bucket: "b", Endpoint: "http://s3.example.com"}, "is not a URL such as https://"},
		"no host":                     {Config{Kind: S3, Bucket: "b", Endpoint: "https://"}, "is not a URL such as https://"},
		"a password in the endpoint":  {Config{Kind: S3, Bucket: "b", Endpoint: "https://me:hidden@s3.example.com"}, "is not a URL such as https://"},
		"a signature in the endpoint": {Config{Kind: Azure, Bucket: "b", Account: "a", Endpoint: "https://a.blob.core.windows.net?sig=hidden"}, "is not a URL such as https://"},
		"no key":                      {Config{Kind: S3, Bucket: "b", Credentials: secret("accessKeyID")}, "has no secretAccessKey: a store of kind s3 needs the keys accessKeyID, secretAccessKey"},
		"keys of another kind":        {Config{Kind: GCS, Bucket: "b", Credentials: secret("accountKey")}, "has no serviceAccount.json"},
		"no JSON":                     {Config{Kind: GCS, Bucket: "b", Credentials: secret("serviceAccount.json")}, "open it"},
		"no base64":                   {Config{Kind: Azure, Bucket: "b", Account: "a", Credentials: secret("accountKey")}, "has no valid accountKey"},
		"no CA":                       {Config{Kind: S3, Bucket: "b", Region: "r", CAFile: filepath.Join(secret(), "absent")}, "read the CA of the store"},
		"a CA that is none":           {Config{Kind: S3, Bucket: "b", Region: "r", CAFile: filepath.Join(secret("ca.crt"), "ca.crt")}, "there is no PEM certificate in "},
		"as it should be":             {Config{Kind: S3, Bucket: "b", Region: "r", Credentials: secret("accessKeyID", "secretAccessKey", "sessionToken")}, ""},
		"another store":               {Config{Kind: S3, Bucket: "b", Endpoint: "https://10.0.0.1:9000", Credentials: secret("accessKeyID", "secretAccessKey")}, ""},
	} {
		s, err := Open(t.Context(), test.config)
		if (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", reason, err, test.says)
		}
		if err != nil && (strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "value")) {
			t.Errorf("%s: it shows a credential: %v", reason, err)
		}
		if err == nil {
			_ = s.Close()
		}
	}
}
