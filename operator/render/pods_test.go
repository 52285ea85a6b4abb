package render

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// imagesNodes is what all pods ask of nodes.
const imagesNodes = `{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [
	{key: kubernetes.io/os, operator: In, values: [linux]}, {key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}]}]}}}`

// dressed renders a registry with a backup, a snapshot and the controller, and returns the
// pods of its workloads.
func dressed(t *testing.T, spec string, uidRange string) map[string]corev1.PodTemplateSpec {
	t.Helper()
	in := input(t, merged(t, spec))
	in.UIDRange, in.Snapshot, in.Backup = uidRange, "before-the-next", backups["every-field"]
	return podTemplates(t, rendered(t, in))
}

const stored = `backup: {schedule: "0 * * * *", store: {s3: {bucket: b, region: r, secretRef: {name: s}}}}`

// TestPodsOfEachComponent has one struct be about the pods of each component, and of each
// container of a Job.
func TestPodsOfEachComponent(t *testing.T) {
	const pods = `{podLabels: {cost-center: "42"}, podAnnotations: {sidecar.istio.io/inject: "false"}, runtimeClassName: gvisor, nodeSelector: {pool: a}, priorityClassName: high,
		dnsConfig: {options: [{name: ndots}]}, podSecurityContext: {runAsUser: 1000}, tolerations: [{operator: Exists}], resources: {requests: {cpu: 70m}, limits: {memory: 3Gi}}`
	templates := dressed(t, `{server: `+pods+`}, etcd: `+pods+`, replicas: 3}, jobs: `+pods+`}, controllers: `+pods+`, health: {}}, `+stored+`}`, "")
	if len(templates) != 5 {
		t.Errorf("%d workloads", len(templates))
	}
	for workload, template := range templates {
		spec := template.Spec
		for what, ok := range map[string]bool{
			"labels": template.Labels["cost-center"] == "42", "annotations": template.Annotations["sidecar.istio.io/inject"] == "false",
			"runtime class": spec.RuntimeClassName != nil && *spec.RuntimeClassName == "gvisor", "node selector": spec.NodeSelector["pool"] == "a", "priority": spec.PriorityClassName == "high",
			"DNS": spec.DNSConfig != nil && spec.DNSConfig.Options[0].Name == "ndots", "user": *spec.SecurityContext.RunAsUser == 1000 && *spec.SecurityContext.FSGroup == 65532,
			"tolerations": len(spec.Tolerations) == 1, "service links": !*spec.EnableServiceLinks,
		} {
			if !ok {
				t.Errorf("%s: its %s are not those of the spec", workload, what)
			}
		}
		containers := spec.Containers
		if workload == "Job fleet-backup" || workload == "Job fleet-snapshot" {
			containers = slices.Concat(spec.InitContainers, spec.Containers)
		}
		for _, container := range containers {
			if container.Resources.Requests.Cpu().String() != "70m" || container.Resources.Limits.Memory().String() != "3Gi" {
				t.Errorf("%s: container %s has the resources %v", workload, container.Name, container.Resources)
			}
		}
	}
}

