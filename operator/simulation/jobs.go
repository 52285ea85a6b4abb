package simulation

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/internal/contract"
)

// runJobs runs Jobs: of etcd as it is then, snapshots and backups are taken.
func (w *world) runJobs() {
	for _, job := range w.host.list(jobKind, "") {
		if len(job.items("status", "conditions")) > 0 || job.GetDeletionTimestamp() != nil {
			continue
		}
		pods := w.children(job)
		if len(pods) == 0 {
			w.pod(job, job.name+"-"+string(job.GetUID()), "", 0)
			tree := w.children(job)[0].DeepCopy()
			must(unstructured.SetNestedField(tree.Object, string(job.GetUID()), "metadata", "labels", batchv1.ControllerUidLabel))
			w.host.store(w.children(job)[0], tree)
			continue
		}
		if !w.chance(50) {
			continue
		}
		if component(pods[0]) == "snapshot" {
			w.saves(job, pods[0])
		} else {
			w.works(job, pods[0])
		}
	}
}

// ended has a Job, which has one pod, be over.
func (w *world) ended(job, pod *stored, containers, container string, code int64, says string) {
	phase, kind, counted := "Succeeded", "Complete", "succeeded"
	if code != 0 {
		phase, kind, counted = "Failed", "Failed", "failed"
	}
	w.status(pod, map[string]any{"phase": phase, containers: []any{map[string]any{"name": container, "ready": code == 0, "restartCount": int64(0), "image": "", "imageID": "", "state": map[string]any{"terminated": map[string]any{"exitCode": code, "message": says}}}}})
	w.status(job, map[string]any{counted: int64(1), "conditions": []any{map[string]any{"type": kind, "status": "True", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}})
}

// saves takes a snapshot.
func (w *world) saves(job, pod *stored) {
	if w.etcd.leader == 0 {
		return
	}
	saved, err := json.Marshal(contract.Snapshot{Name: job.GetAnnotations()["operator.clusterregistry.io/snapshot"], Revision: w.etcd.last().revision, Bytes: 1, Version: "3.7.3"})
	must(err)
	w.ended(job, pod, "initContainerStatuses", "save", 0, string(saved))
}

// works has the program for backups do what a Job asks of it.
func (w *world) works(job, pod *stored) {
	if w.storeAway {
		w.note("%s does not reach the store", job.name)
		w.ended(job, pod, "containerStatuses", "backup", contract.StoreUnreachable, "the store does not answer")
		return
	}
	containers := pod.items("spec", "containers")
	args, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	argument := func(name string) string {
		i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--"+name+"=") })
		if i < 0 {
			return ""
		}
		return strings.TrimPrefix(args[i], "--"+name+"=")
	}
	now, called := time.Now().UTC().Truncate(time.Second), argument("name")
	report, taken := w.backups[called]
	switch {
	case args[0] == "save" && w.etcd.leader == 0:
		return
	case args[0] == "save" && !taken:
		report = contract.BackupReport{Backup: contract.Backup{Name: called, ID: argument("id"), Time: now, Revision: w.etcd.last().revision, Bytes: 1, SHA256: "aa", EtcdVersion: strings.TrimPrefix(w.etcdVersion(), "v"), Release: argument("release")}, Location: "s3://backups/" + called}
	case args[0] == "verify":
		report.VerifiedTime = &now
	case args[0] == "prune", args[0] == "delete":
		w.ended(job, pod, "containerStatuses", "backup", 0, "{}")
		return
	}
	w.backups[called] = report
	said, err := json.Marshal(report)
	must(err)
	w.note("%s: %s of backup %s", job.name, args[0], called)
	w.ended(job, pod, "containerStatuses", "backup", 0, string(said))
}

// etcdVersion is that of the members that run.
func (w *world) etcdVersion() string {
	for _, uid := range sorted(w.pods) {
		if p := w.pods[uid]; p.disk != nil {
			return p.version
		}
	}
	return ""
}
