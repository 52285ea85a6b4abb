package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

const foreign = "example.org/hold"

// deleted deletes a registry and returns it.
func (s *site) deleted(name string) *operatorv1alpha1.ClusterRegistry {
	s.t.Helper()
	r := &operatorv1alpha1.ClusterRegistry{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace}}
	if err := s.Delete(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// hold sets or removes a finalizer of somebody else.
func (s *site) hold(object client.Object, held bool) {
	s.t.Helper()
	if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		s.t.Fatal(err)
	}
	before := object.DeepCopyObject().(client.Object)
	object.SetFinalizers(nil)
	if held {
		object.SetFinalizers([]string{foreign})
	}
	if err := s.Patch(s.t.Context(), object, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

// testDeletion is about the order: the host must not be left with an API that
// nobody serves.
func testDeletion(t *testing.T, s, other *site) {
	const group = "v1alpha1.clusterregistry.k8s.io"
	s.apply("fleet", "{mode: Aggregated}")
	// A bare host does not reach the servers.
	s.says("fleet", "APIServiceReady", "False", "NotAvailable", group)
	s.says("fleet", "ServerReady", "True", "Ready", "2/2 servers ready (v0.1.0)")
	other.apply("second", "{mode: Aggregated}")
	other.says("second", "APIServiceReady", "False", "GroupTaken", "ClusterRegistry "+s.namespace+"/fleet", "mode Independent")
	s.holds("fleet", "APIService/"+group)

	registration := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: group}}
	s.hold(registration, true)
	registry := s.deleted("fleet")
	s.says("fleet", "Progressing", "True", "Deleting", "waiting for APIService "+group+" to be deleted")
	s.holds("fleet", "Deployment/fleet-server ConfigMap/fleet-trust")
	trust := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "fleet-trust", Namespace: s.namespace}}
	s.hold(trust, true)
	s.hold(registration, false)
	s.says("fleet", "Progressing", "True", "Deleting", "waiting for ConfigMap "+s.namespace+"/fleet-trust to be deleted")
	s.holds("fleet", "-APIService/"+group+" -Deployment/fleet-server")
	s.hold(trust, false)
	s.gone(registry)
	// The one that has waited takes the place of the one that is gone.
	other.says("second", "APIServiceReady", "False", "NotAvailable", group)
	other.holds("second", "APIService/"+group)
	other.gone(other.deleted("second"))

	// It has lost its labels, and a paused registry does not put them right: it goes
	// with the registry all the same, and before the servers do.
	s.apply("fleet", "{mode: Aggregated}")
	s.says("fleet", "APIServiceReady", "False", "NotAvailable", group)
	s.change(func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Paused = true })
	s.says("fleet", "Progressing", "False", "Paused")
	s.unlabel(client.ObjectKeyFromObject(registration), registration)
	s.hold(registration, true)
	registry = s.deleted("fleet")
	s.says("fleet", "Progressing", "True", "Deleting", "waiting for APIService "+group+" to be deleted")
	s.holds("fleet", "Deployment/fleet-server")
	s.hold(registration, false)
	s.gone(registration)
	s.gone(registry)

	s.apply("fleet", "{mode: Aggregated}")
	s.says("fleet", "APIServiceReady", "False", "NotAvailable", group)
	// From now on the host would register the API for the CRD.
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "clusters.clusterregistry.k8s.io", Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, a test"}}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "clusterregistry.k8s.io", Scope: apiextensionsv1.ClusterScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "clusters", Kind: "Cluster"}}}
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: version, Served: true, Storage: version == "v1alpha1", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}})
	}
	framework.Create(t, s, crd)
	s.gone(s.deleted("fleet"))
	s.apply("fleet", "{mode: Aggregated}")
	s.says("fleet", "APIServiceReady", "False", "GroupTaken", "CustomResourceDefinition", "or use mode Independent")
	s.gone(s.deleted("fleet"))
	// A version that the CRD does not have is registered beside it.
	both := crd.DeepCopy()
	crd.Spec.Versions = crd.Spec.Versions[1:]
	if err := s.Patch(t.Context(), crd, client.MergeFrom(both)); err != nil {
		t.Fatal(err)
	}
	s.apply("fleet", "{mode: Aggregated}")
	s.says("fleet", "APIServiceReady", "False", "GroupTaken", "already serves v1alpha1", "v1beta1 is to be registered beside it", "kubectl registry import")
	s.holds("fleet", "APIService/v1beta1.clusterregistry.k8s.io -APIService/"+group)
	if err := s.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	s.gone(crd)
	s.says("fleet", "APIServiceReady", "False", "NotAvailable", group)
	s.gone(s.deleted("fleet"))
}

