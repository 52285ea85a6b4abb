package render

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// saved returns the input of a registry with a store, and what is done about its backups.
func saved(t *testing.T, store, step string) Input {
	t.Helper()
	in := input(t, merged(t, `{backup: {schedule: "0 * * * *", store: `+store+`, retention: {keepLast: 3, keepFor: 48h}}}`))
	in.Backup = Backup{Step: step, Task: step + " b 1f0c", Name: "b", UID: "1f0c", Lineage: "0b9c4b52", SkipUnchanged: true}
	return in
}

// TestBackupJob says which commands the Jobs of each store run.
func TestBackupJob(t *testing.T) {
	const s3 = `{s3: {bucket: registries, prefix: prod, endpoint: "https://s3.example:9000", region: eu, caBundle: PG5hbWU+, secretRef: {name: store}}}`
	const ofS3 = " --store=s3 --bucket=registries --lineage=0b9c4b52 --prefix=prod --endpoint=https://s3.example:9000 --region=eu --credentials=/credentials --store-cacert=/store-ca/ca.crt"
	for _, test := range []struct{ reason, store, step, account, args, mounts string }{
		{"one is taken", s3, "save", "fleet-backup", "save --name=b --id=1f0c --release=v0.1.0 --etcd-prefix=/registry/clusterregistry.k8s.io/ --scratch=/scratch --endpoints=https://fleet-etcd-0.fleet-etcd.team.svc:2379,https://fleet-etcd-1.fleet-etcd.team.svc:2379,https://fleet-etcd-2.fleet-etcd.team.svc:2379 --cacert=/trust/etcd-ca.crt --cert=/client/tls.crt --key=/client/tls.key --skip-unchanged" + ofS3,
			"/scratch /trust /client /credentials /store-ca"},
		{"one is verified", s3, "verify", "fleet-backup", "verify --name=b --etcd-prefix=/registry/clusterregistry.k8s.io/ --scratch=/scratch --server=/helper/clusterregistry-apiserver" + ofS3, "/scratch /helper /credentials /store-ca"},
		{"old ones are removed", s3, "prune", "fleet-backup", "prune --keep-last=3 --keep-for=48h0m0s" + ofS3, "/credentials /store-ca"},
		{"one is deleted", s3, "delete", "fleet-backup", "delete --name=b" + ofS3, "/credentials /store-ca"},
		{"the platform gives an identity", `{gcs: {bucket: registries}, serviceAccountName: saver}`, "prune", "saver", "prune --keep-last=3 --keep-for=48h0m0s --store=gcs --bucket=registries --lineage=0b9c4b52", ""},
		{"in Azure", `{azure: {container: registries, account: storage, secretRef: {name: store}}}`, "delete", "fleet-backup", "delete --name=b --store=azure --bucket=registries --lineage=0b9c4b52 --account=storage --credentials=/credentials", "/credentials"},
		{"on a volume", `{persistentVolumeClaim: {claimName: backups, path: prod/x}}`, "delete", "fleet-backup", "delete --name=b --store=directory --bucket=/persistentVolumeClaim/backups --lineage=0b9c4b52 --prefix=prod/x", "/persistentVolumeClaim/backups"},
	} {
		result := rendered(t, saved(t, test.store, test.step))
		object := find(result, "Job", "fleet-backup")
		if object == nil {
			t.Fatalf("%s: there is no Job", test.reason)
		}
		job := convert[batchv1.Job](t, object)
		template := job.Spec.Template.Spec
		var mounts []string
		for _, mount := range template.Containers[0].VolumeMounts {
			mounts = append(mounts, mount.MountPath)
		}
		if got := strings.Join(template.Containers[0].Args, " "); got != test.args || strings.Join(mounts, " ") != test.mounts || template.ServiceAccountName != test.account || len(template.Volumes) != len(mounts) {
			t.Errorf("%s: as %s with %v:\n%s\nwant\n%s", test.reason, template.ServiceAccountName, mounts, got, test.args)
		}
		if test.step == "prune" {
			more := saved(t, test.store, test.step)
			more.Backup.Transient = 2
			if args := convert[batchv1.Job](t, find(rendered(t, more), "Job", "fleet-backup")).Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--keep-last=5") {
				t.Errorf("%s: beside two that don't count, it runs %q", test.reason, args)
			}
		}
		if template.Containers[0].Name != "backup" || job.Annotations[operatorv1alpha1.AnnotationBackup] != test.step+" b 1f0c" {
			t.Errorf("%s: container %s, %v", test.reason, template.Containers[0].Name, job.Annotations)
		}
		if ca := find(result, "ConfigMap", "fleet-backup"); ca != nil && convert[corev1.ConfigMap](t, ca).Data["ca.crt"] != "<name>" {
			t.Errorf("%s: the CA is %v", test.reason, ca)
		}
	}
}

