package validation

import (
	"encoding/base64"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// FuzzCredentials gives a value any name. The verdict doesn't depend on how the
// name is spelled nor on where it stands, and no fault repeats the value.
func FuzzCredentials(f *testing.F) {
	const key, jwt = "-----BEGIN EC PRIVATE KEY-----\nx\n", "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzb21lb25lIn0.c2ln"
	for _, seed := range [][2]string{
		{"password", "hunter2"}, {"aws_session_token", "x"}, {"secretRef", "team-a/token"}, {"url", "https://u:hunter2@h"}, {"note", key}, {"note", jwt}, {"KUBECONFIG", "~/.kube/config"},
		{"token", "true"}, {"", ""}, {"-", "--token"}, {"--header", "Authorization: Bearer x"}, {"=", ": "}, {"Tokens", "\x00"}, {"İ", "ſecret"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		faults := config(map[string]string{name: value}, field.NewPath("config"))
		faults = append(faults, arguments([]string{"--" + name + "=" + value, "--" + name, value, value}, field.NewPath("args"))...)
		faults = append(faults, exec(&clusterregistry.ExecAccess{APIVersion: "v1", Command: value, Env: []clusterregistry.ExecEnvVar{{Name: name, Value: value}}}, field.NewPath("exec"))...)
		discreet(faults)
		if len(value) > 20 && !strings.Contains(name, value) && len(faults) > 0 && strings.Contains(faults.ToAggregate().Error(), value) && !strings.Contains(storePointer, value) {
			t.Fatalf("the value is repeated: %v", faults)
		}
		verdict := isCredential(name, value)
		for _, spelled := range []string{strings.ToUpper(name), name + "_", "-" + name, "x." + name} {
			if isASCII(name) && verdict && !isCredential(spelled, value) {
				t.Fatalf("%q is for a credential and %q is not", name, spelled)
			}
		}
		if verdict && len(config(map[string]string{name: value}, nil)) == 0 {
			t.Fatalf("%q is accepted as a setting", name)
		}
		if len(value) > 512 {
			return
		}
		for _, secret := range []string{key, jwt} {
			if credential(value+" "+secret+" "+value) == "" {
				t.Fatalf("%q hides a credential", value)
			}
		}
		if credential(base64.StdEncoding.EncodeToString([]byte(value+key))) == "" {
			t.Fatalf("%q hides a credential in base64", value)
		}
	})
}

// isASCII reports whether upper and lower case are each other's inverse in a text.
func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 127 }) < 0
}
