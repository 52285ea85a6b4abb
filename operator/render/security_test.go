package render

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/internal/contract"
)

// TestPermissions expects no roles, and exactly the bindings that an aggregated
// server needs, and the controller for the functions that are on.
func TestPermissions(t *testing.T) {
	for variant, in := range variants(t) {
		name, namespace := in.Registry.Name, in.Registry.Namespace
		var got, want []string
		prefix := "clusterregistry:" + namespace + ":" + name
		of := func(role string) {
			_, suffix, _ := strings.Cut(role, ":")
			want = append(want, "ClusterRoleBinding /"+prefix+":"+strings.ReplaceAll(suffix, ":", "-")+" to ClusterRole "+role)
		}
		if in.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated {
			want = []string{
				"ClusterRoleBinding /" + prefix + ":admission-reader to ClusterRole clusterregistry:admission-reader",
				"ClusterRoleBinding /" + prefix + ":auth-delegator to ClusterRole system:auth-delegator",
				"RoleBinding kube-system/" + prefix + " to Role extension-apiserver-authentication-reader",
			}
		}
		if controllers := in.Registry.Spec.Controllers; controllers != nil {
			want = append(want, "RoleBinding "+namespace+"/"+name+"-controller to ClusterRole clusterregistry:controller")
			of("clusterregistry:controller:host")
			if in.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated {
				of("clusterregistry:controller:metrics")
			}
			if in.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated && controllers.Health != nil {
				of("clusterregistry:controller:health")
			}
			if in.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated && controllers.RegisterHost != nil {
				of("clusterregistry:controller:register-host")
			}
			for name, words := range map[string]string{contract.ClusterAPIFunction: "cluster-api", contract.ExportsFunction: "exports", contract.ClusterSelectionsFunction: "cluster-selections", contract.FeedFunction: "feed"} {
				if in.Registry.Spec.Mode == operatorv1alpha1.ModeAggregated && slices.Contains(controllers.Functions(), name) {
					of("clusterregistry:controller:" + words)
				}
			}
			for _, reached := range []struct {
				words, role string
				namespaces  []string
			}{
				{"cluster-api", "cluster-api:namespace", controllers.Reaches(contract.ClusterAPIFunction)},
				{"exports-cluster-profiles", "exports:cluster-profiles", controllers.ExportsTo(operatorv1alpha1.ExportClusterProfile)},
				{"exports-secrets", "exports:secrets", controllers.ExportsTo(operatorv1alpha1.ExportArgoCDSecret)},
				{"exports-config-maps", "exports:config-maps", controllers.ExportsTo(operatorv1alpha1.ExportFluxConfigMap, operatorv1alpha1.ExportKubeconfig)},
				{"cluster-selections", "cluster-selections:namespace", controllers.Reaches(contract.ClusterSelectionsFunction)},
			} {
				for _, in := range reached.namespaces {
					if in != "closed" && (in != namespace || reached.words != "exports-secrets" && reached.words != "exports-config-maps") {
						want = append(want, "RoleBinding "+in+"/"+prefix+":controller-"+reached.words+" to ClusterRole clusterregistry:controller:"+reached.role)
					}
				}
			}
		}
		slices.Sort(want)
		for _, object := range rendered(t, in).Objects() {
			if object.GroupVersionKind().Group != rbacv1.GroupName {
				continue
			}
			binding := convert[rbacv1.ClusterRoleBinding](t, object) // a RoleBinding has the same fields
			got = append(got, binding.Kind+" "+binding.Namespace+"/"+binding.Name+" to "+binding.RoleRef.Kind+" "+binding.RoleRef.Name)
			holder := rbacv1.Subject{Kind: "ServiceAccount", Name: name + "-" + object.GetLabels()[operatorv1alpha1.LabelComponent], Namespace: namespace}
			if !slices.Equal(binding.Subjects, []rbacv1.Subject{holder}) || strings.Contains(binding.RoleRef.Name, "controller") != strings.HasSuffix(holder.Name, "-controller") {
				t.Errorf("%s: %s is about %v", variant, binding.Name, binding.Subjects)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: permissions %q, want %q", variant, got, want)
		}
	}
}

// TestPodsAreRestricted holds pods to the level "restricted" of Pod Security, and
// to a root file system that nobody writes to.
func TestPodsAreRestricted(t *testing.T) {
	for variant, in := range variants(t) {
		for workload, template := range podTemplates(t, rendered(t, in)) {
			for _, problem := range podProblems(template.Spec) {
				t.Errorf("%s: %s: %s", variant, workload, problem)
			}
		}
	}
}

func podProblems(pod corev1.PodSpec) []string {
	var out []string
	expect := func(ok bool, problem string) {
		if !ok {
			out = append(out, problem)
		}
	}
	context := pod.SecurityContext
	expect(!pod.HostNetwork && !pod.HostPID && !pod.HostIPC, "it uses namespaces of the node")
	expect(context != nil && *context.RunAsNonRoot && (context.RunAsUser == nil || *context.RunAsUser != 0), "it may run as root")
	expect(context.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault, "it has no seccomp profile")
	expect(pod.ServiceAccountName != "" && pod.AutomountServiceAccountToken != nil, "it does not say whether it gets a token, and whose")
	for _, volume := range pod.Volumes {
		expect(volume.ConfigMap != nil || volume.Secret != nil || volume.EmptyDir != nil || volume.Ephemeral != nil || volume.PersistentVolumeClaim != nil, "volume "+volume.Name+" is of the node")
	}
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		s := c.SecurityContext
		expect(s != nil && s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation, c.Name+" may gain privileges")
		expect(s.Privileged == nil && len(s.Capabilities.Add) == 0 && slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}), c.Name+" has capabilities")
		expect(s.ReadOnlyRootFilesystem != nil && *s.ReadOnlyRootFilesystem, c.Name+" may write to its root file system")
		expect(s.RunAsUser == nil && s.RunAsNonRoot == nil && s.SeccompProfile == nil, c.Name+" differs from its pod")
		expect(c.Resources.Requests.Cpu().Sign() > 0 && c.Resources.Limits.Memory().Sign() > 0, c.Name+" says not what it needs and may use")
		for _, port := range c.Ports {
			expect(port.HostPort == 0, c.Name+" takes a port of the node")
		}
	}
	return out
}

