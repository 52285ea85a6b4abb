package server

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericserver "k8s.io/apiserver/pkg/server"
	rbacv1listers "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterregistry/operator/apiserver/authz"
	"github.com/clusterregistry/operator/apiserver/body/bodytest"
	"github.com/clusterregistry/operator/apiserver/storage/rbac"
	"github.com/clusterregistry/operator/apiserver/storage/reviews"
)

const (
	rolesPath    = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	bindingsPath = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
	tokensPath   = "/apis/authentication.k8s.io/v1/tokenreviews"
	accessPath   = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	selfPath     = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

// otherWrites are the writes that grant something or ask who may do what, those of ClusterSets in full,
// and those in CBOR. Each gets the bodies that are made for it.
var otherWrites = []struct{ method, path, kind string }{
	{"POST", rolesPath, plain},
	{"POST", rolesPath, runtime.ContentTypeProtobuf},
	{"POST", rolesPath, runtime.ContentTypeCBOR},
	{"PUT", rolesPath + "/some", plain},
	{"PATCH", rolesPath + "/some", jsonPatch},
	{"PATCH", rolesPath + "/some", mergePatch},
	{"PATCH", rolesPath + "/some?fieldManager=a&force=true", applyPatch},
	{"PATCH", rolesPath + "/some?fieldManager=a&force=true", cborPatch},
	{"POST", bindingsPath, plain},
	{"PUT", bindingsPath + "/some", plain},
	{"PATCH", bindingsPath + "/some", mergePatch},
	{"POST", tokensPath, plain},
	{"POST", accessPath, plain},
	{"POST", accessPath, runtime.ContentTypeProtobuf},
	{"POST", selfPath, plain},
	{"PUT", "v1beta1/clustersets/some", plain},
	{"POST", "v1beta1/clusters", runtime.ContentTypeCBOR},
	{"PATCH", "v1beta1/clusters/full?fieldManager=a&force=true", cborPatch},
}

// listOf returns so many texts, none of them twice, in JSON.
func listOf(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf(`"%x"`, i))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// granting returns bodies for otherWrites whose cost may be a product: of lists within them, or of one
// of them and what is stored.
func granting(tb testing.TB) (out []string) {
	in := func(group, kind, rest string) string {
		return `{"apiVersion":"` + group + `.k8s.io/v1","kind":"` + kind + `","metadata":{"name":"some"},` + rest + `}`
	}
	role := func(rules string) string { return in("rbac.authorization", "ClusterRole", `"rules":[`+rules+`]`) }
	binding := func(role, subjects string) string {
		return in("rbac.authorization", "ClusterRoleBinding", `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"`+role+`"},"subjects":`+subjects)
	}
	repeat := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	resource := func(rest string) string {
		return `"spec":{"user":"a","groups":` + listOf(2000) + `,"resourceAttributes":{"verb":"a","resource":"b",` + rest + `}}`
	}
	// The smaller ones come first: they show what is wrong while a computer can still do it.
	for _, n := range []int{100, 2000} {
		some := listOf(n)
		out = append(out,
			role(`{"verbs":`+some+`,"apiGroups":`+some+`,"resources":`+some+`}`),
			role(`{"verbs":["get"],"apiGroups":`+some+`,"resources":`+some+`,"resourceNames":`+some+`}`),
			role(`{"verbs":`+some+`,"nonResourceURLs":`+some+`}`),
			role(repeat(n, `{"verbs":["get"],"apiGroups":[""],"resources":["x"]}`)),
			role(repeat(n, `{}`)),
			`[{"op":"add","path":"/rules","value":[{"verbs":`+some+`,"apiGroups":`+some+`,"resources":`+some+`}]}]`,
			binding("small", "["+repeat(n, `{"kind":"Group","name":"a"}`)+"]"),
			binding("small", "["+repeat(n, `{}`)+"]"),
		)
	}
	out = append(out, binding("large", `[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"a"}]`),
		in("authentication", "TokenReview", `"spec":{"token":"a","audiences":`+listOf(2000)+`}`),
		in("authorization", "SubjectAccessReview", resource(`"labelSelector":{"requirements":[`+repeat(16, `{"key":"a","operator":"In","values":`+listOf(2000)+`}`)+`]}`)),
		in("authorization", "SubjectAccessReview", resource(`"labelSelector":{"requirements":[`+repeat(2000, `{"key":"","operator":"In","values":["-","-","-"]}`)+`]}`)),
		in("authorization", "SubjectAccessReview", resource(`"labelSelector":{"rawSelector":"a in (`+strings.Repeat("b,", 400_000)+`b)"}`)),
		in("authorization", "SelfSubjectAccessReview", resource(`"fieldSelector":{"rawSelector":"`+strings.Repeat("a!=b,", 150_000)+`a=b"}`)),
		in("authorization", "SelfSubjectAccessReview", resource(`"fieldSelector":{"requirements":[`+repeat(2000, `{"key":"a","operator":"Exists"}`)+`]}`)),
		strings.Replace(in("clusterregistry", "ClusterSet", `"spec":{"displayName":"`+strings.Repeat("a", 1_000_000)+`"}`), "k8s.io/v1", "k8s.io/v1beta1", 1),
	)
	for _, text := range append(out[:3:3], out[8], most()[0], inCluster("v1beta1", `"spec":{"access":[`+repeat(2000, "{}")+`]}`)) {
		out = append(out, bodytest.CBOR(tb, text))
	}
	return append(out, hidden()...)
}

// hidden returns bodies in protobuf with more entries than a list may have, which look like text:
// a role of verbs on paths, and a review of a user with many groups.
func hidden() (out []string) {
	const item = "\t123456789" // its length is a tab
	field := func(number protowire.Number, content string) string {
		return string(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), content))
	}
	object := func(group, kind, content string) string {
		return "k8s\x00" + field(1, field(1, group+".k8s.io/v1")+field(2, kind)) + field(2, field(1, field(1, "some"))+field(2, content))
	}
	for _, n := range []int{1000, 40_000} {
		out = append(out, object("rbac.authorization", "ClusterRole", strings.Repeat("\n"+item, n)+strings.Repeat("*"+item, n)))
	}
	return append(out, object("authorization", "SubjectAccessReview", "\n\x20"+field(3, strings.Repeat("a", 30))+strings.Repeat(`"`+item, 80_000)))
}

