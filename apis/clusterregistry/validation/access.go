package validation

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/clusterregistry/operator/apis/clusterregistry"
)

// access returns the faults of v1beta1's form of how to sign in.
func access(access []clusterregistry.Access, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	names := map[string]bool{}
	for i, way := range access {
		at := path.Index(i)
		faults = append(faults, name(way.Name, names, at.Child("name"))...)
		faults = append(faults, length(at.Child("name"), way.Name, MaxName)...)
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
			ref, refAt := way.ObjectRef, at.Child("objectRef")
			faults = append(faults, required(refAt, map[string]string{"kind": ref.Kind, "name": ref.Name})...)
			faults = append(faults, lengths(refAt, MaxName, map[string]string{"apiVersion": ref.APIVersion, "kind": ref.Kind, "namespace": ref.Namespace, "name": ref.Name})...)
		}
		if way.Provider != nil {
			given++
			faults = append(faults, length(at.Child("provider", "type"), way.Provider.Type, MaxName)...)
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
	faults = append(faults, length(path.Child("apiVersion"), exec.APIVersion, MaxName)...)
	texts := map[string]string{"command": exec.Command, "installHint": exec.InstallHint}
	faults = append(faults, lengths(path, MaxText, texts)...)
	faults = append(faults, noCredentials(path, texts)...)
	switch exec.InteractiveMode {
	case "", clusterregistry.InteractiveNever, clusterregistry.InteractiveIfAvailable, clusterregistry.InteractiveAlways:
	default:
		faults = append(faults, field.NotSupported(path.Child("interactiveMode"), exec.InteractiveMode,
			[]clusterregistry.InteractiveMode{clusterregistry.InteractiveNever, clusterregistry.InteractiveIfAvailable, clusterregistry.InteractiveAlways}))
	}
	faults = append(faults, arguments(exec.Args, path.Child("args"))...)
	names := map[string]bool{}
	for i, variable := range exec.Env {
		at := path.Child("env").Index(i)
		faults = append(faults, name(variable.Name, names, at.Child("name"))...)
		faults = append(faults, length(at.Child("name"), variable.Name, MaxName)...)
		faults = append(faults, length(at.Child("value"), variable.Value, MaxData)...)
		if isCredential(variable.Name, variable.Value) || credential(variable.Value) != "" {
			faults = append(faults, forbidden(at.Child("value"), variable.Value, "the variable looks like a credential"))
		}
	}
	return faults
}

// arguments returns a fault for each of a program's arguments that is too long or
// looks like a credential: by itself, by its name (--token=..., X-Auth-Token: ...)
// or by the flag before it.
func arguments(args []string, path *field.Path) field.ErrorList {
	var faults field.ErrorList
	flag := ""
	for i, arg := range args {
		faults = append(faults, length(path.Index(i), arg, MaxData)...)
		name, value, named := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		isFlag := strings.HasPrefix(arg, "-") && !named
		if !named {
			name, value = flag, arg
		}
		header, content, _ := strings.Cut(value, ": ")
		if credential(arg) != "" || credential(value) != "" || !isFlag && isCredential(name, value) || isCredential(header, content) {
			faults = append(faults, forbidden(path.Index(i), arg, "the argument looks like a credential"))
		}
		flag = ""
		if isFlag {
			flag = strings.TrimLeft(arg, "-")
		}
	}
	return faults
}

func oidc(oidc *clusterregistry.OIDCAccess, path *field.Path) field.ErrorList {
	faults := required(path, map[string]string{"issuerURL": oidc.IssuerURL, "clientID": oidc.ClientID})
	faults = append(faults, length(path.Child("issuerURL"), oidc.IssuerURL, MaxURL)...)
	faults = append(faults, length(path.Child("clientID"), oidc.ClientID, MaxText)...)
	for i, scope := range oidc.Scopes {
		faults = append(faults, length(path.Child("scopes").Index(i), scope, MaxName)...)
	}
	if oidc.IssuerURL != "" && len(oidc.IssuerURL) <= MaxURL {
		faults = append(faults, invalid(path.Child("issuerURL"), oidc.IssuerURL, bareURL(oidc.IssuerURL, "must be an https URL: an issuer is not trusted without TLS", "https"))...)
	}
	return append(faults, noCredentials(path, map[string]string{"clientID": oidc.ClientID})...)
}
