package authz

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// texts returns so many different ones.
func texts(prefix string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint(prefix, i))
	}
	return out
}

func as(t *testing.T, name string) context.Context {
	return genericrequest.WithUser(t.Context(), &user.DefaultInfo{Name: name})
}

// TestLargeRole writes roles that grant far more than their lists are long, and binds them: that
// is refused before anything is done for each of the permissions. What a million costs says what
// the eight thousand million of three lists of 2,000 would.
func TestLargeRole(t *testing.T) {
	cube := func(n int) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{rule("get", "", "x"), {Verbs: texts("v", n), APIGroups: texts("g", n), Resources: texts("r", n)}}
	}
	var paths []rbacv1.PolicyRule
	for range 2000 { // of which each alone is few
		paths = append(paths, rbacv1.PolicyRule{Verbs: texts("v", 4), NonResourceURLs: texts("/", 4)})
	}
	r := fixed(t, map[string][]rbacv1.PolicyRule{
		"ann": {rule("get", "", "x")}, "cube": cube(100),
		// Of little, often, there is much to compare with.
		"rich": slices.Repeat([]rbacv1.PolicyRule{rule("get", "", "x"), {Verbs: []string{"get"}, NonResourceURLs: texts("/", 2000)}}, 10),
	})
	for _, test := range []struct {
		reason string
		do     func() error
		want   string
	}{
		{"a product of three lists", func() error { return r.ConfirmRole(as(t, "ann"), cube(100)) }, "rules[1] grants 1000000 permissions (API groups x resources x verbs x resource names), and with the rules before it 1000001, of which at most 10000"},
		{"names", func() error {
			return r.ConfirmRole(as(t, "ann"), []rbacv1.PolicyRule{{Verbs: texts("v", 100), APIGroups: []string{""}, Resources: texts("r", 100), ResourceNames: texts("n", 100)}})
		}, "rules[0] grants 1000000 permissions"},
		{"paths", func() error {
			return r.ConfirmRole(as(t, "ann"), []rbacv1.PolicyRule{{Verbs: texts("v", 1000), NonResourceURLs: texts("/", 1000)}})
		}, "rules[0] grants 1000000 permissions"},
		{"a sum", func() error { return r.ConfirmRole(as(t, "ann"), paths) }, "rules[625] grants 16 permissions"},
		{"to bind it", func() error { return r.ConfirmBinding(as(t, "ann"), "cube") }, `split the role, use "*" for all values of a list, or ask someone who has the verb "bind"`},
		{"against much", func() error {
			return r.ConfirmRole(as(t, "rich"), []rbacv1.PolicyRule{{Verbs: texts("v", 100), APIGroups: []string{""}, Resources: texts("r", 10)}})
		}, "to be compared with 20020 rules and paths that the user holds"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := test.do()
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %.300s, want %q", test.reason, fmt.Sprint(err), test.want)
		}
		if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 1 {
			t.Fatalf("%s: allocates %d MB", test.reason, allocated)
		}
	}
	// The same with as many as a body has room for.
	if err := r.ConfirmRole(as(t, "ann"), cube(2000)); err == nil || !strings.Contains(err.Error(), "8000000000 permissions") {
		t.Error(err)
	}
	if err := r.ConfirmRole(as(t, "ann"), []rbacv1.PolicyRule{{Verbs: texts("v", 1<<16), APIGroups: texts("g", 1<<15), Resources: texts("r", 1<<15)}}); err == nil {
		t.Error("a product of more than 32 bits passes")
	}
}

// TestMissingIsShort expects an error of bounded length, whatever is granted.
func TestMissingIsShort(t *testing.T) {
	r := fixed(t, map[string][]rbacv1.PolicyRule{"ann": {rule("get", "", "x")}})
	err := r.ConfirmRole(as(t, "ann"), []rbacv1.PolicyRule{{Verbs: texts("v", 10), APIGroups: []string{strings.Repeat("ä", 1<<19)}, Resources: texts("r", 1000)}})
	if err == nil || len(err.Error()) > 4<<10 || !strings.Contains(err.Error(), ", and others; ask") || strings.Count(err.Error(), " on r") != mostNamed {
		t.Errorf("%.2000s", fmt.Sprint(err))
	}
	err = r.ConfirmRole(as(t, "ann"), []rbacv1.PolicyRule{{Verbs: texts("v", 10), APIGroups: []string{"", ""}, Resources: []string{"r"}}, {Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"x"}}})
	if err == nil || strings.Contains(err.Error(), "others") || strings.Count(err.Error(), " on r") != mostNamed {
		t.Error(err)
	}
}

// TestCoversAsKubernetes compares what is missing with what Kubernetes says of the same rules, of
// which any two have much in common.
func TestCoversAsKubernetes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	some := func(of ...string) (out []string) {
		for range random.IntN(3) {
			out = append(out, of[random.IntN(len(of))])
		}
		return out
	}
	rules := func(most int) (out []rbacv1.PolicyRule) {
		for range random.IntN(most) {
			out = append(out, rbacv1.PolicyRule{
				Verbs: some("get", "list", "*", ""), APIGroups: some("", "a", "*"), Resources: some("x", "x/s", "x/s/t", "*/s", "*/", "*", ""),
				ResourceNames: some("", "n", "*"), NonResourceURLs: some("/a", "/a/*", "/a/b", "*", "", "/*/b"),
			})
			if last := &out[len(out)-1]; random.IntN(2) == 0 {
				last.NonResourceURLs = nil
			} else if random.IntN(2) == 0 {
				last.APIGroups, last.Resources, last.ResourceNames = nil, nil, nil
			}
		}
		return out
	}
	covered := 0
	for range 10_000 {
		held, wanted := rules(6), rules(3)
		_, lack := validation.Covers(held, wanted)
		var want []permission
		for _, rule := range lack {
			each(&rule, func(p permission) bool {
				want = append(want, p)
				return true
			})
		}
		got := missing(held, wanted, 1<<20)
		if len(wanted) > 0 && len(got) == 0 {
			covered++
		}
		for _, p := range want {
			if !slices.Contains(got, p) {
				t.Fatalf("%+v does not cover %+v of %+v", held, p, wanted)
			}
		}
		for _, p := range got {
			if !slices.Contains(want, p) {
				t.Fatalf("%+v covers %+v of %+v", held, p, wanted)
			}
		}
	}
	if covered < 300 {
		t.Errorf("only %d are covered", covered)
	}
}

// TestManyGroups asks about someone with many groups while a binding has many subjects: that must
// not take the product of both.
func TestManyGroups(t *testing.T) {
	r := fixed(t, map[string][]rbacv1.PolicyRule{"ann": nil})
	binding, err := r.Bindings.Get("ann")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range texts("subject", 20_000) {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, Name: name})
	}
	took := func(groups []string) time.Duration {
		began := time.Now()
		if _, _, err := r.Authorize(t.Context(), authorizer.AttributesRecord{User: &user.DefaultInfo{Groups: groups}}); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	took(nil)
	one, many := took(texts("another", 1)), took(texts("another", 20_000))
	if many > 100*one+100*time.Millisecond {
		t.Errorf("with 20,000 groups it takes %s, with one %s", many, one)
	}
}
