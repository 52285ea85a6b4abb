package validation

import (
	"encoding/base64"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// credentialKeys are the names under which auth plugins keep credentials, as
// normalKey writes them.
var credentialKeys = map[string]bool{
	"password":        true,
	"passwd":          true,
	"passphrase":      true,
	"token":           true,
	"accesstoken":     true,
	"refreshtoken":    true,
	"idtoken":         true,
	"bearertoken":     true,
	"clientsecret":    true,
	"secretaccesskey": true,
	"apikey":          true,
	"privatekey":      true,
	"clientkeydata":   true,
}

// credentialShapes are values that are credentials under any name.
var credentialShapes = []struct {
	what  string
	shape *regexp.Regexp
}{
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)},
	// A JSON Web Token: base64url of {"..., twice, and a signature (RFC 7515).
	{"a JSON Web Token", regexp.MustCompile(`\beyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]*`)},
	{"a URL with a password", regexp.MustCompile(`\w://[^\s/?#:@]*:[^\s/?#@]+@`)},
}

const storePointer = "the registry is readable by many; store a pointer to it (an issuer's URL, a client ID, the name of a Secret or of a plugin) instead"

// config returns the faults of a provider's configuration. Values are never
// repeated in a message.
func config(config map[string]string, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(config)) {
		value := config[key]
		if value == "" {
			continue
		}
		if credentialKeys[normalKey(key)] {
			faults = append(faults, field.Forbidden(path.Key(key), "this key is for a credential; "+storePointer))
		} else if what := credential(value); what != "" {
			faults = append(faults, field.Forbidden(path.Key(key), "the value looks like "+what+"; "+storePointer))
		}
	}
	return faults
}

// credential returns what kind of credential a value looks like, or "".
func credential(value string) string {
	for _, c := range credentialShapes {
		if c.shape.MatchString(value) {
			return c.what
		}
	}
	// Kubeconfigs hold PEM in base64.
	if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value)); err == nil && credentialShapes[0].shape.Match(decoded) {
		return credentialShapes[0].what
	}
	return ""
}

// normalKey makes client-secret, client_secret, clientSecret and CLIENT.SECRET one.
func normalKey(key string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(key))
}
