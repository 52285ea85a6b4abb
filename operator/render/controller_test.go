package render

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/version"
)

// TestFunctionsAreKnown expects each function that the spec of an independent registry can have to
// have a group of its own.
func TestFunctionsAreKnown(t *testing.T) {
	all := operatorv1alpha1.Controllers{Health: &operatorv1alpha1.HealthController{}, RegisterHost: &operatorv1alpha1.RegisterHost{}, ClusterAPI: &operatorv1alpha1.ClusterAPI{}, Exports: make([]operatorv1alpha1.Export, 1), ClusterSelections: make([]operatorv1alpha1.ClusterSelections, 1)}
	if functions := all.Functions(); len(functions) != len(controllerGroups) {
		t.Errorf("there are %v, and groups of %v", functions, controllerGroups)
	}
	for _, function := range all.Functions() {
		if controllerGroups[function] == "" {
			t.Errorf("%s has no group", function)
		}
	}
}

// TestNoController renders registries that ask for no function: nothing of a controller is
// rendered.
func TestNoController(t *testing.T) {
	for reason, in := range map[string]Input{
		"not asked for":     input(t, registry),
		"no function is on": input(t, merged(t, `{controllers: {}}`)),
	} {
		for _, object := range rendered(t, in).Objects() {
			if strings.Contains(object.GetName(), "controller") {
				t.Errorf("%s: %s %s is rendered", reason, object.GetKind(), object.GetName())
			}
		}
	}
}

// TestControllerNotAllowed renders nothing of a controller where others elect leaders.
func TestControllerNotAllowed(t *testing.T) {
	for namespace, allowed := range map[string]bool{"team": true, "kube-system": false, "clusterregistry-system": false} {
		in := input(t, registry, withController, func(r *operatorv1alpha1.ClusterRegistry) { r.Namespace = namespace })
		found := slices.ContainsFunc(rendered(t, in).Objects(), func(o *unstructured.Unstructured) bool { return strings.Contains(o.GetName(), "-controller") })
		if found != allowed || (ControllerNotAllowed(namespace, in.Environment) == "") != allowed {
			t.Errorf("in %s, there is a controller: %v, %q", namespace, found, ControllerNotAllowed(namespace, in.Environment))
		}
	}
}

// TestControllerOfSomeNamespaces is about an operator that may write nothing of the whole
// cluster for independent registries.
func TestControllerOfSomeNamespaces(t *testing.T) {
	for mode, want := range map[operatorv1alpha1.Mode]bool{operatorv1alpha1.ModeIndependent: false, operatorv1alpha1.ModeAggregated: true} {
		in := input(t, registry, withController, func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Mode = mode })
		in.Environment.Namespaced = true
		found := false
		for _, object := range rendered(t, in).Objects() {
			found = found || object.GetKind() == "ClusterRoleBinding"
		}
		if found != want {
			t.Errorf("%s: ClusterRoleBindings are rendered: %v", mode, found)
		}
	}
}

// TestClientsDoNotNeedIt expects what clients need to be the same with a controller and
// without: all of the controller, its certificate too, is of its own stage.
func TestClientsDoNotNeedIt(t *testing.T) {
	for _, mode := range []operatorv1alpha1.Mode{operatorv1alpha1.ModeIndependent, operatorv1alpha1.ModeAggregated} {
		as := func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Mode = mode }
		with, without := rendered(t, input(t, registry, withController, as)), rendered(t, input(t, registry, as))
		for _, stage := range []Stage{StageCertificates, StageEtcd, StageServer, StageEndpoint} {
			if !reflect.DeepEqual(with.Stages[stage], without.Stages[stage]) {
				t.Errorf("%s: stage %s is another one with a controller", mode, stage)
			}
		}
	}
}

// TestControllerKubeconfig reads the kubeconfig as client-go does, which reloads what is
// named by a path: the certificate when it is renewed, and the CAs when they change.
func TestControllerKubeconfig(t *testing.T) {
	result := rendered(t, input(t, registry, withController))
	text, _ := at(t, result, "ConfigMap/fleet-controller/data/kubeconfig").(string)
	config, err := clientcmd.Load([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	context := config.Contexts[config.CurrentContext]
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster.Server != "https://fleet-server.team.svc:443" || cluster.CertificateAuthority != "/trust/serving-ca.crt" || cluster.InsecureSkipTLSVerify {
		t.Errorf("it leads to %+v", cluster)
	}
	if user.ClientCertificate != "/client/tls.crt" || user.ClientKey != "/client/tls.key" {
		t.Errorf("it is for %+v", user)
	}
	if len(cluster.CertificateAuthorityData)+len(user.ClientCertificateData)+len(user.ClientKeyData)+len(user.Token) > 0 {
		t.Error("it has data of its own, which no one renews")
	}
	paths := map[string]bool{}
	for _, mount := range podTemplates(t, result)["Deployment fleet-controller"].Spec.Containers[0].VolumeMounts {
		paths[mount.MountPath] = mount.ReadOnly && mount.SubPath == ""
	}
	for _, path := range []string{"/trust", "/client", "/config"} {
		if !paths[path] {
			t.Errorf("%s is not a whole volume that can only be read: %v", path, paths)
		}
	}
}

// TestHostCAReplacesPods expects another CA of the host cluster, which is read at start,
// to replace the controller's pods, and another CA of the servers, which is not, to leave
// them.
func TestHostCAReplacesPods(t *testing.T) {
	of := func(ca, servers string) string {
		in := input(t, registry, withController, func(r *operatorv1alpha1.ClusterRegistry) {
			r.Spec.Controllers.RegisterHost.URL, r.Spec.Controllers.RegisterHost.CABundle = "https://host.example", []byte(ca)
		})
		in.Trust.Serving = []byte(servers)
		return inline(t, podTemplates(t, rendered(t, in))["Deployment fleet-controller"])
	}
	if of("one", "a") == of("two", "a") {
		t.Error("with another CA of the host cluster, pods stay")
	}
	if of("one", "a") != of("one", "b") {
		t.Error("with another CA of the servers, pods are replaced")
	}
}

// TestControllerImage expects the image of the servers' release, by digest where that is
// published.
func TestControllerImage(t *testing.T) {
	in := input(t, registry, withController)
	in.Release.ControllerDigest = "sha256:d"
	for repository, want := range map[string]string{"": PublishedRepository + "/clusterregistry-controller:v0.1.0@sha256:d", "registry.example": "registry.example/clusterregistry-controller:v0.1.0"} {
		in := change(in, func(r *operatorv1alpha1.ClusterRegistry) { r.Spec.Images.Repository = repository })
		if got := podTemplates(t, rendered(t, in))["Deployment fleet-controller"].Spec.Containers[0].Image; got != want {
			t.Errorf("from %q it is %s, want %s", repository, got, want)
		}
	}
	of := ReleaseOf(version.Release{Version: "v0.2.0", Images: version.Images{Controller: "sha256:e"}})
	if of.ControllerDigest != "sha256:e" {
		t.Errorf("of the release it is %+v", of)
	}
}
