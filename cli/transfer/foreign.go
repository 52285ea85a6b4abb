package transfer

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterregistry/operator/apis/clusterregistry"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1alpha1"
	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/internal/controlplane"
)

// The groups of the objects that import reads.
const (
	groupKubeFed    = "core.kubefed.io"
	groupClusterAPI = "cluster.x-k8s.io"
)

// entry is an object that is to be a cluster of the registry.
type entry struct {
	// from names the object for a message.
	from    string
	cluster *v1beta1.Cluster
	// note is for the person, of what the object does not say.
	note string
	// err is why it can't be a cluster.
	err error
}

// entryOf makes a cluster of an object of any form that import reads, with the name that a template
// makes.
func entryOf(object *unstructured.Unstructured, template string) entry {
	out := entry{from: nameOf(object)}
	version := object.GroupVersionKind()
	switch {
	case version.Group == clusterregistry.GroupName && version.Kind == "Cluster" && version.Version == "v1beta1":
		out.cluster, out.err = fromV1beta1(object)
	case version.Group == clusterregistry.GroupName && version.Kind == "Cluster" && version.Version == "v1alpha1":
		out.cluster, out.err = fromV1alpha1(object)
	case version.Group == groupKubeFed && version.Kind == "KubeFedCluster":
		out.cluster, out.err = fromKubeFed(object)
	case version.Group == groupClusterAPI && version.Kind == "Cluster":
		out.cluster, out.note, out.err = fromClusterAPI(object)
	default:
		out.err = fmt.Errorf("%s of %q is not a form that import reads: it reads ClusterSet (v1beta1) and Cluster of clusterregistry.k8s.io (v1beta1, v1alpha1) and of cluster.x-k8s.io, and KubeFedCluster", command.Plain(version.Kind), command.Plain(object.GetAPIVersion()))
	}
	if out.err == nil {
		out.cluster.Name, out.err = nameBy(template, object)
	}
	if out.err == nil {
		out.err = command.Validate(out.cluster)
	}
	return out
}

// What a template of names has in place of an object's own.
const (
	placeOfName      = "{name}"
	placeOfNamespace = "{namespace}"
)

// checkTemplate returns an error about the command line for a template that is none.
func checkTemplate(template string) error {
	rest := strings.NewReplacer(placeOfName, "", placeOfNamespace, "").Replace(template)
	if !strings.Contains(template, placeOfName) || strings.ContainsAny(rest, "{}") {
		return command.Usagef("--name-template=%s: it has to have %s, and may have %s, such as %s-%s", command.Plain(template), placeOfName, placeOfNamespace, placeOfNamespace, placeOfName)
	}
	return nil
}

// nameBy returns the name that a template makes of an object's own.
func nameBy(template string, object *unstructured.Unstructured) (string, error) {
	if strings.Contains(template, placeOfNamespace) && object.GetNamespace() == "" {
		return object.GetName(), fmt.Errorf("it has no namespace, and --name-template=%s asks for one", command.Plain(template))
	}
	return strings.NewReplacer(placeOfName, object.GetName(), placeOfNamespace, object.GetNamespace()).Replace(template), nil
}

// nameOf names an object for a message.
func nameOf(object *unstructured.Unstructured) string {
	name := object.GetName()
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	return command.Plain(object.GetKind() + " " + name)
}

// bare returns a cluster with what of an object's metadata is not a server's.
func bare(object *unstructured.Unstructured) *v1beta1.Cluster {
	annotations, labels := withoutApplied(object.GetAnnotations()), withoutLabel(object.GetLabels())
	if len(annotations) == 0 {
		annotations = nil
	}
	if len(labels) == 0 {
		labels = nil
	}
	return &v1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: object.GetName(), Labels: labels, Annotations: annotations}}
}

func decode(object *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
		return fmt.Errorf("it has fields that are not known, or of the wrong type: %s", command.Plain(err.Error()))
	}
	return nil
}

func fromV1beta1(object *unstructured.Unstructured) (*v1beta1.Cluster, error) {
	read := &v1beta1.Cluster{}
	if err := decode(object, read); err != nil {
		return nil, err
	}
	out := bare(object)
	out.Spec, out.Status = read.Spec, portable(read.Status, read.Generation)
	return out, nil
}

