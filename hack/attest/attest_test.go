package attest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

var digest = "sha256:" + strings.Repeat("0123456789abcdef", 4)

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestOpen opens what was signed, as what it was signed for and as nothing else.
func TestOpen(t *testing.T) {
	key := newKey(t)
	content, err := Sign(key, Provenance, digest, []byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Open(content, &key.PublicKey, Provenance, digest); err != nil || string(got) != `{"a":1}` {
		t.Errorf("got %s, %v", got, err)
	}
	other := "sha256:" + strings.Repeat("f", 64)
	for what, open := range map[string]func() ([]byte, error){
		"another key has signed it":     func() ([]byte, error) { return Open(content, &newKey(t).PublicKey, Provenance, digest) },
		"not with https://spdx.dev":     func() ([]byte, error) { return Open(content, &key.PublicKey, Materials, digest) },
		"not about " + other:            func() ([]byte, error) { return Open(content, &key.PublicKey, Provenance, other) },
		"this is no bundle":             func() ([]byte, error) { return Open(content[1:], &key.PublicKey, Provenance, digest) },
		"not a bundle of one statement": func() ([]byte, error) { return Open([]byte("{}"), &key.PublicKey, Provenance, digest) },
	} {
		if got, err := open(); err == nil || got != nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %s, %v, want that %s", got, err, what)
		}
	}
	if _, err := Sign(key, "any", digest, nil); err == nil {
		t.Error("a statement of an unknown kind is signed")
	}
}

// TestEveryByteCounts changes what is signed, one byte at a time.
func TestEveryByteCounts(t *testing.T) {
	key := newKey(t)
	content, err := Sign(key, Materials, digest, []byte(`{"spdxVersion":"SPDX-2.3"}`))
	if err != nil {
		t.Fatal(err)
	}
	var b bundle
	if err := json.Unmarshal(content, &b); err != nil {
		t.Fatal(err)
	}
	for i := range b.Envelope.Payload {
		b.Envelope.Payload[i] ^= 1
		changed, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(changed, &key.PublicKey, Materials, digest); err == nil || !strings.Contains(err.Error(), "what is signed was changed") {
			t.Errorf("with another byte %d: %v", i, err)
		}
		b.Envelope.Payload[i] ^= 1
	}
}

// TestFile signs a file.
func TestFile(t *testing.T) {
	key := newKey(t)
	sig, err := SignFile(key, []byte("sums"))
	if err != nil {
		t.Fatal(err)
	}
	if err := VerifyFile(&key.PublicKey, []byte("sums"), sig); err != nil {
		t.Error(err)
	}
	if err := VerifyFile(&key.PublicKey, []byte("sumz"), sig); err == nil {
		t.Error("a changed file is verified")
	}
}

// TestPredicate reads the provenance as SLSA v1 has it.
func TestPredicate(t *testing.T) {
	text, err := Build{Source: "https://example.com/operator", Ref: "refs/tags/v0.2.0", Commit: "0123", Builder: "https://example.com/builder", Invocation: "https://example.com/runs/7", Version: "v0.2.0", Repository: "registry.example", Go: "go1.26.8"}.Predicate()
	if err != nil {
		t.Fatal(err)
	}
	var predicate struct {
		Definition struct {
			BuildType    string            `json:"buildType"`
			External     map[string]string `json:"externalParameters"`
			Internal     map[string]string `json:"internalParameters"`
			Dependencies []struct {
				URI    string            `json:"uri"`
				Digest map[string]string `json:"digest"`
			} `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		Run struct {
			Builder  map[string]string `json:"builder"`
			Metadata map[string]string `json:"metadata"`
		} `json:"runDetails"`
	}
	if err := json.Unmarshal(text, &predicate); err != nil {
		t.Fatal(err)
	}
	d, r := predicate.Definition, predicate.Run
	if d.BuildType != BuildType || d.External["version"] != "v0.2.0" || d.External["imageRepository"] != "registry.example" || d.Internal["go"] != "go1.26.8" {
		t.Errorf("it was built by %+v", d)
	}
	if len(d.Dependencies) != 1 || d.Dependencies[0].URI != "git+https://example.com/operator@refs/tags/v0.2.0" || d.Dependencies[0].Digest["gitCommit"] != "0123" {
		t.Errorf("it was built of %+v", d.Dependencies)
	}
	if r.Builder["id"] != "https://example.com/builder" || r.Metadata["invocationId"] != "https://example.com/runs/7" {
		t.Errorf("it was built by %+v", r)
	}
}

// TestAttached has statements refer to an image, in a registry that lists referrers and in
// one that does not.
func TestAttached(t *testing.T) {
	for what, supported := range map[string]bool{"with the API of referrers": true, "without": false} {
		t.Run(what, func(t *testing.T) {
			server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(supported)))
			t.Cleanup(server.Close)
			artifact, key := pushed(t, server), newKey(t)
			if got, err := Attached(t.Context(), &key.PublicKey, artifact, Signature); err == nil || !strings.Contains(err.Error(), "has no signature") {
				t.Errorf("before: %s, %v", got, err)
			}
			for kind, predicate := range map[Kind]string{Signature: "{}", Materials: `{"a":1}`} {
				if err := Attach(t.Context(), key, artifact, kind, []byte(predicate)); err != nil {
					t.Fatal(err)
				}
			}
			if err := Attach(t.Context(), key, artifact, Materials, []byte(`{"b":2}`)); err != nil {
				t.Fatal(err)
			}
			got, err := Attached(t.Context(), &key.PublicKey, artifact, Materials)
			if err != nil || len(got) != 2 {
				t.Errorf("attached are %s, %v", got, err)
			}
			if got, err := Attached(t.Context(), &newKey(t).PublicKey, artifact, Signature); err == nil || len(got) > 0 {
				t.Errorf("signed by another key: %s, %v", got, err)
			}
			if got, err := Attached(t.Context(), &key.PublicKey, artifact, Provenance); err == nil {
				t.Errorf("there is provenance: %s", got)
			}
		})
	}
}

// pushed pushes an image, and returns it by its digest.
func pushed(t *testing.T, server *httptest.Server) name.Digest {
	t.Helper()
	image, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(strings.TrimPrefix(server.URL, "http://") + "/any/image:tag")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, image); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return tag.Digest(digest.String())
}
