package validation

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// credentialNames are the ends of names under which programs keep credentials, as
// normalName writes them: of keys, flags, headers and variables alike. They are a
// heuristic: a credential that has neither such a name nor a known shape passes.
var credentialNames = []string{
	"password", "passwd", "passphrase", "passcode",
	"token", "jwt", "bearer", "cookie",
	"secret", "secretkey", "accesskey", "accountkey", "sharedkey", "apikey", "privatekey", "signingkey", "encryptionkey", "sshkey", "keydata",
	"auth", "authorization", "connectionstring",
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
	{"an Authorization header", regexp.MustCompile(`(?i)\bauthorization["']?\s*[:=]\s*["']?(?:basic|bearer|digest|negotiate|token|apikey)\s+\S`)},
	{"a kubeconfig", regexp.MustCompile(`\bkind["']?\s*:\s*["']?Config\b`)},
}

const storePointer = "the registry is readable by many; store a pointer to it (an issuer's URL, a client ID, the name of a Secret or of a plugin, under a key such as secretRef) instead"

// config returns the faults of a provider's configuration. Values are never
// repeated in a message.
func config(config map[string]string, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(config)) {
		value, at := config[key], path.Key(key)
		if len(key) > MaxName || !harmless(key) {
			at = path.Key(notRepeated)
			faults = append(faults, length(at, key, MaxName)...)
		}
		faults = append(faults, length(at, value, MaxData)...)
		if isCredential(key, value) {
			faults = append(faults, forbidden(at, value, "this key is for a credential"))
		} else if what := credential(value); what != "" {
			faults = append(faults, forbidden(at, value, "the value looks like "+what))
		}
	}
	return faults
}

// forbidden returns the fault of a value that looks like a credential. The fault
// carries a digest that tells the value from others, and neither shows.
func forbidden(path *field.Path, value, fault string) *field.Error {
	return &field.Error{Type: field.ErrorTypeForbidden, Field: path.String(), BadValue: fmt.Sprintf("%x", sha256.Sum256([]byte(value))), Detail: fault + "; " + storePointer}
}

// isCredential reports whether a value with a name is a credential by its name.
// What only switches something on or off is none, and a kubeconfig may be named by
// its path.
func isCredential(name, value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "true", "false":
		return false
	}
	normal := normalName(name)
	for _, form := range []string{normal, strings.TrimSuffix(normal, "s")} {
		if slices.ContainsFunc(credentialNames, func(end string) bool { return strings.HasSuffix(form, end) }) {
			return true
		}
	}
	return strings.HasSuffix(normal, "kubeconfig") && !pathShape.MatchString(value)
}

// pathShape is the path of a file, perhaps one below a variable such as $HOME.
var pathShape = regexp.MustCompile(`^(?:[A-Za-z]:\\|[~.$%]|/)[^\s"{}]*$`)

// credential returns what kind of credential a value looks like, or "". What is longer
// than any field may be is refused for that, and looked at as far as a field can reach.
func credential(value string) string {
	value = value[:min(len(value), MaxData)]
	if what := shapeOf(value); what != "" {
		return what
	}
	// Kubeconfigs hold PEM in base64, and are themselves passed on so.
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	if err != nil {
		return ""
	}
	return shapeOf(string(decoded))
}

func shapeOf(value string) string {
	for _, c := range credentialShapes {
		if c.shape.MatchString(value) {
			return c.what
		}
	}
	return ""
}

// normalName makes client-secret, client_secret, clientSecret and CLIENT.SECRET one.
func normalName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// notRepeated stands in a fault for a value that may hold a credential: what is
// refused reaches logs, those of audits among them.
const notRepeated = "not repeated here"

// maxFaults bounds the faults that an error lists for one object.
const maxFaults = 32

// Told returns as many faults as one can read, and how many others there are.
func Told(faults field.ErrorList) field.ErrorList {
	if len(faults) <= maxFaults {
		return faults
	}
	more := &field.Error{Type: field.ErrorTypeTooMany, Field: faults[maxFaults].Field, BadValue: len(faults) - maxFaults, Detail: "more faults follow from here on; fix those before them first"}
	return append(faults[:maxFaults:maxFaults], more)
}

// discreet takes values out of faults that may hold a credential.
func discreet(faults field.ErrorList) field.ErrorList {
	faults = Told(faults)
	for _, fault := range faults {
		if value := reflect.ValueOf(fault.BadValue); value.Kind() == reflect.String && !harmless(value.String()) {
			fault.BadValue = notRepeated
		}
	}
	return faults
}

// harmless reports whether a value may be repeated: it is short, and has no part
// in which an address has a credential (user@, ?query, #fragment).
func harmless(value string) bool {
	return len(value) <= MaxName && !strings.ContainsAny(value, "@?#") && credential(value) == ""
}

// IsCredential reports whether a setting looks like a credential, by its name or its
// value, and so is refused in a Cluster.
func IsCredential(name, value string) bool {
	return isCredential(name, value) || credential(value) != ""
}