// TestLabels expects the recommended labels on all objects and pods, and on pods
// and claims none that an upgrade would change.
func TestLabels(t *testing.T) {
	for variant, in := range variants(t) {
		result := rendered(t, in)
		for _, object := range result.Objects() {
			labels := object.GetLabels()
			for key, want := range Labels(in.Registry) {
				if labels[key] != want {
					t.Errorf("%s: %s %s: label %s is %q, want %q", variant, object.GetKind(), object.GetName(), key, labels[key], want)
				}
			}
			if labels["app.kubernetes.io/version"] != in.Release.Version || labels[operatorv1alpha1.LabelComponent] == "" {
				t.Errorf("%s: %s %s: labels %v", variant, object.GetKind(), object.GetName(), labels)
			}
		}
		for workload, template := range podTemplates(t, result) {
			if template.Labels[operatorv1alpha1.LabelInstance] != in.Registry.Name || template.Labels["app.kubernetes.io/version"] != "" {
				t.Errorf("%s: pods of %s have the labels %v", variant, workload, template.Labels)
			}
		}
	}
}

// TestStages expects each object in a stage, and what outlives the registry to
// be marked.
func TestStages(t *testing.T) {
	for variant, in := range variants(t) {
		result := rendered(t, in)
		if len(result.Stages) > 7 || result.Stages[""] != nil {
			t.Errorf("%s: stages %v", variant, result.Stages)
		}
		for _, object := range result.Objects() {
			kind, name := object.GetKind(), object.GetName()
			retained := object.GetAnnotations()[operatorv1alpha1.AnnotationRetain] == "true"
			if want := kind == "Issuer" || kind == "PersistentVolumeClaim" || kind == "Certificate" && contract.IsCA(name) || kind == "Secret" && strings.HasPrefix(name, in.Registry.Name+contract.EncryptionSuffix+"-"); retained != want {
				t.Errorf("%s: %s %s is retained: %v", variant, kind, name, retained)
			}
		}
	}
}
