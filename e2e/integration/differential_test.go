package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/e2e/framework"
)

// TestAuthorizationEqualsKubernetes gives a real kube-apiserver and an
// independent registry the same generated ClusterRoles and ClusterRoleBindings,
// and asks both the same questions: may this one do that, and may he grant this?
func TestAuthorizationEqualsKubernetes(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("the seed is %d", seed)
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // not for secrets
	_, _, config := independent(t)
	sides := [2]*side{newSide(t, framework.StartHost(t, "v1.37.1", "front-proxy-client").Config), newSide(t, config)}

	// Each run has a policy of its own, so that many short runs find what a long one does.
	questions, grants := 400, 100
	if framework.Full() {
		questions, grants = 1500, 200
	}
	allowed, granted, rounds := 0, 0, 3
	for round := range rounds {
		roles, bindings := g.policy(40)
		for _, s := range sides {
			s.replace(t, round, roles, bindings)
		}
		for range questions {
			who, question := generated(g, identities), g.question()
			want, got := sides[0].may(t, who, question), sides[1].may(t, who, question)
			if got != want {
				t.Errorf("round %d: may %+v do %+v? Kubernetes says %v, the registry %v", round, who, describeQuestion(question), want, got)
			}
			if want {
				allowed++
			}
		}
		for range grants {
			who, role, binding := generated(g, identities), g.role("tried"), g.binding("tried")
			want, got := sides[0].grant(t, who, role, binding), sides[1].grant(t, who, role, binding)
			if got != want {
				t.Errorf("round %d: may %+v write role %+v and binding %+v? Kubernetes says %q, the registry %q", round, who, role.Rules, binding.RoleRef, want, got)
			}
			if want == "yes, yes" {
				granted++
			}
		}
	}
	questions, grants = rounds*questions, rounds*grants
	t.Logf("%d questions, of which %d were allowed; %d grants, of which %d were allowed entirely", questions, allowed, grants, granted)
	if allowed < questions/25 || allowed > questions*24/25 || granted < grants/100 || granted > grants*99/100 {
		t.Error("the questions tell too little: nearly all had the same answer")
	}
}

// identities are who asks. The names of service accounts are users as well.
var identities = []rest.ImpersonationConfig{
	{UserName: "u1"}, {UserName: "u2", Groups: []string{"g1"}}, {UserName: "u3", Groups: []string{"g1", "g2"}}, {UserName: "u4", Groups: []string{"g3", "writers"}},
	{UserName: "u1", Groups: []string{"writers"}}, {UserName: "u2", Groups: []string{"g2", "writers", "binders"}}, {UserName: "u5", Groups: []string{"writers", "escalators"}},
	{UserName: "system:serviceaccount:ns1:sa1"}, {UserName: "system:serviceaccount:ns2:sa1", Groups: []string{"writers"}},
}

type generator struct{ *rand.Rand }

func generated[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

// some returns one to three of a list.
func (g *generator) some(from ...string) []string {
	var out []string
	for range 1 + g.IntN(3) {
		out = append(out, generated(g, from))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (g *generator) rule() rbacv1.PolicyRule {
	verbs := g.some("get", "list", "create", "delete", "frobnicate", "*")
	if g.IntN(5) == 0 {
		return rbacv1.PolicyRule{Verbs: verbs, NonResourceURLs: g.some("/custom", "/custom/*", "/custom/x", "/other*", "*")}
	}
	r := rbacv1.PolicyRule{Verbs: verbs, APIGroups: g.some("", "fleet.example", "clusterregistry.k8s.io", "*"),
		Resources: g.some("widgets", "gadgets", "clusters", "widgets/status", "clusters/status", "*/status", "*/scale", "*")}
	if g.IntN(3) == 0 {
		r.ResourceNames = g.some("a", "b", "c")
	}
	return r
}

func (g *generator) role(name string) rbacv1.ClusterRole {
	role := rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for range g.IntN(3) {
		role.Rules = append(role.Rules, g.rule())
	}
	return role
}

func (g *generator) binding(name string) rbacv1.ClusterRoleBinding {
	// One role in fifteen is not there.
	binding := rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fmt.Sprintf("r%d", g.IntN(43))}}
	for range 1 + g.IntN(2) {
		binding.Subjects = append(binding.Subjects, generated(g, []rbacv1.Subject{
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fmt.Sprintf("u%d", 1+g.IntN(5))},
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:serviceaccount:ns1:sa1"},
			{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: fmt.Sprintf("g%d", 1+g.IntN(3))},
			{Kind: rbacv1.ServiceAccountKind, Namespace: fmt.Sprintf("ns%d", 1+g.IntN(2)), Name: "sa1"},
		}))
	}
	return binding
}

