package render

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// operation is an operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func add(path string, value any) operation { return operation{"add", path, value} }

// target chooses the objects of a patch: by name, or by certificate, the value
// of a label.
type target struct{ kind, name, certificate string }

// compare orders targets, for a text that stays.
func (t target) compare(other target) int {
	return cmp.Or(cmp.Compare(t.kind, other.kind), cmp.Compare(t.name, other.name), cmp.Compare(t.certificate, other.certificate))
}

func (t target) selector() *kustomize.Selector {
	s := &kustomize.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Kind: t.kind}, Name: t.name}}
	if t.certificate != "" {
		s.LabelSelector = "operator.clusterregistry.io/certificate=" + t.certificate
	}
	return s
}

// patches returns what the spec changes in the components.
func patches(in Input, layout string) map[target][]operation {
	r := in.Registry
	server, etcd := r.Spec.Server, r.Spec.Etcd
	out := map[target][]operation{
		{kind: "Deployment", name: "<name>-server"}:   slices.Concat([]operation{add("/spec/replicas", unless(in.Stopped.Servers, server.Replicas)), add("/spec/progressDeadlineSeconds", server.ProgressDeadlineSeconds)}, arguments(server), access(server)),
		{kind: "Service", name: "<name>-server"}:      service(server.Service),
		{kind: "Certificate", name: "<name>-serving"}: slices.Concat(serving(r), subjectNames(nil, in.Addresses)),
		{kind: "Certificate", certificate: "leaf"}:    renewal(r.Spec.TLS),
	}
	maps.Copy(out, controllerPatches(in))
	servers := target{kind: "Deployment", name: "<name>-server"}
	if guarded := server.Guarded(); guarded != operatorv1alpha1.GuardedFieldsOff {
		out[servers] = append(out[servers], add(pod+"/containers/0/args/-", "--guarded-fields="+string(guarded)))
	}
	if decision := server.DecidedByHost(); decision != operatorv1alpha1.HostDecisionAuto {
		out[servers] = append(out[servers], add(pod+"/containers/0/args/-", "--host-decision="+string(decision)))
	}
	if shown := cmp.Or(in.Visibility, server.Visible()); shown != operatorv1alpha1.VisibilityAll {
		out[servers] = append(out[servers], add(pod+"/containers/0/args/-", contract.HidingFlag))
	}
	if in.Audit != nil {
		out[servers] = append(out[servers], auditing(*in.Audit)...)
	}
	if etcd.External != nil {
		return out
	}
	members := memberNames(in)
	out[target{kind: "StatefulSet"}] = slices.Concat([]operation{add("/spec/replicas", unless(in.Stopped.Members, int32(len(in.Members))))}, pace(etcd), class("/spec/volumeClaimTemplates/0/spec", templateClass(in)))
	if len(in.Members) == 2 {
		// While one becomes three, or three one: neither can be missed.
		out[target{kind: "PodDisruptionBudget", name: "<name>-etcd"}] = []operation{add("/spec/maxUnavailable", 0)}
	}
	if backed(in, layout) {
		maps.Copy(out, backupPatches(in))
	}
	if restores(in, layout) {
		addRestorePatches(in, out)
	}
	if in.Snapshot != "" {
		_, snapshots := snapshotsClaim(in)
		out[target{kind: "PersistentVolumeClaim"}] = class("/spec", snapshots)
	}
	out[target{kind: "Certificate", name: "<name>-etcd-server"}] = subjectNames(members, nil)
	out[target{kind: "Certificate", name: "<name>-etcd-peer"}] = subjectNames(members, nil)
	return out
}

const pod = "/spec/template/spec"

// pace returns how fast members notice that the leader is gone. etcd wants its election timeout
// to be five heartbeat intervals at least, and recommends ten.
func pace(etcd operatorv1alpha1.Etcd) []operation {
	heartbeat, election := etcd.HeartbeatIntervalMilliseconds, etcd.ElectionTimeoutMilliseconds
	var out []operation
	if heartbeat != 0 {
		out = append(out, add(pod+"/containers/0/args/-", fmt.Sprintf("--heartbeat-interval=%d", heartbeat)))
	}
	if election = cmp.Or(election, 10*heartbeat); election != 0 {
		out = append(out, add(pod+"/containers/0/args/-", fmt.Sprintf("--election-timeout=%d", election)))
	}
	return out
}

