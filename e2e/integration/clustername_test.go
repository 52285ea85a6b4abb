package integration

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/clusterregistry/operator/client/clientset/versioned"
)

// TestClusterName writes a metadata.clusterName as a client does that validates
// nothing, in every way that there is to write it.
func TestClusterName(t *testing.T) {
	t.Parallel()
	_, _, config := independent(t)
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients.ClusterregistryV1alpha1().Clusters().Create(t.Context(), cluster("east", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for version, client := range map[string]rest.Interface{"v1alpha1": clients.ClusterregistryV1alpha1().RESTClient(), "v1beta1": clients.ClusterregistryV1beta1().RESTClient()} {
		object := func(name string) string {
			return `{"apiVersion":"clusterregistry.k8s.io/` + version + `","kind":"Cluster","metadata":{"name":"` + name + `","clusterName":"west"}}`
		}
		for how, request := range map[string]*rest.Request{
			"POST":        client.Post().Resource("clusters").SetHeader("Content-Type", "application/json").Body([]byte(object("new"))),
			"PUT":         client.Put().Resource("clusters").Name("east").SetHeader("Content-Type", "application/json").Body([]byte(object("east"))),
			"PUT, absent": client.Put().Resource("clusters").Name("new").SetHeader("Content-Type", "application/json").Body([]byte(object("new"))),
			"merge patch": client.Patch(types.MergePatchType).Resource("clusters").Name("east").Body([]byte(`{"metadata":{"clusterName":"west"}}`)),
			"JSON patch":  client.Patch(types.JSONPatchType).Resource("clusters").Name("east").Body([]byte(`[{"op":"add","path":"/metadata/clusterName","value":"west"}]`)),
			"apply":       client.Patch(types.ApplyYAMLPatchType).Resource("clusters").Name("east").Param("fieldManager", "test").Body([]byte(object("east"))),
		} {
			for _, validation := range []string{"Ignore", "Warn", "Strict"} {
				err := request.Param("fieldValidation", validation).Do(t.Context()).Error()
				// There is no server-side apply in v1alpha1, whatever is in the object.
				if apierrors.IsUnsupportedMediaType(err) && version == "v1alpha1" && how == "apply" {
					continue
				}
				if err == nil || !strings.Contains(err.Error(), "clusterName") {
					t.Errorf("%s of %s, %s: %v", how, version, validation, err)
				}
			}
		}
	}
	if _, err := clients.ClusterregistryV1alpha1().Clusters().Get(t.Context(), "new", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was refused is stored: %v", err)
	}
}
