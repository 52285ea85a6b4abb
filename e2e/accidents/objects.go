package accidents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// spared are the kinds that nothing happens to. The deletion of a volume's claim is
// no small accident: the host holds it back until the pod ends, and the data of that
// member is lost then, which e2e/faults is about. Jobs come and go with upgrades.
var spared = []string{"PersistentVolumeClaim", "Job"}

// parts returns everything that a registry consists of: what the operator has made,
// the Secrets of its Certificates, and where its Services lead to.
func parts(ctx context.Context, c client.Client, registry *operatorv1alpha1.ClusterRegistry) ([]operatorv1alpha1.ObjectReference, error) {
	var all []operatorv1alpha1.ObjectReference
	for _, reference := range registry.Status.Inventory {
		if slices.Contains(spared, reference.Kind) {
			continue
		}
		all = append(all, reference)
		key := client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}
		switch reference.Kind {
		case certmanagerv1.CertificateKind:
			var certificate certmanagerv1.Certificate
			if err := c.Get(ctx, key, &certificate); err != nil {
				return nil, err
			}
			all = append(all, operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: key.Namespace, Name: certificate.Spec.SecretName})
		case "Service":
			var slices discoveryv1.EndpointSliceList
			if err := c.List(ctx, &slices, client.InNamespace(key.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: key.Name}); err != nil {
				return nil, err
			}
			for _, slice := range slices.Items {
				all = append(all, operatorv1alpha1.ObjectReference{Group: discoveryv1.GroupName, Kind: "EndpointSlice", Namespace: key.Namespace, Name: slice.Name})
			}
		}
	}
	slices.SortFunc(all, func(a, b operatorv1alpha1.ObjectReference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(all), nil
}

// sliceDeleted is the deletion of an EndpointSlice, in whose place comes one of
// another name.
func sliceDeleted(c client.Client, object operatorv1alpha1.ObjectReference, before *unstructured.Unstructured) accident {
	service := before.GetLabels()[discoveryv1.LabelServiceName]
	return accident{
		object: object, damage: deleted,
		cause:  func(ctx context.Context) error { return c.Delete(ctx, before.DeepCopy()) },
		repair: func(context.Context) error { return nil },
		mended: func(ctx context.Context) error {
			var list discoveryv1.EndpointSliceList
			if err := c.List(ctx, &list, client.InNamespace(object.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
				return err
			}
			for _, slice := range list.Items {
				if slice.Name != before.GetName() && len(slice.Endpoints) > 0 {
					return nil
				}
			}
			return fmt.Errorf("there is no EndpointSlice with addresses of Service %s", service)
		},
	}
}

// readObject returns an object of any kind.
func readObject(ctx context.Context, c client.Client, reference operatorv1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	mapping, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: reference.Group, Kind: reference.Kind})
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := c.Get(ctx, client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}, object); err != nil {
		return nil, fmt.Errorf("read %s: %w", reference, err)
	}
	return object, nil
}

func patch(ctx context.Context, c client.Client, object *unstructured.Unstructured, content map[string]any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return c.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, body))
}
