package store

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const hiddenKey = "hIdDeNsEcReTkEy"

// at opens an S3 bucket at an endpoint that is trusted by a CA, and asks once.
func at(t *testing.T, endpoint string, ca []byte) *Store {
	t.Helper()
	return open(t, Config{Endpoint: endpoint, attempts: 1}, ca)
}

// open is at for what else a configuration has of a store.
func open(t *testing.T, config Config, ca []byte) *Store {
	t.Helper()
	t.Setenv("AWS_CA_BUNDLE", "")
	dir := t.TempDir()
	for name, content := range map[string]string{"accessKeyID": "backups-user", "secretAccessKey": hiddenKey, "sessionToken": "hidden-token", "ca.crt": string(ca)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config.Kind, config.Bucket, config.Region, config.Credentials, config.CAFile = S3, "backups", "eu-1", dir, filepath.Join(dir, "ca.crt")
	s, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func certificate(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// TestAnswers expects each refusal of a store to say what to do, and no credential, not
// even when the store's answer has one.
func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		status int
		code   string
		advice string
	}{
		{403, "AccessDenied", adviceRight},
		{403, "InvalidAccessKeyId", adviceKey},
		{403, "SignatureDoesNotMatch", adviceKey},
		{400, "ExpiredToken", adviceKey},
		{403, "RequestTimeTooSkewed", adviceClock},
		{404, "NoSuchBucket", adviceBucket},
		{301, "PermanentRedirect", adviceRegion},
		{400, "AuthorizationHeaderMalformed", adviceRegion},
		{501, "NotImplemented", adviceConditions},
		{502, "", adviceBroken},
		{403, "", adviceRight},
		{401, "", adviceKey},
		{503, "SlowDown", adviceBusy},
		{409, "ConditionalRequestConflict", adviceRace},
		{504, "", adviceBroken},
		{500, "InternalError", adviceBroken},
	} {
		away := slices.Contains([]string{adviceBusy, adviceBroken}, test.advice)
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(test.status)
			if test.code != "" {
				fmt.Fprintf(w, "<Error><Code>%s</Code><Message>refused: %s %s</Message></Error>", test.code, r.Header.Get("X-Amz-Security-Token"), hiddenKey)
			}
		}))
		s := at(t, server.URL, certificate(server))
		for doing, do := range map[string]func() error{
			"list prod/":   func() error { _, err := s.List(t.Context(), "prod/"); return err },
			"write prod/a": func() error { return s.Put(t.Context(), "prod/a", strings.NewReader("x")) },
			"read prod/a":  func() error { _, err := s.Read(t.Context(), "prod/a", 1); return err },
		} {
			err := do()
			if want := fmt.Sprintf("store s3://backups (endpoint %s, region eu-1): %s: %s (", server.URL, doing, test.advice); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%d %s: %v, want %s", test.status, test.code, err, want)
			}
			if errors.Is(err, ErrUnreachable) != away {
				t.Errorf("%d %s: it is taken for unreachable: %v, want %v: %v", test.status, test.code, !away, away, err)
			}
			if err != nil && (strings.Contains(err.Error(), hiddenKey) || strings.Contains(err.Error(), "hidden-token") || len(err.Error()) > 1500) {
				t.Errorf("%d %s: it shows a credential, or is too long: %v", test.status, test.code, err)
			}
		}
		server.Close()
	}
}

// TestObjects tells apart that an object is there already, and that it is not.
func TestObjects(t *testing.T) {
	conditions := make(chan string, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, status := "NoSuchKey", http.StatusNotFound
		if r.Method == http.MethodPut {
			conditions <- r.Header.Get("If-None-Match")
			code, status = "PreconditionFailed", http.StatusPreconditionFailed
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
	}))
	defer server.Close()
	s := at(t, server.URL, certificate(server))
	if err := s.Put(t.Context(), "a", strings.NewReader("x")); !errors.Is(err, ErrExists) || <-conditions != "*" {
		t.Errorf("one that is there: %v", err)
	}
	if err := s.Replace(t.Context(), "a", []byte("x")); err == nil || <-conditions != "" {
		t.Errorf("it is replaced on a condition: %v", err)
	}
	if _, err := s.Read(t.Context(), "a", 1); !errors.Is(err, ErrAbsent) {
		t.Errorf("one that is not there: %v", err)
	}
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Errorf("one that is not there is deleted: %v", err)
	}
}