// testNamespaceDeletion deletes the namespace of a registry, in a host where nothing
// else follows from that: the registration goes first and then all the rest, though
// nobody deletes the ClusterRegistry. Nothing is created, which the host would refuse,
// and the audit log tell.
func testNamespaceDeletion(t *testing.T, s *site) {
	const group = "v1alpha1.clusterregistry.k8s.io"
	s.apply("fleet", "{mode: Aggregated}")
	// A bare host does not reach the servers.
	s.says("fleet", "APIServiceReady", "False", "NotAvailable", group)
	registration := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: group}}
	s.hold(registration, true)
	if err := s.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}); err != nil {
		t.Fatal(err)
	}
	s.says("fleet", "Progressing", "True", "Deleting", "its namespace "+s.namespace+", which is terminating", "waiting for APIService "+group+" to be deleted")
	s.holds("fleet", "Deployment/fleet-server")
	s.hold(registration, false)
	s.gone(registration)
	r := &operatorv1alpha1.ClusterRegistry{}
	s.eventually("the operator to let go of the registry", func(ctx context.Context) error {
		if err := s.Get(ctx, s.key("fleet"), r); err != nil || len(r.Finalizers) == 0 {
			return err
		}
		return errors.New(shown(r.Status.Conditions))
	})
	if r.DeletionTimestamp != nil {
		t.Error("the registry was deleted by something else")
	}
	if left := namesOf(s.objects("fleet")); slices.Contains(left, "Deployment/fleet-server") {
		t.Errorf("left are %v", left)
	}
	s.gone(s.deleted("fleet"))
}

