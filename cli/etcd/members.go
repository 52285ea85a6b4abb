package etcd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/cli/hostcluster"
	"github.com/clusterregistry/operator/internal/contract"
)

// Members are the etcd members of a registry.
type Members struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// External is true when the operator does not run them.
	External bool `json:"external,omitempty"`
	// Problem is why the condition EtcdReady is not True, or what its message says beside;
	// nothing when there is nothing to know.
	Problem string `json:"problem,omitempty"`
	// Attention is true when EtcdReady is not True.
	Attention bool `json:"attention,omitempty"`
	// Operation is the long operation that is under way.
	Operation string   `json:"operation,omitempty"`
	Ready     string   `json:"ready,omitempty"`
	Members   []Member `json:"members"`
	// Notes say what could not be asked.
	Notes []string `json:"notes,omitempty"`
}

// Member is an etcd member. Sizes are as the status has them, and what is not known is left
// out.
type Member struct {
	Name    string `json:"name"`
	ID      string `json:"id,omitempty"`
	Ready   bool   `json:"ready"`
	Role    string `json:"role,omitempty"`
	Version string `json:"version,omitempty"`
	// DatabaseSize is that of the file, of which InUse is not free, and Quota that at which
	// it refuses writes.
	DatabaseSize *resource.Quantity `json:"databaseSize,omitempty"`
	InUse        *resource.Quantity `json:"databaseSizeInUse,omitempty"`
	Quota        *resource.Quantity `json:"quota,omitempty"`
	// FreePercent is how much of the file is free.
	FreePercent  *int64       `json:"freePercent,omitempty"`
	Defragmented *metav1.Time `json:"defragmentedTime,omitempty"`
	// Lost is since when the data is certainly gone.
	Lost *metav1.Time `json:"lostTime,omitempty"`
	// Volume is the PersistentVolume, and Node where the pod runs.
	Volume string `json:"volume,omitempty"`
	Node   string `json:"node,omitempty"`
}

type lister struct {
	env    *command.Env
	output command.Output
}

// NewMembers returns the command etcd members.
func NewMembers(env *command.Env) *cobra.Command {
	l := &lister{env: env}
	cmd := &cobra.Command{
		Use:   "members [REGISTRY]",
		Short: "Show the etcd members of a registry",
		Long: `Show the etcd members of a registry: which is ready and which leads, its ID and version, how much of
its quota its file has and what of it is free, its volume and its node. Sizes are in steps of a
tenth of the quota; the operator's metrics are exact.

Exits with 4 when the condition EtcdReady is not True.`,
		Example: `  # As a table
  kubectl registry etcd members fleet

  # For a program
  kubectl registry etcd members fleet -o json`,
		Args:              command.Args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: hostcluster.Complete(env),
		RunE: func(cmd *cobra.Command, args []string) error {
			return l.run(cmd.Context(), strings.Join(args, ""))
		},
	}
	l.output.AddFlag(cmd)
	return cmd
}

func (l *lister) run(ctx context.Context, name string) error {
	if err := l.output.Validate(); err != nil {
		return err
	}
	registry, err := hostcluster.Find(ctx, l.env, name)
	if err != nil {
		return err
	}
	found := of(registry)
	if !found.External {
		if err := l.place(ctx, registry, found); err != nil {
			return err
		}
	}
	if l.output != "" {
		err = l.output.Print(l.env.Out, found)
	} else {
		err = found.print(l.env.Out)
	}
	for _, note := range found.Notes {
		fmt.Fprintf(l.env.ErrOut, "note: %s\n", command.Plain(note))
	}
	if err == nil && found.Attention {
		return command.Shown(found.Problem)
	}
	return err
}

// of returns what the status says.
func of(registry *v1alpha1.ClusterRegistry) *Members {
	status := &registry.Status
	out := &Members{Namespace: registry.Namespace, Name: registry.Name, External: registry.Spec.Etcd.External != nil, Ready: status.Etcd.Ready, Members: []Member{}}
	switch ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionEtcdReady); {
	case ready == nil:
		out.Attention, out.Problem = true, "the operator has not reported of etcd"
	case ready.Status != metav1.ConditionTrue:
		out.Attention, out.Problem = true, ready.Reason+": "+ready.Message
	case ready.Reason != v1alpha1.ReasonReady:
		out.Problem = ready.Reason + ": " + ready.Message
	}
	if o := status.Operation; o != nil {
		out.Operation = strings.TrimSpace(fmt.Sprintf("%s %s", o.Type, o.To)) + ": " + o.Progress
	}
	for _, m := range status.Etcd.Members {
		member := Member{Name: m.Name, ID: m.ID, Ready: m.Ready, Version: m.Version, DatabaseSize: m.DatabaseSize, InUse: m.DatabaseSizeInUse, Quota: m.Quota, Defragmented: m.DefragmentedTime, Lost: m.LostTime}
		switch {
		case m.ID == "":
		case m.Leader:
			member.Role = "leader"
		case m.Learner:
			member.Role = "learner"
		default:
			member.Role = "follower"
		}
		if m.DatabaseSize != nil && m.DatabaseSizeInUse != nil && m.DatabaseSize.Value() > 0 {
			free := max(0, m.DatabaseSize.Value()-m.DatabaseSizeInUse.Value()) * 100 / m.DatabaseSize.Value()
			member.FreePercent = &free
		}
		out.Members = append(out.Members, member)
	}
	return out
}

// place adds the volumes and nodes of members, as far as they may be listed.
func (l *lister) place(ctx context.Context, registry *v1alpha1.ClusterRegistry, found *Members) error {
	host, err := l.env.Host()
	if err != nil {
		return err
	}
	options := metav1.ListOptions{LabelSelector: v1alpha1.LabelInstance + "=" + registry.Name + "," + v1alpha1.LabelManagedBy + "=" + v1alpha1.ManagedBy}
	volumes, nodes := map[string]string{}, map[string]string{}
	claims, err := host.Resource(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")).Namespace(registry.Namespace).List(ctx, options)
	if err != nil {
		found.Notes = append(found.Notes, "volumes are not shown: "+l.env.Explain("list the PersistentVolumeClaims", command.OfHost, err).Error())
	} else {
		for _, claim := range claims.Items {
			volumes[claim.GetName()] = text(claim.Object, "spec", "volumeName")
		}
	}
	pods, err := host.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(registry.Namespace).List(ctx, options)
	if err != nil {
		found.Notes = append(found.Notes, "nodes are not shown: "+l.env.Explain("list the pods", command.OfHost, err).Error())
	} else {
		for _, pod := range pods.Items {
			nodes[pod.GetName()] = text(pod.Object, "spec", "nodeName")
		}
	}
	for i := range found.Members {
		m := &found.Members[i]
		m.Volume, m.Node = volumes[contract.EtcdMemberClaim(m.Name)], nodes[m.Name]
	}
	return nil
}
