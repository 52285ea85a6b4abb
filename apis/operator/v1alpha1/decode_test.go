package v1alpha1

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

const (
	backupCRDFile    = "../../../manifests/operator/crd/operator.clusterregistry.io_clusterregistrybackups.yaml"
	selectionCRDFile = "../../../manifests/operator/crd/operator.clusterregistry.io_clusterselections.yaml"
	decodeSeed       = 37
)

// TestSchemaValidDecodes has values of all kinds for each field of the schemas. What the schema
// of a field lets through, the Go type must decode: the host cluster would store it, and every
// client with Go types would fail on each list that has it. It is about what users write: the
// status is the operator's, its times have formats, which let lists through, and the operator
// outlives whatever else is there (operator/informers).
func TestSchemaValidDecodes(t *testing.T) {
	t.Logf("seed %d", decodeSeed)
	for file, fresh := range map[string]func() any{crdFile: func() any { return &ClusterRegistry{} }, backupCRDFile: func() any { return &ClusterRegistryBackup{} }, selectionCRDFile: func() any { return &ClusterSelection{} }} {
		w := &schemaWalk{t: t, random: rand.New(rand.NewPCG(decodeSeed, 0)), fresh: fresh}
		root := rootSchema(t, file)
		w.walk(".spec", root.Properties["spec"], always, func(value any) any { return map[string]any{"spec": value} })
		// Else the test finds nothing: most fields are strings, which take some of the values.
		if w.fields < 4 || w.accepted < 10*w.fields {
			t.Errorf("%s: of %d fields, %d values were accepted", file, w.fields, w.accepted)
		}
	}
}

// TestSchemaRefusesPEM has the mistake that people make with a field of certificates refused
// everywhere, with what to do.
func TestSchemaRefusesPEM(t *testing.T) {
	found := 0
	var look func(path string, props apiextensions.JSONSchemaProps)
	look = func(path string, props apiextensions.JSONSchemaProps) {
		for _, name := range slices.Sorted(maps.Keys(props.Properties)) {
			property := props.Properties[name]
			if look(path+"."+name, property); name != "caBundle" {
				continue
			}
			found++
			accepts := accepting(t, property)
			if accepts("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n") {
				t.Errorf("%s.%s takes PEM that is not base64 encoded", path, name)
			}
			if !accepts(base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"))) {
				t.Errorf("%s.%s does not take PEM that is base64 encoded", path, name)
			}
		}
	}
	look(".spec", rootSchema(t, crdFile).Properties["spec"])
	if found < 8 {
		t.Errorf("only %d fields were found", found)
	}
}

// schemaWalk goes through the fields of a schema.
type schemaWalk struct {
	t                *testing.T
	random           *rand.Rand
	fresh            func() any
	fields, accepted int
}

// always is the rule of what holds a field and has none.
func always(any) bool { return true }

// walk tries a field, and those within. What holds the field accepts values as well, by rules on a
// map; whole returns an object with no more than a value of the field.
func (w *schemaWalk) walk(path string, props apiextensions.JSONSchemaProps, holder func(any) bool, whole func(any) any) {
	w.fields++
	accepts := accepting(w.t, props)
	for _, value := range w.values(props) {
		if !accepts(value) || !holder(value) {
			continue
		}
		w.accepted++
		text, err := json.Marshal(whole(value))
		if err != nil {
			w.t.Fatal(err)
		}
		if err := utiljson.Unmarshal(text, w.fresh()); err != nil {
			w.t.Errorf("%s: the schema lets %.80q through, and it can't be decoded: %v", path, fmt.Sprint(value), err)
			return // one of each field is enough
		}
	}
	for _, name := range slices.Sorted(maps.Keys(props.Properties)) {
		w.walk(path+"."+name, props.Properties[name], always, func(value any) any { return whole(map[string]any{name: value}) })
	}
	if props.Items != nil {
		w.walk(path+"[]", *props.Items.Schema, always, func(value any) any { return whole([]any{value}) })
	}
	if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
		holder := func(value any) bool { return accepts(map[string]any{"key": value}) }
		w.walk(path+".*", *props.AdditionalProperties.Schema, holder, func(value any) any { return whole(map[string]any{"key": value}) })
	}
}

// values are those to try: some that are known to be hard, and random ones that look like what
// fields hold.
func (w *schemaWalk) values(props apiextensions.JSONSchemaProps) []any {
	out := []any{nil, true, false, map[string]any{}, []any{}, map[string]any{"a": nil}, []any{nil},
		int64(0), int64(1), int64(-1), int64(math.MaxInt32), int64(math.MaxInt32 + 1), int64(math.MinInt32 - 1), int64(math.MaxInt64), int64(math.MinInt64), int64(1 << 53), 1.5, 1e20, -1e300}
	for _, bound := range []*float64{props.Minimum, props.Maximum} {
		if bound != nil {
			out = append(out, int64(*bound)-1, int64(*bound), int64(*bound)+1)
		}
	}
	for _, value := range props.Enum {
		out = append(out, value)
	}
	for _, text := range []string{"", " ", "a", "A", "é", "\u0000", "日本", "-", "null", "true", "0", "1", "-1", "+1", "1e9", "1E1000", "1e-1000", "0x10", "NaN", "Inf", "１", "10Gi", "-10Gi", "1.5Gi", "1Ki Ki", "1m", "99999999999999999999Ei",
		"0s", "1h", "-1h", "1.5h", "1h1h", "9999999h", "99999h99999h99999h99999h", "5µs", "1d", "h", "1", "2026-01-01T00:00:00Z", "2026-01-01t00:00:00z", "2026-01-01", "2026-01-01 00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2026-12-31T23:59:60Z", "2026-02-29T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00,5Z",
		"-----BEGIN CERTIFICATE-----\n", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tAAAA", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tAAA=", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tAB==", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tAAAA\n", "LS0t_S1-", "=", "AAAA====", "https://a.example", "10.0.0.0/8", "a/b", "a.example"} {
		out = append(out, text)
	}
	for _, alphabet := range []string{"0123456789hmsnuµ.-", "0123456789.eEKMGTPikmn+-", "ABCDabcd0123+/=-_", "0123456789-:TZ.+", "abc/.-_"} {
		letters := []rune(alphabet)
		for range 40 {
			var text strings.Builder
			for range 1 + w.random.IntN(24) {
				text.WriteRune(letters[w.random.IntN(len(letters))])
			}
			out = append(out, text.String())
		}
	}
	if most := props.MaxLength; most != nil && *most < 1<<17 {
		out = append(out, strings.Repeat("a", int(*most)), strings.Repeat("é", int(*most)), strings.Repeat("1", int(*most)))
	}
	return out
}

// accepting returns whether the schema of a field lets a value through.
func accepting(t *testing.T, props apiextensions.JSONSchemaProps) func(any) bool {
	t.Helper()
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	rules := cel.NewValidator(structural, false, 1_000_000)
	return func(value any) bool {
		if errs := validation.ValidateCustomResource(nil, value, validator); len(errs) > 0 {
			return false
		}
		if rules == nil || value == nil {
			return true
		}
		errs, _ := rules.Validate(t.Context(), nil, structural, value, nil, math.MaxInt64)
		return len(errs) == 0
	}
}

// rootSchema returns the schema of a CustomResourceDefinition.
func rootSchema(t *testing.T, file string) apiextensions.JSONSchemaProps {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	crd, internal := &apiextensionsv1.CustomResourceDefinition{}, apiextensions.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict(content, crd); err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &internal, nil); err != nil {
		t.Fatal(err)
	}
	return internal
}