// TestJobsFollowEtcd has Jobs run as and where etcd's pods do, unless the spec says otherwise.
func TestJobsFollowEtcd(t *testing.T) {
	const etcd = `etcd: {replicas: 3, nodeSelector: {pool: etcd}, priorityClassName: high, podLabels: {of: etcd}, podSecurityContext: {fsGroup: 7},
		affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: disk, operator: Exists}]}}]}, podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}}}`
	for reason, test := range map[string]struct {
		jobs, pool, priority string
		preferred            int
	}{
		"nothing is said of Jobs": {``, "etcd", "high", 1},
		"something else is":       {`jobs: {podLabels: {a: b}}, `, "etcd", "high", 1},
		"their own":               {`jobs: {nodeSelector: {pool: jobs}, priorityClassName: low, affinity: {podAffinity: {}}}, `, "jobs", "low", 0},
	} {
		template := dressed(t, `{`+test.jobs+etcd+`, `+stored+`}`, "")["Job fleet-backup"]
		spec := template.Spec
		if spec.NodeSelector["pool"] != test.pool || spec.PriorityClassName != test.priority || len(spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != test.preferred {
			t.Errorf("%s: %v, %q, %v", reason, spec.NodeSelector, spec.PriorityClassName, spec.Affinity)
		}
		if spec.Affinity.PodAntiAffinity != nil || template.Labels["of"] != "" || *spec.SecurityContext.FSGroup != 7 {
			t.Errorf("%s: %v, %v, %v", reason, spec.Affinity, template.Labels, spec.SecurityContext)
		}
	}
}

// TestScratch has Jobs work on a part of the node's disk that is limited, or on a volume of its
// own of the same size.
func TestScratch(t *testing.T) {
	scratch := func(spec, job string) corev1.VolumeSource {
		volumes := dressed(t, spec, "")[job].Spec.Volumes
		i := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == scratchVolume })
		return volumes[i].VolumeSource
	}
	for _, job := range []string{"Job fleet-backup", "Job fleet-snapshot"} {
		local := scratch(`{`+stored+`}`, job)
		if local.EmptyDir == nil || local.EmptyDir.SizeLimit.Sign() <= 0 {
			t.Fatalf("%s: %v", job, local)
		}
		volume := scratch(`{jobs: {scratch: {storageClassName: fast}}, `+stored+`}`, job)
		if volume.EmptyDir != nil || volume.Ephemeral == nil {
			t.Fatalf("%s: %v", job, volume)
		}
		claim := volume.Ephemeral.VolumeClaimTemplate.Spec
		if *claim.StorageClassName != "fast" || claim.Resources.Requests.Storage().Cmp(*local.EmptyDir.SizeLimit) != 0 {
			t.Errorf("%s: %v, want %v", job, claim, local.EmptyDir.SizeLimit)
		}
	}
}

// TestPlatformsUsers leaves users and groups to a platform that gives them to the namespace, but
// for those that the spec names.
func TestPlatformsUsers(t *testing.T) {
	for workload, template := range dressed(t, `{controllers: {health: {}}, server: {podSecurityContext: {runAsUser: 5}}, `+stored+`}`, "1000680000/10000") {
		context := template.Spec.SecurityContext
		if context.RunAsGroup != nil || context.FSGroup != nil || !*context.RunAsNonRoot || (context.RunAsUser != nil) != (workload == "Deployment fleet-server") {
			t.Errorf("%s: %v", workload, context)
		}
	}
}

// TestResourcesFit has what the spec leaves out give way to what it says: the host refuses a
// request above its limit.
func TestResourcesFit(t *testing.T) {
	for jobs, want := range map[string][2]string{
		`{requests: {memory: 512Mi}}`: {"512Mi", "512Mi"}, `{limits: {memory: 12Mi}}`: {"12Mi", "12Mi"},
		`{requests: {memory: 1Mi}, limits: {memory: 2Mi}}`: {"1Mi", "2Mi"},
	} {
		containers := dressed(t, `{jobs: {resources: `+jobs+`}, `+stored+`}`, "")["Job fleet-snapshot"].Spec.Containers
		if got := containers[0].Resources; got.Requests.Memory().String() != want[0] || got.Limits.Memory().String() != want[1] {
			t.Errorf("%s: %v", jobs, got)
		}
	}
}

// TestOtherUsers has kubelet go through all files of a volume when the spec names a user: those
// of the user before have to be the group's.
func TestOtherUsers(t *testing.T) {
	for etcd, want := range map[string]corev1.PodFSGroupChangePolicy{`{runAsUser: 2000}`: corev1.FSGroupChangeAlways, `{fsGroup: 2000}`: corev1.FSGroupChangeOnRootMismatch} {
		context := dressed(t, `{etcd: {replicas: 3, podSecurityContext: `+etcd+`}}`, "")["StatefulSet fleet-etcd"].Spec.SecurityContext
		if context.FSGroupChangePolicy == nil || *context.FSGroupChangePolicy != want {
			t.Errorf("%s: %v", etcd, context)
		}
	}
}