// testAdoption deletes a registry under Retain and makes another one of its name.
func testAdoption(t *testing.T, s *site) {
	const spec = "{mode: Independent, etcd: {replicas: 1}}"
	s.apply("fleet", spec)
	s.says("fleet", "EtcdReady", "False", "MembersNotReady")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-fleet-etcd-0", Namespace: s.namespace, Labels: map[string]string{
		operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelInstance: "fleet", operatorv1alpha1.LabelNamespace: s.namespace}},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
	framework.Create(t, s, claim)
	authority, record := &corev1.Secret{}, &corev1.ConfigMap{}
	s.get("fleet-etcd-ca", authority)
	s.gone(s.deleted("fleet"))
	s.holds("fleet", "ConfigMap/fleet-etcd-identity Certificate/fleet-etcd-ca Certificate/fleet-client-ca Issuer/fleet-selfsigned -Certificate/fleet-serving -StatefulSet/fleet-etcd -Deployment/fleet-server -Service/fleet-etcd")
	s.get("data-fleet-etcd-0", claim)
	s.get("fleet-etcd-identity", record)

	s.apply("fleet", "{mode: Independent, etcd: {replicas: 3}}")
	s.says("fleet", "EtcdReady", "False", "MembersNotReady")
	s.holds("fleet", "StatefulSet/fleet-etcd")
	set := &appsv1.StatefulSet{}
	s.get("fleet-etcd", set)
	if *set.Spec.Replicas != 1 { // the member that has the data comes up first
		t.Errorf("etcd begins with %d members", *set.Spec.Replicas)
	}
	s.gone(s.deleted("fleet"))
	s.apply("fleet", spec)
	s.says("fleet", "EtcdReady", "False", "MembersNotReady")
	s.holds("fleet", "StatefulSet/fleet-etcd")
	// The spec asks for 8Gi by default, and the claim that was retained has 1Gi.
	s.get("fleet-etcd", set)
	if args := set.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--quota-backend-bytes=536870912") {
		t.Errorf("etcd's quota does not fit the volume that was taken over: %v", args)
	}
	after, adopted := &corev1.Secret{}, &corev1.ConfigMap{}
	s.get("fleet-etcd-ca", after)
	s.get("fleet-etcd-identity", adopted)
	if !bytes.Equal(authority.Data["tls.key"], after.Data["tls.key"]) || adopted.UID != record.UID {
		t.Error("the new registry does not use what the old one left")
	}

	s.gone(s.deleted("fleet"))
	other := framework.NewAuthority(t, "fleet-etcd-ca")
	after.Data["tls.crt"] = other.PEM
	if err := s.Update(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	s.apply("fleet", spec)
	s.says("fleet", "EtcdReady", "False", "IdentityMismatch", "Secret fleet-etcd-ca has a different key")
	s.holds("fleet", "-StatefulSet/fleet-etcd")

	// Under Delete, what the first one left goes, too, and the name is free again.
	s.change(func(r *operatorv1alpha1.ClusterRegistry) {
		r.Spec.DeletionPolicy = operatorv1alpha1.DeletionPolicyDelete
	})
	s.eventually("the record to be in the inventory", func(ctx context.Context) error {
		r := &operatorv1alpha1.ClusterRegistry{}
		if err := s.Get(ctx, s.key("fleet"), r); err != nil {
			return err
		}
		if !slices.Contains(r.Status.Inventory, operatorv1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: s.namespace, Name: "fleet-etcd-identity"}) {
			return fmt.Errorf("it is %v", r.Status.Inventory)
		}
		return nil
	})
	registry := s.deleted("fleet")
	s.hold(claim, false) // nobody else here lets go of a volume
	s.gone(registry)
	s.gone(adopted)
	s.apply("fleet", spec)
	s.says("fleet", "EtcdReady", "False", "MembersNotReady")
}

