// Package report gathers what a bug report needs: the command report. It reads no
// Secrets, and leaves out whatever else looks like a credential.
package report

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
)

// namespaced are what is read in the namespace of the registry and of the operator, as
// far as it is theirs; owners come before what they own, and events last. Secrets are
// not among them, nor are ConfigMaps, which may have anything in them.
var namespaced = []schema.GroupVersionResource{
	hostcluster.Resource,
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "persistentvolumeclaims"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "batch", Version: "v1", Resource: "jobs"},
	{Version: "v1", Resource: "pods"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	{Group: "cert-manager.io", Version: "v1", Resource: "certificates"},
	{Group: "cert-manager.io", Version: "v1", Resource: "certificaterequests"},
	{Group: "cert-manager.io", Version: "v1", Resource: "issuers"},
	{Version: "v1", Resource: "events"},
}

// clusterScoped are what is read of the host cluster.
var clusterScoped = []schema.GroupVersionResource{
	{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
	{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"},
}

// tail is how many lines of a log are read, and of that before a restart.
const tail = 2000

// tailBytes is how much of those lines is read.
const tailBytes = 8 << 20

type reporter struct {
	env               *command.Env
	file              string
	operatorNamespace string
}

// New returns the command report.
func New(env *command.Env) *cobra.Command {
	r := &reporter{env: env}
	cmd := &cobra.Command{
		Use:   "report [NAME]",
		Short: "Write an archive for a bug report, without Secrets and credentials",
		Long: `Write an archive for a bug report: the ClusterRegistry, its objects and logs, those of the
operator, and the host cluster's APIServices. Secrets and ConfigMaps are not read, and what
looks like a credential is left out of objects and logs. It has names and addresses of your
clusters' host: read it before you publish it. What you may not read is named in errors.txt.`,
		Example: `  # Of the only registry, to a file that is named after the time
  kubectl registry report

  # Of one of several
  kubectl registry report fleet -n registries --file fleet.tar.gz`,
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: hostcluster.Complete(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(cmd.Context(), strings.Join(args, ""))
		},
	}
	cmd.Flags().StringVar(&r.file, "file", "", "the `archive` to write, which must not exist; - for the standard output; default: named after registry and time")
	cmd.Flags().StringVar(&r.operatorNamespace, "operator-namespace", "clusterregistry-system", "the `namespace` of the operator")
	return cmd
}

func (r *reporter) run(ctx context.Context, name string) (err error) {
	registry, err := hostcluster.Find(ctx, r.env, name)
	if err != nil {
		return err
	}
	top := fmt.Sprintf("%s-%s", registry.Name, r.env.Now().UTC().Format("20060102-150405"))
	out := r.env.Out
	if r.file != "-" {
		if r.file == "" {
			r.file = top + ".tar.gz"
		}
		file, fault := os.OpenFile(r.file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if fault != nil {
			return fmt.Errorf("write the archive: %w; name another file with --file", fault)
		}
		defer func() {
			if closed := file.Close(); err == nil {
				err = closed
			}
			if err != nil {
				_ = os.Remove(r.file)
			}
		}()
		out = file
	}
	stop := r.env.Progress(ctx, "Reading objects and logs")
	defer stop()
	archive := newArchive(out, top, r.env.Now())
	namespaces := slices.Compact(slices.Sorted(slices.Values([]string{registry.Namespace, r.operatorNamespace})))
	for _, namespace := range namespaces {
		own := newSelection(registry, r.operatorNamespace, namespace)
		r.objects(ctx, archive, namespace, namespaced, own.keep)
		r.logs(ctx, archive, namespace, own.pod)
	}
	r.objects(ctx, archive, "", clusterScoped, func(*unstructured.Unstructured) bool { return true })
	if ctx.Err() != nil {
		return fmt.Errorf("the report was interrupted, and no archive is left: %w", ctx.Err())
	}
	if err := archive.close(); err != nil {
		return fmt.Errorf("write the archive: %w", err)
	}
	if r.file != "-" {
		fmt.Fprintf(r.env.Out, "%s: %d files, %d that could not be read\n", r.file, archive.files, len(archive.errors))
	}
	return nil
}

// objects adds those objects of some resources that are to be kept.
func (r *reporter) objects(ctx context.Context, archive *archive, namespace string, resources []schema.GroupVersionResource, keep func(*unstructured.Unstructured) bool) {
	host, err := r.env.Host()
	if err != nil {
		archive.fault("objects", err)
		return
	}
	for _, resource := range resources {
		file := path.Join(orCluster(namespace), resource.Resource+".yaml")
		list, err := host.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			archive.fault(file, err)
			continue
		}
		var items []any
		for i := range list.Items {
			if keep(&list.Items[i]) {
				items = append(items, object(list.Items[i].Object))
			}
		}
		content, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
		if err != nil {
			archive.fault(file, err)
			continue
		}
		archive.add(file, content)
	}
}

func orCluster(namespace string) string {
	if namespace == "" {
		return "cluster"
	}
	return namespace
}

// logs adds the logs of all containers of the pods in a namespace that are to be kept,
// before their last restart too.
func (r *reporter) logs(ctx context.Context, archive *archive, namespace string, keep func(*corev1.Pod) bool) {
	client, err := r.env.Kubernetes()
	if err != nil {
		archive.fault("logs", err)
		return
	}
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: labelName})
	if err != nil {
		archive.fault(namespace+"/logs", err)
		return
	}
	lines, bytes := int64(tail), int64(tailBytes)
	for _, pod := range pods.Items {
		if !keep(&pod) {
			continue
		}
		for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			for _, previous := range []bool{false, true} {
				if previous && container.RestartCount == 0 {
					continue
				}
				file := path.Join(namespace, "logs", pod.Name+"_"+container.Name)
				if previous {
					file += "_previous"
				}
				content, err := client.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name, Previous: previous, TailLines: &lines, LimitBytes: &bytes}).DoRaw(ctx)
				if err != nil {
					archive.fault(file, err)
					continue
				}
				archive.add(file+".log", []byte(log(string(content))))
			}
		}
	}
}

// archive is a tar file that remembers the first error.
type archive struct {
	top    string
	now    time.Time
	gzip   *gzip.Writer
	tar    *tar.Writer
	files  int
	errors []string
	err    error
}

func newArchive(w io.Writer, top string, now time.Time) *archive {
	compressed := gzip.NewWriter(w)
	return &archive{top: top, now: now, gzip: compressed, tar: tar.NewWriter(compressed)}
}

func (a *archive) add(name string, content []byte) {
	if a.err != nil {
		return
	}
	a.err = a.tar.WriteHeader(&tar.Header{Name: path.Join(a.top, name), Mode: 0o600, Size: int64(len(content)), ModTime: a.now})
	if a.err == nil {
		_, a.err = a.tar.Write(content)
	}
	a.files++
}

// fault remembers what could not be read, and why.
func (a *archive) fault(name string, err error) {
	a.errors = append(a.errors, name+": "+log(command.Plain(err.Error())))
}

func (a *archive) close() error {
	if len(a.errors) > 0 {
		a.add("errors.txt", []byte(strings.Join(a.errors, "\n")+"\n"))
	}
	if err := a.tar.Close(); a.err == nil {
		a.err = err
	}
	if err := a.gzip.Close(); a.err == nil {
		a.err = err
	}
	return a.err
}
