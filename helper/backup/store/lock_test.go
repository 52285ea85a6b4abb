package store

import (
	"bytes"
	"crypto/md5" //nolint:gosec // what S3 has
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// locked answers as a bucket with Object Lock: it takes what has a checksum, and keeps what it is
// given by how large it is.
type locked struct {
	t     *testing.T
	taken []int
	sums  []string
}

// sum returns which checksum a request has, empty when it has none.
func sum(header http.Header) string {
	if header.Get("Content-MD5") != "" {
		return "Content-MD5"
	}
	for name := range header {
		if strings.HasPrefix(name, "X-Amz-Checksum-") {
			return name
		}
	}
	return header.Get("X-Amz-Trailer") // which follows the content
}

func (l *locked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		l.t.Error(err)
	}
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodPost && query.Has("uploads"):
		fmt.Fprint(w, "<InitiateMultipartUploadResult><Bucket>backups</Bucket><Key>a</Key><UploadId>u</UploadId></InitiateMultipartUploadResult>")
	case r.Method == http.MethodPost:
		fmt.Fprint(w, "<CompleteMultipartUploadResult><Bucket>backups</Bucket><Key>a</Key><ETag>e</ETag></CompleteMultipartUploadResult>")
	case r.Method != http.MethodPut:
		w.WriteHeader(http.StatusNoContent)
	case sum(r.Header) == "":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, "<Error><Code>InvalidRequest</Code><Message>Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters</Message></Error>")
	default:
		digest := md5.Sum(content) //nolint:gosec // what S3 has
		if got := r.Header.Get("Content-MD5"); got != "" && got != base64.StdEncoding.EncodeToString(digest[:]) {
			l.t.Errorf("of %d bytes, Content-MD5 is %s", len(content), got)
		}
		l.taken, l.sums = append(l.taken, len(content)), append(l.sums, sum(r.Header))
		w.Header().Set("ETag", `"e"`)
	}
}

// TestObjectLock uploads to a bucket that takes nothing without a checksum, at once and in parts: to
// Amazon, and to other stores, which know no other one than Content-MD5.
func TestObjectLock(t *testing.T) {
	for _, amazon := range []bool{false, true} {
		bucket := &locked{t: t}
		server := httptest.NewTLSServer(bucket)
		config, want := Config{Endpoint: server.URL, attempts: 1}, "Content-MD5"
		if amazon {
			t.Setenv("AWS_ENDPOINT_URL_S3", server.URL)
			config.Endpoint, want = "", "x-amz-checksum-crc32"
		}
		s := open(t, config, certificate(server))
		for _, size := range []int{1, 17 << 20} { // the SDK uploads from 16 MiB on in parts
			if err := s.Put(t.Context(), "a", bytes.NewReader(make([]byte, size))); err != nil {
				t.Errorf("Amazon %v, %d bytes: %v", amazon, size, err)
			}
		}
		if len(bucket.sums) != 5 {
			t.Errorf("Amazon %v: taken were parts of %v", amazon, bucket.taken)
		}
		for _, sum := range bucket.sums {
			if !strings.EqualFold(sum, want) {
				t.Errorf("Amazon %v: the checksums were %v", amazon, bucket.sums)
			}
		}
		server.Close()
	}
}