// testNothingLeft deletes registries under Delete.
func testNothingLeft(t *testing.T, s *site) {
	s.apply("fleet", "{mode: Independent, deletionPolicy: Delete, etcd: {replicas: 1}}")
	s.says("fleet", "EtcdReady", "False", "MembersNotReady")
	s.apply("other", "{mode: Independent, deletionPolicy: Delete}")
	s.ready("other")
	s.gone(s.deleted("fleet"))
	s.gone(s.deleted("other"))
	for _, registry := range []string{"fleet", "other"} {
		if left := namesOf(s.objects(registry)); len(left) > 0 {
			t.Errorf("of %s are left: %v", registry, left)
		}
	}
	secrets := &corev1.SecretList{}
	if err := s.List(t.Context(), secrets, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets.Items {
		if secret.Name != "etcd" { // which is the user's
			t.Errorf("Secret %s is left", secret.Name)
		}
	}
}

// testOrphans starts an operator where something is left of a registry that is
// gone, and something that only looks like it.
func testOrphans(t *testing.T, s *site, host *framework.Host) {
	binding := func(name string, labels map[string]string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"}}
	}
	ours := map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: s.namespace, operatorv1alpha1.LabelInstance: "gone"}
	theirs := map[string]string{operatorv1alpha1.LabelManagedBy: "Helm", operatorv1alpha1.LabelNamespace: s.namespace, operatorv1alpha1.LabelInstance: "gone"}
	orphan, stranger := binding("clusterregistry:"+s.namespace+":gone:auth-delegator", ours), binding("clusterregistry:"+s.namespace+":stranger", theirs)
	registration := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1alpha1.clusterregistry.k8s.io", Labels: ours}, Spec: apiregistrationv1.APIServiceSpec{
		Group: "clusterregistry.k8s.io", Version: "v1alpha1", GroupPriorityMinimum: 900, VersionPriority: 10, InsecureSkipTLSVerify: true, Service: &apiregistrationv1.ServiceReference{Namespace: s.namespace, Name: "gone-server"}}}
	framework.Create(t, s, orphan, stranger, registration)
	// One that the operator has made, and one that somebody else has, lead there, too.
	leads := func(version string, owner client.FieldOwner) *apiregistrationv1.APIService {
		service := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": version + ".clusterregistry.k8s.io"}, "spec": map[string]any{
			"group": "clusterregistry.k8s.io", "version": version, "groupPriorityMinimum": int64(900), "versionPriority": int64(10), "insecureSkipTLSVerify": true, "service": map[string]any{"namespace": s.namespace, "name": "gone-server", "port": int64(443)}}}}
		if err := s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(service), owner); err != nil {
			t.Fatal(err)
		}
		return &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: service.GetName()}}
	}
	unlabelled, foreignService := leads("v1beta1", "clusterregistry-operator"), leads("v1", "somebody")
	operator := framework.StartOperator(t, host)
	s.gone(orphan)
	s.gone(registration)
	s.gone(unlabelled)
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(foreignService), foreignService); err != nil {
		t.Errorf("an APIService of somebody else's was removed: %v", err)
	} else if err := s.Delete(t.Context(), foreignService); err != nil {
		t.Fatal(err)
	}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(stranger), stranger); err != nil {
		t.Errorf("what is somebody else's was removed: %v", err)
	}
	operator.Stop()
}

// testOneNamespace runs an operator that looks after one namespace.
func testOneNamespace(t *testing.T, mine, other *site, host *framework.Host) {
	other.apply("fleet", "{mode: Independent}")
	// It is not in a namespace, but tells of one that is not watched.
	framework.Create(t, other, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "clusterregistry:" + other.namespace + ":fleet:auth-delegator", Labels: map[string]string{
		operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: other.namespace, operatorv1alpha1.LabelInstance: "fleet"}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"}})
	operator := framework.StartOperator(t, host, "--watch-namespaces="+mine.namespace)
	mine.apply("fleet", "{mode: Independent}")
	mine.ready("fleet")
	r := &operatorv1alpha1.ClusterRegistry{}
	other.get("fleet", r)
	if len(r.Finalizers) > 0 || len(r.Status.Conditions) > 0 || len(other.objects("fleet")) != 1 {
		t.Errorf("a registry of another namespace was looked after: %v, %s", r.Finalizers, shown(r.Status.Conditions))
	}
	operator.Stop()
	if err := other.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// trustOf is the end of the name of a ConfigMap, which follows from the CA of a site's etcd.
var trustOf = regexp.MustCompile(`-trust-[0-9a-f]{16}`)

// describe says what an installation came to, in words that are the same in any
// namespace.
func (s *site) describe(ctx context.Context, name string) (string, error) {
	r := &operatorv1alpha1.ClusterRegistry{}
	if err := s.Get(ctx, s.key(name), r); err != nil {
		return "", err
	}
	var out []string
	for _, c := range r.Status.Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s %s", c.Type, c.Status, c.Reason, c.Message))
	}
	for _, reference := range r.Status.Inventory {
		out = append(out, "known: "+reference.String())
	}
	for _, object := range namesOf(s.objects(name)) {
		out = append(out, "there: "+object)
	}
	slices.Sort(out)
	text := strings.ReplaceAll(strings.Join(out, "\n"), s.namespace, "NAMESPACE")
	return trustOf.ReplaceAllString(text, "-trust-HASH"), nil
}
