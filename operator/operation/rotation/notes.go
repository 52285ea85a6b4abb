package rotation

import (
	"fmt"
	"slices"
	"strconv"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/operation"
	"github.com/clusterregistry/operator/operator/pass"
)

// Notes say which CAs wait for a person, or for something else.
func (d Drive) Notes() (notes []pass.Note) {
	for _, h := range d.all() {
		if h.Name == d.rotated() {
			continue
		}
		if reason, message := d.noted(h); reason != "" {
			notes = append(notes, pass.Note{Condition: operatorv1alpha1.ConditionCertificatesReady, Reason: reason, Message: message})
		}
	}
	return notes
}

// noted says what a CA that is not being rotated waits for.
func (d Drive) noted(h Handler) (reason, message string) {
	field := "spec.tls.rotation." + h.Name
	switch u := h.InUse; {
	case h.Desired.Generation < u.Signing:
		return operatorv1alpha1.ReasonRotationPending, fmt.Sprintf("%s is %d, and generation %d of that CA signs: no key is used again; set it to %d", field, h.Desired.Generation, u.Signing, max(u.Signing, u.Also))
	case h.Lost && h.Desired.Generation <= u.Also:
		return operatorv1alpha1.ReasonRotationPending, d.lostNext(h)
	case h.Due():
		return operatorv1alpha1.ReasonRotationPending, fmt.Sprintf("the %s CA is rotated to generation %d when %s", h.Name, h.Desired.Generation, operation.Awaits(d.Pass))
	case u.Next():
		return operatorv1alpha1.ReasonDropPending, fmt.Sprintf("generations %d and %d of the %s CA are published, and the servers show a certificate of the first: %s again, and then set spec.tls.rotation.drop.%s to %d", u.Signing, u.Also, h.Name, d.give(), h.Name, u.Signing) + follows(h)
	case u.Previous():
		return operatorv1alpha1.ReasonDropPending, d.dropPending(h) + follows(h)
	}
	return "", ""
}

// give says what clients are to be given that have a copy of the servers' CA.
func (d Drive) give() string {
	if d.Registry.Spec.Mode == operatorv1alpha1.ModeIndependent {
		return fmt.Sprintf("give clients the kubeconfig in Secret %s, or status.endpoint.caBundle,", d.Name(contract.KubeconfigSuffix))
	}
	return fmt.Sprintf("give programs that request the feed the CAs in ConfigMap %s", d.Name(contract.TrustSuffix))
}

// dropPending says that certificates of earlier generations are accepted until a person drops
// them.
func (d Drive) dropPending(h Handler) string {
	former := d.Authorities.Clients.Former()
	which := fmt.Sprintf("generation %d", h.InUse.Also)
	newest := h.InUse.Also
	if len(former) > 1 {
		newest = slices.Max(former)
		which = "generations " + listed(former)
	}
	return fmt.Sprintf("certificates of %s of the %s CA are still accepted: issue users' certificates again, by Issuer %s, and then set spec.tls.rotation.drop.%s to %d",
		which, h.Name, d.Name(contract.Generation(contract.ClientCASuffix, h.InUse.Signing)), h.Name, newest)
}

// listed returns numbers as a sentence has them: 1, 2 and 3.
func listed(numbers []int32) string {
	out := ""
	for i, n := range numbers {
		switch {
		case i == 0:
		case i == len(numbers)-1:
			out += " and "
		default:
			out += ", "
		}
		out += strconv.Itoa(int(n))
	}
	return out
}

// lostNext says that the CA is gone, or has another key, which is to sign next and was given
// to people.
func (d Drive) lostNext(h Handler) string {
	suffix, again := contract.ClientCASuffix, ""
	if h.Name == caServing {
		suffix, again = contract.ServingCASuffix, fmt.Sprintf(", remove spec.tls.rotation.drop.serving, and %s again when the rotation has stopped (DropPending)", d.give())
	}
	return fmt.Sprintf("the key of generation %d of the %s CA, which was published and is to sign next, is lost: Secret %s was deleted or replaced, and no other key takes its place; generation %d keeps signing. Restore that Secret from a backup; or set spec.tls.rotation.%s to %d, by which another CA is made%s",
		h.InUse.Also, h.Name, d.Name(contract.Generation(suffix, h.InUse.Also)), h.InUse.Signing, h.Name, h.InUse.Also+1, again)
}

// follows says that another rotation waits for a generation to be dropped.
func follows(h Handler) string {
	if newest := max(h.InUse.Signing, h.InUse.Also); h.Desired.Generation > newest {
		return fmt.Sprintf("; generation %d is made after that", h.Desired.Generation)
	}
	return ""
}