// stranger returns a certificate that no server has.
func stranger(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestConnections has no store that answers.
func TestConnections(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}))
	defer server.Close()
	other := httptest.NewTLSServer(nil)
	defer other.Close()
	plain := httptest.NewServer(nil)
	defer plain.Close()
	closed := httptest.NewTLSServer(nil)
	closed.Close()
	own := certificate(server)
	for reason, test := range map[string]struct {
		endpoint    string
		ca          []byte
		advice      string
		unreachable bool
	}{
		"another CA":           {server.URL, stranger(t), adviceCA, false},
		"another host name":    {strings.Replace(server.URL, "127.0.0.1", "localhost", 1), own, adviceName, false},
		"no TLS":               {strings.Replace(plain.URL, "http:", "https:", 1), own, advicePlain, false},
		"nothing listens":      {closed.URL, own, adviceReach, true},
		"a name without an IP": {"https://store.invalid", own, adviceDNS, true},
		"it hangs up":          {server.URL, own, "", true},
	} {
		_, err := at(t, test.endpoint, test.ca).List(t.Context(), "prod/")
		if err == nil || !strings.Contains(err.Error(), "list prod/: "+test.advice) {
			t.Errorf("%s: %v, want %s", reason, err, test.advice)
		}
		if errors.Is(err, ErrUnreachable) != test.unreachable {
			t.Errorf("%s: it is taken for unreachable: %v: %v", reason, !test.unreachable, err)
		}
	}
}

// TestStalled gives a store up that stands still, and not one that is slow.
func TestStalled(t *testing.T) {
	const impatient = 2 * time.Second
	slow, still := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "6")
		for range 6 {
			<-time.After(impatient / 4) // as slow as it is
			_, _ = w.Write([]byte("x"))
			_ = http.NewResponseController(w).Flush()
		}
	}), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // or it would not learn that the client has gone
		w.Header().Set("Content-Length", "6")
		_, _ = w.Write([]byte("x"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	silent := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	for reason, test := range map[string]struct {
		handler http.Handler
		says    string
	}{
		"it is slow":                    {slow, ""},
		"it stands still in the middle": {still, "read a: " + adviceReach},
		"it never answers":              {silent, "read a: " + adviceReach},
	} {
		t.Run(strings.ReplaceAll(reason, " ", "-"), func(t *testing.T) {
			server := httptest.NewTLSServer(test.handler)
			defer server.Close()
			s := open(t, Config{Endpoint: server.URL, attempts: 1, patience: impatient}, certificate(server))
			content, err := s.Read(t.Context(), "a", 10)
			if test.says == "" && (err != nil || string(content) != "xxxxxx") || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("%q, %v; want %q", content, err, test.says)
			}
		})
	}
}

// TestCut has a connection that breaks in the middle of an answer.
func TestCut(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "6")
		_, _ = w.Write([]byte("x"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	if content, err := at(t, server.URL, certificate(server)).Read(t.Context(), "a", 10); err == nil || !strings.Contains(err.Error(), "read a: "+adviceCut) {
		t.Errorf("%q, %v", content, err)
	}
	// A refusal is one, although its reason is lost, and is asked for again while it is.
	var refusals atomic.Int32
	refusing := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		const body = "<Error><Code>SignatureDoesNotMatch</Code></Error>"
		if refusals.Add(1) > 2 {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, body)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, body[:9])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer refusing.Close()
	for _, test := range []struct {
		attempts int
		advice   string
	}{{1, adviceRefused}, {2, adviceKey}} {
		s := open(t, Config{Endpoint: refusing.URL, attempts: test.attempts}, certificate(refusing))
		if err := s.Put(t.Context(), "a", strings.NewReader("x")); err == nil || !strings.Contains(err.Error(), "write a: "+test.advice) {
			t.Errorf("after %d attempts: %v, want %s", test.attempts, err, test.advice)
		}
	}
	if got := refusals.Load(); got != 3 {
		t.Errorf("%d requests, want 3", got)
	}
	// What is written meanwhile may fail first.
	if got := advice(fmt.Errorf("set tcp 127.0.0.1:1: %w", net.ErrClosed)); got != adviceCut {
		t.Errorf("%q", got)
	}
}
