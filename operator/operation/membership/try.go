package membership

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterregistry/operator/internal/contract"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
	"github.com/clusterregistry/operator/operator/volumes"
)

// tryClaim says why the host cluster would not make a claim as the StatefulSet asks for it:
// where a quota or an admission webhook refuses it, or makes it of another StorageClass. It says
// nothing when it would. No member is removed before that is known.
func (c *Change) tryClaim(ctx context.Context, set *appsv1.StatefulSet) (string, error) {
	template, wanted := set.Spec.VolumeClaimTemplates[0], made(set)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, GenerateName: contract.EtcdMemberClaim(set.Name) + "-", Labels: template.Labels, Annotations: template.Annotations}, Spec: *template.Spec.DeepCopy()}
	err := apply.IgnoreReadOnly(c.Writer().Try(ctx, claim))
	switch {
	case refused(err):
		return fmt.Sprintf("etcd members are not moved to StorageClass %s, since the host cluster refuses a claim of that class: %s; allow it, or change spec.etcd.storage.storageClassName back", wanted, err), nil
	case err == nil && volumes.Class(claim) != wanted:
		return fmt.Sprintf("etcd members are not moved to StorageClass %s, since the host cluster makes claims of StorageClass %q of it: find out what changes the class, such as an admission webhook, or change spec.etcd.storage.storageClassName back", wanted, volumes.Class(claim)), nil
	}
	return "", err
}

// tryStatefulSet says why the host cluster would not make the StatefulSet with claims of the
// StorageClass that is asked for, nothing when it would.
func (c *Change) tryStatefulSet(ctx context.Context, set *appsv1.StatefulSet) (string, error) {
	next := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, GenerateName: set.Name + "-", Labels: set.Labels, Annotations: set.Annotations}, Spec: *set.Spec.DeepCopy()}
	next.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = nil
	if class := render.EtcdClass(c.Registry); class != "" {
		next.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = &class
	}
	err := c.Writer().Try(ctx, next)
	if refused(err) {
		return fmt.Sprintf("StatefulSet %s is not recreated to make claims of another StorageClass, since the host cluster refuses it: %s; allow it, or change spec.etcd.storage.storageClassName back", set.Name, err), nil
	}
	return "", err
}

// tried is the verdict on what would be refused, or could not be tried.
func (c *Change) tried(refusal string, err error) verdict.Verdict {
	if err != nil {
		return verdict.Failed(err)
	}
	return c.blocked("%s", refusal)
}

// recreated removes from the record that the StatefulSet is recreated, once it was, or is not to
// be any more.
func (c *Change) recreated(ctx context.Context, again bool) verdict.Verdict {
	deleted := c.Identity.Record.Recreating
	if deleted == "" || c.Writer().Err() != nil {
		return verdict.Verdict{}
	}
	set := &appsv1.StatefulSet{}
	if err := c.Live.Get(ctx, c.Key(contract.EtcdSuffix), set); client.IgnoreNotFound(err) != nil {
		return verdict.Failed(err)
	}
	if set.UID == "" || set.DeletionTimestamp != nil || again && string(set.UID) == deleted {
		return verdict.Verdict{}
	}
	now := *c.Identity.Record
	now.Recreating = ""
	if err := c.Identity.Write(ctx, &now); err != nil {
		return c.notRecorded(err)
	}
	return verdict.Verdict{}
}
