package v1alpha1

// Rotation gives the registry's CAs new keys. Each number is the generation of a CA: raise
// it, and the operator makes another CA with a key of its own, has all that trusts the
// present one trust both, has certificates issued by the new one, and drops the previous
// one. No request fails in a registry with three members and two servers. Each is 1 unless
// set, and none can be lowered. The CA of generation 2 of etcd is in the Secret
// NAME-etcd-ca-2, that of generation 1 in NAME-etcd-ca.
//
// +kubebuilder:validation:XValidation:rule="!has(self.drop) || !has(self.drop.serving) || self.drop.serving < (has(self.serving) ? self.serving : 1)",fieldPath=".drop.serving",message="drop.serving must be less than serving: raise serving first, which makes the CA that takes the place of the one to drop"
// +kubebuilder:validation:XValidation:rule="!has(self.drop) || !has(self.drop.client) || self.drop.client < (has(self.client) ? self.client : 1)",fieldPath=".drop.client",message="drop.client must be less than client: raise client first, which makes the CA that takes the place of the one to drop"
type Rotation struct {
	// etcd is the generation of the CA of etcd members and their clients. Raising it replaces
	// members and servers, one at a time, twice. Not with an external etcd. 1 to 9999. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999
	Etcd int32 `json:"etcd,omitempty"`

	// serving is the generation of the servers' CA. Raising it replaces no pod. In Independent
	// mode, and with controllers.feed, the new CA signs when drop.serving says that clients trust
	// it. Not with issuerRef. 1 to 9999. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999
	Serving int32 `json:"serving,omitempty"`

	// client is the generation of the CA that signs client certificates. Raising it replaces
	// no pod. Certificates of the previous CA are accepted until drop.client says otherwise.
	// Independent mode only. From 1 to 9999. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999
	Client int32 `json:"client,omitempty"`

	// drop confirms which CAs clients with copies of certificates or CAs no longer need. The
	// operator drops all others automatically. Default: none.
	// +optional
	Drop RotationDrop `json:"drop,omitempty,omitzero"`
}

// RotationDrop names generations of CAs that are no longer to be trusted.
type RotationDrop struct {
	// serving is the newest generation of the servers' CA that no client needs any more, since
	// all have the kubeconfig or status.endpoint.caBundle with a newer one: servers then present
	// certificates of the newer CA, and this one and all before are dropped. Independent mode,
	// and with controllers.feed, where programs have it from the ConfigMap NAME-trust. 1 to 9999. Default: none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999
	Serving int32 `json:"serving,omitempty"`

	// client is the newest generation of the client CA whose certificates are refused, with all
	// before it. Independent mode only. 1 to 9999. Default: none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9999
	Client int32 `json:"client,omitempty"`
}