func arguments(server operatorv1alpha1.Server) []operation {
	var out []operation
	for _, name := range slices.Sorted(maps.Keys(server.ExtraArgs)) {
		out = append(out, add(pod+"/containers/0/args/-", fmt.Sprintf("--%s=%s", name, server.ExtraArgs[name])))
	}
	return out
}

// access mounts what an independent registry knows its users by.
func access(server operatorv1alpha1.Server) []operation {
	var out []operation
	mount := func(volume corev1.Volume, flag, key string) {
		dir := "/" + volume.Name
		out = append(out,
			add(pod+"/volumes/-", volume),
			add(pod+"/containers/0/volumeMounts/-", corev1.VolumeMount{Name: volume.Name, MountPath: dir, ReadOnly: true}),
			add(pod+"/containers/0/args/-", flag+"="+path.Join(dir, key)))
	}
	if a := server.Authentication; a != nil {
		mount(corev1.Volume{Name: "authentication", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: a.ConfigMapRef.Name}}}}, "--authentication-config", a.ConfigMapRef.Key)
	}
	if a := server.Authorization; a != nil && a.WebhookSecretRef != nil {
		mount(corev1.Volume{Name: "authorization", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: a.WebhookSecretRef.Name}}}, "--authorization-webhook-config-file", a.WebhookSecretRef.Key)
	}
	return out
}

func service(s *operatorv1alpha1.Service) []operation {
	if s == nil {
		return nil
	}
	out := []operation{add("/spec/type", s.Type)}
	for _, name := range slices.Sorted(maps.Keys(s.Annotations)) {
		if ours(name) {
			continue // past the schema: they say what becomes of the object
		}
		out = append(out, add("/metadata/annotations/"+escape(name), s.Annotations[name]))
	}
	optional := func(given bool, field string, value any) {
		if given {
			out = append(out, add("/spec/"+field, value))
		}
	}
	optional(s.NodePort != 0, "ports/0/nodePort", s.NodePort)
	optional(s.LoadBalancerClass != "", "loadBalancerClass", s.LoadBalancerClass)
	optional(len(s.LoadBalancerSourceRanges) > 0, "loadBalancerSourceRanges", s.LoadBalancerSourceRanges)
	optional(s.ExternalTrafficPolicy != "", "externalTrafficPolicy", s.ExternalTrafficPolicy)
	optional(s.IPFamilyPolicy != "", "ipFamilyPolicy", s.IPFamilyPolicy)
	optional(len(s.IPFamilies) > 0, "ipFamilies", s.IPFamilies)
	return out
}

// ours reports whether an annotation is one of the operator's own.
func ours(name string) bool { return strings.HasPrefix(name, operatorv1alpha1.GroupName+"/") }

func serving(r *operatorv1alpha1.ClusterRegistry) []operation {
	if issuer := r.Spec.TLS.IssuerRef; issuer != nil {
		return []operation{add("/spec/issuerRef", issuer)}
	}
	return nil
}

func renewal(tls operatorv1alpha1.TLS) []operation {
	if tls.RenewBefore == nil {
		return nil
	}
	return []operation{add("/spec/renewBefore", tls.RenewBefore.Duration.String())}
}

func class(spec, name string) []operation {
	if name == "" {
		return nil
	}
	return []operation{add(spec+"/storageClassName", name)}
}

// memberNames are the names that etcd's members call each other by, and those
// that their addresses have in DNS.
func memberNames(in Input) []string {
	var out []string
	names := in.Certified
	if names == nil {
		names = in.Members
	}
	for _, member := range EtcdMembers(in.Registry, names) {
		out = append(out, member.Host, member.Host+"."+in.Environment.ClusterDomain)
	}
	return out
}

// subjectNames adds DNS names, and addresses of either kind, to a certificate. It stays the same
// when clients are sent to another of the addresses.
func subjectNames(dns, addresses []string) []operation {
	var out []operation
	var ips []string
	for _, address := range slices.Sorted(slices.Values(addresses)) {
		if net.ParseIP(address) != nil {
			ips = append(ips, address)
			continue
		}
		dns = append(dns, address)
	}
	for _, name := range dns {
		out = append(out, add("/spec/dnsNames/-", name))
	}
	if len(ips) > 0 {
		out = append(out, add("/spec/ipAddresses", ips))
	}
	return out
}

// escape writes a key as a part of a JSON pointer (RFC 6901).
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
