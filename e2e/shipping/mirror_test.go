package shipping

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
	"github.com/clusterregistry/operator/operator/version"
)

const (
	// mirror is the repository of images in docs/how-to/mirror.md.
	mirror = "registry.example/platform"
	// project is where the overlay there has its base from.
	project = "https://github.com/clusterregistry/operator//"
)

// TestMirror takes all images from another repository than the project's: for one
// registry by its field, and then for all, by the overlay of docs/how-to/mirror.md, whose
// base is at a URL.
func TestMirror(t *testing.T) {
	e := framework.New(t).WithOperator()
	d := newDesk(t, e)
	mirrorRelease(t, e)

	t.Run("one field", func(t *testing.T) {
		e := e.In(t)
		registry := small(e, "field")
		registry.Spec.Images.Repository = mirror
		e.Install(registry)
		e.WaitReady(registry)
		checkImages(e, e.Namespace, "etcd", "clusterregistry-helper", "clusterregistry-apiserver")
		e.Remove(registry)
	})

	overlay := block(t, "docs/how-to/mirror.md", "yaml", "kind: Kustomization")
	if !strings.Contains(overlay, project) {
		t.Fatalf("the overlay's base is not at %s:\n%s", project, overlay)
	}
	remote := publish(t, regexp.MustCompile(`\?ref=(\S+)`).FindStringSubmatch(overlay)[1])
	d.put("kustomization.yaml", strings.Replace(overlay, project, remote+"//", 1))
	installs := d.run("kubectl kustomize .")
	image := regexp.MustCompile(`\n +image: (` + mirror + `/clusterregistry-operator:\S+)\n`).FindStringSubmatch(installs)
	if image == nil {
		t.Fatalf("the overlay does not install the operator of %s:\n%s", mirror, installs)
	}
	framework.LoadAs(t, framework.FindImage(t, "clusterregistry-operator"), image[1])

	t.Run("one variable", func(t *testing.T) {
		e, d := e.In(t), d.in(t)
		defer d.restore()
		// Those who own the fields since "make install" must give them away.
		d.run(strings.Replace(block(t, "docs/how-to/mirror.md", "sh", "kubectl apply"), "--server-side", "--server-side --force-conflicts", 1))
		d.run(rollout)
		registry := small(e, "variable")
		e.Install(registry)
		e.WaitReady(registry)
		checkImages(e, e.Namespace, "etcd", "clusterregistry-helper", "clusterregistry-apiserver")
		checkImages(e, framework.OperatorNamespace, "clusterregistry-operator")
		checkShown(t, d.run(block(t, "docs/how-to/mirror.md", "sh", "kubectl get pods")))
		e.Remove(registry)
	})
}

// small returns a registry of one server and one member of etcd.
func small(e *framework.Env, name string) *operatorv1alpha1.ClusterRegistry {
	registry := e.Sample("independent-nodeport.yaml")
	registry.Name = name
	registry.Spec.Server.Replicas, registry.Spec.Server.Service.NodePort = 1, 0
	return registry
}

// mirrorRelease brings the images of the release that small registries run to the
// nodes, under the mirror's names.
func mirrorRelease(t *testing.T, e *framework.Env) {
	t.Helper()
	releases, err := version.Releases()
	if err != nil {
		t.Fatal(err)
	}
	release, err := version.Find(releases, string(small(e, "any").Spec.Version))
	if err != nil {
		t.Fatal(err)
	}
	for name, tag := range map[string]string{"clusterregistry-apiserver": release.Version, "clusterregistry-helper": release.Helper, "etcd": release.Etcd} {
		framework.LoadAs(t, framework.TaggedImage(t, name, tag), mirror+"/"+name+":"+tag)
	}
}

// publish makes a repository of this one's last commit, under the tag that a
// document names, and returns its URL.
func publish(t *testing.T, tag string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "operator.git")
	for _, args := range [][]string{
		{"clone", "--quiet", "--bare", framework.Root(t), dir},
		{"--git-dir=" + dir, "update-ref", "refs/tags/" + tag, "HEAD"},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return "file://" + dir
}

// checkImages waits until the containers of all pods of a namespace run images
// of the mirror, and just those with the given names.
func checkImages(e *framework.Env, namespace string, names ...string) {
	e.Eventually("all pods of "+namespace+" to be of "+mirror, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := e.Client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		var seen []string
		for _, pod := range pods.Items {
			for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				image, ours := strings.CutPrefix(container.Image, mirror+"/")
				if !ours {
					return fmt.Errorf("container %s of pod %s has the image %s", container.Name, pod.Name, container.Image)
				}
				name, _, _ := strings.Cut(image, ":")
				seen = append(seen, name)
			}
		}
		slices.Sort(seen)
		seen = slices.Compact(seen)
		slices.Sort(names)
		if !slices.Equal(seen, names) {
			return fmt.Errorf("the images are %q, want %q", seen, names)
		}
		return nil
	})
}

// checkShown reads the table with which the document lets a user look for himself.
func checkShown(t *testing.T, table string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != 5 { // two operators, a server, a member of etcd
		t.Errorf("there are %d pods, want 4", len(lines)-1)
	}
	for _, line := range lines[1:] {
		if images := strings.Fields(line)[1]; strings.Count(images, mirror+"/") != strings.Count(images, ",")+1 {
			t.Errorf("%s: these are not all of %s", line, mirror)
		}
	}
	t.Log("\n" + table)
}
