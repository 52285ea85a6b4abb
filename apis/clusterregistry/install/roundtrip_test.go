package install

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// fuzz makes objects that a server can meet: a map or list is absent or has
// content, for no encoding tells empty from absent.
func fuzz(serializer.CodecFactory) []any {
	return []any{
		func(s *clusterregistry.Cluster, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Remainder = "" // no version shows it
		},
		func(s *clusterregistry.AuthProviderConfig, c randfill.Continue) {
			c.FillNoCustom(s)
			if len(s.Config) == 0 {
				s.Config = nil
			}
		},
		func(s *clusterregistry.KubernetesAPIEndpoints, c randfill.Continue) {
			c.FillNoCustom(s)
			if len(s.CABundle) == 0 {
				s.CABundle = nil
			}
		},
	}
}

// TestRoundTrips proves that nothing is lost on the way from the hub to any
// version and back, in JSON, YAML and protobuf.
func TestRoundTrips(t *testing.T) {
	roundtrip.RoundTripTestForAPIGroup(t, Install, fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, fuzz))
}
