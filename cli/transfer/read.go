package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterregistry/operator/cli/command"
)

// chunk is how much of a file decides whether it is JSON or YAML.
const chunk = 4096

// readFile returns the objects of a file, "-" for the standard input: of one or more
// YAML documents or JSON values, and the items of lists.
func readFile(path string, stdin io.Reader) ([]*unstructured.Unstructured, error) {
	in := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read the clusters: %w", err)
		}
		defer file.Close() //nolint:errcheck // it was only read
		in = file
	}
	decoder := yaml.NewYAMLOrJSONDecoder(in, chunk)
	var out []*unstructured.Unstructured
	for document := 1; ; document++ {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		object := &unstructured.Unstructured{}
		if err == nil && len(raw) > 0 {
			// Whole numbers are int64 then, as in objects that come from a server.
			err = utiljson.Unmarshal(raw, &object.Object)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d of %s is neither YAML nor JSON: %s; nothing was imported", document, path, command.Plain(err.Error()))
		}
		if len(object.Object) == 0 {
			continue
		}
		if !strings.HasSuffix(object.GetKind(), "List") {
			out = append(out, object)
			continue
		}
		items, _, err := unstructured.NestedSlice(object.Object, "items")
		if err != nil {
			return nil, fmt.Errorf("document %d of %s is a list whose items are none: %s; nothing was imported", document, path, command.Plain(err.Error()))
		}
		for _, value := range items {
			fields, is := value.(map[string]any)
			if !is {
				return nil, fmt.Errorf("document %d of %s is a list with an item that is not an object; nothing was imported", document, path)
			}
			one := &unstructured.Unstructured{Object: fields}
			if one.GetKind() == "" { // the items of a typed list
				one.SetAPIVersion(object.GetAPIVersion())
				one.SetKind(strings.TrimSuffix(object.GetKind(), "List"))
			}
			out = append(out, one)
		}
	}
}

// sources are the resources that clusters are read from in another cluster; of each
// group the first version that is there.
var sources = [][]schema.GroupVersionResource{
	{{Group: "clusterregistry.k8s.io", Version: "v1beta1", Resource: "clustersets"}},
	{{Group: "clusterregistry.k8s.io", Version: "v1beta1", Resource: "clusters"}, {Group: "clusterregistry.k8s.io", Version: "v1alpha1", Resource: "clusters"}},
	{{Group: groupKubeFed, Version: "v1beta1", Resource: "kubefedclusters"}},
	{{Group: groupClusterAPI, Version: "v1beta2", Resource: "clusters"}, {Group: groupClusterAPI, Version: "v1beta1", Resource: "clusters"}},
}

// readContext returns the objects that a context of a kubeconfig leads to.
func readContext(ctx context.Context, kubeconfig, name string) ([]*unstructured.Unstructured, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if kubeconfig != "" {
		rules.ExplicitPath = kubeconfig
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if err != nil {
		return nil, command.Usagef("context %q: %w; \"kubectl config get-contexts\" lists those that there are", command.Plain(name), err)
	}
	if err := command.ApplyPluginPolicy(config); err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("context %q: %w", command.Plain(name), err)
	}
	return readSources(ctx, client, name)
}

func readSources(ctx context.Context, client dynamic.Interface, name string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	known := false
	for _, versions := range sources {
		for _, resource := range versions {
			list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("list %s of context %q: %w; nothing was imported", resource.GroupResource(), command.Plain(name), err)
			}
			known = true
			for i := range list.Items {
				out = append(out, &list.Items[i])
			}
			break
		}
	}
	if !known {
		return nil, fmt.Errorf("context %q leads to a cluster that has no clusters of a registry, KubeFed or Cluster API: name another one", command.Plain(name))
	}
	return out, nil
}