// policy returns n roles and bindings, and some that let certain groups write
// roles and bindings, and bind or escalate a few.
func (g *generator) policy(n int) (roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding) {
	for i := range n {
		roles, bindings = append(roles, g.role(fmt.Sprintf("r%d", i))), append(bindings, g.binding(fmt.Sprintf("b%d", i)))
	}
	for group, rule := range map[string]rbacv1.PolicyRule{
		"writers":    {APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles", "clusterrolebindings"}, Verbs: []string{"create"}},
		"binders":    {APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"bind"}, ResourceNames: []string{"r1", "r2", "r41"}},
		"escalators": {APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}, Verbs: []string{"escalate"}},
	} {
		roles = append(roles, rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: group}, Rules: []rbacv1.PolicyRule{rule}})
		bindings = append(bindings, rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: group}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: group},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}}})
	}
	return roles, bindings
}

func (g *generator) question() authorizationv1.SelfSubjectAccessReviewSpec {
	verb := generated(g, []string{"get", "list", "create", "delete", "watch", "frobnicate", "*"})
	if g.IntN(6) == 0 {
		return authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: generated(g, []string{"/custom", "/custom/x", "/custom/x/y", "/others", "/none"})}}
	}
	return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: verb, Group: generated(g, []string{"", "fleet.example", "clusterregistry.k8s.io", "none.example"}), Resource: generated(g, []string{"widgets", "gadgets", "clusters", "*"}),
		Subresource: generated(g, []string{"", "", "status", "scale"}), Name: generated(g, []string{"", "a", "b", "z"}), Namespace: generated(g, []string{"", "default"}),
	}}
}

func describeQuestion(q authorizationv1.SelfSubjectAccessReviewSpec) any {
	if q.ResourceAttributes != nil {
		return *q.ResourceAttributes
	}
	return *q.NonResourceAttributes
}

// side is one of the two servers that are compared.
type side struct {
	admin *kubernetes.Clientset
	as    map[string]*kubernetes.Clientset
}

func newSide(t *testing.T, admin *rest.Config) *side {
	s := &side{admin: clientset(t, admin), as: map[string]*kubernetes.Clientset{}}
	for _, who := range append(identities, sentinel) {
		config := rest.CopyConfig(admin)
		config.QPS, config.Impersonate = -1, who
		s.as[fmt.Sprint(who)] = clientset(t, config)
	}
	return s
}

// sentinel gets a permission after all the others were written: once he has it,
// the server knows of all.
var sentinel = rest.ImpersonationConfig{UserName: "sentinel"}

// replace writes a policy in place of the one before.
func (s *side) replace(t *testing.T, round int, roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding) {
	t.Helper()
	ctx, rbac := t.Context(), s.admin.RbacV1()
	mark := fmt.Sprintf("sentinel-%d", round)
	roles = append(slices.Clone(roles), rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: mark}, Rules: []rbacv1.PolicyRule{{Verbs: []string{mark}, APIGroups: []string{mark}, Resources: []string{mark}}}})
	bindings = append(slices.Clone(bindings), rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: mark}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: mark},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: sentinel.UserName}}})
	for _, role := range roles {
		if _, err := rbac.ClusterRoles().Update(ctx, &role, metav1.UpdateOptions{}); err != nil {
			t.Fatalf("role %s: %v", role.Name, err)
		}
	}
	for _, binding := range bindings {
		// What a binding leads to can't be changed.
		if err := rbac.ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		if _, err := rbac.ClusterRoleBindings().Create(ctx, &binding, metav1.CreateOptions{}); err != nil {
			t.Fatalf("binding %s: %v", binding.Name, err)
		}
	}
	framework.Eventually(t, "the server to know its policy", func(context.Context) error {
		if !s.may(t, sentinel, authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: mark, Group: mark, Resource: mark}}) {
			return fmt.Errorf("the sentinel may not %s yet", mark)
		}
		return nil
	})
}

func (s *side) may(t *testing.T, who rest.ImpersonationConfig, question authorizationv1.SelfSubjectAccessReviewSpec) bool {
	t.Helper()
	review, err := s.as[fmt.Sprint(who)].AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{Spec: question}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("%+v: %v", who, err)
	}
	return review.Status.Allowed
}

// grant tells whether somebody may write a role, and a binding.
func (s *side) grant(t *testing.T, who rest.ImpersonationConfig, role rbacv1.ClusterRole, binding rbacv1.ClusterRoleBinding) string {
	t.Helper()
	rbac, dry := s.as[fmt.Sprint(who)].RbacV1(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	_, roleErr := rbac.ClusterRoles().Create(t.Context(), &role, dry)
	_, bindingErr := rbac.ClusterRoleBindings().Create(t.Context(), &binding, dry)
	answer := func(err error) string {
		if err == nil {
			return "yes"
		}
		return string(apierrors.ReasonForError(err))
	}
	return answer(roleErr) + ", " + answer(bindingErr)
}
