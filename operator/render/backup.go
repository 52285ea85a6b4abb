package render

import (
	"path"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// Backup is what the Job of a registry's backups is to do. The zero value is nothing.
type Backup struct {
	// Step is the command: save, verify, prune or delete.
	Step string
	// Task identifies what is done, Name and UID the backup, and Lineage the data that it is
	// of.
	Task, Name, UID, Lineage string
	// SkipUnchanged has no backup taken when nothing has changed since the one before.
	SkipUnchanged bool
	// Transient is how many backups there are that retention does not count.
	Transient int
}

// backed reports whether a registry has backups.
func backed(in Input, layout string) bool {
	return in.Registry.Spec.Backup != nil && in.Registry.Spec.Etcd.External == nil && layout == in.Release.EtcdLayout
}

const (
	backupName = "<name>" + contract.BackupSuffix
	// credentialsDirectory has the Secret of the store, storeCADirectory its CA, and
	// claimsDirectory the claim that is a store: where a backup is, is told with it.
	credentialsDirectory = "/credentials"
	storeCADirectory     = "/store-ca"
	claimsDirectory      = "/persistentVolumeClaim"
	// linkLocal and linkLocalIPv6 are where platforms give identities to pods: in a cluster of
	// IPv6, EKS does at fd00:ec2::23.
	linkLocal     = "169.254.0.0/16"
	linkLocalIPv6 = "fd00:ec2::/64"
)

// storeCAKey is the key, in the ConfigMap of backups, of the CA of the store.
const storeCAKey = "ca.crt"

// backupComponents are those of backups.
func backupComponents(in Input, include func(name string, when bool)) {
	include("backup", true)
	include("backup-ca", len(storeOf(in.Registry.Spec.Backup.Store).ca) > 0)
	include("backup-save", in.Backup.Step == "save")
	include("backup-verify", in.Backup.Step == "verify")
	include("backup-remove", in.Backup.Step == "prune" || in.Backup.Step == "delete")
}

// store is what the helper needs to know of a store.
type store struct {
	kind, bucket, prefix, endpoint, region, account string
	ca                                              []byte
	secret                                          *operatorv1alpha1.LocalObjectReference
	claim                                           string
}

func storeOf(s operatorv1alpha1.BackupStore) store {
	switch {
	case s.S3 != nil:
		return store{kind: "s3", bucket: s.S3.Bucket, prefix: string(s.S3.Prefix), endpoint: string(s.S3.Endpoint), region: s.S3.Region, ca: s.S3.CABundle, secret: s.S3.SecretRef}
	case s.GCS != nil:
		return store{kind: "gcs", bucket: s.GCS.Bucket, prefix: string(s.GCS.Prefix), endpoint: string(s.GCS.Endpoint), ca: s.GCS.CABundle, secret: s.GCS.SecretRef}
	case s.Azure != nil:
		return store{kind: "azure", bucket: s.Azure.Container, account: s.Azure.Account, prefix: string(s.Azure.Prefix), endpoint: string(s.Azure.Endpoint), ca: s.Azure.CABundle, secret: s.Azure.SecretRef}
	case s.PersistentVolumeClaim != nil:
		claim := s.PersistentVolumeClaim.ClaimName
		return store{kind: "directory", bucket: path.Join(claimsDirectory, claim), prefix: string(s.PersistentVolumeClaim.Path), claim: claim}
	}
	return store{}
}

// backupPatches returns what the spec changes in the components of backups.
func backupPatches(in Input) map[target][]operation {
	spec := in.Registry.Spec.Backup
	s := storeOf(spec.Store)
	out := map[target][]operation{{kind: "NetworkPolicy", name: backupName}: egress(s, spec.Store.ServiceAccountName != "", in.Environment.Proxy)}
	if len(s.ca) > 0 {
		out[target{kind: "ConfigMap", name: backupName}] = []operation{add("/data/"+storeCAKey, string(s.ca))}
	}
	if in.Backup.Step == "" {
		return out
	}
	var job []operation
	for _, argument := range append(stepArguments(in), s.arguments(in.Backup.Lineage)...) {
		job = append(job, add(pod+"/containers/0/args/-", argument))
	}
	for _, volume := range s.volumes(in.Registry.Name + contract.BackupSuffix) {
		job = append(job, add(pod+"/volumes/-", volume.Volume), add(pod+"/containers/0/volumeMounts/-", volume.mount))
	}
	if in.Backup.Step == "verify" && in.Encryption != nil {
		job = append(job, decrypting(in.Registry, *in.Encryption)...)
	}
	job = append(job, proxied(in, s, pod+"/containers/0")...)
	if account := spec.Store.ServiceAccountName; account != "" {
		job = append(job, add(pod+"/serviceAccountName", account))
	}
	out[target{kind: "Job", name: backupName}] = job
	return out
}

// encryptionDirectory has the keys of the servers, in the Job that verifies a backup.
const encryptionDirectory = "/encryption"

// decrypting gives the Job that verifies a backup the copy of the keys that the servers have: the
// server that reads what was restored needs them.
func decrypting(r *operatorv1alpha1.ClusterRegistry, keys Encryption) []operation {
	volume := corev1.Volume{Name: "encryption", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: r.Name + contract.EncryptionSuffix + "-" + keys.Digest}}}
	return []operation{
		add(pod+"/containers/0/args/-", "--encryption-provider-config="+encryptionDirectory+"/configuration.json"),
		add(pod+"/volumes/-", volume),
		add(pod+"/containers/0/volumeMounts/-", corev1.VolumeMount{Name: volume.Name, MountPath: encryptionDirectory, ReadOnly: true}),
	}
}

