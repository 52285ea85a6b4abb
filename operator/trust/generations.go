package trust

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

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
	Serving, Clients Recorded
}

// Recorded is what is recorded of one CA. The zero value is that of one that was never rotated.
type Recorded struct {
	generation.InUse
	// NextKey is Authority.NextKey.
	NextKey string
	// Reissued is Authority.Reissued, empty where that is zero. No copy of the record has it.
	Reissued string
}

// since returns Reissued as a time, zero where it is none, or one to come, as where a clock was
// set back.
func (r Recorded) since(now time.Time) time.Time {
	if at, err := time.Parse(time.RFC3339, r.Reissued); err == nil && !at.After(now) {
		return at
	}
	return time.Time{}
}

// String returns what is recorded as one text, as in a copy: the generations, and the key of the
// next one behind them if it is known.
func (r Recorded) String() string {
	switch {
	case r.InUse == generation.InUse{}:
		return ""
	case r.NextKey == "":
		return r.InUse.String()
	}
	return r.InUse.String() + " " + r.NextKey
}

// parseRecorded reads what String returns.
func parseRecorded(text string) (Recorded, error) {
	if text == "" {
		return Recorded{}, nil
	}
	inUse, key, _ := strings.Cut(text, " ")
	u, err := generation.Parse(inUse)
	if err != nil || !u.Next() {
		return Recorded{InUse: u}, err
	}
	return Recorded{InUse: u, NextKey: strings.TrimSpace(key)}, nil
}

// further returns the one of two records of a CA that is further.
func (r Recorded) further(other Recorded) Recorded {
	switch {
	case r.InUse == other.InUse:
		return Recorded{r.InUse, cmp.Or(r.NextKey, other.NextKey), r.Reissued}
	case r.Further(other.InUse) == r.InUse:
		return r
	}
	return other
}

// Copy is a copy of the record, which is kept beside the identity of the registry's own etcd:
// it counts where the record got lost, or is older. Its texts are empty where there is none.
type Copy struct {
	Serving, Clients string
}

// The keys of the record. What is known of a CA beside its generations has keys of its own,
// which operators that know of generations alone ignore.
const (
	keyServing = "serving"
	keyClients = "client"

	nextKeySuffix  = "-next-key"
	reissuedSuffix = "-reissued"
)

// read reads what is recorded of a CA, by its key in the record.
func (r *Recorded) read(data map[string]string, key string) (err error) {
	if *r, err = parseRecorded(data[key]); err == nil && r.Next() {
		r.NextKey = cmp.Or(strings.TrimSpace(data[key+nextKeySuffix]), r.NextKey)
	}
	if err == nil && r.Previous() {
		r.Reissued = data[key+reissuedSuffix]
	}
	return err
}

// enter enters what is recorded of a CA into a record.
func (r Recorded) enter(data map[string]string, key string) {
	if r == (Recorded{}) {
		return
	}
	data[key] = r.InUse.String()
	for suffix, value := range map[string]string{nextKeySuffix: r.NextKey, reissuedSuffix: r.Reissued} {
		if value != "" {
			data[key+suffix] = value
		}
	}
}

// component is the component that the record is of.
const component = "certificates"

// readGenerations reads the record. Not from the cache: what is behind, or lost its labels,
// must not look like CAs that were never rotated. The copy counts where the record is lost or
// damaged, and the record is written again from it (Keep).
func (a *Authorities) readGenerations(ctx context.Context, o *operand.Objects, copied Copy) error {
	record := &corev1.ConfigMap{}
	if err := o.Live.Get(ctx, o.Key(contract.GenerationsSuffix), record); client.IgnoreNotFound(err) != nil {
		return err
	}
	for key, of := range map[string]struct {
		copied           string
		stored, recorded *Recorded
	}{keyServing: {copied.Serving, &a.stored.Serving, &a.recorded.Serving}, keyClients: {copied.Clients, &a.stored.Clients, &a.recorded.Clients}} {
		var stored Recorded
		damaged := stored.read(record.Data, key)
		other, err := parseRecorded(of.copied)
		if damaged != nil {
			if err != nil || other == (Recorded{}) {
				a.Err = fmt.Errorf("ConfigMap %s, the record of which CAs are in use, is damaged: %s is %w; status.certificates says which generation signs", record.Name, key, damaged)
			} else {
				*of.recorded = other // and nothing is stored, so that Keep writes it
			}
			continue
		}
		if err != nil && stored == (Recorded{}) {
			a.Err = fmt.Errorf("ConfigMap %s, the record of which CAs are in use, is lost, and its copy in ConfigMap %s is damaged: the generations of %s are %w; status.certificates says which generation signs", o.Name(contract.GenerationsSuffix), o.Name(contract.IdentitySuffix), key, err)
			continue
		}
		*of.stored, *of.recorded = stored, stored
		if err == nil {
			*of.recorded = stored.further(other)
		}
	}
	return nil
}

