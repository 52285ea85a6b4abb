package stored

import "testing"

// TestEncryptionKey is about values as servers store them, and as no one does.
func TestEncryptionKey(t *testing.T) {
	for value, want := range map[string]string{
		"k8s:enc:aescbc:v1:first:\x00\x01":       "aescbc/first",
		"k8s:enc:secretbox:v1:2026-11:x":         "secretbox/2026-11",
		"k8s:enc:kms:v2:vault:\x0a":              "kms/vault",
		"k8s\x00\x0a\x16":                        "",
		`{"kind":"Cluster","x":"k8s:enc:a:v1:"}`: "",
		"k8s:enc:aescbc:v1:":                     "",
		"k8s:enc:":                               "",
		"":                                       "",
	} {
		if got := encryptionKey([]byte(value)); got != want {
			t.Errorf("%q is encrypted with %q, want %q", value, got, want)
		}
	}
}
