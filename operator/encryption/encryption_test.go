package encryption

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unique"

	"k8s.io/apiserver/pkg/storage/value"
)

// theKey returns a key of a provider whose secret follows from its name.
func theKey(provider, name string) Key {
	return Key{provider: provider, name: name, secret: unique.Make(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(name[:1]), 32)))}
}

func configuration(providers ...string) string {
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [clusters.clusterregistry.k8s.io]\n  providers:\n"
	for _, provider := range providers {
		text += "  - " + provider + "\n"
	}
	return text
}

func inYAML(k Key) string {
	return fmt.Sprintf("%s: {keys: [{name: %s, secret: %s}]}", k.provider, k.name, k.text())
}

// TestParse reads what a user wrote, in its order, and writes what it has read.
func TestParse(t *testing.T) {
	first, second, third := theKey(providerSecretbox, "a-2027.1"), theKey(providerAESGCM, "b"), theKey(providerAESCBC, "c")
	both := fmt.Sprintf("aescbc: {keys: [{name: c, secret: %s}, {name: d, secret: %s}]}", third.text(), third.text())
	keys, err := Parse([]byte(configuration(inYAML(first), inYAML(second), both, "identity: {}")))
	if want := []string{"secretbox/a-2027.1", "aesgcm/b", "aescbc/c", "aescbc/d", "identity"}; err != nil || !slices.Equal(keys.IDs(), want) {
		t.Fatalf("%v, %v", keys.IDs(), err)
	}
	again, err := Parse(keys.Configuration())
	if err != nil || !again.Equal(keys) || again.Digest() != keys.Digest() {
		t.Errorf("%v becomes %v, %v", keys, again, err)
	}
	if swapped := (Keys{keys[1], keys[0]}); swapped.Digest() == keys[:2].Digest() {
		t.Error("another order has the same digest")
	}
	within := struct{ keys Keys }{keys} // whose methods fmt does not call
	if shown := fmt.Sprintf("%v %+v %#v %s %v %+v %#v", keys, keys, keys, keys[0], within, within, within); strings.Contains(shown, first.text()) {
		t.Errorf("a secret is printed: %s", shown)
	}
}

// TestEncoding pins how keys are encoded, and what identifies them: Secrets and records of other
// versions of the operator are known by that, and another digest replaces all servers.
func TestEncoding(t *testing.T) {
	keys := Keys{theKey(providerSecretbox, "a"), theKey(providerAESGCM, "b"), theKey(providerAESCBC, "c"), Identity}
	const encoded = `{"kind":"EncryptionConfiguration","apiVersion":"apiserver.config.k8s.io/v1","resources":[{"resources":["clusters.clusterregistry.k8s.io"],"providers":[{"secretbox":{"keys":[{"name":"a","secret":"YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="}]}},{"aesgcm":{"keys":[{"name":"b","secret":"YmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmI="}]}},{"aescbc":{"keys":[{"name":"c","secret":"Y2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2M="}]}},{"identity":{}}]}]}`
	if got := string(keys.Configuration()); got != encoded || keys.Digest() != "4c2f4ef06b867e0d" || Digest([]byte(encoded)) != keys.Digest() {
		t.Errorf("digest %s of\n%s", keys.Digest(), got)
	}
}

// TestMost lets servers have more keys than a person may give.
func TestMost(t *testing.T) {
	var keys Keys
	for i := range most + 1 {
		keys = append(keys, theKey(providerSecretbox, fmt.Sprintf("k%d", i)))
	}
	if got, err := ParseCopy(keys.Configuration()); err != nil || !got.Equal(keys) {
		t.Errorf("the copy is read as %v, %v", got, err)
	}
	if _, err := Parse(keys.Configuration()); err == nil || !strings.Contains(err.Error(), "it has 17 keys, and at most 16 are possible") {
		t.Errorf("a person gives 17 keys: %v", err)
	}
	if _, err := Parse(keys[1:].Configuration()); err != nil {
		t.Error(err)
	}
}

// TestWrong refuses what servers would, in their words, and what can't be rotated. No error has
// a secret in it.
func TestWrong(t *testing.T) {
	key := theKey(providerAESCBC, "first")
	good := configuration(inYAML(key))
	for _, test := range []struct{ content, says string }{
		{"", "it is empty"},
		{"{", "it can't be decoded"},
		{strings.Replace(good, "EncryptionConfiguration", "AuthenticationConfiguration", 1), "it can't be decoded"},
		{strings.Replace(good, "providers:", "provider:", 1), "it can't be decoded"},
		{configuration(), "resources[0].providers: Required value"},
		{strings.Replace(good, key.text(), "c2hvcnQ=", 1), `resources[0].providers[0].aescbc.keys[0].secret: Invalid value: secret is not of the expected length, got 5, expected one of [16 24 32]`},
		{strings.Replace(good, key.text(), key.text()[1:], 1), "secret: Invalid value: secrets must be base64 encoded"},
		{strings.Replace(good, "name: first, ", "", 1), "aescbc.keys[0].name: Required value"},
		{configuration("{}"), "provider does not contain any of the expected providers"},
		{configuration(inYAML(key) + "\n    identity: {}"), "resources[0].providers[0]: Invalid value: more than one provider specified in a single element"},
		{configuration("kms: {apiVersion: v2, name: vault, endpoint: 'unix:///socket'}"), "resources[0].providers[0]: kms is not supported: use aescbc, aesgcm or secretbox"},
		{strings.Replace(good, Resource, "'*.*'", 1), "with the resource clusters.clusterregistry.k8s.io alone"},
		{good + "- resources: [secrets]\n  providers: [identity: {}]\n", "resources must be one entry"},
		{configuration(inYAML(key), inYAML(key)), "key aescbc/first is there twice"},
		{strings.Replace(good, "first", "'a:b'", 1), "key aescbc/a:b: a name has"},
	} {
		keys, err := Parse([]byte(test.content))
		if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), key.text()[2:]) {
			t.Errorf("%s\n%v, %v, want %q", test.content, keys, err, test.says)
		}
	}
}

// TestReader reads what the servers' own code has written with each provider, and says which
// key is missing.
func TestReader(t *testing.T) {
	all := Keys{theKey(providerAESCBC, "a"), theKey(providerAESGCM, "b"), theKey(providerSecretbox, "c"), theKey(providerAESCBC, "d"), Identity}
	reader, err := all.Reader()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range all {
		alone, err := Keys{key}.Reader()
		if err != nil {
			t.Fatal(err)
		}
		const at, plain = "/registry/clusterregistry.k8s.io/clusters/east", "k8s\x00east"
		stored, err := alone.transformer.TransformToStorage(t.Context(), []byte(plain), value.DefaultContext(at))
		if err != nil || Under(stored) != key.ID() {
			t.Errorf("%s: stored under %s, %v", key, Under(stored), err)
		}
		if got, err := reader.Read(t.Context(), at, stored); err != nil || string(got) != plain {
			t.Errorf("%s: read as %q, %v", key, got, err)
		}
		lacking, err := without(all, Keys{key}).Reader()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lacking.Read(t.Context(), at, stored); err == nil || !strings.Contains(err.Error(), key.ID()) {
			t.Errorf("%s: without the key: %v", key, err)
		}
	}
	for content, want := range map[string]string{"": "identity", "k8s\x00": "identity", "k8s:enc:kms:v2:vault:x": "kms/vault"[:3] + ":v2", "k8s:enc:": "", "k8s:enc:aescbc:v1:x": "aescbc:v1"} {
		if got := Under([]byte(content)); got != want {
			t.Errorf("%q is under %q, want %q", content, got, want)
		}
	}
}
