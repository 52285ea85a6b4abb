package encryption

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
)

// most is how many keys a person may give: more only make reading slow. Servers may have more
// for a time, those that are replaced among them.
const most = 16

// names are those that keys may have: they are a part of each stored value.
var names = regexp.MustCompile(`^[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)

var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	utilruntime.Must(apiserver.AddToScheme(scheme))
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
}()

// Parse reads an EncryptionConfiguration that a person has written, as ParseCopy does. It has
// at most 16 keys.
func Parse(content []byte) (Keys, error) {
	keys, err := ParseCopy(content)
	if err == nil && len(keys) > most {
		return nil, fmt.Errorf("it has %d keys, and at most %d are possible: remove those that nothing is stored under", len(keys), most)
	}
	return keys, err
}

// ParseCopy reads an EncryptionConfiguration, which may be one that Keys.Configuration returned.
// It is checked as the servers do, with their own errors, and for what can be rotated: one list
// of keys, for clusters, of local providers. No error has a secret in it.
func ParseCopy(content []byte) (Keys, error) {
	if len(content) == 0 {
		return nil, errors.New("it is empty")
	}
	object, kind, err := codecs.UniversalDecoder().Decode(content, nil, nil)
	if err != nil {
		// What can't be decoded may be quoted in the error, a secret, too.
		return nil, errors.New("it can't be decoded as an EncryptionConfiguration of apiserver.config.k8s.io/v1: check its YAML, the names of its fields, apiVersion and kind")
	}
	config, is := object.(*apiserver.EncryptionConfiguration)
	if !is {
		return nil, fmt.Errorf("it is a %s, not an EncryptionConfiguration", kind.Kind)
	}
	if refused := validation.ValidateEncryptionConfiguration(config, false); len(refused) > 0 {
		return nil, errors.New(describe(refused))
	}
	if len(config.Resources) != 1 || !slices.Equal(config.Resources[0].Resources, []string{Resource}) {
		return nil, fmt.Errorf("resources must be one entry, with the resource %s alone", Resource)
	}
	var out Keys
	for i, provider := range config.Resources[0].Providers {
		keys, err := keysOf(provider)
		if err != nil {
			return nil, fmt.Errorf("resources[0].providers[%d]: %w", i, err)
		}
		out = append(out, keys...)
	}
	if err := check(out); err != nil {
		return nil, err
	}
	return out, nil
}

// describe says what is wrong and where, without the values, which may be secrets.
func describe(refused field.ErrorList) string {
	var out []string
	for _, err := range refused {
		text := err.Field + ": " + err.Type.String()
		if err.Detail != "" {
			text += ": " + err.Detail
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// keysOf returns the keys of one provider.
func keysOf(provider apiserver.ProviderConfiguration) (Keys, error) {
	var out Keys
	add := func(name string, keys []apiserver.Key) {
		for _, key := range keys {
			out = append(out, Key{provider: name, name: key.Name, secret: unique.Make(key.Secret)})
		}
	}
	switch {
	case provider.AESCBC != nil:
		add(providerAESCBC, provider.AESCBC.Keys)
	case provider.AESGCM != nil:
		add(providerAESGCM, provider.AESGCM.Keys)
	case provider.Secretbox != nil:
		add(providerSecretbox, provider.Secretbox.Keys)
	case provider.Identity != nil:
		out = Keys{Identity}
	default:
		return nil, errors.New("kms is not supported: use aescbc, aesgcm or secretbox, whose keys are in this Secret")
	}
	return out, nil
}

// check returns why keys can't be told apart where they are used.
func check(keys Keys) error {
	seen := map[string]bool{}
	for _, key := range keys {
		if key != Identity && !names.MatchString(key.name) {
			return fmt.Errorf("key %s: a name has at most 63 letters, digits, dashes, underscores and dots, with a letter or a digit first and last", key.ID())
		}
		if seen[key.ID()] {
			return fmt.Errorf("key %s is there twice: each needs a name of its own", key.ID())
		}
		seen[key.ID()] = true
	}
	return nil
}