// serveGrants makes a server decide by roles who may grant, as an independent one does. Its caller,
// ann, may little, and both a large role and a binding to many are stored.
func serveGrants(tb testing.TB) func(*Config) {
	roles, bindings := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	var many []string
	var subjects []rbacv1.Subject
	for i := range 2000 {
		many, subjects = append(many, fmt.Sprint(i)), append(subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, Name: fmt.Sprintf("1234%05d", i)})
	}
	for name, rule := range map[string]rbacv1.PolicyRule{
		"small": {Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"x"}},
		"large": {Verbs: many[:100], APIGroups: many[:100], Resources: many[:100]},
	} {
		if err := roles.Add(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}); err != nil {
			tb.Fatal(err)
		}
	}
	for name, to := range map[string][]rbacv1.Subject{"ann": {{Kind: rbacv1.UserKind, Name: "ann"}}, "many": subjects, "more": subjects} {
		if err := bindings.Add(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Name: "small"}, Subjects: to}); err != nil {
			tb.Fatal(err)
		}
	}
	return func(config *Config) {
		config.extend = func(server *genericserver.GenericAPIServer) error {
			storage, err := rbac.New(scheme, config.generic.RESTOptionsGetter)
			if err != nil {
				return err
			}
			own := &authz.RBAC{Roles: rbacv1listers.NewClusterRoleLister(roles), Bindings: rbacv1listers.NewClusterRoleBindingLister(bindings)}
			if err := serveVersion(server, storage.Guarded(own), rbacv1.SchemeGroupVersion); err != nil {
				return err
			}
			if err := serveVersion(server, reviews.Authentication(config.generic.Authentication.Authenticator), authenticationv1.SchemeGroupVersion); err != nil {
				return err
			}
			return serveVersion(server, reviews.Authorization(own, own), authorizationv1.SchemeGroupVersion)
		}
	}
}
