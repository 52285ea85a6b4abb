package framework

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gopkg.in/go-jose/go-jose.v2/jwt"
)

// The servers that stand for the stores of clouds.
const (
	gcsVersion   = "v1.55.1"
	azureVersion = "v3.37.0"
)

// Store is a store for backups, on loopback and with TLS.
type Store struct {
	// Kind is s3, gcs or azure.
	Kind string
	// Front is the proxy that clients reach it through.
	Front *Front
	// Bucket is the name of the only bucket, or container.
	Bucket string
	// Credentials is a directory with the credentials of its only user, as a mounted
	// Secret has them, and Wrong one with those that it does not accept.
	Credentials, Wrong string

	// path is what follows the address in the endpoint, and account Azure's.
	path, account string
}

// StoreKinds are the kinds of stores that StartStore starts.
var StoreKinds = []string{"s3", "gcs", "azure"}

// StartStore starts a store, with an empty bucket, that ends with the test.
func StartStore(t *testing.T, kind string) *Store {
	t.Helper()
	s := &Store{Kind: kind, Bucket: "registry-backups"}
	switch kind {
	case "s3":
		s3 := StartS3(t)
		s.Front = StartFront(t, s3.CA, func(string) string { return s3.Endpoint })
		s.Credentials = s3.Credentials
		s.Wrong = credentials(t, map[string]string{"accessKeyID": "backups", "secretAccessKey": "correct-horse"})
	case "gcs":
		s.gcs(t)
	case "azure":
		s.azure(t)
	default:
		t.Fatalf("there is no store of kind %q", kind)
	}
	return s
}

// Endpoint is its URL.
func (s *Store) Endpoint() string { return s.Front.URL + s.path }

// Flags are what the helper needs to use the bucket.
func (s *Store) Flags() []string {
	flags := []string{"--store=" + s.Kind, "--bucket=" + s.Bucket, "--endpoint=" + s.Endpoint(), "--store-cacert=" + s.Front.CA.File, "--credentials=" + s.Credentials}
	if s.account != "" {
		flags = append(flags, "--account="+s.account)
	}
	return flags
}

// credentials writes what a mounted Secret has.
func credentials(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for key, value := range content {
		if err := os.WriteFile(filepath.Join(dir, key), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// startServer runs a server until the test ends.
func startServer(t *testing.T, what string, environment []string, program string, args ...string) {
	t.Helper()
	output := &lockedBuffer{}
	cmd := exec.Command(program, args...) //nolint:noctx // it outlives the test's context
	cmd.Env, cmd.Dir = append(os.Environ(), environment...), t.TempDir()
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its error is that of the kill
		if t.Failed() {
			t.Logf("the log of %s:\n%s", what, output.String())
		}
	})
}

// gcs starts a server with the API of Google Cloud Storage. It accepts whoever asks, so the
// proxy before it checks the token, which another server issues to those who sign with the
// right key, as Google does.
func (s *Store) gcs(t *testing.T) {
	t.Helper()
	key, other := newKey(t), newKey(t)
	const token = "a-token-that-expires"
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		assertion, err := jwt.ParseSigned(r.FormValue("assertion"))
		if err != nil || assertion.Claims(key.Public(), &jwt.Claims{}) != nil {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant","error_description":"Invalid JWT Signature."}`)
			return
		}
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, token)
	}))
	t.Cleanup(issuer.Close)
	s.Credentials, s.Wrong = serviceAccount(t, key, issuer.URL), serviceAccount(t, other, issuer.URL)

	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, s.Bucket), 0o755); err != nil {
		t.Fatal(err)
	}
	program, port := Program(t, "fake-gcs-server", gcsVersion, "fake-gcs-server"), FreePort(t)
	server := fmt.Sprintf("http://127.0.0.1:%d", port)
	s.Front = StartFront(t, nil, func(front string) string {
		startServer(t, "fake-gcs-server", nil, program, "-scheme=http", "-host=127.0.0.1", fmt.Sprintf("-port=%d", port), "-backend=filesystem", "-filesystem-root="+root,
			"-public-host="+strings.TrimPrefix(front, "https://"), "-external-url="+front)
		return server
	})
	s.Front.guarded(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer "+token {
			return true
		}
		w.WriteHeader(http.StatusUnauthorized)
		return false
	})
	awaitServer(t, server, nil)
}

func newKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// serviceAccount writes a key of a service account, as Google issues it.
func serviceAccount(t *testing.T, key *rsa.PrivateKey, tokens string) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	content, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "fleet", "private_key_id": "1", "client_id": "1", "client_email": "backups@fleet.example.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": tokens,
	})
	if err != nil {
		t.Fatal(err)
	}
	return credentials(t, map[string]string{"serviceAccount.json": string(content)})
}

// azure starts a server with the API of Azure Blob Storage.
func (s *Store) azure(t *testing.T) {
	t.Helper()
	s.account, s.path = "fleetbackups", "/fleetbackups"
	key := base64.StdEncoding.EncodeToString([]byte("correct-horse-battery-staple"))
	s.Credentials = credentials(t, map[string]string{"accountKey": key})
	s.Wrong = credentials(t, map[string]string{"accountKey": base64.StdEncoding.EncodeToString([]byte("incorrect"))})
	ca := NewAuthority(t, "azure-ca")
	pair, port := ca.Issue("azure", nil, "127.0.0.1"), FreePort(t)
	startServer(t, "azurite", []string{"AZURITE_ACCOUNTS=" + s.account + ":" + key}, Program(t, "azurite", azureVersion, "azurite-blob"),
		"--blobHost=127.0.0.1", fmt.Sprintf("--blobPort=%d", port), "--cert="+pair.Cert, "--key="+pair.Key, "--location="+t.TempDir(),
		"--disableTelemetry", "--skipApiVersionCheck", "--silent")
	server := fmt.Sprintf("https://127.0.0.1:%d", port)
	awaitServer(t, server, ca)
	createContainer(t, server, ca, s.account, s.Bucket)
	s.Front = StartFront(t, ca, func(string) string { return server })
}

// createContainer makes a container. The request is signed with the account's key.
func createContainer(t *testing.T, server string, ca *Authority, account, name string) {
	t.Helper()
	path, date := "/"+account+"/"+name, time.Now().UTC().Format(http.TimeFormat)
	const version = "2021-12-02"
	mac := hmac.New(sha256.New, []byte("correct-horse-battery-staple"))
	fmt.Fprintf(mac, "PUT%sx-ms-date:%s\nx-ms-version:%s\n/%s%s\nrestype:container", strings.Repeat("\n", 12), date, version, account, path)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server+path+"?restype=container", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Ms-Date", date)
	request.Header.Set("X-Ms-Version", version)
	request.Header.Set("Authorization", "SharedKey "+account+":"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	transport := &http.Transport{TLSClientConfig: trusting(ca)}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // nothing is read of it
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("the container is not made: %s", answer.Status)
	}
}
