package v1alpha1

// Encryption is with which keys the servers encrypt what they store in etcd.
type Encryption struct {
	// secretRef names the key of a Secret with an EncryptionConfiguration of
	// apiserver.config.k8s.io/v1, as kube-apiserver reads it: one entry of resources, with
	// clusters.clusterregistry.k8s.io alone, and the providers aescbc, aesgcm, secretbox and
	// identity. Put a key first to store all clusters under it, and remove a key to drop it: the
	// operator gives the servers a copy, key after key, so that each can read what the others
	// store. Older backups and snapshots need the keys of their time. If the Secret is missing
	// or not valid, nothing changes.
	// +required
	SecretRef EncryptionSecretSelector `json:"secretRef"`
}

// EncryptionSecretSelector is a key of a Secret in the registry's namespace.
type EncryptionSecretSelector struct {
	// name is the Secret's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key is the key in it. Default: encryption.yaml.
	// +optional
	// +kubebuilder:default=encryption.yaml
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// EncryptionStatus is with which keys the servers read and write. Keys are named by their
// provider and their name, as in secretbox/2027; identity is to store without a key.
type EncryptionStatus struct {
	// writes is the key under which clusters are stored.
	Writes string `json:"writes,omitempty"`

	// reads are all keys that the servers have, the one that writes first.
	// +optional
	// +listType=atomic
	Reads []string `json:"reads,omitempty"`
}
