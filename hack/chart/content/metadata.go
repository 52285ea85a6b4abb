package content

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/operator/version"
)

// described is what manifests/olm says of the operator to catalogs, of which Artifact Hub
// is another one.
type described struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Maintainers []person `json:"maintainers"`
		Keywords    []string `json:"keywords"`
		Links       []link   `json:"links"`
		CRDs        struct {
			Owned []struct {
				DisplayName string `json:"displayName"`
				Description string `json:"description"`
			} `json:"owned"`
		} `json:"customresourcedefinitions"`
	} `json:"spec"`
}

type person struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

type link struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// owned is a definition as Artifact Hub shows it.
type owned struct {
	Kind        string `json:"kind"`
	Version     string `json:"version"`
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
}

const (
	descriptionFile = "manifests/olm/clusterserviceversion.yaml"
	releasesFile    = "operator/version/releases.yaml"
	// raw is where files of a version are read without git.
	raw = "https://raw.githubusercontent.com/clusterregistry/operator/"
)

// exampleFiles are the samples that Artifact Hub shows.
var exampleFiles = []string{"manifests/samples/aggregated-single.yaml", "manifests/samples/backups/on-demand.yaml"}

// metadata returns Chart.yaml.
func (o Options) metadata(s sources) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(o.Source, descriptionFile))
	if err != nil {
		return nil, err
	}
	var d described
	if err := yaml.Unmarshal(content, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", descriptionFile, err)
	}
	host, err := o.host()
	if err != nil {
		return nil, err
	}
	annotations, err := o.artifactHub(d, s)
	if err != nil {
		return nil, err
	}
	project := d.Metadata.Annotations["repository"]
	return yaml.Marshal(object{
		"apiVersion": "v2", "name": Name, "type": "application",
		"version": chartVersion(o.Version), "appVersion": o.Version,
		"description": d.Metadata.Annotations["description"],
		"kubeVersion": ">=" + host + ".0-0",
		"home":        project, "sources": []string{project},
		"icon":     raw + o.Version + "/manifests/olm/icon.svg",
		"keywords": d.Spec.Keywords, "maintainers": d.Spec.Maintainers,
		"annotations": annotations,
	})
}

// host returns the oldest minor version of Kubernetes that a release of the registry has.
func (o Options) host() (string, error) {
	content, err := os.ReadFile(filepath.Join(o.Source, releasesFile))
	if err != nil {
		return "", err
	}
	releases, err := version.Parse(content)
	if err != nil || len(releases) == 0 {
		return "", cmp.Or(err, errors.New(releasesFile+" has no release"))
	}
	oldest := releases[0].Host.From
	for _, r := range releases {
		if semver.Compare("v"+r.Host.From, "v"+oldest) < 0 {
			oldest = r.Host.From
		}
	}
	return oldest, nil
}

// artifactHub returns the annotations that Artifact Hub reads.
func (o Options) artifactHub(d described, s sources) (map[string]string, error) {
	crds, err := definitions(d, s.operator)
	if err != nil {
		return nil, err
	}
	var examples []any
	for _, file := range exampleFiles {
		content, err := os.ReadFile(filepath.Join(o.Source, file))
		if err != nil {
			return nil, err
		}
		var example any
		if err := yaml.Unmarshal(content, &example); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		examples = append(examples, example)
	}
	image := o.Repository + "/" + operatorImage + ":" + o.Version
	if o.Digest != "" {
		image += "@" + o.Digest
	}
	out := map[string]string{
		"artifacthub.io/license":              "Apache-2.0",
		"artifacthub.io/category":             "integration-delivery",
		"artifacthub.io/operator":             "true",
		"artifacthub.io/operatorCapabilities": d.Metadata.Annotations["capabilities"],
		"artifacthub.io/prerelease":           strconv.FormatBool(semver.Prerelease(o.Version) != ""),
	}
	for name, value := range map[string]any{
		"crds": crds, "crdsExamples": examples, "images": []object{{"name": operatorImage, "image": image}},
		"links": append(d.Spec.Links, link{Name: "support", URL: d.Metadata.Annotations["support"]}),
	} {
		content, err := yaml.Marshal(value)
		if err != nil {
			return nil, err
		}
		out["artifacthub.io/"+name] = string(content)
	}
	return out, nil
}

// definitions returns the definitions among objects, as they are described.
func definitions(d described, objects []*unstructured.Unstructured) (out []owned, _ error) {
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
		entry := owned{Kind: kind, Name: object.GetName()}
		for _, v := range versions {
			if v := v.(map[string]any); v["storage"] == true {
				entry.Version, _ = v["name"].(string)
			}
		}
		for _, described := range d.Spec.CRDs.Owned {
			if strings.ReplaceAll(described.DisplayName, " ", "") == kind {
				entry.DisplayName, entry.Description = described.DisplayName, described.Description
			}
		}
		if entry.Description == "" || entry.Version == "" {
			return nil, fmt.Errorf("%s says nothing of %s, or its definition has no stored version", descriptionFile, kind)
		}
		out = append(out, entry)
	}
	return out, nil
}
