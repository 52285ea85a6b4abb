package trust

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/generation"
	"github.com/clusterregistry/operator/operator/operand"
)

// Generations are the generations in use of the CAs of servers and clients, as they are
// recorded in the ConfigMap <name>-ca-generations. It outlives the registry as the CAs do,
// and there is none as long as no CA was rotated. Those of etcd's CA are in the record of
// etcd's identity, with what its members trust.
type Generations struct {
	Serving, Clients generation.InUse
}

// The keys of the record.
const (
	keyServing = "serving"
	keyClients = "client"
)

// component is the component that the record is of.
const component = "certificates"

// readGenerations reads the record. Not from the cache: what is behind, or lost its labels,
// must not look like CAs that were never rotated.
func (a *Authorities) readGenerations(ctx context.Context, o *operand.Objects) error {
	record := &corev1.ConfigMap{}
	if err := o.Live.Get(ctx, o.Key(contract.GenerationsSuffix), record); err != nil {
		return client.IgnoreNotFound(err)
	}
	for key, into := range map[string]*generation.InUse{keyServing: &a.recorded.Serving, keyClients: &a.recorded.Clients} {
		if record.Data[key] == "" {
			continue // never rotated
		}
		inUse, err := generation.Parse(record.Data[key])
		if err != nil {
			a.Err = fmt.Errorf("ConfigMap %s, the record of which CAs are in use, is damaged: %s is %w; status.certificates says which generation signs", record.Name, key, err)
			continue
		}
		*into = inUse
	}
	return nil
}

// FirstInUse returns the generations in use of a CA of which none are recorded, from its
// first name and that of a Secret with a certificate that it signs. Where there is such a
// certificate, the generation that signed it counts: a record that got lost must not have
// another one sign. Where there is none, it is the desired one in a new registry, and the
// first in one that was complete, whose certificate is being issued again.
func FirstInUse(ctx context.Context, o *operand.Objects, ca, leaf string, desired int32) (generation.InUse, error) {
	if desired <= generation.First {
		return generation.InUse{Signing: generation.First}, nil
	}
	secret, err := o.Secret(ctx, o.Name(leaf))
	if err != nil {
		return generation.InUse{}, err
	}
	if secret != nil {
		if n := generationOf(o.Name(ca), secret.Annotations[certmanagerv1.IssuerNameAnnotationKey]); n > 0 {
			return generation.InUse{Signing: n}, nil
		}
	}
	if secret == nil && o.Installed() {
		desired = generation.First
	}
	return generation.InUse{Signing: desired}, nil
}

// generationOf returns the generation of a CA by its name, and 0 where that is another's.
func generationOf(first, name string) int32 {
	number, is := strings.CutPrefix(name, first+"-")
	n, err := strconv.ParseInt(number, 10, 32)
	switch {
	case name == first:
		return generation.First
	case !is || err != nil || n <= generation.First:
		return 0
	}
	return int32(n)
}

// Record writes down the generations in use of the CAs of servers and clients. What it is
// not given stays.
func (a *Authorities) Record(ctx context.Context, o *operand.Objects, in Generations) error {
	meta := o.Meta(contract.GenerationsSuffix, component)
	meta.Annotations = map[string]string{operatorv1alpha1.AnnotationRetain: "true"}
	record := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{}}
	record.APIVersion, record.Kind = "v1", "ConfigMap"
	now := Generations{Serving: orElse(in.Serving, a.recorded.Serving), Clients: orElse(in.Clients, a.recorded.Clients)}
	for key, inUse := range map[string]generation.InUse{keyServing: now.Serving, keyClients: now.Clients} {
		if inUse != (generation.InUse{}) {
			record.Data[key] = inUse.String()
		}
	}
	object, err := operand.Unstructured(record)
	if err != nil {
		return err
	}
	if err := o.Apply(ctx, object); err != nil {
		return err
	}
	a.recorded = now
	return nil
}

// orElse returns generations, or others where they are not given.
func orElse(given, others generation.InUse) generation.InUse {
	if given == (generation.InUse{}) {
		return others
	}
	return given
}

// Keep writes down what is in use and not recorded, as in a new registry whose spec begins
// with a later generation. It does nothing in a read-only reconcile.
func (a *Authorities) Keep(ctx context.Context, o *operand.Objects) error {
	missing := func(inUse, recorded generation.InUse) bool {
		return recorded == generation.InUse{} && inUse.Signing > generation.First
	}
	if o.ReadOnly() || !missing(a.Serving.InUse, a.recorded.Serving) && !missing(a.Clients.InUse, a.recorded.Clients) {
		return nil
	}
	return a.Record(ctx, o, Generations{Serving: a.Serving.InUse, Clients: a.Clients.InUse})
}

// GenerationsReference refers to the record of a registry.
func GenerationsReference(o *operand.Objects) operatorv1alpha1.ObjectReference {
	return operatorv1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: o.Registry.Namespace, Name: o.Name(contract.GenerationsSuffix)}
}
