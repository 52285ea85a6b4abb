package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterregistry/operator/internal/contract"
)

var (
	podKind    = schema.GroupKind{Kind: "Pod"}
	claimKind  = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	volumeKind = schema.GroupKind{Kind: "PersistentVolume"}
	secretKind = schema.GroupKind{Kind: "Secret"}
	configKind = schema.GroupKind{Kind: "ConfigMap"}
)

// sorted returns the keys of a map in their order.
func sorted[K cmp.Ordered, V any](of map[K]V) []K { return slices.Sorted(maps.Keys(of)) }

// process is what runs in a pod.
type process struct {
	w             *world
	name, address string
	// version is that of the image, and fetches the backup that a member is to be made of.
	version, fetches string
	// runs is true while the container runs, and cut while no one reaches it.
	runs, cut bool
	started   time.Time
	// ended is what the container ended with last, 0 for not at all, and said what it said. And
	// failure is what kubelet has reported of that.
	ended   int64
	said    string
	failure map[string]any
	// disk is that of an etcd member, nil in other pods, and mounted the record as kubelet has
	// brought it.
	disk    *disk
	mounted map[string]string
	// trust has the CAs that a member has read at its start.
	trust []byte
	// chain and key are the certificate of a server, and asks is true while it starts and asks for
	// etcd.
	chain, key []byte
	asks       bool

	server  *grpc.Server
	accepts *bufconn.Listener
}

// serves reports whether a process takes part in what it is for.
func (p *process) serves() bool { return p.runs && !p.cut }

// answers reports whether a process is an API server that answers.
func (p *process) answers() bool { return p.serves() && p.disk == nil && p.chain != nil }

// revision is the newest one that a member has.
func (p *process) revision() int64 {
	if p.disk.forked {
		return p.disk.had
	}
	if i := min(p.disk.index, len(p.w.etcd.log)); i > 0 {
		return p.w.etcd.log[i-1].revision
	}
	return 1
}

// stop ends a process.
func (p *process) stop() {
	p.runs = false
	if p.server != nil {
		p.server.Stop()
		p.server, p.accepts = nil, nil
	}
}

// crash ends a process with an error.
func (p *process) crash(says string) {
	p.w.note("%s crashes: %s", p.name, says)
	p.stop()
	p.ended, p.said = 2, says
}

// nameOf returns the name of a member from its URL.
func nameOf(url string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(url, "https://"), ".")
	return name
}

// component is which of the registry's parts a pod is of.
func component(pod *stored) string { return pod.GetLabels()["app.kubernetes.io/component"] }

// runPods has the kubelets start, observe and end what is in pods.
func (w *world) runPods() {
	for _, pod := range w.host.list(podKind, "") {
		uid := string(pod.GetUID())
		p := w.pods[uid]
		switch {
		case pod.GetDeletionTimestamp() != nil:
			if w.chance(60) {
				w.ends(pod)
			}
			continue
		case p == nil && w.chance(70):
			p = &process{w: w, name: pod.name, address: fmt.Sprintf("10.%d.%s", w.outages, strings.TrimPrefix(uid, "uid-")), version: imageVersion(pod), fetches: fetches(pod)}
			w.pods[uid] = p
		case p == nil:
			continue
		}
		if component(pod) == "etcd" {
			w.runMember(pod, p)
		} else if component(pod) == "server" {
			w.runServer(pod, p)
		}
		w.report(pod, p)
	}
	for _, uid := range sorted(w.pods) { // of pods that are gone
		if !slices.ContainsFunc(w.host.list(podKind, ""), func(pod *stored) bool { return string(pod.GetUID()) == uid }) {
			w.pods[uid].stop()
			delete(w.pods, uid)
		}
	}
}

// ends ends what is in a pod, which is gone then.
func (w *world) ends(pod *stored) {
	if p := w.pods[string(pod.GetUID())]; p != nil {
		p.stop()
		delete(w.pods, string(pod.GetUID()))
	}
	w.note("pod %s is gone", pod.name)
	w.host.remove(pod)
}

// imageVersion returns the tag of the last container's image.
func imageVersion(pod *stored) string {
	containers := pod.items("spec", "containers")
	image, _ := containers[len(containers)-1].(map[string]any)["image"].(string)
	tag := image[strings.LastIndex(image, ":")+1:]
	if component(pod) == "etcd" {
		return strings.TrimPrefix(tag, "v")
	}
	return tag
}

// fetches returns the backup that the init containers of a pod fetch, empty for none.
func fetches(pod *stored) string {
	for _, container := range pod.items("spec", "initContainers") {
		args, _, _ := unstructured.NestedStringSlice(container.(map[string]any), "args")
		for _, arg := range args {
			if args[0] == "fetch" && strings.HasPrefix(arg, "--name=") {
				return strings.TrimPrefix(arg, "--name=")
			}
		}
	}
	return ""
}

