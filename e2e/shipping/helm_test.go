package shipping

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

const (
	helmVersion = "v4.3.1"
	helmRelease = "cluster-registry-operator"
	inOperators = " --namespace clusterregistry-system"
	helmInstall = "helm install " + helmRelease + " chart --values values.yaml --wait --timeout 5m" + inOperators
	clusters    = "kubectl get crc -o name"
)

// TestHelm installs the operator with Helm, over the one that "make install" has brought and
// whose fields both own from then on, upgrades it with other values and rolls that back while a registry runs, and uninstalls
// it. The registry serves all the time, in the same pods, and the next installation takes
// it over with its data.
func TestHelm(t *testing.T) {
	e := framework.New(t).WithOperator()
	noOthers(t, e)
	d := newDesk(t, e)
	d.withChart()
	defer d.restore()
	defer func() {
		d.run("helm uninstall " + helmRelease + " --ignore-not-found --wait --timeout 5m" + inOperators)
	}()

	d.run(helmInstall + " --take-ownership --force-conflicts")
	registry := e.Sample("aggregated-single.yaml")
	e.Install(registry)
	e.WaitReady(registry)
	d.run(cluster)
	pods, etcd := running(t, e, registry), registry.Status.Etcd.ClusterID
	unharmed := func(after string) {
		t.Helper()
		if out := d.run(clusters); out != "cluster.clusterregistry.k8s.io/kept\n" {
			t.Errorf("after %s, the clusters are %q", after, out)
		}
		if now := running(t, e, registry); !maps.Equal(now, pods) {
			t.Errorf("after %s, the registry runs in the pods %v, and did in %v", after, now, pods)
		}
	}

	d.run("helm upgrade " + helmRelease + " chart --values values.yaml --set replicas=1 --set podAnnotations.example=upgraded --force-conflicts --wait --timeout 5m" + inOperators)
	d.checkOperator("1 upgraded", "2 deployed")
	unharmed("the upgrade")
	e.WaitReady(registry)

	d.run("helm rollback " + helmRelease + " 1 --force-conflicts --wait --timeout 5m" + inOperators)
	d.checkOperator("2 ", "3 deployed")
	unharmed("the rollback")
	e.WaitReady(registry)

	d.run("helm uninstall " + helmRelease + " --wait --timeout 5m" + inOperators)
	if out := d.run("kubectl get deployments,serviceaccounts --selector=app.kubernetes.io/name=clusterregistry-operator -o name" + inOperators); out != "" {
		t.Errorf("after it was uninstalled, there is %s", out)
	}
	d.run("kubectl get " + definition + " creg/" + registry.Name)
	unharmed("the operator was uninstalled")

	d.run(helmInstall)
	e.WaitReady(registry)
	if registry.Status.Etcd.ClusterID != etcd {
		t.Errorf("etcd was %s, and is %s", etcd, registry.Status.Etcd.ClusterID)
	}
	unharmed("it was installed again")
	e.Change(registry, func(spec *operatorv1alpha1.ClusterRegistrySpec) { spec.Server.Replicas = 2 })
	e.WaitReady(registry)
	e.Remove(registry)
}

// withChart puts Helm, the chart and the values of what is built here on the desk.
func (d *desk) withChart() {
	d.t.Helper()
	programs := d.t.TempDir()
	for path, target := range map[string]string{
		filepath.Join(programs, "helm"): framework.Program(d.t, "helm", helmVersion, "helm"),
		filepath.Join(d.dir, "chart"):   filepath.Join(framework.Root(d.t), "chart"),
	} {
		if err := os.Symlink(target, path); err != nil {
			d.t.Fatal(err)
		}
	}
	for i, variable := range d.environment {
		if path, is := strings.CutPrefix(variable, "PATH="); is {
			d.environment[i] = "PATH=" + programs + ":" + path
		}
	}
	image := framework.FindImage(d.t, "clusterregistry-operator")
	repository := strings.TrimSuffix(image.Reference, ":"+image.Tag)
	values, err := yaml.Marshal(map[string]any{
		"image":      map[string]any{"repository": repository, "tag": image.Tag},
		"registries": map[string]any{"imageRepository": strings.TrimSuffix(repository, "/"+image.Name)},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.put("values.yaml", string(values))
}

// checkOperator compares the operator's replicas and an annotation of its pods, and the
// revision of the chart with its state.
func (d *desk) checkOperator(deployment, revision string) {
	d.t.Helper()
	const fields = "{.status.readyReplicas} {.spec.template.metadata.annotations.example}"
	if out := d.run("kubectl get deployment/clusterregistry-operator -o jsonpath='" + fields + "'" + inOperators); out != deployment {
		d.t.Errorf("the operator is %q, want %q", out, deployment)
	}
	var status struct {
		Version int `json:"version"`
		Info    struct {
			Status string `json:"status"`
		} `json:"info"`
	}
	if err := yaml.Unmarshal([]byte(d.run("helm status "+helmRelease+" -o json"+inOperators)), &status); err != nil {
		d.t.Fatal(err)
	}
	if got := fmt.Sprint(status.Version, " ", status.Info.Status); got != revision {
		d.t.Errorf("the chart's revision is %s, want %s", got, revision)
	}
}

// running returns the pods of the test's registry, by name and with their UIDs and the
// number of restarts.
func running(t *testing.T, e *framework.Env, registry *operatorv1alpha1.ClusterRegistry) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pod := range e.Pods(registry) {
		restarts := int32(0)
		for _, container := range pod.Status.ContainerStatuses {
			restarts += container.RestartCount
		}
		if pod.Status.Phase == corev1.PodRunning {
			out[pod.Name] = fmt.Sprint(pod.UID, " ", restarts)
		}
	}
	return out
}
