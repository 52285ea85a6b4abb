package clusterregistry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/diagnose"
	"github.com/clusterregistry/operator/operator/render"
	"github.com/clusterregistry/operator/operator/verdict"
)

// memoryNoted returns the verdict of a part that is ready again with a note that it was
// short of memory.
func (s *scope) memoryNoted(v verdict.Verdict, pods []corev1.Pod) verdict.Verdict {
	if problem := diagnose.OutOfMemory(pods, s.now); problem != "" {
		return v.Note(operatorv1alpha1.ReasonOOMKilled, problem)
	}
	return v
}

// orOutOfMemory returns a reason, unless the part is not ready for lack of memory.
func (s *scope) orOutOfMemory(reason string, pods []corev1.Pod) string {
	if diagnose.OutOfMemory(pods, s.now) != "" {
		return operatorv1alpha1.ReasonOOMKilled
	}
	return reason
}

// serverMemory returns the limit of memory of the desired servers, zero when
// there is none or it is not known.
func (s *scope) serverMemory() int64 {
	if s.rendered == nil {
		return 0
	}
	for _, object := range s.rendered.Stages[render.StageServer] {
		containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		for _, one := range containers {
			container, _ := one.(map[string]any)
			text, _, _ := unstructured.NestedString(container, "resources", "limits", "memory")
			if limit, err := resource.ParseQuantity(text); err == nil && container["name"] == componentServer {
				return limit.Value()
			}
		}
	}
	return 0
}
