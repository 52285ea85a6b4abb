package job

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/apply"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
	"github.com/clusterregistry/operator/operator/render"
)

// platform is a host cluster that changes Jobs when they are made, and lets no template be changed
// after that.
type platform struct {
	client.WithWatch
	made, applied int
}

// content is what is applied.
type content interface {
	UnstructuredContent() map[string]any
	SetUnstructuredContent(map[string]any)
}

// rewritten is what the platform makes of an image.
func rewritten(image string) string { return "mirror.example/" + image }

func (p *platform) apply(ctx context.Context, c client.WithWatch, configuration runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	p.applied++
	tree, job, now := configuration.(content), &batchv1.Job{}, &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree.UnstructuredContent(), job); err != nil {
		return err
	}
	template := &job.Spec.Template
	switch err := c.Get(ctx, client.ObjectKeyFromObject(job), now); {
	case apierrors.IsNotFound(err):
		p.made++
		job.UID = types.UID(fmt.Sprint("job-", p.made))
		metav1.SetMetaDataLabel(&template.ObjectMeta, "queue", "batch")
		template.Spec.Containers[0].Image = rewritten(template.Spec.Containers[0].Image)
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy"})
		if err := c.Create(ctx, job); err != nil {
			return err
		}
	case err != nil:
		return err
	case now.Spec.Template.Spec.Containers[0].Image != template.Spec.Containers[0].Image:
		return apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, job.Name, apivalidation.ValidateImmutableField(now, job, field.NewPath("spec", "template")))
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(job), now); err != nil {
		return err
	}
	result, err := runtime.DefaultUnstructuredConverter.ToUnstructured(now)
	if err != nil {
		return err
	}
	result["apiVersion"], result["kind"] = "batch/v1", "Job"
	tree.SetUnstructuredContent(result)
	return nil
}

// TestWebhookThatChangesJobs has webhooks of the platform change Jobs when they are made: one that
// runs is left alone, also by an operator that has just started and after others have changed it,
// until something else is asked for.
func TestWebhookThatChangesJobs(t *testing.T) {
	p := &platform{}
	o := operandtest.New(t, operandtest.InstalledAggregated)
	p.WithWatch = o.Client.(client.WithWatch)
	host := interceptor.NewClient(p.WithWatch, interceptor.Funcs{Apply: p.apply})
	o.Registry.Status.Inventory = []operatorv1alpha1.ObjectReference{{Group: "batch", Kind: "Job", Namespace: "team", Name: "fleet-backup"}}
	starts := func() { o.Client, o.Live, o.Applier = host, host, apply.New(host, host) }
	asks := func(image string) (stale bool) {
		t.Helper()
		wanted := operandtest.Rendered(batchv1.SchemeGroupVersion.WithKind("Job"), "fleet-backup")
		wanted.SetLabels(map[string]string{operatorv1alpha1.LabelManagedBy: operatorv1alpha1.ManagedBy, operatorv1alpha1.LabelNamespace: "team", operatorv1alpha1.LabelInstance: "fleet"})
		containers := []any{map[string]any{"name": "backup", "image": image}}
		if err := unstructured.SetNestedSlice(wanted.Object, containers, "spec", "template", "spec", "containers"); err != nil {
			t.Fatal(err)
		}
		o.Rendered = &render.Result{Stages: map[render.Stage][]*unstructured.Unstructured{render.StageBackup: {wanted}}}
		stale, err := Apply(t.Context(), o, render.StageBackup)
		if err != nil {
			t.Fatal(err)
		}
		return stale
	}
	for start := range 3 {
		starts()
		for range 2 {
			if asks("helper:1") {
				t.Fatalf("operator %d takes the Job for another one", start+1)
			}
			running(t, o, func(job *batchv1.Job) { metav1.SetMetaDataAnnotation(&job.ObjectMeta, "seen", fmt.Sprint(start)) })
		}
	}
	if p.made != 1 || p.applied != 1 {
		t.Errorf("%d Jobs were made by %d writes", p.made, p.applied)
	}
	if job := running(t, o, nil); job.Spec.Template.Spec.Containers[0].Image != rewritten("helper:1") || len(job.Spec.Template.Spec.Containers) != 2 {
		t.Errorf("the platform has changed nothing: %+v", job.Spec.Template)
	}
	if !asks("helper:2") {
		t.Error("the Job of an earlier request is taken for the present one")
	}
}

// running returns the Job, after a change by someone else.
func running(t *testing.T, o *operand.Objects, change func(*batchv1.Job)) *batchv1.Job {
	t.Helper()
	job := &batchv1.Job{}
	if err := o.Client.Get(t.Context(), o.Key("-backup"), job); err != nil {
		t.Fatal(err)
	}
	if change == nil {
		return job
	}
	if change(job); o.Client.Update(t.Context(), job) != nil {
		t.Fatal("it can't be changed")
	}
	return job
}