// FirstInUse returns the generations in use of a CA of which none are recorded, from its
// first name and that of a Secret with a certificate that it signs. Where there is such a
// certificate, the generation that signed it counts: a record that got lost must not have
// another one sign. Where there is none, it is the desired one in a new registry, and the
// first in one that was complete, whose certificate is being issued again.
func FirstInUse(ctx context.Context, o *operand.Objects, ca, leaf string, desired int32) (generation.InUse, error) {
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
	return generation.InUse{Signing: max(desired, generation.First)}, nil
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
	now := a.with(in)
	now.Serving.enter(record.Data, keyServing)
	now.Clients.enter(record.Data, keyClients)
	object, err := operand.Unstructured(record)
	if err != nil {
		return err
	}
	if err := o.Apply(ctx, object); err != nil {
		return err
	}
	a.recorded, a.stored = now, now
	return nil
}

// with returns what is recorded with what it is given.
func (a *Authorities) with(in Generations) Generations {
	return Generations{Serving: orElse(in.Serving, a.recorded.Serving), Clients: orElse(in.Clients, a.recorded.Clients)}
}

// Copy returns what is recorded, to be kept elsewhere, too.
func (a *Authorities) Copy() Copy { return a.CopyWith(Generations{}) }

// CopyWith returns what Copy returns once that is recorded which it is given.
func (a *Authorities) CopyWith(in Generations) Copy {
	now := a.with(in)
	return Copy{Serving: now.Serving.String(), Clients: now.Clients.String()}
}

// TakesBack reports whether what is recorded is further than what it is given.
func (a *Authorities) TakesBack(in Generations) bool {
	now := a.with(in)
	return now.Serving.further(a.recorded.Serving).InUse != now.Serving.InUse || now.Clients.further(a.recorded.Clients).InUse != now.Clients.InUse
}

// orElse returns what is recorded of a CA, or others where that is not given.
func orElse(given, others Recorded) Recorded {
	if given == (Recorded{}) {
		return others
	}
	return given
}

// Keep writes down what is in use and not recorded, as in a new registry whose spec begins
// with a later generation, or where the record got lost; and the key of a next generation that
// people are about to be given. It does nothing in a read-only reconcile.
func (a *Authorities) Keep(ctx context.Context, o *operand.Objects) error {
	now := Generations{Serving: a.Serving.recorded(a.recorded.Serving), Clients: a.Clients.recorded(a.recorded.Clients)}
	if o.ReadOnly() || now == a.stored {
		return nil
	}
	if err := a.Record(ctx, o, now); err != nil {
		return err
	}
	for ca, recorded := range map[*Authority]Recorded{&a.Serving: now.Serving, &a.Clients: now.Clients} {
		ca.NextKey, ca.unrecorded = recorded.NextKey, ca.unrecorded && recorded.NextKey == ""
	}
	return nil
}

// recorded returns what is to be recorded of a CA, from what is. People are given the next
// generation of those of an independent registry.
func (a Authority) recorded(now Recorded) Recorded {
	if a.InUse == (generation.InUse{}) || now == (Recorded{}) && a.InUse == (generation.InUse{Signing: generation.First}) {
		return now // it is not the registry's own, or was never rotated
	}
	if now.InUse != a.InUse {
		now = Recorded{InUse: a.InUse, NextKey: now.NextKey}
	}
	switch {
	case !a.InUse.Next():
		now.NextKey = ""
	case now.NextKey == "" && a.unrecorded:
		now.NextKey = KeyFingerprint(a.Also)
	case now.NextKey == "":
		now.NextKey = a.NextKey
	}
	return now
}

// GenerationsReference refers to the record of a registry.
func GenerationsReference(o *operand.Objects) operatorv1alpha1.ObjectReference {
	return operatorv1alpha1.ObjectReference{Kind: "ConfigMap", Namespace: o.Registry.Namespace, Name: o.Name(contract.GenerationsSuffix)}
}