// secret returns a value of a Secret of the registry, nil where there is none.
func (w *world) secret(name, value string) []byte {
	found := w.host.objects[id{secretKind, key.namespace, name}]
	if found == nil {
		return nil
	}
	return decoded(found, value)
}

// report has kubelet report how a pod is.
func (w *world) report(pod *stored, p *process) {
	name := component(pod)
	if name != "etcd" && name != "server" {
		return
	}
	phase, state, last := p.states()
	is := p.answers()
	if p.disk != nil {
		is = p.serves() && w.etcd.leader != 0 && !p.disk.ends() && p.disk.cluster == w.etcd.id && w.holder(p.disk.member) == p
	}
	condition := map[string]any{"type": "Ready", "status": "False", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
	if is {
		condition["status"] = "True"
	}
	conditions := pod.items("status", "conditions")
	if len(conditions) > 0 && conditions[0].(map[string]any)["status"] == condition["status"] {
		condition = conditions[0].(map[string]any)
	}
	w.status(pod, map[string]any{"phase": phase, "podIP": p.address, "conditions": []any{condition}, "containerStatuses": []any{map[string]any{"name": name, "ready": is, "restartCount": int64(0), "image": "", "imageID": "", "state": state, "lastState": last}}})
}

// states returns the phase of a pod, and the state of its container and the last one. One that has
// ended with an error soon waits to be started again.
func (p *process) states() (phase string, state, last map[string]any) {
	last = map[string]any{}
	if p.failure != nil {
		last["terminated"] = p.failure
	}
	switch ends := map[string]any{"exitCode": p.ended, "reason": "Error", "message": p.said}; {
	case p.runs || p.asks:
		return "Running", map[string]any{"running": map[string]any{"startedAt": p.started.UTC().Format(time.RFC3339)}}, last
	case p.ended == 0:
		return "Pending", map[string]any{"waiting": map[string]any{"reason": "ContainerCreating"}}, last
	case !same(p.failure, ends):
		p.failure = ends
		return "Running", map[string]any{"terminated": ends}, map[string]any{}
	}
	return "Running", map[string]any{"waiting": map[string]any{"reason": "CrashLoopBackOff"}}, last
}

// status stores the status of an object.
func (w *world) status(object *stored, status map[string]any) {
	w.host.store(w.host.objects[object.id], object.with("status", status))
}

// record returns the record of etcd's identity as it is now.
func (w *world) record() map[string]string {
	found := w.host.objects[id{configKind, key.namespace, "fleet" + contract.IdentitySuffix}]
	if found == nil {
		return nil
	}
	data, _, _ := unstructured.NestedStringMap(found.Object, "data")
	return data
}

// runMember has the guard of a member decide whether that may start, and starts it.
func (w *world) runMember(pod *stored, p *process) {
	claim := w.host.objects[id{claimKind, pod.namespace, contract.EtcdMemberClaim(pod.name)}]
	if p.disk == nil {
		if claim == nil || claim.GetDeletionTimestamp() != nil { // no pod is scheduled that uses it
			return
		}
		if p.disk = w.diskOf(claim); p.disk == nil || w.record() == nil || w.secret("fleet-etcd-server", "tls.crt") == nil {
			p.disk = nil
			return
		}
		p.mounted = w.record()
	}
	if w.chance(40) {
		p.mounted = w.record()
	}
	if p.runs || w.nameless || p.ended != 0 && w.chance(70) { // kubelet starts it again after a while
		return // without names, it does not find the others
	}
	code, says := w.guard(p)
	if code != 0 {
		if p.ended != code {
			w.note("the guard of %s ends with %d: %s", p.name, code, says)
		}
		p.ended, p.said = code, says
		return
	}
	w.note("%s starts: %s", p.name, says)
	p.runs, p.ended, p.started, p.trust = true, 0, time.Now(), w.mounts(pod, "trust", "etcd-ca.crt")
}

// mounts returns what a pod has of a ConfigMap that it mounts.
func (w *world) mounts(pod *stored, volume, value string) []byte {
	for _, mounted := range pod.items("spec", "volumes") {
		if mounted := mounted.(map[string]any); mounted["name"] == volume {
			of, _, _ := unstructured.NestedString(mounted, "configMap", "name")
			if found := w.host.objects[id{configKind, pod.namespace, of}]; found != nil {
				text, _, _ := unstructured.NestedString(found.Object, "data", value)
				return []byte(text)
			}
		}
	}
	return nil
}