// fromV1alpha1 reads what registries up to v0.0.4 and those of this project serve, and
// the CRD of v0.0.5 and v0.0.6, which is namespaced and has references to objects.
func fromV1alpha1(object *unstructured.Unstructured) (*v1beta1.Cluster, error) {
	object = object.DeepCopy()
	var references []v1beta1.Access
	for _, audience := range []struct {
		field string
		of    v1beta1.AccessAudience
	}{{"user", v1beta1.AudienceUser}, {"controller", v1beta1.AudienceController}} {
		reference, found, err := unstructured.NestedStringMap(object.Object, "spec", "authInfo", audience.field)
		if err != nil {
			return nil, fmt.Errorf("spec.authInfo.%s is not a reference to an object", audience.field)
		}
		unstructured.RemoveNestedField(object.Object, "spec", "authInfo", audience.field)
		if !found || reference["name"] == "" {
			continue
		}
		references = append(references, v1beta1.Access{Name: audience.field, Audience: audience.of, ObjectRef: &v1beta1.ObjectReference{
			APIVersion: reference["apiVersion"], Kind: reference["kind"], Namespace: reference["namespace"], Name: reference["name"],
		}})
	}
	// The conditions of v0.0.6 have another form, and are out of date anyway.
	unstructured.RemoveNestedField(object.Object, "status")
	// Objects of 2018 may have what Kubernetes has removed from the metadata since: of no
	// effect in a registry, and no reason to refuse a cluster.
	for _, removed := range []string{"clusterName", "initializers"} {
		unstructured.RemoveNestedField(object.Object, "metadata", removed)
	}
	read := &v1alpha1.Cluster{}
	if err := decode(object, read); err != nil {
		return nil, err
	}
	hub, modern := &clusterregistry.Cluster{}, &v1beta1.Cluster{}
	err := errors.Join(command.Scheme.Convert(read, hub, nil), command.Scheme.Convert(hub, modern, nil))
	if err != nil {
		return nil, fmt.Errorf("convert it to v1beta1: %w", err)
	}
	out := bare(object)
	out.Spec = modern.Spec
	out.Spec.Access = append(out.Spec.Access, references...)
	return out, nil
}

type secretRef struct {
	Name string `json:"name"`
}

// kubeFed are the parts of a KubeFedCluster that say where it is.
type kubeFed struct {
	Spec struct {
		APIEndpoint           string          `json:"apiEndpoint"`
		CABundle              []byte          `json:"caBundle"`
		SecretRef             secretRef       `json:"secretRef"`
		ProxyURL              string          `json:"proxyURL"`
		DisabledTLSValidation []string        `json:"disabledTLSValidations"`
		Taints                []v1beta1.Taint `json:"taints"`
	} `json:"spec"`
}

func fromKubeFed(object *unstructured.Unstructured) (*v1beta1.Cluster, error) {
	read := &kubeFed{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, read); err != nil {
		return nil, fmt.Errorf("it is not a valid KubeFedCluster: %s", command.Plain(err.Error()))
	}
	if len(read.Spec.DisabledTLSValidation) > 0 {
		return nil, fmt.Errorf("it has disabledTLSValidations (%s), and a registry takes only endpoints whose certificate is verified: give it a CA bundle that is valid, or join it", command.Plain(strings.Join(read.Spec.DisabledTLSValidation, ", ")))
	}
	out := bare(object)
	out.Spec.Taints = read.Spec.Taints
	out.Spec.SourceRef = source(object)
	out.Spec.Endpoints = []v1beta1.Endpoint{{Name: "main", URL: strings.TrimSuffix(read.Spec.APIEndpoint, "/"), CABundle: read.Spec.CABundle, ProxyURL: read.Spec.ProxyURL}}
	if name := read.Spec.SecretRef.Name; name != "" {
		out.Spec.Access = []v1beta1.Access{{Name: "kubefed", Audience: v1beta1.AudienceController, ObjectRef: &v1beta1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: object.GetNamespace(), Name: name}}}
	}
	return out, nil
}

func fromClusterAPI(object *unstructured.Unstructured) (*v1beta1.Cluster, string, error) {
	host, _, err := unstructured.NestedString(object.Object, "spec", "controlPlaneEndpoint", "host")
	if err != nil || host == "" {
		return nil, "", errors.New("it has no spec.controlPlaneEndpoint yet: import it again when its control plane is up")
	}
	port, found, err := unstructured.NestedInt64(object.Object, "spec", "controlPlaneEndpoint", "port")
	if err != nil || !found || port == 0 {
		port = 443
	}
	url, err := controlplane.URL(host, port)
	if err != nil {
		return nil, "", err
	}
	out := bare(object)
	out.Annotations = nil // those of Cluster API are for its controllers
	out.Spec.SourceRef = source(object)
	out.Spec.Endpoints = []v1beta1.Endpoint{{Name: "main", URL: url}}
	return out, "its CA and id are not in the object: \"kubectl registry join\" adds them", nil
}

// source says which object a cluster is from.
func source(object *unstructured.Unstructured) *v1beta1.SourceReference {
	return &v1beta1.SourceReference{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID())}
}

// sameObject reports whether a reference is to the object that another one is to, in
// whatever version of its API. A file may not know the object's UID.
func sameObject(old, wanted *v1beta1.SourceReference) bool {
	if old == nil || wanted == nil || wanted.UID != "" && wanted.UID != old.UID {
		return false
	}
	return schema.FromAPIVersionAndKind(old.APIVersion, old.Kind).GroupKind() == schema.FromAPIVersionAndKind(wanted.APIVersion, wanted.Kind).GroupKind() &&
		old.Namespace == wanted.Namespace && old.Name == wanted.Name
}
