package v1alpha1

// Audit is which requests the servers record, and where.
//
// +kubebuilder:validation:XValidation:rule="has(self.log) || has(self.webhook)",message="say where audit events go: to log, to webhook, or to both"
type Audit struct {
	// policyConfigMapRef names the key of a ConfigMap with a Policy of audit.k8s.io/v1, as
	// kube-apiserver reads it: which requests are recorded, and how much of each. When it
	// changes, the servers are replaced one at a time. If it is deleted or not valid, the
	// servers keep the previous policy, and ServerReady says so.
	// +required
	PolicyConfigMapRef AuditPolicySelector `json:"policyConfigMapRef"`

	// log writes audit events in JSON, one in each line. Required without webhook.
	// +optional
	Log *AuditLog `json:"log,omitempty"`

	// webhook sends audit events to a server, in batches. Required without log.
	// +optional
	Webhook *AuditWebhook `json:"webhook,omitempty"`
}

// AuditPolicySelector is a key of a ConfigMap in the registry's namespace.
type AuditPolicySelector struct {
	// name is the ConfigMap's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key is the key in it. Default: policy.yaml.
	// +optional
	// +kubebuilder:default=policy.yaml
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// AuditLog says where a log of audit events is written.
//
// +kubebuilder:validation:XValidation:rule="!has(self.file) || has(self.destination) && self.destination == 'File'",fieldPath=".file",message="a log to standard output has no file: remove file, or set destination to File"
type AuditLog struct {
	// destination is Stdout for the standard output of the servers' containers, among
	// the lines that they log, or File for a file of each server, which is rotated.
	// Default: Stdout.
	// +optional
	// +kubebuilder:default=Stdout
	Destination AuditLogDestination `json:"destination,omitempty"`

	// file is about the file of each server. Only with destination File. Default: that of each
	// field.
	// +optional
	File AuditFile `json:"file,omitempty,omitzero"`
}

// AuditLogDestination is where a log of audit events is written.
//
// +kubebuilder:validation:Enum=Stdout;File
type AuditLogDestination string

const (
	// AuditLogStdout is the standard output of the servers' containers.
	AuditLogStdout AuditLogDestination = "Stdout"
	// AuditLogFile is a file of each server.
	AuditLogFile AuditLogDestination = "File"
)

// AuditFile is a file with audit events, and how it is rotated.
type AuditFile struct {
	// maxSizeMiB is the size at which a new file is begun, 1 to 1024 MiB. Default: 100.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	MaxSizeMiB int32 `json:"maxSizeMiB,omitempty"`

	// maxBackups is how many files are kept beside the one that is written, 1 to 100.
	// Default: 10.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxBackups int32 `json:"maxBackups,omitempty"`

	// maxAgeDays is after how many days a file that is no longer written is deleted, 1 to 3650.
	// Default: none is deleted for its age.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	MaxAgeDays int32 `json:"maxAgeDays,omitempty"`

	// claimName is the name of a PersistentVolumeClaim that several nodes can write to
	// (ReadWriteMany). Each server writes to the file POD/audit.log in it, and the
	// files of servers that are gone stay. Default: a directory that is deleted with
	// each server's pod.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName,omitempty"`
}

// AuditWebhook is a server that receives audit events.
type AuditWebhook struct {
	// secretRef names the key of a Secret with the kubeconfig of a server that takes an
	// EventList of audit.k8s.io/v1. The kubeconfig names an https address, contains its
	// certificates, keys and tokens, and runs no program.
	// +required
	SecretRef SecretKeySelector `json:"secretRef"`
}