// TestBackupKeys gives the keys of the servers to the Job that verifies a backup, and to no other.
func TestBackupKeys(t *testing.T) {
	for _, step := range []string{"save", "verify", "prune", "delete"} {
		in := saved(t, `{persistentVolumeClaim: {claimName: backups}}`, step)
		in.Encryption = &Encryption{Configuration: []byte("{}"), Digest: "0123456789abcdef"}
		result := rendered(t, in)
		template := convert[batchv1.Job](t, find(result, "Job", "fleet-backup")).Spec.Template.Spec
		mounted, container := "", template.Containers[0]
		for _, volume := range template.Volumes {
			if volume.Name == "encryption" {
				mounted = volume.Secret.SecretName
			}
		}
		reads := slices.Contains(container.Args, "--encryption-provider-config=/encryption/configuration.json") &&
			slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.Name == "encryption" && m.MountPath == "/encryption" && m.ReadOnly
			})
		if (mounted != "") != (step == "verify") || reads != (step == "verify") || mounted != "" && find(result, "Secret", mounted) == nil {
			t.Errorf("%s: mounted is %q, and read by the helper: %t", step, mounted, reads)
		}
		if step != "verify" {
			continue
		}
		for _, init := range template.InitContainers {
			if len(init.VolumeMounts) != 1 || init.VolumeMounts[0].MountPath != "/helper" || !slices.Equal(init.Args, []string{"install", "/helper"}) {
				t.Errorf("%s: init container %+v", step, init)
			}
		}
		if len(template.InitContainers) != 2 || !strings.Contains(template.InitContainers[1].Image, "clusterregistry-apiserver:"+in.Release.Version) {
			t.Errorf("the server is not of the release in force: %+v", template.InitContainers)
		}
	}
}

// TestBackupEgress says what the pods may reach, beside etcd and DNS.
func TestBackupEgress(t *testing.T) {
	for store, want := range map[string][]string{
		`{s3: {bucket: registries, secretRef: {name: store}}}`:                                      {"443"},
		`{s3: {bucket: registries, endpoint: "https://s3.example:9000", secretRef: {name: store}}}`: {"every port"},
		`{gcs: {bucket: registries}, serviceAccountName: saver}`:                                    {"443", "169.254.0.0/16"},
		`{persistentVolumeClaim: {claimName: backups}}`:                                             nil,
	} {
		policy := convert[networkingv1.NetworkPolicy](t, find(rendered(t, saved(t, store, "")), "NetworkPolicy", "fleet-backup"))
		var got []string
		for _, rule := range policy.Spec.Egress[2:] {
			switch {
			case len(rule.To) > 0:
				got = append(got, rule.To[0].IPBlock.CIDR)
			case rule.Ports[0].Port == nil:
				got = append(got, "every port")
			default:
				got = append(got, rule.Ports[0].Port.String())
			}
		}
		if !slices.Equal(got, want) || len(policy.Spec.Ingress) > 0 || len(policy.Spec.PolicyTypes) != 2 {
			t.Errorf("%s: %v, want %v", store, got, want)
		}
	}
}

// TestNoBackups is about registries that can't have any, and about what there is while
// nothing is done.
func TestNoBackups(t *testing.T) {
	for reason, change := range map[string]func(*Input){
		"none are asked for": func(in *Input) { in.Registry.Spec.Backup = nil },
		"an external etcd": func(in *Input) {
			in.Registry.Spec.Etcd = operatorv1alpha1.Etcd{External: &operatorv1alpha1.ExternalEtcd{Endpoints: []operatorv1alpha1.EtcdEndpoint{"https://etcd:2379"}}}
		},
	} {
		in := saved(t, `{persistentVolumeClaim: {claimName: backups}}`, "save")
		change(&in)
		if got := rendered(t, in).Stages[StageBackup]; len(got) > 0 {
			t.Errorf("%s, and there is %v", reason, got)
		}
	}
	idle := rendered(t, saved(t, `{persistentVolumeClaim: {claimName: backups}}`, "")).Stages[StageBackup]
	if len(idle) != 2 || find(rendered(t, saved(t, `{persistentVolumeClaim: {claimName: backups}}`, "")), "Job", "fleet-backup") != nil {
		t.Errorf("while nothing is done, there is %v", idle)
	}
}
