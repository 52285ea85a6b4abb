package framework

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gopkg.in/go-jose/go-jose.v2"
	"gopkg.in/go-jose/go-jose.v2/jwt"
)

// Issuer is an OpenID Connect provider for a test: it publishes its key on
// loopback and signs what the test wants.
type Issuer struct {
	// URL is the name of the issuer, and where its key is found.
	URL string
	// CA signs the certificate of that URL, in PEM.
	CA string

	t      *testing.T
	signer jose.Signer
}

// StartIssuer starts an issuer; it ends with the test.
func StartIssuer(t *testing.T) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{t: t}
	i.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "test"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	i.URL = server.URL
	i.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	publish := func(path string, content any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(content)
		})
	}
	publish("/.well-known/openid-configuration", map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}})
	publish("/keys", jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "test", Algorithm: "ES256", Use: "sig"}}})
	return i
}

// Token returns a token for the audience "registry" that is valid for the given
// time from now on, with further claims.
func (i *Issuer) Token(valid time.Duration, claims map[string]any) string {
	i.t.Helper()
	now := time.Now()
	token, err := jwt.Signed(i.signer).Claims(jwt.Claims{Issuer: i.URL, Audience: jwt.Audience{"registry"}, Subject: "subject",
		IssuedAt: jwt.NewNumericDate(now.Add(-time.Hour)), Expiry: jwt.NewNumericDate(now.Add(valid))}).Claims(claims).CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

// Authenticator returns the issuer's entry in an AuthenticationConfiguration,
// in which the claims "name" and "groups" become the user and, with the prefix,
// his groups.
func (i *Issuer) Authenticator(groupPrefix string) string {
	return "- issuer:\n    url: " + i.URL + "\n    audiences: [registry]\n    certificateAuthority: |\n      " +
		strings.ReplaceAll(strings.TrimSpace(i.CA), "\n", "\n      ") +
		"\n  claimMappings:\n    username: {claim: name, prefix: \"\"}\n    groups: {claim: groups, prefix: \"" + groupPrefix + "\"}\n" +
		"  claimValidationRules:\n  - {expression: \"claims.?blocked.orValue(false) == false\", message: blocked}\n"
}
