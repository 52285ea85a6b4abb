package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TLS is about a registry's certificates. The registry has CAs of its own:
// for etcd, for clients (Independent mode) and for serving; they are valid for
// ten years.
//
// +kubebuilder:validation:XValidation:rule="!has(self.issuerRef) || has(self.caBundle)",message="clients must know whom to trust: add caBundle, the CA certificates of the issuer that issuerRef names"
// +kubebuilder:validation:XValidation:rule="has(self.issuerRef) || !has(self.caBundle)",message="caBundle belongs to issuerRef: add issuerRef, or remove caBundle to use the registry's own CA"
// +kubebuilder:validation:XValidation:rule="!has(self.renewBefore) || !has(self.duration) || ![self.renewBefore, self.duration].all(d, d.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$')) || duration(self.renewBefore) < duration(self.duration)",fieldPath=".renewBefore",message="renewBefore must be less than duration: a certificate is renewed while it is valid"
// +kubebuilder:validation:XValidation:rule="!has(self.issuerRef) || !has(self.rotation) || !has(self.rotation.serving)",fieldPath=".rotation.serving",message="the issuer in issuerRef signs the servers' certificate, and has no CA of the registry's to rotate: remove rotation.serving, or issuerRef and caBundle"
// +kubebuilder:validation:XValidation:rule="(has(self.rotation) && has(self.rotation.etcd) ? self.rotation.etcd : 1) >= (has(oldSelf.rotation) && has(oldSelf.rotation.etcd) ? oldSelf.rotation.etcd : 1)",fieldPath=".rotation",message="rotation.etcd can't be lowered, and 1 is what it is without a number: no key is used again; set it to what it was, or raise it to make another CA"
// +kubebuilder:validation:XValidation:rule="has(self.issuerRef) || (has(self.rotation) && has(self.rotation.serving) ? self.rotation.serving : 1) >= (has(oldSelf.rotation) && has(oldSelf.rotation.serving) ? oldSelf.rotation.serving : 1)",fieldPath=".rotation",message="rotation.serving can't be lowered, and 1 is what it is without a number: no key is used again; set it to what it was, or raise it to make another CA"
// +kubebuilder:validation:XValidation:rule="(has(self.rotation) && has(self.rotation.client) ? self.rotation.client : 1) >= (has(oldSelf.rotation) && has(oldSelf.rotation.client) ? oldSelf.rotation.client : 1)",fieldPath=".rotation",message="rotation.client can't be lowered, and 1 is what it is without a number: no key is used again; set it to what it was, or raise it to make another CA"
type TLS struct {
	// issuerRef is the issuer of the servers' serving certificate, in place of the registry's
	// own serving CA. It requires caBundle. Default: the registry's own.
	// +optional
	IssuerRef *IssuerReference `json:"issuerRef,omitempty"`

	// caBundle holds the CA certificates, in PEM, base64 encoded in JSON and YAML,
	// that sign what issuerRef issues. At most 64 KiB. Clients of the registry get it.
	// Required with issuerRef.
	// +optional
	CABundle CABundle `json:"caBundle,omitempty"`

	// duration is how long a certificate is valid, from 1h to 8760h (a year). It
	// does not apply to CAs. Default: 2160h (90 days).
	// +optional
	// +kubebuilder:default="2160h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1h') && duration(self) <= duration('8760h')",message="write how long a certificate is valid in hours, minutes or seconds, from 1h to 8760h (a year), such as 2160h"
	Duration *metav1.Duration `json:"duration,omitempty"`

	// renewBefore is how long before it expires a certificate is renewed, at least 5m and less
	// than duration. Default: a third of duration.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('5m')",message="write how long before its end a certificate is renewed in hours, minutes or seconds, at least 5m, such as 720h"
	RenewBefore *metav1.Duration `json:"renewBefore,omitempty"`

	// rotation gives the registry's CAs new keys. Default: each CA keeps its key.
	// +optional
	Rotation Rotation `json:"rotation,omitempty,omitzero"`
}

// CABundle holds CA certificates in PEM, base64 encoded in JSON and YAML.
//
// Its rules check the base64 text: for a field of format "byte", CEL fails on "+" and
// "/", as it takes the text for URL-safe base64. Without a rule, the host cluster would
// store what the Go type can't decode. The letters of the first are
// "-----BEGIN CERTIFICATE-----", and those of the second are "PRIVATE KEY" at each of
// its three alignments.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=87384
// +kubebuilder:validation:Format=""
// +kubebuilder:validation:XValidation:rule="self.matches('^LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t([A-Za-z0-9+/]{4})+([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$')",message="write CA certificates in PEM, base64 encoded in one line: \"base64 -w0 ca.crt\" prints them; the file begins with -----BEGIN CERTIFICATE-----"
// +kubebuilder:validation:XValidation:rule="!self.matches('UFJJVkFURSBLRV|BSSVZBVEUgS0VZ|QUklWQVRFIEtFW')",message="there is a private key in it: write certificates only"
type CABundle []byte

// IssuerReference names an issuer of cert-manager.
type IssuerReference struct {
	// name is the issuer's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// kind is Issuer (of the registry's namespace), ClusterIssuer, or the kind of
	// an external issuer. Default: Issuer.
	// +optional
	// +kubebuilder:default=Issuer
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// group is the issuer's API group. Default: cert-manager.io.
	// +optional
	// +kubebuilder:default="cert-manager.io"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
}
