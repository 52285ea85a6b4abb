package format

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
)

// Documents is a format whose objects are Secrets or ConfigMaps. All of them are kept in one way,
// and each differs in what its consumers read.
type Documents struct {
	Source
	// Name is that of the format, Words what people call several of its objects, and Prefix
	// what is before the name of a cluster in theirs.
	Name, Words, Prefix string
	// Secret says that they are Secrets.
	Secret bool
	// Takes are the kinds of what is run for a provider that consumers know.
	Takes []By
	// Alone says that consumers tell clusters apart by where they are led: two objects that lead to
	// one place are never made.
	Alone bool
	// Labels are those by which consumers find the objects, whatever labels a cluster has.
	Labels map[string]string
	// Keys are those of all data about a cluster.
	Keys []string
	// Data returns what consumers read of a cluster that they connect to in some way, or why
	// they can't.
	Data func(cluster *v1beta1.Cluster, by Choice) (map[string]string, *Withheld)
	// Leads returns where consumers are led by what they read, if anywhere.
	Leads func(data map[string]string) (v1beta1.Endpoint, bool)
	// Notes returns annotations that say more of a cluster, and Settings data that only the
	// export says. Nil stands for none.
	Notes    func(cluster *v1beta1.Cluster) map[string]string
	Settings func(in Target) map[string]string
}

// Choice is how consumers connect to a cluster.
type Choice struct {
	Endpoint v1beta1.Endpoint
	Way      Way
	SignIn   SignIn
}

// documents is the format that they say.
type documents struct{ Documents }

// Format returns the format.
func (d Documents) Format() Format { return documents{d} }

// document returns one without content.
func (d documents) document() Document {
	return Document{Source: d.Source, Format: d.Name, Secret: d.Secret}
}

// Kind says what the objects are.
func (d documents) Kind() Kind {
	resource, kind, rights := "configmaps", "ConfigMap", "config-maps"
	if d.Secret {
		resource, kind, rights = "secrets", "Secret", "secrets"
	}
	return Kind{
		Name: d.Name, Words: d.Words, Rights: rights, Prefix: d.Prefix, Selector: d.document().Selector(), Private: true, SignIn: d.Takes,
		Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}, GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind},
	}
}

// Offered returns why consumers are to know nothing of a cluster.
func (d documents) Offered(cluster *v1beta1.Cluster, in Target) *Withheld {
	_, _, why := d.read(cluster, in)
	return why
}

// read returns what consumers read of a cluster and how they connect to it, or why they are not to.
func (d documents) read(cluster *v1beta1.Cluster, in Target) (map[string]string, Choice, *Withheld) {
	of, why := OfferOf(cluster, in)
	if why != nil {
		return nil, Choice{}, why
	}
	way, signIn, why := in.Chosen(of)
	if why != nil {
		return nil, Choice{}, why
	}
	by := Choice{of.Endpoint, way, signIn}
	data, why := d.Data(cluster, by)
	return data, by, why
}

// Want returns the object of a cluster, or why it is to have none.
func (d documents) Want(cluster *v1beta1.Cluster, in Target, known Known, have *unstructured.Unstructured) (Object, *Withheld) {
	nothing := d.document()
	nothing.Owner = in.Owner
	data, by, why := d.read(cluster, in)
	if why != nil {
		return nothing, why
	}
	digest, err := by.SignIn.digest()
	if err != nil {
		return nothing, &Withheld{Reason: "Unreadable", Message: err.Error()}
	}
	out := nothing
	out.Labels = in.Copied(cluster)
	maps.Copy(out.Labels, d.Labels)
	signedIn := map[string]string{ProviderAnnotation: by.Way.Provider, SignInAnnotation: digest}
	out.Annotations = maps.Clone(signedIn)
	if d.Notes != nil {
		maps.Copy(out.Annotations, d.Notes(cluster))
	}
	before, proven := d.before(have)
	switch {
	case known.Refused():
		return nothing, &Withheld{known.Result.Reason, known.Result.Message + " No one is led there.", Delete}
	case known.Verified || proven && SameEndpoint(before, by.Endpoint):
		out.Data = data
	case !known.Asked:
		return nil, &Withheld{Then: Wait}
	case proven && in.MayLead(by.Way.Provider, before.URL) && within(signedIn, have.GetAnnotations()):
		// The endpoint that was verified last stays, with all that was published of it, as long as
		// the entry and the export have the same be run for it.
		out.Data = d.published(have)
	default:
		why := &Withheld{"NotVerified", "No one is led to the cluster, since " + known.Missing(by.Endpoint), Delete}
		if have == nil {
			why.Then = Sweep
		}
		return nothing, why
	}
	if why := d.occupied(in, out.Data, have); why != nil {
		return nothing, why
	}
	if d.Settings != nil {
		maps.Copy(out.Data, d.Settings(in))
	}
	return out, nil
}

// occupied returns why an object with some data is not made where another one leads to the same
// place. One that leads elsewhere stays: no one who writes an entry takes another one's object.
func (d documents) occupied(in Target, data map[string]string, have *unstructured.Unstructured) *Withheld {
	if !d.Alone {
		return nil
	}
	place := d.place(data)
	by := in.Occupant(place)
	if by == "" {
		return nil
	}
	why := &Withheld{ReasonOccupied, fmt.Sprintf("Cluster %q has the same server, %s, by which %s are told apart: only the first one is published. Give one of the entries another address, or select only one of them.", by, place, d.Words), Keep}
	if have != nil && d.Leads(have) == place {
		why.Then = Sweep
	}
	return why
}

// place returns where consumers are led by data, in one form.
func (d documents) place(data map[string]string) string {
	endpoint, _ := d.Documents.Leads(data)
	return Place(endpoint)
}

// before returns where an object leads, if no one else has written of what consumers read: it was
// verified then.
func (d documents) before(have *unstructured.Unstructured) (v1beta1.Endpoint, bool) {
	if have == nil || slices.ContainsFunc(d.Keys, func(key string) bool { return Foreign(have.GetManagedFields(), fieldpath.MakePathOrDie("data", key)) }) {
		return v1beta1.Endpoint{}, false
	}
	return d.Documents.Leads(d.document().Stored(have))
}

// published returns what consumers read of the cluster of an object.
func (d documents) published(have *unstructured.Unstructured) map[string]string {
	stored := d.document().Stored(have)
	maps.DeleteFunc(stored, func(key, _ string) bool { return !slices.Contains(d.Keys, key) })
	return stored
}

// Ours reports whether an object belongs to the registry.
func (d documents) Ours(have *unstructured.Unstructured) (ours bool, differs string) {
	return d.document().Ours(have)
}

// Leads returns where an object leads.
func (d documents) Leads(have *unstructured.Unstructured) (place string) {
	return d.place(d.document().Stored(have))
}

// digest returns a digest of what clients run, which says nothing of it. Where credentials may go
// is not a part of it, since each address is looked at.
func (s SignIn) digest() (string, error) {
	content, err := json.Marshal(SignIn{Provider: s.Provider, Exec: s.Exec, AWS: s.AWS, Flux: s.Flux})
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8]), err
}
