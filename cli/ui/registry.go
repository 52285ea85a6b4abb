package ui

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/hostcluster"
	"github.com/clusterregistry/operator/cli/status"
)

// Registry is a ClusterRegistry on the page.
type Registry struct {
	Key       string `json:"key"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Error says why the rest is empty.
	Error     string `json:"error,omitempty"`
	Mode      string `json:"mode,omitempty"`
	Version   string `json:"version,omitempty"`
	Desired   string `json:"desired,omitempty"`
	Available string `json:"available,omitempty"`
	Ready     string `json:"ready,omitempty"`
	Paused    bool   `json:"paused,omitempty"`
	Endpoint  string `json:"endpoint,omitempty"`
	Servers   string `json:"servers,omitempty"`
	Etcd      string `json:"etcd,omitempty"`
	// EtcdVersion and HostVersion are what runs.
	EtcdVersion string `json:"etcdVersion,omitempty"`
	HostVersion string `json:"hostVersion,omitempty"`
	// Operation is what is under way, in a line.
	Operation    string           `json:"operation,omitempty"`
	Phase        *Phase           `json:"phase,omitempty"`
	Problems     []status.Problem `json:"problems"`
	Conditions   []Condition      `json:"conditions"`
	Members      []Member         `json:"members"`
	Certificates []Certificate    `json:"certificates"`
	Schedule     string           `json:"schedule,omitempty"`
	NextBackup   *time.Time       `json:"nextBackup,omitempty"`
	Oldest       *time.Time       `json:"oldestBackup,omitempty"`
	Newest       *time.Time       `json:"newestBackup,omitempty"`
	History      []Transition     `json:"history"`
	// Unprobed says that nothing probes the registry's clusters.
	Unprobed bool `json:"unprobed,omitempty"`
}

// Phase is where an operation is.
type Phase struct {
	Name  string     `json:"name"`
	Since *time.Time `json:"since,omitempty"`
	Held  bool       `json:"held,omitempty"`
}

// Member is an etcd member.
type Member struct {
	Name    string `json:"name"`
	Ready   bool   `json:"ready"`
	Role    string `json:"role"`
	Version string `json:"version,omitempty"`
	// Size and Quota are in bytes.
	Size  int64 `json:"size,omitempty"`
	Quota int64 `json:"quota,omitempty"`
}

// Certificate is one of a registry's.
type Certificate struct {
	Name     string     `json:"name"`
	Use      string     `json:"use,omitempty"`
	NotAfter *time.Time `json:"notAfter,omitempty"`
	Renewal  *time.Time `json:"renewal,omitempty"`
}

// Transition is an installation or an upgrade.
type Transition struct {
	Version string     `json:"version"`
	State   string     `json:"state"`
	Started *time.Time `json:"started,omitempty"`
	Ended   *time.Time `json:"ended,omitempty"`
	Message string     `json:"message,omitempty"`
}

// Backup is a ClusterRegistryBackup.
type Backup struct {
	Key      string     `json:"key"`
	Registry string     `json:"registry"`
	Name     string     `json:"name"`
	Phase    string     `json:"phase"`
	Created  *time.Time `json:"created,omitempty"`
	Verified *time.Time `json:"verified,omitempty"`
	Bytes    int64      `json:"bytes,omitempty"`
	Message  string     `json:"message,omitempty"`
}

// registryOf returns the view of a ClusterRegistry. What needs attention depends on the time,
// so it is made when the view is read.
func registryOf(object *unstructured.Unstructured) any {
	creg := &operatorv1alpha1.ClusterRegistry{}
	key := object.GetNamespace() + "/" + object.GetName()
	if err := hostcluster.Decode(object, creg); err != nil {
		return Registry{Key: key, Namespace: object.GetNamespace(), Name: object.GetName(), Error: detail(err.Error())}
	}
	creg.ManagedFields, creg.Status.Inventory, creg.Status.ClientCABundle = nil, nil, nil
	return timed(func(now time.Time) any { return viewOf(key, creg, now) })
}

func viewOf(key string, creg *operatorv1alpha1.ClusterRegistry, now time.Time) Registry {
	s := &creg.Status
	short, problems := status.Of(creg, now)
	for i := range problems {
		problems[i].Message, problems[i].Next = detail(problems[i].Message), detail(problems[i].Next)
	}
	out := Registry{
		Key: key, Namespace: creg.Namespace, Name: creg.Name, Mode: short.Mode, Version: detail(short.Version), Desired: detail(short.Desired),
		Available: short.Available, Ready: short.Ready, Paused: creg.Spec.Paused, Etcd: detail(short.Etcd), EtcdVersion: detail(s.EtcdVersion), HostVersion: detail(s.HostVersion),
		Servers: ratio(s.Server.ReadyReplicas, s.Server.Replicas), Operation: detail(short.Operation), Problems: problems,
		Conditions: conditions(s.Conditions), Members: []Member{}, Certificates: []Certificate{}, History: []Transition{}, Unprobed: status.Unprobed(creg),
	}
	if s.Endpoint != nil {
		out.Endpoint = detail(s.Endpoint.URL)
	}
	if o := s.Operation; o != nil {
		out.Phase = &Phase{detail(string(o.Phase)), at(&o.PhaseStartedTime), o.PhaseCompleted}
	}
	for _, m := range s.Etcd.Members {
		role := "follower"
		switch {
		case m.Leader:
			role = "leader"
		case m.Learner:
			role = "learner"
		}
		out.Members = append(out.Members, Member{detail(m.Name), m.Ready, role, detail(m.Version), bytes(m.DatabaseSize), bytes(m.Quota)})
	}
	for _, c := range s.Certificates {
		out.Certificates = append(out.Certificates, Certificate{detail(c.Name), detail(string(c.Use)), at(c.NotAfter), at(c.RenewalTime)})
	}
	if creg.Spec.Backup != nil {
		out.Schedule = detail(creg.Spec.Backup.Schedule)
	}
	if b := s.Backup; b != nil {
		out.NextBackup = at(b.NextRun)
		if b.Window != nil {
			out.Oldest, out.Newest = at(&b.Window.Oldest), at(&b.Window.Newest)
		}
	}
	for _, h := range s.History {
		out.History = append(out.History, Transition{detail(h.Version), string(h.State), at(&h.StartTime), at(h.CompletionTime), detail(h.Message)})
	}
	return out
}

// backupOf returns the view of a ClusterRegistryBackup.
func backupOf(object *unstructured.Unstructured) any {
	out := Backup{Key: object.GetNamespace() + "/" + object.GetName(), Name: object.GetName()}
	backup := &operatorv1alpha1.ClusterRegistryBackup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, backup); err != nil {
		out.Phase, out.Message = "Unreadable", detail(err.Error())
		return out
	}
	s := &backup.Status
	out.Registry, out.Phase = backup.Namespace+"/"+detail(backup.Spec.RegistryRef.Name), string(s.Phase)
	out.Created, out.Verified, out.Bytes, out.Message = at(&backup.CreationTimestamp), at(s.VerifiedTime), s.Bytes, text(s.Message)
	return out
}

func ratio(ready, all int32) string { return fmt.Sprintf("%d/%d", ready, all) }

func bytes(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return q.Value()
}