// TestLabelsOfPodsStay gives labels and annotations of the operator's precedence over those that
// came past the schema: by them pods are found.
func TestLabelsOfPodsStay(t *testing.T) {
	template := dressed(t, `{server: {podLabels: {app.kubernetes.io/instance: other}, podAnnotations: {operator.clusterregistry.io/etcd-trust: x, operator.clusterregistry.io/new: x}}}`, "")["Deployment fleet-server"]
	if template.Labels[operatorv1alpha1.LabelInstance] != "fleet" || template.Annotations["operator.clusterregistry.io/etcd-trust"] == "x" || template.Annotations["operator.clusterregistry.io/new"] != "" {
		t.Errorf("%v, %v", template.Labels, template.Annotations)
	}
}

// TestAffinity has each alternative of a user ask for a node that runs the images, and a term that
// matches nothing not begin to match.
func TestAffinity(t *testing.T) {
	term := func(key string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpExists}}}
	}
	given := corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term("a"), {}, term("b")}}
	pods := operatorv1alpha1.Pods{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &given}}}
	terms := Affinity(pods).NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 2 || len(terms[0].MatchExpressions) != 3 || terms[1].MatchExpressions[0].Key != "b" || terms[1].MatchExpressions[1].Key != corev1.LabelOSStable {
		t.Errorf("%v", terms)
	}
	if len(given.NodeSelectorTerms) != 3 || len(given.NodeSelectorTerms[0].MatchExpressions) != 1 {
		t.Errorf("what was given has changed: %v", given)
	}
}

// TestAzureIdentity labels pods that sign in to Azure by the identity of their ServiceAccount, and
// no others.
func TestAzureIdentity(t *testing.T) {
	const label = "azure.workload.identity/use"
	azure := func(extra string) string {
		return `{backup: {schedule: "0 * * * *", store: {azure: {account: a, container: c` + extra + `}}}`
	}
	if got := dressed(t, azure(`}, serviceAccountName: saver`), ""); got["Job fleet-backup"].Labels[label] != "true" || got["Job fleet-snapshot"].Labels[label] != "" || got["StatefulSet fleet-etcd"].Labels[label] != "" {
		t.Errorf("%v", got["Job fleet-backup"].Labels)
	}
	if got := dressed(t, azure(`, secretRef: {name: s}}`), ""); got["Job fleet-backup"].Labels[label] != "" {
		t.Errorf("%v", got["Job fleet-backup"].Labels)
	}
}

// TestPace makes the election timeout ten heartbeats where the spec does not say it.
func TestPace(t *testing.T) {
	for etcd, want := range map[string][]string{
		`{replicas: 3, heartbeatIntervalMilliseconds: 500}`:                                    {"--heartbeat-interval=500", "--election-timeout=5000"},
		`{replicas: 3, electionTimeoutMilliseconds: 3000}`:                                     {"--election-timeout=3000"},
		`{replicas: 3, heartbeatIntervalMilliseconds: 200, electionTimeoutMilliseconds: 1500}`: {"--heartbeat-interval=200", "--election-timeout=1500"},
	} {
		args := dressed(t, `{etcd: `+etcd+`}`, "")["StatefulSet fleet-etcd"].Spec.Containers[0].Args
		for _, argument := range want {
			if !slices.Contains(args, argument) {
				t.Errorf("%s: %q lacks %q", etcd, args, argument)
			}
		}
		if len(want) == 1 && slices.ContainsFunc(args, func(a string) bool { return len(a) > 20 && a[:21] == "--heartbeat-interval=" }) {
			t.Errorf("%s: %q", etcd, args)
		}
	}
}
