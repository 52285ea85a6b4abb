package form

import (
	"fmt"
	"slices"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/equality"
)

// isShown reports whether v1alpha1 shows a way to sign in: as a provider.
func isShown(a clusterregistry.Access) bool {
	return a.Provider != nil && a.Audience == clusterregistry.AudienceUser
}

// shownProviders returns what v1alpha1 shows of the ways to sign in.
func shownProviders(access []clusterregistry.Access) []clusterregistry.AuthProviderConfig {
	var out []clusterregistry.AuthProviderConfig
	for _, a := range access {
		if isShown(a) {
			out = append(out, clusterregistry.AuthProviderConfig{Name: a.Name, Type: clusterregistry.AuthProviderType{Name: a.Provider.Type}, Config: a.Provider.Config})
		}
	}
	return out
}

// access returns v1beta1's form of v1alpha1's providers, given what of both is
// stored. A provider that is still there keeps its name in v1beta1, which
// v1alpha1 may not show; ways that v1alpha1 doesn't show keep their place.
func access(written, stored []clusterregistry.AuthProviderConfig, rich []clusterregistry.Access) []clusterregistry.Access {
	names := taken{}
	var shown []string
	for _, a := range rich {
		if isShown(a) {
			shown = append(shown, a.Name)
		} else {
			names.take(a.Name)
		}
	}
	var providers []clusterregistry.Access
	for i, name := range namesOf(written, stored, shown) {
		if name == "" || !names.take(name) {
			fallback := written[i].Name
			if fallback == "" {
				fallback = fmt.Sprintf("provider-%d", i+1)
			}
			name = names.free(fallback)
		}
		providers = append(providers, clusterregistry.Access{
			Name: name, Audience: clusterregistry.AudienceUser,
			Provider: &clusterregistry.ProviderAccess{Type: written[i].Type.Name, Config: written[i].Config},
		})
	}
	var out []clusterregistry.Access
	for _, a := range rich {
		switch {
		case !isShown(a):
			out = append(out, a)
		case len(providers) > 0:
			out = append(out, providers[0])
			providers = providers[1:]
		}
	}
	return append(out, providers...)
}

// namesOf returns for each written provider the name in v1beta1 of the stored
// one that it is, or its own.
func namesOf(written, stored []clusterregistry.AuthProviderConfig, shown []string) []string {
	out := make([]string, len(written))
	for i := range written {
		out[i] = written[i].Name
	}
	if len(stored) != len(shown) {
		return out
	}
	found, used := make([]bool, len(written)), make([]bool, len(stored))
	for _, same := range []func(w, s clusterregistry.AuthProviderConfig) bool{
		func(w, s clusterregistry.AuthProviderConfig) bool { return equality.DeepEqual(w, s) },
		func(w, s clusterregistry.AuthProviderConfig) bool { return w.Name == s.Name },
	} {
		for i, w := range written {
			for j, s := range stored {
				if !found[i] && !used[j] && same(w, s) {
					out[i], found[i], used[j] = shown[j], true, true
				}
			}
		}
	}
	return out
}

// spelledProviders returns v1alpha1's form of what v1beta1 wrote, given what
// v1alpha1 shows of it and showed of what was stored. What has the name in
// v1beta1 that it had has the one in v1alpha1 that it had, or none.
func spelledProviders(shown, before, stored []clusterregistry.AuthProviderConfig) []clusterregistry.AuthProviderConfig {
	if equality.DeepEqual(shown, before) {
		return stored
	}
	if len(before) != len(stored) {
		return shown
	}
	for i := range shown {
		if j := slices.IndexFunc(before, func(b clusterregistry.AuthProviderConfig) bool { return b.Name == shown[i].Name }); j >= 0 {
			shown[i].Name = stored[j].Name
		}
	}
	return shown
}

// taken are the names that are given away, each with the last number that was
// tried behind it: a request may have the same name as often as fits into it.
type taken map[string]int

// take gives a name away, and reports whether it was free.
func (t taken) take(name string) bool {
	if t[name] > 0 {
		return false
	}
	t[name] = 1
	return true
}

// free gives away the name or, if it isn't free, one that begins with it.
func (t taken) free(name string) string {
	out := name
	for !t.take(out) {
		t[name]++
		out = fmt.Sprintf("%s-%d", name, t[name])
	}
	return out
}
