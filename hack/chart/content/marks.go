package content

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// markPrefix begins the keys and items that stand in an object for a part of its template.
// It sorts after all fields.
const markPrefix = "zz-mark-"

// parts are what marks stand for. A number after @ is that of the columns by which
// something is indented there.
var parts = map[string]string{
	"replicas": `replicas: {{ $.Values.replicas }}`,
	"podLabels": `{{- with $.Values.podLabels }}
{{- toYaml . | nindent @0 }}
{{- end }}`,
	"podAnnotations":            whole("podAnnotations", "annotations"),
	"affinity":                  whole("affinity", "affinity"),
	"topologySpreadConstraints": whole("topologySpreadConstraints", "topologySpreadConstraints"),
	"nodeSelector":              whole("nodeSelector", "nodeSelector"),
	"tolerations":               whole("tolerations", "tolerations"),
	"imagePullSecrets":          whole("imagePullSecrets", "imagePullSecrets"),
	"resources":                 whole("resources", "resources"),
	"priorityClassName": `{{- with $.Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}`,
	"image": `image: {{ printf "%s:%s" $.Values.image.repository ($.Values.image.tag | default $.Chart.AppVersion) }}{{ with $.Values.image.digest }}@{{ . }}{{ end }}`,
	"pullPolicy": `{{- with $.Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}`,
	"imageRepository":      `value: {{ $.Values.registries.imageRepository | quote }}`,
	"aggregatedNamespaces": `value: {{ join "," $.Values.registries.aggregatedNamespaces | quote }}`,
	"imageDigests": `{{- with $.Values.registries.imageDigests }}
- name: IMAGE_DIGESTS
  value: {{ . }}
{{- end }}`,
	"watchNamespaces": `{{- with $.Values.watchNamespaces }}
- --watch-namespaces={{ join "," . }}
{{- end }}`,
	"extraArgs": `{{- range $.Values.extraArgs }}
- {{ . | quote }}
{{- end }}`,
	"extraEnv": `{{- with $.Values.extraEnv }}
{{- toYaml . | nindent @0 }}
{{- end }}`,
	"serviceMonitorLabels": `{{- with $.Values.serviceMonitor.labels }}
{{- toYaml . | nindent @0 }}
{{- end }}`,
	"prometheusRuleLabels": `{{- with $.Values.prometheusRule.labels }}
{{- toYaml . | nindent @0 }}
{{- end }}`,
}

// whole is the part of a field that has the content of a value, and is absent where the
// value is empty.
func whole(value, field string) string {
	return "{{- with $.Values." + value + " }}\n" + field + ":\n  {{- toYaml . | nindent @2 }}\n{{- end }}"
}

var (
	markLine = regexp.MustCompile(`(?m)^( *)(?:- )?` + markPrefix + `(\w+)(?:: null)?$`)
	column   = regexp.MustCompile(`@(\d)\b`)
)

// fill puts the parts in the place of the marks in the YAML of an object.
func fill(text string) (string, error) {
	var err error
	text = markLine.ReplaceAllStringFunc(text, func(line string) string {
		match := markLine.FindStringSubmatch(line)
		indent, part := match[1], parts[match[2]]
		if part == "" {
			err = fmt.Errorf("nothing stands for the mark %q", match[2])
		}
		part = column.ReplaceAllStringFunc(part, func(found string) string {
			more, _ := strconv.Atoi(found[1:])
			return strconv.Itoa(len(indent) + more)
		})
		lines := strings.Split(part, "\n")
		for i, line := range lines {
			lines[i] = indent + line
		}
		return strings.Join(lines, "\n")
	})
	return text, err
}

// mark puts marks in the place of what values say of the operator's Deployment, or adds
// them where the manifests say nothing.
func mark(deployment *unstructured.Unstructured) {
	spec := deployment.Object["spec"].(map[string]any)
	template := spec["template"].(map[string]any)
	metadata, pod := template["metadata"].(map[string]any), template["spec"].(map[string]any)
	container := pod["containers"].([]any)[0].(map[string]any)
	set := func(object map[string]any, fields map[string]string) {
		for field, name := range fields {
			delete(object, field)
			object[markPrefix+name] = nil
		}
	}
	set(spec, map[string]string{"replicas": "replicas"})
	set(metadata, map[string]string{"annotations": "podAnnotations"})
	metadata["labels"].(map[string]any)[markPrefix+"podLabels"] = nil
	set(pod, map[string]string{
		"affinity": "affinity", "topologySpreadConstraints": "topologySpreadConstraints", "nodeSelector": "nodeSelector",
		"tolerations": "tolerations", "imagePullSecrets": "imagePullSecrets", "priorityClassName": "priorityClassName",
	})
	set(container, map[string]string{"image": "image", "imagePullPolicy": "pullPolicy", "resources": "resources"})
	container["args"] = append(container["args"].([]any), markPrefix+narrowing, markPrefix+"extraArgs")
	for _, item := range container["env"].([]any) {
		variable := item.(map[string]any)
		if name, is := map[string]string{"IMAGE_REPOSITORY": "imageRepository", "AGGREGATED_NAMESPACES": "aggregatedNamespaces"}[variable["name"].(string)]; is {
			set(variable, map[string]string{"value": name})
		}
	}
	container["env"] = append(container["env"].([]any), markPrefix+"imageDigests", markPrefix+"extraEnv")
}

// labelMark adds a mark for the labels by which Prometheus Operator may select an object.
func labelMark(object *unstructured.Unstructured) {
	name, is := map[string]string{"ServiceMonitor": "serviceMonitorLabels", "PrometheusRule": "prometheusRuleLabels"}[object.GetKind()]
	if is {
		object.Object["metadata"].(map[string]any)["labels"].(map[string]any)[markPrefix+name] = nil
	}
}
