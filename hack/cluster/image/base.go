package image

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// caBundle is where programs find the public CA certificates.
const caBundle = "etc/ssl/certs/ca-certificates.crt"

// file is one entry of a layer.
type file struct {
	path    string
	content []byte
	mode    int64
	dir     bool
}

// header returns the entry's tar header; nothing in it depends on the machine.
func (f file) header() *tar.Header {
	h := &tar.Header{Name: f.path, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	if f.dir {
		h.Name, h.Typeflag = f.path+"/", tar.TypeDir
		if h.Mode == 0 {
			h.Mode = 0o755
		}
	}
	return h
}

// baseFiles is what every image has below its programs: a user, a temporary
// folder and Mozilla's CA certificates at the version that go.mod pins.
func baseFiles() []file {
	return []file{
		{path: "etc", dir: true},
		{path: "etc/passwd", mode: 0o644, content: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{path: "etc/group", mode: 0o644, content: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{path: "etc/ssl", dir: true},
		{path: "etc/ssl/certs", dir: true},
		{path: caBundle, mode: 0o644, content: caCertificates()},
		{path: "tmp", dir: true, mode: 0o1777},
	}
}

// caCertificates returns the roots that carry no constraint beyond X.509's
// own, as PEM: a file can't express the others' constraints.
func caCertificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return out.Bytes()
}
