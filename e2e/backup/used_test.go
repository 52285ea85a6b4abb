package backup

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/e2e/framework"
)

// usedLine is the end of the log of a backup's pod: what it has used.
var usedLine = regexp.MustCompile(`(?m)^it took (.*)$`)

// nameFlag says, in the arguments of a pod, which backup it is about.
const nameFlag = "--name="

// jobsUsed notes what the pods of backups have used that have ended, by the command that they
// ran and the name of the backup.
func jobsUsed(ctx context.Context, e *framework.Env, used map[string]string) error {
	var pods corev1.PodList
	if err := e.Client.List(ctx, &pods, client.InNamespace(e.Namespace), client.MatchingLabels{operatorv1alpha1.LabelComponent: "backup"}); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		args := pod.Spec.Containers[0].Args
		named := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, nameFlag) })
		if pod.Status.Phase != corev1.PodSucceeded || named < 0 {
			continue
		}
		task := args[0] + " " + strings.TrimPrefix(args[named], nameFlag)
		if used[task] != "" {
			continue
		}
		log, err := e.Kubernetes.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil {
			return client.IgnoreNotFound(err) // it has gone
		}
		if found := usedLine.FindStringSubmatch(string(log)); found != nil {
			used[task] = strings.TrimSpace(found[1])
		}
	}
	return nil
}

// TestUsedLine reads what the program says.
func TestUsedLine(t *testing.T) {
	found := usedLine.FindStringSubmatch("{\"name\":\"b\"}\nit took 1.5 s, 0.4 s of CPU and 61 MiB; the programs that it ran, 0.0 s of CPU and 0 MiB\n")
	if found == nil || !strings.HasPrefix(found[1], "1.5 s, 0.4 s of CPU and 61 MiB") {
		t.Errorf("found is %q", found)
	}
}