// stepArguments are those of a command that its manifest does not have.
func stepArguments(in Input) []string {
	keep := in.Registry.Spec.Backup.Retention
	switch in.Backup.Step {
	case "save":
		if in.Backup.SkipUnchanged {
			return []string{"--skip-unchanged"}
		}
	case "prune":
		out := []string{"prune", "--keep-last=" + strconv.Itoa(int(max(keep.KeepLast, 1))+in.Backup.Transient)}
		if keep.KeepFor != nil {
			out = append(out, "--keep-for="+keep.KeepFor.Duration.String())
		}
		return out
	case "delete":
		return []string{"delete", "--name=" + in.Backup.Name}
	}
	return nil
}

// arguments are those by which the helper reaches the store.
func (s store) arguments(lineage string) []string {
	out := []string{"--store=" + s.kind, "--bucket=" + s.bucket, "--lineage=" + lineage}
	flag := func(name, value string) {
		if value != "" {
			out = append(out, "--"+name+"="+value)
		}
	}
	flag("prefix", s.prefix)
	flag("endpoint", s.endpoint)
	flag("region", s.region)
	flag("account", s.account)
	if s.secret != nil {
		flag("credentials", credentialsDirectory)
	}
	if len(s.ca) > 0 {
		flag("store-cacert", path.Join(storeCADirectory, storeCAKey))
	}
	return out
}

// mounted is a volume and where it is mounted.
type mounted struct {
	corev1.Volume
	mount corev1.VolumeMount
}

// volumes are those that the store needs. The Secret is mounted, and never read by the
// operator.
func (s store) volumes(name string) []mounted {
	var out []mounted
	mount := func(name, directory string, readOnly bool, source corev1.VolumeSource) {
		out = append(out, mounted{corev1.Volume{Name: name, VolumeSource: source}, corev1.VolumeMount{Name: name, MountPath: directory, ReadOnly: readOnly}})
	}
	if s.secret != nil {
		mount("credentials", credentialsDirectory, true, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: s.secret.Name}})
	}
	if len(s.ca) > 0 {
		mount("store-ca", storeCADirectory, true, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}})
	}
	if s.claim != "" {
		mount("store", s.bucket, false, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.claim}})
	}
	return out
}

// egress lets the pods reach the store. A NetworkPolicy is about the port on which a pod
// listens, which is not that of its Service: where the endpoint may be a Service of the host
// cluster, every port is open. A proxy may have any port, too.
func egress(s store, identity bool, proxy Proxy) []operation {
	var out []operation
	rule := func(value map[string]any) { out = append(out, add("/spec/egress/-", value)) }
	switch {
	case s.claim != "":
		return nil
	case s.endpoint == "":
		ports := []any{map[string]any{"port": 443, "protocol": "TCP"}}
		for _, port := range proxy.ports() {
			if port != 443 {
				ports = append(ports, map[string]any{"port": port, "protocol": "TCP"})
			}
		}
		rule(map[string]any{"ports": ports})
	default:
		rule(map[string]any{"ports": []any{map[string]any{"protocol": "TCP"}}})
	}
	if identity {
		rule(map[string]any{"to": []any{map[string]any{"ipBlock": map[string]any{"cidr": linkLocal}}, map[string]any{"ipBlock": map[string]any{"cidr": linkLocalIPv6}}}, "ports": []any{map[string]any{"protocol": "TCP"}}})
	}
	return out
}

// backupScratch is how much the scratch volume of a backup may take: three copies of an etcd
// that is full, and what the file system needs.
func backupScratch(r *operatorv1alpha1.ClusterRegistry, found Volumes) string {
	size := 3*EtcdQuota(r, found) + 64<<20
	return resource.NewQuantity(size, resource.BinarySI).String()
}

// StoreSecrets returns the names of the Secrets that a store names.
func StoreSecrets(s operatorv1alpha1.BackupStore) []string {
	if secret := storeOf(s).secret; secret != nil {
		return []string{secret.Name}
	}
	return nil
}
