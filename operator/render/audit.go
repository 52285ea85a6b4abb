package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// The keys of the Secret with what servers record of requests.
const (
	auditSettings = "settings.json"
	auditPolicy   = "policy.yaml"
	auditWebhook  = "kubeconfig"
)

// content returns what the Secret has: where events go, the policy and the kubeconfig.
func (a Audit) content() (settings, policy, webhook []byte) {
	spec := a.Spec
	spec.PolicyConfigMapRef = operatorv1alpha1.AuditPolicySelector{}
	if spec.Webhook != nil {
		spec.Webhook = &operatorv1alpha1.AuditWebhook{}
	}
	settings, err := json.Marshal(spec)
	if err != nil {
		panic(err) // it came from JSON
	}
	return settings, a.Policy, a.Webhook
}

// Digest identifies the content. It ends the name of the Secret.
func (a Audit) Digest() string {
	settings, policy, webhook := a.content()
	content, err := json.Marshal([][]byte{settings, policy, webhook})
	if err != nil {
		panic(err) // no bytes are wrong
	}
	return digest(content)
}

// AuditOf returns what the Secret of a digest has servers record. The error says that it is
// not what was rendered.
func AuditOf(data map[string][]byte, digest string) (*Audit, error) {
	out := &Audit{Policy: data[auditPolicy], Webhook: data[auditWebhook]}
	if err := json.Unmarshal(data[auditSettings], &out.Spec); err != nil {
		return nil, fmt.Errorf("its %s can't be read: %w", auditSettings, err)
	}
	if len(out.Webhook) == 0 {
		out.Webhook = nil
	}
	if out.Digest() != digest {
		return nil, fmt.Errorf("its content is not what its name says")
	}
	return out, nil
}

// auditing has the servers write events where they are to go.
func auditing(a Audit) []operation {
	var out []operation
	flag := func(name string, value any) {
		out = append(out, add(pod+"/containers/0/args/-", fmt.Sprintf("--audit-%s=%v", name, value)))
	}
	if a.Webhook != nil {
		flag("webhook-config-file", "/audit/"+auditWebhook)
	}
	switch log := a.Spec.Log; {
	case log == nil:
	case log.Destination == operatorv1alpha1.AuditLogFile:
		file := rotated(log.File)
		flag("log-path", "/audit-log/$(POD_NAME)/audit.log")
		flag("log-maxsize", file.MaxSizeMiB)
		flag("log-maxbackup", file.MaxBackups)
		flag("log-maxage", file.MaxAgeDays)
		out = slices.Concat(out, auditFiles(file))
	default:
		flag("log-path", "-")
	}
	return out
}

// rotated returns how a file is rotated, with its defaults. No age is 0.
func rotated(file operatorv1alpha1.AuditFile) operatorv1alpha1.AuditFile {
	file.MaxSizeMiB, file.MaxBackups = cmp.Or(file.MaxSizeMiB, 100), cmp.Or(file.MaxBackups, 10)
	return file
}

// auditFiles mounts where the servers write their files, each in a directory of its own.
func auditFiles(file operatorv1alpha1.AuditFile) []operation {
	volume := corev1.Volume{Name: "audit-log"}
	if file.ClaimName != "" {
		volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: file.ClaimName}
	} else {
		// A pod with more is evicted. While one file is rotated and another one is not
		// deleted yet, there are two more than are kept.
		limit := resource.MustParse(fmt.Sprintf("%dMi", (int64(file.MaxBackups)+3)*int64(file.MaxSizeMiB)))
		volume.EmptyDir = &corev1.EmptyDirVolumeSource{SizeLimit: &limit}
	}
	name := corev1.EnvVar{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}}
	return []operation{
		add(pod+"/containers/0/env", []corev1.EnvVar{name}),
		add(pod+"/volumes/-", volume),
		add(pod+"/containers/0/volumeMounts/-", corev1.VolumeMount{Name: volume.Name, MountPath: "/audit-log"}),
	}
}
