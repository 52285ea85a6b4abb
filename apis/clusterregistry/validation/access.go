package validation

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// access returns the faults of v1beta1's form of how to sign in.
func access(access []clusterregistry.Access, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	if n := len(access); n > MaxProviders {
		faults = append(faults, field.TooMany(path, n, MaxProviders))
	}
	names := map[string]bool{}
	for i, way := range access {
		at := path.Index(i)
		faults = append(faults, name(way.Name, names, at.Child("name"))...)
		switch way.Audience {
		case clusterregistry.AudienceUser, clusterregistry.AudienceController:
		default:
			faults = append(faults, field.NotSupported(at.Child("audience"), way.Audience, []clusterregistry.AccessAudience{clusterregistry.AudienceUser, clusterregistry.AudienceController}))
		}
		given := 0
		if way.Exec != nil {
			given++
			faults = append(faults, exec(way.Exec, at.Child("exec"))...)
		}
		if way.OIDC != nil {
			given++
			faults = append(faults, oidc(way.OIDC, at.Child("oidc"))...)
		}
		if way.ObjectRef != nil {
			given++
			faults = append(faults, required(at.Child("objectRef"), map[string]string{"kind": way.ObjectRef.Kind, "name": way.ObjectRef.Name})...)
		}
		if way.Provider != nil {
			given++
			faults = append(faults, config(way.Provider.Config, at.Child("provider", "config"))...)
		}
		if given != 1 {
			faults = append(faults, field.Invalid(at, way.Name, "must have exactly one of exec, oidc, objectRef and provider"))
		}
	}
	return faults
}

func exec(exec *clusterregistry.ExecAccess, path *field.Path) field.ErrorList {
	faults := required(path, map[string]string{"apiVersion": exec.APIVersion, "command": exec.Command})
	faults = append(faults, noCredentials(path, map[string]string{"command": exec.Command, "installHint": exec.InstallHint})...)
	faults = append(faults, arguments(exec.Args, path.Child("args"))...)
	names := map[string]bool{}
	for i, variable := range exec.Env {
		at := path.Child("env").Index(i)
		faults = append(faults, name(variable.Name, names, at.Child("name"))...)
		if what := credential(variable.Value); variable.Value != "" && (what != "" || isCredentialVariable(variable.Name)) {
			faults = append(faults, field.Forbidden(at.Child("value"), "the variable looks like a credential; "+storePointer))
		}
	}
	return faults
}

// arguments returns a fault for each of a program's arguments that looks like a
// credential, by itself, by its key (--token=...) or by the flag before it.
func arguments(args []string, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	flag := ""
	for i, arg := range args {
		key, value, both := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		isFlag := strings.HasPrefix(arg, "-") && !both
		if !both {
			key, value = flag, arg
		}
		if credential(arg) != "" || !isFlag && value != "" && credentialKeys[normalKey(key)] {
			faults = append(faults, field.Forbidden(path.Index(i), "the argument looks like a credential; "+storePointer))
		}
		flag = ""
		if isFlag {
			flag = strings.TrimLeft(arg, "-")
		}
	}
	return faults
}

// isCredentialVariable reports whether an environment variable is named as one
// for a credential, such as AWS_SECRET_ACCESS_KEY.
func isCredentialVariable(name string) bool {
	normal := normalKey(name)
	for key := range credentialKeys {
		if strings.HasSuffix(normal, key) {
			return true
		}
	}
	return false
}

func oidc(oidc *clusterregistry.OIDCAccess, path *field.Path) field.ErrorList {
	faults := required(path, map[string]string{"issuerURL": oidc.IssuerURL, "clientID": oidc.ClientID})
	if oidc.IssuerURL != "" {
		faults = append(faults, invalid(path.Child("issuerURL"), oidc.IssuerURL, bareURL(oidc.IssuerURL, "must be an https URL: an issuer is not trusted without TLS", "https"))...)
	}
	return append(faults, noCredentials(path, map[string]string{"clientID": oidc.ClientID})...)
}
