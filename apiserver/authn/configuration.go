package authn

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
)

var configScheme = runtime.NewScheme()

func init() { install.Install(configScheme) }

// parse reads an AuthenticationConfiguration (apiserver.config.k8s.io) and
// refuses what is unknown, wrong, or without effect here.
func parse(content []byte, compiler authenticationcel.Compiler) (*apiserver.AuthenticationConfiguration, error) {
	codecs := serializer.NewCodecFactory(configScheme, serializer.EnableStrict)
	object, kind, err := codecs.UniversalDecoder().Decode(content, nil, nil)
	if err != nil {
		return nil, err
	}
	config, ok := object.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("it holds a %s, not an AuthenticationConfiguration", kind.Kind)
	}
	errs := validation.ValidateAuthenticationConfiguration(compiler, config, nil)
	if config.Anonymous != nil {
		errs = append(errs, field.Forbidden(field.NewPath("anonymous"), "anonymous requests reach the health checks and nothing else: remove the field"))
	}
	for i, issuer := range config.JWT {
		mappings, at := issuer.ClaimMappings, field.NewPath("jwt").Index(i).Child("claimMappings")
		for part, prefix := range map[string]*string{"username": mappings.Username.Prefix, "groups": mappings.Groups.Prefix} {
			if prefix == nil {
				continue
			}
			if begins := reservation(*prefix); begins != "" {
				errs = append(errs, field.Invalid(at.Child(part, "prefix"), *prefix, fmt.Sprintf("names that begin with %q are refused from tokens: choose another prefix", begins)))
			}
		}
	}
	return config, errs.ToAggregate()
}
