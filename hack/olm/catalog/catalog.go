// Package catalog makes file-based catalogs for the Operator Lifecycle Manager
// from a basic template and bundles that are folders: opm's own rendering of
// templates takes the bundles from an image registry, where those of a version
// that is not published yet are not.
package catalog

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// Source is what a catalog is made of.
type Source struct {
	// OPM is the path of opm.
	OPM string
	// Template is the path of a basic template. Of its versions those are in the
	// catalog that have a bundle.
	Template string
	// Bundles are the folders of bundles by the operator's version ("v0.2.0").
	Bundles map[string]string
	// Inline leaves out where a bundle's image is: OLM v0 then takes its objects
	// from the catalog itself.
	Inline bool
}

// template is the part of a basic template that is looked into.
type template struct {
	Schema  string           `json:"schema"`
	Entries []map[string]any `json:"entries"`
}

// Render returns the catalog, as opm validates it.
func (s Source) Render(ctx context.Context) ([]byte, error) {
	text, err := os.ReadFile(s.Template)
	if err != nil {
		return nil, err
	}
	var t template
	if err := yaml.UnmarshalStrict(text, &t); err != nil || t.Schema != "olm.template.basic" {
		return nil, fmt.Errorf("%s is no basic template of opm: schema %q: %w", s.Template, t.Schema, err)
	}
	var out bytes.Buffer
	for _, entry := range t.Entries {
		documents := []map[string]any{entry}
		switch entry["schema"] {
		case "olm.channel":
			s.keepKnown(entry)
		case "olm.bundle":
			if documents, err = s.bundle(ctx, fmt.Sprint(entry["image"])); err != nil {
				return nil, err
			}
		}
		for _, document := range documents {
			content, err := yaml.Marshal(document)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "---\n%s", content)
		}
	}
	return out.Bytes(), s.validate(ctx, out.Bytes())
}

// keepKnown takes versions without a bundle out of a channel.
func (s Source) keepKnown(channel map[string]any) {
	entries, _ := channel["entries"].([]any)
	var kept []any
	for _, entry := range entries {
		_, version, _ := strings.Cut(fmt.Sprint(entry.(map[string]any)["name"]), ".")
		if s.Bundles[version] != "" {
			kept = append(kept, entry)
		}
	}
	channel["entries"] = kept
}

// bundle has opm render the folder of a bundle, which the template names by its
// image; none if the version has no folder.
func (s Source) bundle(ctx context.Context, image string) ([]map[string]any, error) {
	version := image[strings.LastIndex(image, ":")+1:]
	if s.Bundles[version] == "" {
		return nil, nil
	}
	out, err := s.opm(ctx, "render", s.Bundles[version], "--output=yaml")
	if err != nil {
		return nil, err
	}
	var documents []map[string]any
	for _, text := range bytes.Split(out, []byte("\n---\n")) {
		var document map[string]any
		if err := yaml.Unmarshal(text, &document); err != nil {
			return nil, fmt.Errorf("opm render %s: %w", s.Bundles[version], err)
		}
		if len(document) == 0 {
			continue
		}
		if document["image"] = image; s.Inline {
			document["image"] = ""
		}
		documents = append(documents, document)
	}
	return documents, nil
}

func (s Source) validate(ctx context.Context, catalog []byte) error {
	dir, err := os.MkdirTemp("", "catalog-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "catalog.yaml"), catalog, 0o600); err != nil {
		return err
	}
	_, err = s.opm(ctx, "validate", dir)
	return err
}

func (s Source) opm(ctx context.Context, args ...string) ([]byte, error) {
	return Run(ctx, ".", s.OPM, args...)
}
